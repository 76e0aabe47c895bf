# One thread sets up an mbarrier; the others wait at it before there is one.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_global_to_shared,
                                                       fence_async_shared, mbarrier_expect_tx, mbarrier_init,
                                                       mbarrier_wait_parity, st, tid)


@triton.jit
def buggy(x_ptr, out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if t == 0:
        mbarrier_init(bar, 1)
        fence_async_shared()
        mbarrier_expect_tx(bar, 512)
        cp_async_bulk_global_to_shared(dl.smem_get_ptr(row), x_ptr, 512, bar)
    mbarrier_wait_parity(bar, 0)  # !wait
    st(out_ptr + t, dl.smem_load(row, t))


@triton.jit
def fixed(x_ptr, out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if t == 0:
        mbarrier_init(bar, 1)
        fence_async_shared()
        mbarrier_expect_tx(bar, 512)
        cp_async_bulk_global_to_shared(dl.smem_get_ptr(row), x_ptr, 512, bar)
    __syncthreads()
    mbarrier_wait_parity(bar, 0)
    st(out_ptr + t, dl.smem_load(row, t))
