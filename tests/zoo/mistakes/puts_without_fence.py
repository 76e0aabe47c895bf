# Two puts of one rank to one place: the second can arrive first.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, source_ptr, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    shmem.putmem_nbi_block(data_ptr, source_ptr, 512, peer)  # !first
    shmem.putmem_nbi_block(data_ptr, source_ptr + 128, 512, peer)  # !second
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))


@triton.jit
def fixed(data_ptr, source_ptr, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    shmem.putmem_nbi_block(data_ptr, source_ptr, 512, peer)
    shmem.fence()
    tl.debug_barrier()
    shmem.putmem_nbi_block(data_ptr, source_ptr + 128, 512, peer)
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(data_ptr + i))
