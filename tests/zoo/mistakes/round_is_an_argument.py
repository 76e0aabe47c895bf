# The number of the round is an argument of the launch. A captured graph repeats it, so that in the second replay each wait is
# satisfied by the first.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(inbox_ptr, flag_ptr, call_ptr, round, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    inbox_ptr += round % 2 * 128
    x = tl.load(call_ptr) + 1
    tl.debug_barrier()
    tl.store(call_ptr, x)
    tl.store(dl.symm_at(inbox_ptr, peer) + i, x + 0 * i)  # !store
    dl.notify(flag_ptr, peer, signal=round, comm_scope="intra_node")
    token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=round, compare="ge")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))  # !load


@triton.jit
def fixed(inbox_ptr, flag_ptr, call_ptr, round, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    x = tl.load(call_ptr) + 1
    inbox_ptr += x % 2 * 128
    tl.debug_barrier()
    tl.store(call_ptr, x)
    tl.store(dl.symm_at(inbox_ptr, peer) + i, x + 0 * i)
    dl.notify(flag_ptr, peer, signal=x, comm_scope="intra_node")
    token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=x, compare="ge")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))
