# A spin lock that is taken with acquire but given back without release.
import triton
import triton.language as tl


@triton.jit
def buggy(lock_ptr, sum_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire", scope="gpu") != 0:
        pass
    count = tl.load(sum_ptr)  # !load
    tl.debug_barrier()
    tl.store(sum_ptr, count + 1)  # !store
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="relaxed", scope="gpu")  # !release


@triton.jit
def fixed(lock_ptr, sum_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire", scope="gpu") != 0:
        pass
    count = tl.load(sum_ptr)
    tl.debug_barrier()
    tl.store(sum_ptr, count + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="release", scope="gpu")
