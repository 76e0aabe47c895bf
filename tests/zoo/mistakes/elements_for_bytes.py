# The size of a put is counted in bytes; this one gives elements, so that three quarters never arrive.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, source_ptr, n, out_ptr):
    i = tl.arange(0, 128)
    shmem.putmem_block(data_ptr, source_ptr, n, 1 - dl.rank())
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))


@triton.jit
def fixed(data_ptr, source_ptr, n, out_ptr):
    i = tl.arange(0, 128)
    shmem.putmem_block(data_ptr, source_ptr, 4 * n, 1 - dl.rank())
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))
