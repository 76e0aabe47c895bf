# An element is stored, then its index by a relaxed exchange: who reads the index may be given the element as it was.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import atomic_cas, ld, st, tid


@triton.jit
def buggy(pool_ptr, head_ptr, out_ptr):
    if tid(0) == 0:
        if tl.program_id(0) == 0:
            st(pool_ptr + 17, 99)  # !store
            atomic_cas(head_ptr, -1, 17, "gpu", "relaxed")
        else:
            h = ld(head_ptr, "gpu", "acquire")
            while h < 0:
                h = ld(head_ptr, "gpu", "acquire")
            st(out_ptr, ld(pool_ptr + h))  # !load


@triton.jit
def fixed(pool_ptr, head_ptr, out_ptr):
    if tid(0) == 0:
        if tl.program_id(0) == 0:
            st(pool_ptr + 17, 99)
            atomic_cas(head_ptr, -1, 17, "gpu", "release")
        else:
            h = ld(head_ptr, "gpu", "acquire")
            while h < 0:
                h = ld(head_ptr, "gpu", "acquire")
            st(out_ptr, ld(pool_ptr + h))
