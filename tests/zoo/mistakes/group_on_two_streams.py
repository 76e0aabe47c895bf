# A call of a communication group, which has one inbox and one flag. Two calls at a time use both at once.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def exchange(inbox_ptr, flag_ptr, call_ptr, x, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    call = tl.load(call_ptr) + 1  # !or count
    tl.debug_barrier()
    tl.store(call_ptr, call)  # !or count
    inbox_ptr += call % 2 * 128
    tl.store(dl.symm_at(inbox_ptr, peer) + i, x + 0 * i)  # !store
    dl.notify(flag_ptr, peer, signal=call, comm_scope="intra_node")
    token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=call, compare="ge")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))  # !store
