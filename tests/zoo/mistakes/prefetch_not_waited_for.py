# A tile is fetched while the one before is used, and nothing waits for it.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, buf_ptr, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    shmem.getmem_nbi_block(buf_ptr, data_ptr, 256, peer)  # !get
    for k in range(4):
        if k < 3:
            shmem.getmem_nbi_block(buf_ptr + ((k + 1) % 2) * 128, data_ptr + 128 * (k + 1), 256, peer)  # !get
        v = tl.load(buf_ptr + (k % 2) * 128 + i)  # !load
        tl.store(out_ptr + 128 * k + i, v)
        tl.debug_barrier()


@triton.jit
def fixed(data_ptr, buf_ptr, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    shmem.getmem_nbi_block(buf_ptr, data_ptr, 256, peer)
    for k in range(4):
        shmem.quiet()
        tl.debug_barrier()
        v = tl.load(buf_ptr + (k % 2) * 128 + i)
        tl.store(out_ptr + 128 * k + i, v)
        tl.debug_barrier()
        if k < 3:
            shmem.getmem_nbi_block(buf_ptr + ((k + 1) % 2) * 128, data_ptr + 128 * (k + 1), 256, peer)
