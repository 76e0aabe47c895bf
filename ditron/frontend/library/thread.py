"""Thread-level functions that are made of others: arrivals, waits, one atomic per warp."""
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import (__shfl_sync_i32, __syncthreads, atomic_add, laneid, ld_acquire,
                                                       red_release)


@triton.jit
def arrive_inc(barrier_ptr, thread_idx, value, scope: tl.constexpr):
    """The barrier puts the stores of the whole block before the release of thread 0."""
    __syncthreads()
    if thread_idx == 0:
        red_release(barrier_ptr, value, scope)


@triton.jit
def arrive_inc_asm(barrier_ptr, thread_idx, value, scope: tl.constexpr = "gpu"):
    arrive_inc(barrier_ptr, thread_idx, value, scope)


@triton.jit
def wait_eq(barrier_ptr, thread_idx, value, scope: tl.constexpr):
    """What thread 0 has acquired, the barrier hands to the block."""
    if thread_idx == 0:
        while ld_acquire(barrier_ptr, scope) != value:
            pass
    __syncthreads()


@triton.jit
def atomic_add_per_warp(barrier_ptr, value, scope: tl.constexpr, semantic: tl.constexpr):
    old = tl.full((), 0, barrier_ptr.dtype.element_ty)
    if laneid() == 0:
        old = atomic_add(barrier_ptr, value, scope, semantic)
    return __shfl_sync_i32(0xFFFFFFFF, old, 0)
