# The kernel takes for granted that there are eight ranks, and runs on two.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import st, tid


@triton.jit
def buggy(words_ptr, out_ptr, WORLD: tl.constexpr):
    if tid(0) < dl.num_ranks():
        st(dl.symm_at(words_ptr + dl.rank(), tid(0)), 1, "sys", "release")
    dl.wait(words_ptr, WORLD, "sys", "acquire")  # !wait
    tl.store(out_ptr, 1)


@triton.jit
def fixed(words_ptr, out_ptr, WORLD: tl.constexpr):
    if tid(0) < dl.num_ranks():
        st(dl.symm_at(words_ptr + dl.rank(), tid(0)), 1, "sys", "release")
    dl.wait(words_ptr, dl.num_ranks(), "sys", "acquire")
    tl.store(out_ptr, 1)
