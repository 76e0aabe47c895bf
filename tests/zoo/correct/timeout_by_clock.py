# A kernel that waits for a word no longer than two milliseconds by the clock: nobody raises it, and still this is no deadlock.
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def kernel(word_ptr, out_ptr):
    if tid(0) == 0:
        end = globaltimer() + 2000000
        while (ld(word_ptr, "sys", "acquire") == 0) & (globaltimer() < end):
            pass
        st(out_ptr, ld(word_ptr, "sys", "acquire") + 7)
