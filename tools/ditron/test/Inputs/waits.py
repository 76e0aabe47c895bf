import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def nobody(signal_ptr, out_ptr):
    token = dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=1)
    signal_ptr = dl.consume_token(signal_ptr, token)
    tl.store(out_ptr, tl.load(signal_ptr))


@triton.jit
def counting(word_ptr, out_ptr):
    if tid(0) == 0:
        n = 0
        while ld(word_ptr, "sys", "acquire") == 0:
            n += 1
        st(out_ptr, n)
