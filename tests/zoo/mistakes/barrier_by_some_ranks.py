# A barrier of all ranks that one of them leaves out.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(out_ptr):
    if dl.rank() != 1:
        shmem.barrier_all_block()  # !wait
    tl.store(out_ptr, 1)


@triton.jit
def fixed(out_ptr):
    shmem.barrier_all_block()
    tl.store(out_ptr, 1)
