import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def kernel(p, n):
    i = tl.arange(0, 16)
    tl.arange(-8, 8)
    z = tl.zeros((16, 32), tl.float16)
    tl.full([16], 7, dtype=tl.int64)
    tl.full((4,), float("-inf"), tl.float32)
    tl.full((16,), n, tl.int64)
    tl.full((), 3, tl.float32)
    c = i[:, None]
    r = i[None, :]
    i[None, :, None]
    i[None]
    m = c + r
    m * i
    m + n
    c.broadcast_to(16, 64)
    x, y = tl.broadcast(c, r)
    tl.reshape(m, (8, 32))
    m.reshape(4, 64)
    m.ravel()
    z.T
    tl.trans(z)
    tl.permute(m.reshape(4, 8, 8), (2, 0, 1))
    tl.expand_dims(m, -1)
    tl.squeeze(c, 1)
    tl.full((1, 1), n, tl.int32).item()
    p + i
    p - n
    p + i.to(tl.uint32)
    tl.where(i < n, p + i, p)
    tl.where(i < n, 1.0, float("inf"))
