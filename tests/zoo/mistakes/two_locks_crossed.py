# Even blocks take the locks in one order, odd blocks in the other.
import triton
import triton.language as tl


@triton.jit
def buggy(locks_ptr, sum_ptr):
    first = tl.program_id(0) % 2
    while tl.atomic_cas(locks_ptr + first, 0, 1, sem="acquire", scope="gpu") != 0:  # !wait
        pass
    while tl.atomic_cas(locks_ptr + 1 - first, 0, 1, sem="acquire", scope="gpu") != 0:  # !wait
        pass
    count = tl.load(sum_ptr)
    tl.debug_barrier()
    tl.store(sum_ptr, count + 1)
    tl.debug_barrier()
    tl.atomic_xchg(locks_ptr, 0, sem="release", scope="gpu")
    tl.atomic_xchg(locks_ptr + 1, 0, sem="release", scope="gpu")


@triton.jit
def fixed(locks_ptr, sum_ptr):
    while tl.atomic_cas(locks_ptr, 0, 1, sem="acquire", scope="gpu") != 0:
        pass
    while tl.atomic_cas(locks_ptr + 1, 0, 1, sem="acquire", scope="gpu") != 0:
        pass
    count = tl.load(sum_ptr)
    tl.debug_barrier()
    tl.store(sum_ptr, count + 1)
    tl.debug_barrier()
    tl.atomic_xchg(locks_ptr + 1, 0, sem="release", scope="gpu")
    tl.atomic_xchg(locks_ptr, 0, sem="release", scope="gpu")
