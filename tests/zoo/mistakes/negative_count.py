# 100 elements for 8 ranks, 16 each: the last rank's count is 100 - 7 * 16, which is negative.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, source_ptr, n, out_ptr):
    i = tl.arange(0, 128)
    rank = dl.rank()
    count = tl.minimum(16, n - 16 * rank)
    shmem.putmem_block(data_ptr + 16 * rank, source_ptr, 4 * count, 0)  # !access
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))


@triton.jit
def fixed(data_ptr, source_ptr, n, out_ptr):
    i = tl.arange(0, 128)
    rank = dl.rank()
    count = tl.maximum(tl.minimum(16, n - 16 * rank), 0)
    shmem.putmem_block(data_ptr + 16 * rank, source_ptr, 4 * count, 0)
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))
