# The signal is sent first, the data behind it.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(inbox_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    right = (dl.rank() + 1) % dl.num_ranks()
    dl.notify(signal_ptr, right, signal=1, comm_scope="intra_node")
    tl.store(dl.symm_at(inbox_ptr, right) + i, i + 1)  # !store
    token = dl.wait(signal_ptr, 1, "sys", "acquire")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))  # !load


@triton.jit
def fixed(inbox_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    right = (dl.rank() + 1) % dl.num_ranks()
    tl.store(dl.symm_at(inbox_ptr, right) + i, i + 1)
    dl.notify(signal_ptr, right, signal=1, comm_scope="intra_node")
    token = dl.wait(signal_ptr, 1, "sys", "acquire")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))
