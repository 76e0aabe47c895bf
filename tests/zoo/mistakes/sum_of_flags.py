"""One block waits until all others have raised their flags, by the sum of the flags: nobody raises its own."""
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import st, tid


@triton.jit
def buggy(flags_ptr, out_ptr):
    me = tl.program_id(0)
    if me > 0:
        if tid(0) == 0:
            st(flags_ptr + me, 1, "gpu", "release")
    else:
        while tl.sum(tl.load(flags_ptr + tl.arange(0, 32), volatile=True)) != 32:  # !load
            pass
        tl.store(out_ptr, 1)


@triton.jit
def fixed(flags_ptr, out_ptr):
    me = tl.program_id(0)
    if me > 0:
        if tid(0) == 0:
            st(flags_ptr + me, 1, "gpu", "release")
    else:
        while tl.sum(tl.load(flags_ptr + tl.arange(0, 32), volatile=True)) != 31:
            pass
        tl.store(out_ptr, 1)
