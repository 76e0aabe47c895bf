# dl.notify to a rank on another node, as if it were on this one.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(signal_ptr, out_ptr):
    if dl.rank() == 0:
        dl.notify(signal_ptr, 1, signal=1, comm_scope="intra_node")  # !notify
    else:
        dl.wait(signal_ptr, 1, "sys", "acquire")
        tl.store(out_ptr, 1)


@triton.jit
def fixed(signal_ptr, out_ptr):
    if dl.rank() == 0:
        dl.notify(signal_ptr, 1, signal=1, comm_scope="inter_node")
    else:
        dl.wait(signal_ptr, 1, "sys", "acquire")
        tl.store(out_ptr, 1)
