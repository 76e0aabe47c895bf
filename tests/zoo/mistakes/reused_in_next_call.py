# Two launches of one kernel send through the same buffer, with the flag 1 in both: the second call's wait is already satisfied.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(inbox_ptr, flag_ptr, call_ptr, x, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    tl.store(dl.symm_at(inbox_ptr, peer) + i, x + 0 * i)  # !store
    dl.notify(flag_ptr, peer, signal=1, comm_scope="intra_node")
    token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=1)
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))  # !load


@triton.jit
def fixed(inbox_ptr, flag_ptr, call_ptr, x, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    call = tl.load(call_ptr) + 1
    tl.debug_barrier()
    tl.store(call_ptr, call)
    inbox_ptr += call % 2 * 128  # a peer that is in call n has read what came in call n - 1, not yet that of call n
    tl.store(dl.symm_at(inbox_ptr, peer) + i, x + 0 * i)
    dl.notify(flag_ptr, peer, signal=call, comm_scope="intra_node")
    token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=call, compare="ge")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))
