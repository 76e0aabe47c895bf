# Threads, blocks and ranks store neighbouring bytes and halves of one word: no two of them the same byte.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import st, tid


@triton.jit
def kernel(bytes_ptr, halves_ptr, out_ptr):
    thread = tid(0)
    at = 2 * thread + tl.program_id(0)
    st(dl.symm_at(bytes_ptr, 0) + 2 * at + dl.rank(), (at % 100).to(tl.int8))
    st(dl.symm_at(halves_ptr, 0) + 2 * at + dl.rank(), at.to(tl.int16))
    st(out_ptr + at, at)
