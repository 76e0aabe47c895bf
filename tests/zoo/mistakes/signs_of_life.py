# Each block tells that it lives while it waits for the other; neither tells that it is done.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def buggy(alive_ptr, done_ptr):
    me = tl.program_id(0)
    if tid(0) == 0:
        seen = ld(done_ptr + 1 - me, "gpu", "acquire")  # !wait
        while seen == 0:
            st(alive_ptr + me, 1, "gpu", "relaxed")
            seen = ld(done_ptr + 1 - me, "gpu", "acquire")  # !wait
        st(done_ptr + me, 1, "gpu", "release")


@triton.jit
def fixed(alive_ptr, done_ptr):
    me = tl.program_id(0)
    if tid(0) == 0:
        st(done_ptr + me, 1, "gpu", "release")
        seen = ld(done_ptr + 1 - me, "gpu", "acquire")
        while seen == 0:
            st(alive_ptr + me, 1, "gpu", "relaxed")
            seen = ld(done_ptr + 1 - me, "gpu", "acquire")
