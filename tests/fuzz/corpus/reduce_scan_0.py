import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def larger(a, ai, b, bi):
    if a > b:
        return a, ai
    else:
        return b, bi


@triton.jit
def clipped_sum(a, b):
    total = a + b
    return total if total < 100.0 else 100.0
@triton.jit
def kernel(p, small, half):
    i = tl.arange(0, 16)
    x = tl.load(p + i[:, None] * 16 + i[None, :])
    n = tl.load(small + i)
    h = tl.load(half + i)
    s = tl.sum(x, axis=1)
    t = x.sum(axis=-1, keep_dims=True)
    u = tl.max(x)
    v = tl.sum(n)
    w = tl.min(h, axis=0)
    y = tl.max(n, axis=0)
    best, where = tl.max(s, axis=0, return_indices=True)
    am = tl.argmin(s, axis=0, tie_break_left=False)
    value, index = tl.reduce((s, i), 0, larger)
    c = tl.associative_scan(s, 0, clipped_sum, reverse=True)
    d = tl.cumsum(x, axis=1)
    e = tl.cumprod(s, axis=0)
    f = tl.softmax(s)
    tl.store(p + i, s + c + e + f + value + best + u + w)
