# Each of two blocks raises its flag and looks at the other's. One of them must see the other's raised, but only if a sequentially
# consistent fence stands between store and load: release and acquire let both loads be before both stores.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import fence, ld, st, tid


@triton.jit
def buggy(flags_ptr, seen_ptr):
    block = tl.program_id(0)
    if tid(0) == 0:
        st(flags_ptr + block, 1, "gpu", "release")
        if ld(flags_ptr + 1 - block, "gpu", "acquire") == 1:
            st(seen_ptr, 1, "gpu", "relaxed")


@triton.jit
def fixed(flags_ptr, seen_ptr):
    block = tl.program_id(0)
    if tid(0) == 0:
        st(flags_ptr + block, 1, "gpu", "relaxed")
        fence("sc", "gpu")
        if ld(flags_ptr + 1 - block, "gpu", "relaxed") == 1:
            st(seen_ptr, 1, "gpu", "relaxed")
