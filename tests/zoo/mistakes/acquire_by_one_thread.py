# One thread waits for the flag, and the others do not wait for that thread.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, tid


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)  # !store
        dl.notify(flag_ptr, 1, signal=1, comm_scope="intra_node")
    else:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "acquire") != 1:
                pass
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !load


@triton.jit
def fixed(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)
        dl.notify(flag_ptr, 1, signal=1, comm_scope="intra_node")
    else:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "acquire") != 1:
                pass
        __syncthreads()
        tl.store(out_ptr + i, tl.load(data_ptr + i))
