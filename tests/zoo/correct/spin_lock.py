# A lock of one word: compare-and-swap with acquire, exchange with release. All ranks take the one of rank 0.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def kernel(lock_ptr, sum_ptr):
    lock = dl.symm_at(lock_ptr, 0)
    total = dl.symm_at(sum_ptr, 0)
    while tl.atomic_cas(lock, 0, 1, sem="acquire", scope="sys") != 0:
        pass
    count = tl.load(total)
    tl.debug_barrier()
    tl.store(total, count + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release", scope="sys")
