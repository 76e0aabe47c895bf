# A kernel that looks at a word a limited number of times and then gives up: nobody raises it, and still this is no deadlock.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def kernel(word_ptr, out_ptr):
    if tid(0) == 0:
        left = 20000
        while (left > 0) & (ld(word_ptr, "sys", "acquire") == 0):
            left -= 1
        st(out_ptr, left)
