# Ranks pull from each other and rewrite what the other may still be pulling.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(x_ptr, flag_ptr):
    peer = 1 - dl.rank()
    i = tl.arange(0, 128)
    for k in range(1, 4):
        dl.notify(flag_ptr, peer, signal=k, sig_op="set", comm_scope="intra_node")
        dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=k, compare="ge")
        v = tl.load(dl.symm_at(x_ptr, peer) + i)  # !load
        tl.store(x_ptr + i, 0.5 * v)  # !store


@triton.jit
def fixed(x_ptr, flag_ptr):
    peer = 1 - dl.rank()
    i = tl.arange(0, 128)
    for k in range(1, 4):
        dl.notify(flag_ptr, peer, signal=k, sig_op="set", comm_scope="intra_node")
        dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=k, compare="ge")
        v = tl.load(dl.symm_at(x_ptr, peer) + i)
        dl.notify(flag_ptr + 1, peer, signal=k, sig_op="set", comm_scope="intra_node")
        dl.wait(flag_ptr + 1, 1, "sys", "acquire", waitValue=k, compare="ge")
        tl.store(x_ptr + i, 0.5 * v)
