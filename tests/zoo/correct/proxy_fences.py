# Wherever the fence stands on the way from a store to a bulk copy: behind the store, in a thread between the two, behind the acquire.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_global_to_shared,
                                                       fence_proxy_async, ld, mbarrier_expect_tx, mbarrier_init,
                                                       mbarrier_wait_parity, st, tid)


@triton.jit
def fetch(row, bar, box_ptr):
    mbarrier_init(bar, 1)
    mbarrier_expect_tx(bar, 512)
    cp_async_bulk_global_to_shared(dl.smem_get_ptr(row), box_ptr, 512, bar)


@triton.jit
def kernel(box_ptr, flag_ptr, out_ptr):
    t = tid(0)
    place = tl.program_id(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    # 0: the writers fence. 1: one thread fences for the block. 2: the reader fences. Block 3 + i reads what block i has written.
    if place < 3:
        tl.store(box_ptr + 128 * place + tl.arange(0, 128), tl.arange(0, 128) + place)
        if place == 0:
            fence_proxy_async()
        __syncthreads()
        if t == 0:
            if place == 1:
                fence_proxy_async()
            st(flag_ptr + place, 1, "gpu", "release")
    else:
        # Thread 32 learns of the stores, thread 0 copies.
        if t == 32:
            while ld(flag_ptr + place - 3, "gpu", "acquire") == 0:
                pass
            if place == 5:
                fence_proxy_async()
        __syncthreads()
        if t == 0:
            fetch(row, bar, box_ptr + 128 * (place - 3))
        __syncthreads()
        mbarrier_wait_parity(bar, 0)
        st(out_ptr + 128 * (place - 3) + t, dl.smem_load(row, t))
