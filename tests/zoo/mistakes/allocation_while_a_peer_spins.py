# Rank 0's kernel waits for a signal of rank 1's, which rank 1 launches after an allocation. A driver that maps memory may wait for
# whatever runs on the GPUs, and so for rank 0's kernel.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def receive(flag_ptr, out_ptr):
    dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=1)  # !wait
    tl.store(out_ptr, 1)


@triton.jit
def send(flag_ptr, extra_ptr):
    tl.store(extra_ptr, 1)
    dl.notify(flag_ptr, 0, signal=1, comm_scope="intra_node")
