# A barrier of the warp where the threads that meet belong to several.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, bar_warp_sync, st, tid


@triton.jit
def buggy(out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [256])
    dl.smem_store(row, t, t)  # !store
    bar_warp_sync()
    st(out_ptr + t, dl.smem_load(row, (t + 1) % 256))  # !load


@triton.jit
def fixed(out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [256])
    dl.smem_store(row, t, t)
    __syncthreads()
    st(out_ptr + t, dl.smem_load(row, (t + 1) % 256))
