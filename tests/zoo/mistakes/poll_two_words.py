# A thread polls two words in turn, in a loop of its own, and takes whichever comes first; nobody raises either.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def buggy(words_ptr, out_ptr):
    if tid(0) == 0:
        seen = ld(words_ptr, "sys", "acquire") + ld(words_ptr + 1, "sys", "acquire")  # !wait
        while seen == 0:
            seen = ld(words_ptr, "sys", "acquire") + ld(words_ptr + 1, "sys", "acquire")  # !wait
        st(out_ptr, seen)


@triton.jit
def fixed(words_ptr, out_ptr):
    if tid(0) == 0:
        st(dl.symm_at(words_ptr, 1 - dl.rank()) + dl.rank(), 1, "sys", "release")
        seen = ld(words_ptr, "sys", "acquire") + ld(words_ptr + 1, "sys", "acquire")
        while seen == 0:
            seen = ld(words_ptr, "sys", "acquire") + ld(words_ptr + 1, "sys", "acquire")
        st(out_ptr, seen)
