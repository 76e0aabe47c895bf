# All threads of a block try together to take a lock that is taken, a limited number of times.
import triton
import triton.language as tl


@triton.jit
def kernel(lock_ptr, out_ptr):
    tl.atomic_xchg(lock_ptr, 1)
    tries = 0
    while (tries < 3000) & (tl.atomic_xchg(lock_ptr, 1, sem="acquire") == 1):
        tries += 1
    tl.store(out_ptr, tries)
