# A lock that is taken in the order of tickets: who has ticket t waits for `serving` to be t.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import __syncthreads, st, tid


@triton.jit
def kernel(ticket_ptr, serving_ptr, sum_ptr):
    ticket = tl.atomic_add(ticket_ptr, 1, sem="relaxed", scope="gpu")
    while tl.atomic_add(serving_ptr, 0, sem="acquire", scope="gpu") != ticket:
        pass
    count = tl.load(sum_ptr)
    tl.debug_barrier()
    tl.store(sum_ptr, count + 1)
    __syncthreads()
    if tid(0) == 0:
        st(serving_ptr, ticket + 1, "gpu", "release")
