# Data and flag lie side by side, each stored by itself without an order: no access races, and still the flag may arrive first.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def buggy(slots_ptr, out_ptr):
    lane = tid(0)
    if dl.rank() == 0:
        slot = dl.symm_at(slots_ptr, 1) + 2 * lane
        st(slot, lane + 100, "sys", "relaxed")
        st(slot + 1, 1, "sys", "relaxed")
    else:
        slot = slots_ptr + 2 * lane
        while ld(slot + 1, "sys", "relaxed") != 1:
            pass
        st(out_ptr + lane, ld(slot, "sys", "relaxed"), "gpu")


@triton.jit
def fixed(slots_ptr, out_ptr):
    lane = tid(0)
    slot = slots_ptr.to(tl.pointer_type(tl.int64)) + lane
    if dl.rank() == 0:
        slot = dl.symm_at(slot, 1)
        st(slot, (tl.full((), 1, tl.int64) << 32) + lane + 100, "sys", "relaxed")
    else:
        both = ld(slot, "sys", "relaxed")
        while both >> 32 != 1:
            both = ld(slot, "sys", "relaxed")
        st(out_ptr + lane, both.to(tl.int32), "gpu")
