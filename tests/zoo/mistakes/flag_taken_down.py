# The flag is the same in every call, and each call takes it down before it begins. A peer that is faster has raised it for the next
# call by then, and its signal is lost.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(flag_ptr, call_ptr, out_ptr):
    peer = 1 - dl.rank()
    dl.notify(flag_ptr, peer, signal=1, comm_scope="intra_node")  # !raise
    dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=1)
    tl.store(out_ptr, 1)


@triton.jit
def fixed(flag_ptr, call_ptr, out_ptr):
    peer = 1 - dl.rank()
    call = tl.load(call_ptr) + 1
    tl.debug_barrier()
    tl.store(call_ptr, call)
    dl.notify(flag_ptr, peer, signal=call, comm_scope="intra_node")
    dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=call, compare="ge")
    tl.store(out_ptr, 1)
