# A 64-bit value is published as two words of 32 bits: the reader may see the new half beside the old one.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def buggy(flag_ptr, out_ptr):
    if dl.rank() == 0:
        halves = dl.symm_at(flag_ptr, 1).to(tl.pointer_type(tl.int32))
        if tid(0) == 0:
            st(halves, 7, "sys", "release")  # !store
            st(halves + 1, 5, "sys", "release")  # !store
    else:
        if tid(0) == 0:
            seen = ld(flag_ptr, "sys", "acquire")  # !load
            while seen == 0:
                seen = ld(flag_ptr, "sys", "acquire")  # !load
            st(out_ptr, seen, "gpu")


@triton.jit
def fixed(flag_ptr, out_ptr):
    if dl.rank() == 0:
        if tid(0) == 0:
            st(dl.symm_at(flag_ptr, 1), 0x500000007, "sys", "release")
    else:
        if tid(0) == 0:
            seen = ld(flag_ptr, "sys", "acquire")
            while seen == 0:
                seen = ld(flag_ptr, "sys", "acquire")
            st(out_ptr, seen, "gpu")
