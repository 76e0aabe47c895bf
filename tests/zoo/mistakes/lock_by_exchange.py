# A lock that is taken by an exchange, which writes the value that is there already, over and over; one path does not give it back.
import triton
import triton.language as tl


@triton.jit
def buggy(lock_ptr, sum_ptr):
    while tl.atomic_xchg(lock_ptr, 1, sem="acquire", scope="gpu") != 0:  # !wait
        pass
    old = tl.load(sum_ptr)
    tl.debug_barrier()
    tl.store(sum_ptr, old + 1)
    tl.debug_barrier()
    if old != 1:
        tl.atomic_xchg(lock_ptr, 0, sem="release", scope="gpu")


@triton.jit
def fixed(lock_ptr, sum_ptr):
    while tl.atomic_xchg(lock_ptr, 1, sem="acquire", scope="gpu") != 0:
        pass
    old = tl.load(sum_ptr)
    tl.debug_barrier()
    tl.store(sum_ptr, old + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="release", scope="gpu")
