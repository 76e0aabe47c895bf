# One exchange of two ranks. buggy: the host counts the rounds. fixed: a word in memory is written before each replay.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def exchange(inbox_ptr, flag_ptr, round, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    inbox_ptr += round % 2 * 128
    tl.store(dl.symm_at(inbox_ptr, peer) + i, round + 0 * i)
    dl.notify(flag_ptr, peer, signal=round, comm_scope="intra_node")
    token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=round, compare="ge")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))


@triton.jit
def buggy(inbox_ptr, flag_ptr, round, out_ptr):
    exchange(inbox_ptr, flag_ptr, round, out_ptr)


@triton.jit
def fixed(inbox_ptr, flag_ptr, round_ptr, out_ptr):
    exchange(inbox_ptr, flag_ptr, tl.load(round_ptr), out_ptr)
