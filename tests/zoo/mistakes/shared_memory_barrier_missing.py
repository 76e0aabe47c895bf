# Threads exchange values through shared memory without a barrier.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid


@triton.jit
def buggy(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(row, ld(x_ptr + thread), thread)  # !store
    st(out_ptr + thread, dl.smem_load(row, 127 - thread))  # !load


@triton.jit
def fixed(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(row, ld(x_ptr + thread), thread)
    __syncthreads()
    st(out_ptr + thread, dl.smem_load(row, 127 - thread))
