# A rank raises a flag by hand where dl.notify and dl.wait would also fence: the receiver's bulk copy is not ordered behind the stores.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_global_to_shared, ld,
                                                       mbarrier_expect_tx, mbarrier_init, mbarrier_wait_parity, st,
                                                       tid)


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
    if dl.rank() == 0:
        tl.store(dl.symm_at(box_ptr, 1) + tl.arange(0, 128), tl.arange(0, 128) + 7)  # !store
        __syncthreads()
        if t == 0:
            st(dl.symm_at(flag_ptr, 1), 1, "sys", "release")
    else:
        if t == 0:
            while ld(flag_ptr, "sys", "acquire") == 0:
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
    if dl.rank() == 0:
        tl.store(dl.symm_at(box_ptr, 1) + tl.arange(0, 128), tl.arange(0, 128) + 7)
        dl.notify(flag_ptr, 1, signal=1, sig_op="set", comm_scope="intra_node")
    else:
        token = dl.wait(flag_ptr, 1, "sys", "acquire")
        if t == 0:
            fetch(row, bar, dl.consume_token(box_ptr, token))
        __syncthreads()
        mbarrier_wait_parity(bar, 0)
        st(out_ptr + t, dl.smem_load(row, t))
