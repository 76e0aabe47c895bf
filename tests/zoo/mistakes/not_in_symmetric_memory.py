# The address on a peer of a buffer that does not lie in symmetric memory.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(box_ptr, flag_ptr, out_ptr):
    peer = 1 - dl.rank()
    i = tl.arange(0, 128)
    tl.store(dl.symm_at(box_ptr, peer) + i, i)  # !store
    dl.notify(flag_ptr, peer)
    token = dl.wait(flag_ptr, 1, "sys", "acquire")
    box_ptr = dl.consume_token(box_ptr, token)
    tl.store(out_ptr + i, tl.load(box_ptr + i))


@triton.jit
def fixed(box_ptr, flag_ptr, out_ptr):
    peer = 1 - dl.rank()
    i = tl.arange(0, 128)
    tl.store(dl.symm_at(box_ptr, peer) + i, i)
    dl.notify(flag_ptr, peer)
    token = dl.wait(flag_ptr, 1, "sys", "acquire")
    box_ptr = dl.consume_token(box_ptr, token)
    tl.store(out_ptr + i, tl.load(box_ptr + i))
