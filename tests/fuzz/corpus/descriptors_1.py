import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def held(p, q, n, stride, flag):
    a = tl.make_tensor_descriptor(p, [n, 64], [stride, 1], [8, 64])
    pair = (a, tl.make_tensor_descriptor(q, [n, 64], [stride, 1], [8, 64]))
    b = double(pair[1], 8)
    for i in range(n):
        a.store([i, 0], tl.zeros((8, 64), tl.float32))
        a, b = b, a
    if flag:
        c = pair[0]
        d = pair[0]
    else:
        c = pair[1]
        d = pair[0]
    x = c.load([0, 0])
    d.store([0, 0], x)
