# A bulk store reads what all threads have stored in shared memory. The proxy fence stands wherever it likes between the two: the writers', that of one
# thread behind the barrier, that of the thread that copies.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_commit_group, cp_async_bulk_shared_to_global,
                                                       cp_async_bulk_wait_group, fence_async_shared, tid)


@triton.jit
def kernel(out_ptr):
    t = tid(0)
    way = tl.program_id(0)
    row = dl.allocate_smem(tl.int32, [128])
    for turn in range(3):
        dl.smem_store(row, t + 1000 * way + turn, t)
        if way == 0:
            fence_async_shared()
        __syncthreads()
        if way == 1:
            if t == 64:
                fence_async_shared()
            __syncthreads()
        if t == 0:
            if way == 2:
                fence_async_shared()
            cp_async_bulk_shared_to_global(out_ptr + 128 * way, dl.smem_get_ptr(row), 512)
            cp_async_bulk_commit_group()
            cp_async_bulk_wait_group(0)
        __syncthreads()
