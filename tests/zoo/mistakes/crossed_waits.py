# Each of two ranks waits for the other's signal before it sends its own.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(signal_ptr, out_ptr):
    peer = 1 - dl.rank()
    dl.wait(signal_ptr, 1, "sys", "acquire")  # !wait
    dl.notify(signal_ptr, peer, signal=1, comm_scope="intra_node")
    tl.store(out_ptr, 1)


@triton.jit
def fixed(signal_ptr, out_ptr):
    peer = 1 - dl.rank()
    dl.notify(signal_ptr, peer, signal=1, comm_scope="intra_node")
    dl.wait(signal_ptr, 1, "sys", "acquire")
    tl.store(out_ptr, 1)
