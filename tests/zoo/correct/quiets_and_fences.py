# Whose quiet or fence it is does not matter where a barrier hands it on: each thread puts a part, one fences or is quiet, another signals; blocks
# finish what others have put, and a kernel what the one before has.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import __syncthreads, tid
from triton_dist.kernels.nvidia.common_ops import barrier_on_this_grid


@triton.jit
def kernel(data_ptr, source_ptr, signal_ptr, grid_ptr, out_ptr):
    t = tid(0)
    i = tl.arange(0, 128)
    block = tl.program_id(0)
    peer = 1 - dl.rank()
    # Each thread puts its word and fences; or one does for all, and another signals.
    shmem.putmem_nbi(data_ptr + 128 * block + t, source_ptr + 128 * block + t, 4, peer)
    if block == 0:
        shmem.fence()
        __syncthreads()
        if t == 5:
            shmem.signal_op(signal_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, peer)
    else:
        __syncthreads()
        if t == 64:
            shmem.fence()
        __syncthreads()
        if t == 5:
            shmem.signal_op(signal_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, peer)
    dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=2, compare="ge")
    tl.store(out_ptr + 128 * block + i, tl.load(data_ptr + 128 * block + i))
    # One block is quiet for both, and overwrites what they have sent.
    barrier_on_this_grid(grid_ptr, False)
    if block == 1:
        shmem.quiet()
        tl.debug_barrier()
        tl.store(source_ptr + i, 100)
        tl.store(source_ptr + 128 + i, 100)
        tl.debug_barrier()
        shmem.putmem_block(data_ptr + 256, source_ptr, 512, peer)


@triton.jit
def again(data_ptr, source_ptr, signal_ptr, grid_ptr, out_ptr):
    # What the kernel before has put is quiet here, and put over.
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    if tl.program_id(0) == 0:
        shmem.quiet()
        tl.debug_barrier()
        tl.store(source_ptr + i, 7 + i)
        tl.debug_barrier()
        shmem.putmem_signal_block(data_ptr + 256, source_ptr, 512, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, peer)
        dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=3)
        tl.store(out_ptr + 256 + i, tl.load(data_ptr + 256 + i))
