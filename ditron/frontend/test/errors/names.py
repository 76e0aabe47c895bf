# RUN: not ditron-import %s:kernel --signature "*fp32, i32, constexpr BLOCK=64" 2>&1 | FileCheck %s
# Names: unknown, hidden, global, foreign.
import math

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language import aragne
from triton_dist.language.extra import libshmem_device
from my_helpers import scale

PLAIN = 5
ANNOTATED: tl.constexpr = 5
ALIAS = PLAIN
FIRST = tl.constexpr(SECOND)
# CHECK: names.py:[[#@LINE-1]]:22: error: name 'SECOND' is not defined
# CHECK-NEXT: FIRST = tl.constexpr(SECOND)
# CHECK-NEXT:                      ^~~~~~
# CHECK-NEXT: names.py:[[#@LINE+15]]:17: note: needed here
SECOND = tl.constexpr(FIRST)
COMPUTED = torch.ones(3)


class Config:
    pass


def host(x):
    return x


@triton.jit
def kernel(p, n, BLOCK: tl.constexpr):
    tl.store(p, FIRST)
    tl.store(p, pp)
    # CHECK: names.py:[[#@LINE-1]]:17: error: name 'pp' is not defined; did you mean 'p'?
    # CHECK-NEXT:     tl.store(p, pp)
    # CHECK-NEXT:                 ^~
    tl.store(p, PLAIN)
    # CHECK: names.py:[[#@LINE-1]]:17: error: Cannot access global variable 'PLAIN' from a kernel: it is not wrapped in tl.constexpr
    # CHECK-NEXT:     tl.store(p, PLAIN)
    # CHECK-NEXT:                 ^~~~~
    # CHECK-NEXT: names.py:[[#@LINE-31]]:1: note: defined here
    # CHECK-NEXT: PLAIN = 5
    # CHECK-NEXT: ^~~~~
    # CHECK-NEXT: note: write PLAIN = tl.constexpr(...) at module level, or pass it as an argument
    tl.store(p, ANNOTATED)
    # CHECK: names.py:[[#@LINE-1]]:17: error: Cannot access global variable 'ANNOTATED' from a kernel: an annotation alone does not make it compile-time
    # CHECK-NEXT:     tl.store(p, ANNOTATED)
    # CHECK-NEXT:                 ^~~~~~~~~
    # CHECK-NEXT: names.py:[[#@LINE-38]]:1: note: defined here
    # CHECK-NEXT: ANNOTATED: tl.constexpr = 5
    # CHECK-NEXT: ^~~~~~~~~
    # CHECK-NEXT: note: write ANNOTATED = tl.constexpr(...) at module level, or pass it as an argument
    tl.store(p, ALIAS)
    # CHECK: names.py:[[#@LINE-1]]:17: error: Cannot access global variable 'ALIAS' from a kernel: it is not wrapped in tl.constexpr
    # CHECK-NEXT:     tl.store(p, ALIAS)
    # CHECK-NEXT:                 ^~~~~
    # CHECK-NEXT: names.py:[[#@LINE-45]]:1: note: defined here
    # CHECK-NEXT: ALIAS = PLAIN
    # CHECK-NEXT: ^~~~~
    # CHECK-NEXT: note: write ALIAS = tl.constexpr(...) at module level, or pass it as an argument
    tl.store(p, COMPUTED)
    # CHECK: names.py:[[#@LINE-1]]:17: error: the value of 'COMPUTED' depends on `torch.ones(3)`, which is not known at compile time
    # CHECK-NEXT:     tl.store(p, COMPUTED)
    # CHECK-NEXT:                 ^~~~~~~~
    # CHECK-NEXT: names.py:[[#@LINE-46]]:12: note: here
    # CHECK-NEXT: COMPUTED = torch.ones(3)
    # CHECK-NEXT:            ^~~~~~~~~~~~~
    # CHECK-NEXT: note: say what it is: --define 'torch.ones(3)=VALUE', or --define COMPUTED=VALUE
    i = aragne(0, 64)
    # CHECK: names.py:[[#@LINE-1]]:9: error: module 'triton.language' has no 'aragne'; did you mean 'arange'?
    # CHECK-NEXT:     i = aragne(0, 64)
    # CHECK-NEXT:         ^~~~~~
    j = tl.aragne(0, 64)
    # CHECK: names.py:[[#@LINE-1]]:12: error: module 'triton.language' has no 'aragne'; did you mean 'arange'?
    # CHECK-NEXT:     j = tl.aragne(0, 64)
    # CHECK-NEXT:            ^~~~~~
    c = Config()
    # CHECK: names.py:[[#@LINE-1]]:9: error: class 'Config' cannot be used in a kernel: it is neither decorated with @triton.aggregate nor a NamedTuple
    # CHECK-NEXT:     c = Config()
    # CHECK-NEXT:         ^~~~~~
    h = host(n)
    # CHECK: names.py:[[#@LINE-1]]:9: error: function 'host' cannot be called from a kernel: it is not decorated with @triton.jit
    # CHECK-NEXT:     h = host(n)
    # CHECK-NEXT:         ^~~~~~~
    # CHECK-NEXT: names.py:[[#@LINE-59]]:1: note: declared here
    # CHECK-NEXT: def host(x):
    # CHECK-NEXT: ^~~~~~~~~~~~
    a = torch.sum(n)
    # CHECK: names.py:[[#@LINE-1]]:15: error: module 'torch' cannot be used in a kernel
    # CHECK-NEXT:     a = torch.sum(n)
    # CHECK-NEXT:               ^~~
    # CHECK-NEXT: note: only the modules triton, triton_dist and ditron exist inside of kernels
    b = np.matmul
    # CHECK: names.py:[[#@LINE-1]]:12: error: module 'numpy' cannot be used in a kernel
    # CHECK-NEXT:     b = np.matmul
    # CHECK-NEXT:            ^~~~~~
    # CHECK-NEXT: note: only the modules triton, triton_dist and ditron exist inside of kernels
    s = scale(n)
    # CHECK: names.py:[[#@LINE-1]]:9: error: 'scale' of module 'my_helpers' cannot be called in a kernel
    # CHECK-NEXT:     s = scale(n)
    # CHECK-NEXT:         ^~~~~
    t = libshmem_device.my_pee()
    # CHECK: names.py:[[#@LINE-1]]:25: error: module 'libshmem_device' has no 'my_pee'; did you mean 'my_pe'?
    # CHECK-NEXT:     t = libshmem_device.my_pee()
    # CHECK-NEXT:                         ^~~~~~
    if n > 3:
        w = 1
    tl.store(p, w)
    # CHECK: names.py:[[#@LINE-1]]:17: error: name 'w' is not defined on every path to this place
    # CHECK-NEXT:     tl.store(p, w)
    # CHECK-NEXT:                 ^
    # CHECK-NEXT: names.py:[[#@LINE-6]]:8: note: it is assigned only in one branch of this if
    # CHECK-NEXT:     if n > 3:
    # CHECK-NEXT:        ^~~~~
    # CHECK-NEXT: note: assign it before that statement
    for k in range(n):
        v = k
    tl.store(p, v)
    # CHECK: names.py:[[#@LINE-1]]:17: error: name 'v' is not defined on every path to this place
    # CHECK-NEXT:     tl.store(p, v)
    # CHECK-NEXT:                 ^
    # CHECK-NEXT: names.py:[[#@LINE-6]]:5: note: it is assigned only inside of this loop
    # CHECK-NEXT:     for k in range(n):
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~
    # CHECK-NEXT: note: assign it before that statement
    lens(p)
    # CHECK: names.py:[[#@LINE-1]]:5: error: name 'lens' is not defined; did you mean 'len'?
    # CHECK-NEXT:     lens(p)
    # CHECK-NEXT:     ^~~~
    tl.float32(n)
    # CHECK: names.py:[[#@LINE-1]]:5: error: dtype fp32 cannot be called
    # CHECK-NEXT:     tl.float32(n)
    # CHECK-NEXT:     ^~~~~~~~~~
    # CHECK-NEXT: note: convert with x.to(dtype)
