# Each warp puts a part, one thread signals: its fence orders the puts before it, which those of other warps need not be.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import __syncthreads, tid, warp_idx


@triton.jit
def buggy(src_ptr, box_ptr, sig_ptr, out_ptr):
    t = tid(0)
    w = warp_idx()
    peer = 1 - dl.rank()
    shmem.putmem_nbi_warp(box_ptr + 128 * w, src_ptr + 128 * w, 256, peer)  # !put
    if t == 0:
        shmem.fence()
        shmem.signal_op(sig_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, peer)
    shmem.signal_wait_until(sig_ptr, shmem.NVSHMEM_CMP_GE, 1)
    __syncthreads()
    i = tl.arange(0, 512)
    tl.store(out_ptr + i, tl.load(box_ptr + i))  # !load


@triton.jit
def fixed(src_ptr, box_ptr, sig_ptr, out_ptr):
    t = tid(0)
    w = warp_idx()
    peer = 1 - dl.rank()
    shmem.putmem_nbi_warp(box_ptr + 128 * w, src_ptr + 128 * w, 256, peer)
    __syncthreads()
    if t == 0:
        shmem.fence()
        shmem.signal_op(sig_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, peer)
    shmem.signal_wait_until(sig_ptr, shmem.NVSHMEM_CMP_GE, 1)
    __syncthreads()
    i = tl.arange(0, 512)
    tl.store(out_ptr + i, tl.load(box_ptr + i))
