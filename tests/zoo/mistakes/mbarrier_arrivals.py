# An mbarrier that expects an arrival of each of two warps' first threads; one of them is left out.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, bar_warp_sync, ld, mbarrier_arrive, mbarrier_init,
                                                       mbarrier_wait_parity, st, tid)


@triton.jit
def buggy(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if thread == 0:
        mbarrier_init(bar, 2)
    __syncthreads()
    dl.smem_store(row, ld(x_ptr + thread), thread)
    bar_warp_sync()
    if thread == 0:
        mbarrier_arrive(bar)
    mbarrier_wait_parity(bar, 0)  # !wait
    st(out_ptr + thread, dl.smem_load(row, thread ^ 32))


@triton.jit
def fixed(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if thread == 0:
        mbarrier_init(bar, 4)
    __syncthreads()
    dl.smem_store(row, ld(x_ptr + thread), thread)
    bar_warp_sync()
    if thread % 32 == 0:
        mbarrier_arrive(bar)
    mbarrier_wait_parity(bar, 0)
    st(out_ptr + thread, dl.smem_load(row, thread ^ 32))
