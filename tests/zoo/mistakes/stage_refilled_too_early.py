# A ring of two stages that is filled again without a wait for those who read it.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_global_to_shared, mbarrier_arrive,
                                                       mbarrier_expect_tx, mbarrier_init, mbarrier_wait_parity, st,
                                                       tid)


@triton.jit
def buggy(x_ptr, out_ptr):
    t = tid(0)
    rows = dl.allocate_smem(tl.int32, [2, 128])
    full = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [2]))
    empty = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [2]))
    if t == 0:
        for s in range(2):
            mbarrier_init(full + s, 1)
            mbarrier_init(empty + s, 64)
    __syncthreads()
    if t == 0:
        for k in range(8):
            mbarrier_expect_tx(full + k % 2, 512)  # !arrival
            cp_async_bulk_global_to_shared(dl.smem_get_ptr(rows, (k % 2, 0)), x_ptr + 128 * k, 512, full + k % 2)
    if t >= 64:
        for k in range(8):
            mbarrier_wait_parity(full + k % 2, (k // 2) % 2)
            st(out_ptr + 128 * k + t - 64, dl.smem_load(rows, (k % 2, t - 64)))
            st(out_ptr + 128 * k + t, dl.smem_load(rows, (k % 2, t)))
            mbarrier_arrive(empty + k % 2)


@triton.jit
def fixed(x_ptr, out_ptr):
    t = tid(0)
    rows = dl.allocate_smem(tl.int32, [2, 128])
    full = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [2]))
    empty = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [2]))
    if t == 0:
        for s in range(2):
            mbarrier_init(full + s, 1)
            mbarrier_init(empty + s, 64)
    __syncthreads()
    if t == 0:
        for k in range(8):
            if k >= 2:
                mbarrier_wait_parity(empty + k % 2, (k // 2 - 1) % 2)
            mbarrier_expect_tx(full + k % 2, 512)
            cp_async_bulk_global_to_shared(dl.smem_get_ptr(rows, (k % 2, 0)), x_ptr + 128 * k, 512, full + k % 2)
    if t >= 64:
        for k in range(8):
            mbarrier_wait_parity(full + k % 2, (k // 2) % 2)
            st(out_ptr + 128 * k + t - 64, dl.smem_load(rows, (k % 2, t - 64)))
            st(out_ptr + 128 * k + t, dl.smem_load(rows, (k % 2, t)))
            mbarrier_arrive(empty + k % 2)
