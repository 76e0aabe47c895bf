# Data and its flag in one word of 64 bits, stored and loaded whole and relaxed: who sees the flag has the data, without any order.
# The flag is the number of the round, so that words of the last one say nothing; what is read is acknowledged every round.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid


@triton.jit
def kernel(words_ptr, read_ptr, out_ptr):
    thread = tid(0)
    for step in range(1, 4):
        if dl.rank() == 0:
            if thread == 0:
                while ld(read_ptr, "sys", "acquire") < step - 1:
                    pass
            __syncthreads()
            word = (step.to(tl.int64) << 32) + 100 * step + thread
            st(dl.symm_at(words_ptr, 1) + thread, word, "sys", "relaxed")
        else:
            word = ld(words_ptr + thread, "sys", "relaxed")
            while word >> 32 != step:
                word = ld(words_ptr + thread, "sys", "relaxed")
            st(out_ptr + 128 * (step - 1) + thread, word.to(tl.int32))
            __syncthreads()
            if thread == 0:
                st(dl.symm_at(read_ptr, 0), step, "sys", "release")
