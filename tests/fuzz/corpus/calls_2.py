import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def kernel(p, n):
    a = scaled(n)
    b = scaled(factor=STEP, x=n, plus=2)
    c, d = several(n)
    e = power(2, 3)
    f = tl.arange(0, power(2, 3))
    g = power(n, 2)
    h = apply(several, n)[0]
    i = optional(n)
    TUPLE: tl.constexpr = (1, 2, 3)
    j = count(*TUPLE, n)
    K: tl.constexpr = nothing(n) is None
    tl.static_assert(K)
    tl.store(p + f, a + b + c + d + e + g + h + i + j)
