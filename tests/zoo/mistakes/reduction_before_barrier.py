# A sum over all ranks, after a barrier of the block alone: the others may not have stored yet.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import __syncthreads, multimem_ld_reduce_v4, st, tid


@triton.jit
def buggy(x_ptr, out_ptr):
    t = tid(0)
    i = tl.arange(0, 128)
    tl.store(x_ptr + i, (dl.rank() + 1).to(tl.float32) + 0.0 * i)  # !store
    __syncthreads()
    a, b, c, d = multimem_ld_reduce_v4(x_ptr + 4 * t, tl.float32)  # !load
    st(out_ptr + 4 * t, a)
    st(out_ptr + 4 * t + 1, b)
    st(out_ptr + 4 * t + 2, c)
    st(out_ptr + 4 * t + 3, d)
    shmem.barrier_all_block()


@triton.jit
def fixed(x_ptr, out_ptr):
    t = tid(0)
    i = tl.arange(0, 128)
    tl.store(x_ptr + i, (dl.rank() + 1).to(tl.float32) + 0.0 * i)
    shmem.barrier_all_block()
    a, b, c, d = multimem_ld_reduce_v4(x_ptr + 4 * t, tl.float32)
    st(out_ptr + 4 * t, a)
    st(out_ptr + 4 * t + 1, b)
    st(out_ptr + 4 * t + 2, c)
    st(out_ptr + 4 * t + 3, d)
    shmem.barrier_all_block()
