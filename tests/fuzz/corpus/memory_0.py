import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def kernel(p, q, b, u, h, n, pp):
    i = tl.arange(0, 16)
    s = tl.load(p)
    x = tl.load(p + i, mask=i < n, other=1.5, cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
    tl.load(p + i[:, None], mask=i[None, :] < n)
    tl.load(p + i, mask=True)
    flags = tl.load(b + i)
    tl.store(tl.load(pp), s)
    tl.store(h + i, x, mask=flags, cache_modifier=".wt", eviction_policy="evict_first")
    tl.store(p + i, 0)
    tl.atomic_add(q, 1)
    tl.atomic_add(p + i, x, mask=i < n, sem="relaxed", scope="sys")
    tl.atomic_add(h, 1.0, sem="release", scope="cta")
    tl.atomic_max(q, 3, sem="acquire")
    tl.atomic_min(u, 3)
    tl.atomic_max(p, 3)
    tl.atomic_and(q, 3)
    tl.atomic_or(q, 3)
    tl.atomic_xor(q, 3)
    old = tl.atomic_xchg(p, 3)
    tl.atomic_cas(q, 0, old.to(tl.int32))
    n = tl.multiple_of(n, 16)
    tl.max_contiguous(i, 16)
    tl.max_constancy(i[None, :], [1, 4])
    tl.assume(n > 0)
    tl.debug_barrier()
