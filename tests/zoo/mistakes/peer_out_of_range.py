# The right neighbour of the last rank, without the modulus.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(inbox_ptr, signal_ptr):
    i = tl.arange(0, 128)
    right = dl.rank() + 1
    tl.store(dl.symm_at(inbox_ptr, right) + i, i)  # !access
    dl.notify(signal_ptr, right, signal=1, comm_scope="intra_node")
    dl.wait(signal_ptr, 1, "sys", "acquire")


@triton.jit
def fixed(inbox_ptr, signal_ptr):
    i = tl.arange(0, 128)
    right = (dl.rank() + 1) % dl.num_ranks()
    tl.store(dl.symm_at(inbox_ptr, right) + i, i)
    dl.notify(signal_ptr, right, signal=1, comm_scope="intra_node")
    dl.wait(signal_ptr, 1, "sys", "acquire")
