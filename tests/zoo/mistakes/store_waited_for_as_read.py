# A bulk store that has read its source has not written its destination yet: the flag is raised too early.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_commit_group,
                                                       cp_async_bulk_shared_to_global, cp_async_bulk_wait_group,
                                                       fence_async_shared, ld, st, tid)


@triton.jit
def buggy(box_ptr, flag_ptr, out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    if tl.program_id(0) == 0:
        dl.smem_store(row, t + 5, t)
        fence_async_shared()
        __syncthreads()
        if t == 0:
            cp_async_bulk_shared_to_global(box_ptr, dl.smem_get_ptr(row), 512)  # !copy
            cp_async_bulk_commit_group()
            cp_async_bulk_wait_group(0, True)
            st(flag_ptr, 1, "gpu", "release")
    else:
        if t == 0:
            while ld(flag_ptr, "gpu", "acquire") == 0:
                pass
        __syncthreads()
        st(out_ptr + t, ld(box_ptr + t))  # !load


@triton.jit
def fixed(box_ptr, flag_ptr, out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    if tl.program_id(0) == 0:
        dl.smem_store(row, t + 5, t)
        fence_async_shared()
        __syncthreads()
        if t == 0:
            cp_async_bulk_shared_to_global(box_ptr, dl.smem_get_ptr(row), 512)
            cp_async_bulk_commit_group()
            cp_async_bulk_wait_group(0)
            st(flag_ptr, 1, "gpu", "release")
    else:
        if t == 0:
            while ld(flag_ptr, "gpu", "acquire") == 0:
                pass
        __syncthreads()
        st(out_ptr + t, ld(box_ptr + t))
