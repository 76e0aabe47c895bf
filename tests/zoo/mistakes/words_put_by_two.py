# A word that two ranks put: atomic for whoever polls it, and whose it is at last nobody knows.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import tid


@triton.jit
def buggy(word_ptr, out_ptr):
    me = dl.rank()
    if tid(0) == 0:
        if me != 0:
            shmem.int_p(word_ptr, me, 0)  # !put
    shmem.barrier_all_block()
    tl.store(out_ptr, tl.load(word_ptr))


@triton.jit
def fixed(word_ptr, out_ptr):
    me = dl.rank()
    if tid(0) == 0:
        if me != 0:
            shmem.int_p(word_ptr + me, me, 0)
    shmem.barrier_all_block()
    tl.store(out_ptr, tl.load(word_ptr + dl.num_ranks() - 1))
