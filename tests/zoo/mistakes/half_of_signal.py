# A word of 64 bits is written, and its lower half waited for.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def buggy(flag_ptr, out_ptr):
    peer = 1 - dl.rank()
    if tid(0) == 0:
        st(dl.symm_at(flag_ptr, peer), 4294967297, "sys", "release")  # !store
        w = flag_ptr.to(tl.pointer_type(tl.int32))
        while ld(w, "sys", "acquire") != 1:  # !load
            pass
        st(out_ptr, ld(flag_ptr, "sys", "acquire"))


@triton.jit
def fixed(flag_ptr, out_ptr):
    peer = 1 - dl.rank()
    if tid(0) == 0:
        st(dl.symm_at(flag_ptr, peer), 4294967297, "sys", "release")
        while ld(flag_ptr, "sys", "acquire") != 4294967297:
            pass
        st(out_ptr, ld(flag_ptr, "sys", "acquire"))
