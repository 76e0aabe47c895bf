# The producer arrives at a named barrier before it has stored.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, named_barrier_arrive, named_barrier_sync, st, tid


@triton.jit
def buggy(x_ptr, out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [64])
    if t < 64:
        named_barrier_arrive(3, 128)
        dl.smem_store(row, ld(x_ptr + t), t)  # !store
    else:
        named_barrier_sync(3, 128)
        st(out_ptr + t - 64, dl.smem_load(row, t - 64))  # !load


@triton.jit
def fixed(x_ptr, out_ptr):
    t = tid(0)
    row = dl.allocate_smem(tl.int32, [64])
    if t < 64:
        dl.smem_store(row, ld(x_ptr + t), t)
        named_barrier_arrive(3, 128)
    else:
        named_barrier_sync(3, 128)
        st(out_ptr + t - 64, dl.smem_load(row, t - 64))
