# A put by one thread of what all threads have stored, without a barrier of the block in between.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import tid


@triton.jit
def buggy(data_ptr, source_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(source_ptr + i, i + 1)  # !store
    if tid(0) == 0:
        shmem.putmem(data_ptr, source_ptr, 512, 1 - dl.rank())  # !put
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))


@triton.jit
def fixed(data_ptr, source_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(source_ptr + i, i + 1)
    tl.debug_barrier()
    if tid(0) == 0:
        shmem.putmem(data_ptr, source_ptr, 512, 1 - dl.rank())
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))
