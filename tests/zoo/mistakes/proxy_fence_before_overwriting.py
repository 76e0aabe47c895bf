# A bulk copy overwrites what threads have stored in global memory before; which of the two stays is open without a fence.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_commit_group,
                                                       cp_async_bulk_shared_to_global, cp_async_bulk_wait_group,
                                                       fence_async_shared, fence_proxy_async, tid)


@triton.jit
def buggy(out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    tl.store(out_ptr + tl.arange(0, 128), tl.zeros([128], tl.int32))  # !store
    dl.smem_store(row, t + 5, t)
    fence_async_shared()
    __syncthreads()
    if t == 0:
        cp_async_bulk_shared_to_global(out_ptr, dl.smem_get_ptr(row), 512)  # !copy
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group(0)


@triton.jit
def fixed(out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    tl.store(out_ptr + tl.arange(0, 128), tl.zeros([128], tl.int32))
    dl.smem_store(row, t + 5, t)
    fence_proxy_async()
    __syncthreads()
    if t == 0:
        cp_async_bulk_shared_to_global(out_ptr, dl.smem_get_ptr(row), 512)
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group(0)
