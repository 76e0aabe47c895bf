# A ring of one stage, filled twice. The second wait asks for the parity of the first phase, which is complete already.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_global_to_shared,
                                                       mbarrier_expect_tx, mbarrier_init, mbarrier_wait_parity, st, tid)


@triton.jit
def buggy(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if thread == 0:
        mbarrier_init(bar, 1)
    __syncthreads()
    for step in range(2):
        if thread == 0:
            mbarrier_expect_tx(bar, 512)
            cp_async_bulk_global_to_shared(dl.smem_get_ptr(row), x_ptr + 128 * step, 512, bar)  # !copy
        mbarrier_wait_parity(bar, 0)
        st(out_ptr + 128 * step + thread, dl.smem_load(row, thread))  # !load
        __syncthreads()


@triton.jit
def fixed(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if thread == 0:
        mbarrier_init(bar, 1)
    __syncthreads()
    for step in range(2):
        if thread == 0:
            mbarrier_expect_tx(bar, 512)
            cp_async_bulk_global_to_shared(dl.smem_get_ptr(row), x_ptr + 128 * step, 512, bar)
        mbarrier_wait_parity(bar, step)
        st(out_ptr + 128 * step + thread, dl.smem_load(row, thread))
        __syncthreads()
