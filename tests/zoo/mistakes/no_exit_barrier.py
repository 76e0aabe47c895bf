# Every rank reads its neighbour's row, in each of two calls: the row is written anew while the neighbour still reads the first one.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import st, tid


@triton.jit
def enter(words_ptr, call):
    tl.debug_barrier()
    if tid(0) < dl.num_ranks():
        st(dl.symm_at(words_ptr + dl.rank(), tid(0)), call, "sys", "release")
    dl.wait(words_ptr, dl.num_ranks(), "sys", "acquire", waitValue=call, compare="ge")


@triton.jit
def buggy(row_ptr, words_ptr, out_ptr):
    i = tl.arange(0, 128)
    peer = (dl.rank() + 1) % dl.num_ranks()
    for call in range(1, 3):
        tl.store(row_ptr + i, 100 * call + dl.rank() + 0 * i)  # !store
        enter(words_ptr, call)
        tl.store(out_ptr + 128 * (call - 1) + i, tl.load(dl.symm_at(row_ptr, peer) + i))  # !load


@triton.jit
def fixed(row_ptr, words_ptr, out_ptr):
    i = tl.arange(0, 128)
    peer = (dl.rank() + 1) % dl.num_ranks()
    for call in range(1, 3):
        tl.store(row_ptr + i, 100 * call + dl.rank() + 0 * i)
        enter(words_ptr, 2 * call - 1)
        tl.store(out_ptr + 128 * (call - 1) + i, tl.load(dl.symm_at(row_ptr, peer) + i))
        enter(words_ptr, 2 * call)
