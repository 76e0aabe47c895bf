import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def after_you(flags_ptr, seen_ptr):
    # Two blocks raise a flag each and look at the other's: without a fence both may miss it.
    me = tl.program_id(0)
    if tid(0) == 0:
        st(flags_ptr + me, 1, "gpu", "relaxed")
        if ld(flags_ptr + 1 - me, "gpu", "relaxed") == 1:
            st(seen_ptr, 1, "gpu", "relaxed")


@triton.jit
def first(order_ptr, place_ptr):
    # Which block comes first is left open.
    tl.store(place_ptr + tl.program_id(0), tl.atomic_add(order_ptr, 1))


@triton.jit
def unordered(flag_ptr, data_ptr, out_ptr):
    # Only a block that comes late makes the other see its data.
    if tl.program_id(0) == 0:
        tl.store(data_ptr, 7)
        tl.atomic_xchg(flag_ptr, 1, sem="relaxed")
    elif tl.atomic_add(flag_ptr, 0, sem="relaxed") == 1:
        tl.store(out_ptr, tl.load(data_ptr))
