# Two rows in shared memory; the index of the first one runs into the second.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, st, tid


@triton.jit
def buggy(out_ptr):
    thread = tid(0)
    first = dl.allocate_smem(tl.int32, [128])
    second = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(second, thread, thread)
    __syncthreads()
    dl.smem_store(first, 7, thread + 64)  # !access
    __syncthreads()
    st(out_ptr + thread, dl.smem_load(second, thread) + 0 * dl.smem_load(first, thread))


@triton.jit
def fixed(out_ptr):
    thread = tid(0)
    first = dl.allocate_smem(tl.int32, [128])
    second = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(second, thread, thread)
    __syncthreads()
    dl.smem_store(first, 7, (thread + 64) % 128)
    __syncthreads()
    st(out_ptr + thread, dl.smem_load(second, thread) + 0 * dl.smem_load(first, thread))
