# One warp hands a row in shared memory to another by a flag that is raised with relaxed order.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, bar_warp_sync, ld, st, tid


@triton.jit
def buggy(out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [32])
    flag = dl.smem_get_ptr(dl.allocate_smem(tl.int32, [1]))
    if t == 0:
        st(flag, 0)
    __syncthreads()
    if t < 32:
        dl.smem_store(row, t, t)
        bar_warp_sync()
        if t == 0:
            st(flag, 1, "cta", "relaxed")  # !flag
    elif t >= 96:
        while ld(flag, "cta", "acquire") != 1:  # !poll
            pass
        st(out_ptr + t - 96, dl.smem_load(row, t - 96))


@triton.jit
def fixed(out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [32])
    flag = dl.smem_get_ptr(dl.allocate_smem(tl.int32, [1]))
    if t == 0:
        st(flag, 0)
    __syncthreads()
    if t < 32:
        dl.smem_store(row, t, t)
        bar_warp_sync()
        if t == 0:
            st(flag, 1, "cta", "release")
    elif t >= 96:
        while ld(flag, "cta", "acquire") != 1:
            pass
        st(out_ptr + t - 96, dl.smem_load(row, t - 96))
