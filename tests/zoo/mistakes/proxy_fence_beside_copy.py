# A thread that knows of all stores fences, and another one copies at once: nothing says which of the two was first.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_commit_group,
                                                       cp_async_bulk_shared_to_global, cp_async_bulk_wait_group,
                                                       fence_async_shared, tid)


@triton.jit
def copy(out_ptr, row):
    cp_async_bulk_shared_to_global(out_ptr, dl.smem_get_ptr(row), 512)  # !copy
    cp_async_bulk_commit_group()
    cp_async_bulk_wait_group(0)


@triton.jit
def buggy(out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(row, thread + 1, thread)  # !store
    __syncthreads()
    if thread == 0:
        fence_async_shared()
    if thread == 64:
        copy(out_ptr, row)


@triton.jit
def fixed(out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(row, thread + 1, thread)
    __syncthreads()
    if thread == 0:
        fence_async_shared()
    __syncthreads()
    if thread == 64:
        copy(out_ptr, row)
