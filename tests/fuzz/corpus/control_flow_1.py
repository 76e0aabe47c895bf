import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def while_loops(p, n):
    count = 1
    while count < n:
        count = count * 2
    tl.store(p, count)
    while tl.load(p, volatile=True) != 0:
        pass
@triton.jit
def specialised(p, n):
    for i in range(10):
        n = n * 2
    tl.store(p, n)
@triton.jit
def endless(p, n):
    i = n
    while i > 0:
        i = tl.maximum(i, 1)
    while tl.load(p) > 0:
        tl.store(p, n)
