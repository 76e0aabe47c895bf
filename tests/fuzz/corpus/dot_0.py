import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def kernel(h, c, f, b, d, e):
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    x = tl.load(h + tile)
    acc = tl.dot(x, x)
    acc = tl.dot(x, x, acc)
    half = tl.dot(x, x, out_dtype=tl.float16)
    tl.dot(x, x, acc=half)
    y = tl.load(c + tile)
    tl.dot(y, y)
    z = tl.load(f + tile)
    tl.dot(z, z)
    tl.dot(z, z, input_precision="ieee")
    tl.dot(z, z, input_precision="tf32x3")
    tl.dot(z, z, allow_tf32=False)
    w = tl.load(b + tile)
    tl.dot(w, w.T)
    v = tl.load(d + tile)
    tl.dot(v, v)
    g = tl.load(e + tile)
    tl.dot(g, g)
