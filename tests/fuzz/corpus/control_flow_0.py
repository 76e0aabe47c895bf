import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def branches(p, n, f, STATIC: tl.constexpr):
    if STATIC:
        a = n
    else:
        undefined_function(raise_me)
    if not STATIC and undefined_name:
        pass
    if n > 3:
        a = n + 1
        b = 1
        only_here = 3
    else:
        b = 2
    c = a + b
    if n == 1:
        c = 1
    elif n == 2:
        c = 2
    if f > 1.0:
        tl.store(p, c)
    v = f if f > 0 else -f
    w = n if STATIC else undefined_name
    if n:
        tl.store(p, w)
    if p:
        tl.store(p, 0)
@triton.jit
def early_return(p, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    value = pid + 1
    if value == 7:
        tl.store(p, 7)
        return
    tl.store(p + pid, value)
    return
    this_is_never_visited()
@triton.jit
def for_loops(p, n, wide, unsigned):
    total = 0
    scale = 1.0
    fixed = 5
    for i in range(n):
        total += i * fixed
        scale *= 2.0
        local = i
    tl.store(p, total)
    for long in range(0, wide):
        tl.store(p + long, 1)
    for u in range(unsigned):
        tl.store(p + u, 1)
    for j in range(n, 0, -1):
        tl.store(p + j, 2)
    for k in tl.range(0, n, 2, num_stages=3, loop_unroll_factor=2, flatten=True, warp_specialize=True,
                      disallow_acc_multi_buffer=True):
        tl.store(p + k, 3)
    for s in tl.static_range(2, 4):
        SIZE: tl.constexpr = 2**s
        tl.store(p + tl.arange(0, SIZE), s)
    pair = (n, 0)
    for last in range(n):
        pair = (pair[1], pair[0] + 1)
    tl.store(p, pair[0] + pair[1] + last)
