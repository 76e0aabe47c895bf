# What a non-blocking get brings is read before a quiet.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, copy_ptr, out_ptr):
    i = tl.arange(0, 128)
    shmem.getmem_nbi_block(copy_ptr, data_ptr, 512, 1 - dl.rank())  # !get
    tl.store(out_ptr + i, tl.load(copy_ptr + i))  # !load
    shmem.quiet()


@triton.jit
def fixed(data_ptr, copy_ptr, out_ptr):
    i = tl.arange(0, 128)
    shmem.getmem_nbi_block(copy_ptr, data_ptr, 512, 1 - dl.rank())
    shmem.quiet()
    tl.debug_barrier()
    tl.store(out_ptr + i, tl.load(copy_ptr + i))
