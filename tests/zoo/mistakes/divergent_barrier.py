# Half of the threads call the block's barrier, inside of a branch; the others wait for a word that comes behind it.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid


@triton.jit
def buggy(word_ptr, out_ptr):
    if tid(0) < 64:
        __syncthreads()  # !wait
        if tid(0) == 0:
            st(word_ptr, 1, "gpu", "release")
    else:
        while ld(word_ptr, "gpu", "acquire") != 1:
            pass
        __syncthreads()
    st(out_ptr + tid(0), 1)


@triton.jit
def fixed(word_ptr, out_ptr):
    __syncthreads()
    if tid(0) == 0:
        st(word_ptr, 1, "gpu", "release")
    if tid(0) >= 64:
        while ld(word_ptr, "gpu", "acquire") != 1:
            pass
    st(out_ptr + tid(0), 1)
