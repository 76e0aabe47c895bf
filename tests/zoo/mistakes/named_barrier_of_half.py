# Two of four warps meet at a named barrier, and then read what all four have stored.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, named_barrier_arrive, named_barrier_sync, st, tid


@triton.jit
def buggy(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(row, ld(x_ptr + thread), thread)  # !store
    if thread < 64:
        named_barrier_sync(1, 64)
        st(out_ptr + thread, dl.smem_load(row, 127 - thread))  # !load


@triton.jit
def fixed(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(row, ld(x_ptr + thread), thread)
    if thread >= 64:
        named_barrier_arrive(1, 128)
    if thread < 64:
        named_barrier_sync(1, 128)
        st(out_ptr + thread, dl.smem_load(row, 127 - thread))
