# A graph: a kernel that writes into the peer's memory, and, on another stream, the signal that it is there. The edge between them
# begins in front of the kernel instead of behind it.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def produce(data_ptr, call_ptr):
    i = tl.arange(0, 128)
    call = tl.load(call_ptr) + 1
    tl.debug_barrier()
    tl.store(call_ptr, call)
    tl.store(dl.symm_at(data_ptr, 1) + i, call + i)  # !store


@triton.jit
def consume(data_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(out_ptr + i, tl.load(data_ptr + i))  # !load
