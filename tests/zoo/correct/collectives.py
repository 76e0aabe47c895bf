# Broadcast, barrier, get and collect, each complete when it says so.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def kernel(x_ptr, all_ptr, copy_ptr, out_ptr):
    i = tl.arange(0, 128)
    rank, ranks = dl.rank(), dl.num_ranks()
    tl.store(x_ptr + i, 100 * rank + i)
    shmem.barrier_all_block()
    shmem.getmem_block(copy_ptr, x_ptr, 512, (rank + 1) % ranks)
    shmem.fcollect_block(shmem.NVSHMEM_TEAM_WORLD, all_ptr, x_ptr, 128)
    tl.store(x_ptr + i, 0 * i)
    total = tl.load(copy_ptr + i)
    for source in range(ranks):
        total += tl.load(all_ptr + 128 * source + i)
    tl.store(out_ptr + i, total)
