# A barrier that does not complete puts, where one that does is needed.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, source_ptr, out_ptr):
    i = tl.arange(0, 128)
    shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1 - dl.rank())  # !put
    shmem.sync_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))  # !load
    shmem.quiet()


@triton.jit
def fixed(data_ptr, source_ptr, out_ptr):
    i = tl.arange(0, 128)
    shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1 - dl.rank())
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))
