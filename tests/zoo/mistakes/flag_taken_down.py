# Each launch takes its flag down when it has seen it. A peer that is faster has raised it for the next launch by then.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import st, tid


@triton.jit
def buggy(flag_ptr, call_ptr, out_ptr):
    peer = 1 - dl.rank()
    dl.notify(flag_ptr, peer, signal=1, comm_scope="intra_node")
    dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=1)  # !wait
    if tid(0) == 0:
        st(flag_ptr, 0, "sys", "relaxed")
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
