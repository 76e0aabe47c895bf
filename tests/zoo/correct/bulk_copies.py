# Bulk copies in both directions with their mbarrier, their groups and the fence between kinds of access.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_commit_group,
                                                       cp_async_bulk_global_to_shared, cp_async_bulk_shared_to_global,
                                                       cp_async_bulk_wait_group, fence_async_shared, mbarrier_expect_tx,
                                                       mbarrier_init, mbarrier_wait_parity, tid)


@triton.jit
def kernel(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if thread == 0:
        mbarrier_init(bar, 1)
    __syncthreads()
    for step in range(3):
        if thread == 0:
            mbarrier_expect_tx(bar, 512)
            cp_async_bulk_global_to_shared(dl.smem_get_ptr(row), x_ptr + 128 * step, 512, bar)
        mbarrier_wait_parity(bar, step % 2)
        dl.smem_store(row, dl.smem_load(row, thread) + 1, thread)
        fence_async_shared()
        __syncthreads()
        if thread == 0:
            cp_async_bulk_shared_to_global(out_ptr + 128 * step, dl.smem_get_ptr(row), 512)
            cp_async_bulk_commit_group()
            cp_async_bulk_wait_group(0)
        __syncthreads()
