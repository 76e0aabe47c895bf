# A named barrier of 128 threads, at which only 96 arrive.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, named_barrier_sync, st, tid


@triton.jit
def buggy(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(row, ld(x_ptr + thread), thread)
    if thread < 96:
        named_barrier_sync(1, 128)  # !wait
        st(out_ptr + thread, dl.smem_load(row, 95 - thread))


@triton.jit
def fixed(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(row, ld(x_ptr + thread), thread)
    if thread < 96:
        named_barrier_sync(1, 96)
        st(out_ptr + thread, dl.smem_load(row, 95 - thread))
