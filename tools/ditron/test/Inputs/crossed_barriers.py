# Half of the threads meet at barrier 1 and then 2, the others the other way round.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import named_barrier_sync, tid


@triton.jit
def crossed(out_ptr):
    if tid(0) < 64:
        named_barrier_sync(1, 128)
        named_barrier_sync(2, 128)
    else:
        named_barrier_sync(2, 128)
        named_barrier_sync(1, 128)
    tl.store(out_ptr, 1)
