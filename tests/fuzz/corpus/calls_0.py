import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def several(x):
    return x + 1, x - 1


@triton.jit
def power(x, N: tl.constexpr):
    if N == 0:
        return 1
    else:
        return x * power(x, N - 1)


@triton.jit
def apply(fn, x):
    return fn(x)


