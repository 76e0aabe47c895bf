# Two peers add to a word, and the receiver waits until it is exactly one: when both have come it is two.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(signal_ptr, out_ptr):
    if dl.rank() == 0:
        dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=1)  # !wait
        tl.store(out_ptr, 1)
    else:
        dl.notify(signal_ptr, 0, signal=1, sig_op="add", comm_scope="intra_node")


@triton.jit
def fixed(signal_ptr, out_ptr):
    if dl.rank() == 0:
        dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=1, compare="ge")
        tl.store(out_ptr, 1)
    else:
        dl.notify(signal_ptr, 0, signal=1, sig_op="add", comm_scope="intra_node")
