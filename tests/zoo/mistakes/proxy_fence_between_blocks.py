# A block acquires what another one has released and fetches it by a bulk copy: the acquire is about ordinary accesses.
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
    cp_async_bulk_global_to_shared(dl.smem_get_ptr(row), box_ptr, 512, bar)  # !copy


@triton.jit
def buggy(box_ptr, flag_ptr, out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if tl.program_id(0) == 0:
        tl.store(box_ptr + tl.arange(0, 128), tl.arange(0, 128) + 7)  # !store
        __syncthreads()
        if t == 0:
            st(flag_ptr, 1, "gpu", "release")
    else:
        if t == 0:
            while ld(flag_ptr, "gpu", "acquire") == 0:
                pass
            fetch(row, bar, box_ptr)
        __syncthreads()
        mbarrier_wait_parity(bar, 0)
        st(out_ptr + t, dl.smem_load(row, t))


@triton.jit
def fixed(box_ptr, flag_ptr, out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if tl.program_id(0) == 0:
        tl.store(box_ptr + tl.arange(0, 128), tl.arange(0, 128) + 7)
        __syncthreads()
        if t == 0:
            st(flag_ptr, 1, "gpu", "release")
    else:
        if t == 0:
            while ld(flag_ptr, "gpu", "acquire") == 0:
                pass
            fence_proxy_async()
            fetch(row, bar, box_ptr)
        __syncthreads()
        mbarrier_wait_parity(bar, 0)
        st(out_ptr + t, dl.smem_load(row, t))
