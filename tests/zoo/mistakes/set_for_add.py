# Two ranks set a word to one; the third waits for two.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(flag_ptr, out_ptr):
    if dl.rank() > 0:
        dl.notify(flag_ptr, 0, signal=1, sig_op="set", comm_scope="intra_node")
    else:
        dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=2, compare="ge")  # !wait
        tl.store(out_ptr, 1)


@triton.jit
def fixed(flag_ptr, out_ptr):
    if dl.rank() > 0:
        dl.notify(flag_ptr, 0, signal=1, sig_op="add", comm_scope="intra_node")
    else:
        dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=2, compare="ge")
        tl.store(out_ptr, 1)
