# Rank r writes its row into its right neighbour's inbox and tells it so.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def push(inbox_ptr, flag_ptr, out_ptr, call):
    i = tl.arange(0, 128)
    right = (dl.rank() + 1) % dl.num_ranks()
    tl.store(dl.symm_at(inbox_ptr, right) + i, dl.rank() + 0 * i)
    dl.notify(flag_ptr, right, signal=call, comm_scope="intra_node")
    token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=call, compare="ge")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))
