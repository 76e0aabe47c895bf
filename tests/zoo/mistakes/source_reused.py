# The source of a non-blocking put is overwritten before a quiet.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, source_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(source_ptr + i, i + 1)
    tl.debug_barrier()
    shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1 - dl.rank())  # !put
    tl.store(source_ptr + i, 0 * i)  # !store
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))


@triton.jit
def fixed(data_ptr, source_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(source_ptr + i, i + 1)
    tl.debug_barrier()
    shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1 - dl.rank())
    shmem.quiet()
    tl.debug_barrier()
    tl.store(source_ptr + i, 0 * i)
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))
