import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def kernel(f, d, n, u):
    tl.exp(f)
    tl.math.exp2(d)
    f.log()
    tl.log2(f)
    tl.sqrt(f)
    libdevice.rsqrt(f)
    tl.sin(f)
    tl.cos(f)
    tl.erf(f)
    tl.floor(f)
    tl.ceil(f)
    tl.extra.libdevice.tanh(f)
    tl.abs(f)
    abs(n)
    tl.abs(u)
    tl.fma(f, f, 2.0)
    tl.fdiv(f, 2.0)
    tl.div_rn(f, f)
    tl.umulhi(u, u)
    tl.sigmoid(f)
    tl.clamp(f, 0.0, 1.0)
    tl.cdiv(n, 16)
    i, j = tl.swizzle2d(n, n, n, n, 4)
    libdevice.pow(f, f)
