# A path that leaves without giving the lock back.
import triton
import triton.language as tl


@triton.jit
def buggy(lock_ptr, sum_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire", scope="gpu") != 0:  # !wait
        pass
    old = tl.load(sum_ptr)
    tl.debug_barrier()
    tl.store(sum_ptr, old + 1)
    tl.debug_barrier()
    if old != 1:
        tl.atomic_xchg(lock_ptr, 0, sem="release", scope="gpu")


@triton.jit
def fixed(lock_ptr, sum_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire", scope="gpu") != 0:
        pass
    old = tl.load(sum_ptr)
    tl.debug_barrier()
    tl.store(sum_ptr, old + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="release", scope="gpu")
