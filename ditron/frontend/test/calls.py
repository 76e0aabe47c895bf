# RUN: ditron-import %s:kernel --signature "*i32, i32" | FileCheck %s
# RUN: ditron-import %s:kernel --signature "*i32, i32" --locations | FileCheck %s --check-prefix=LOC
# Calls of @jit functions are inlined; defaults, keywords, star parameters, function values, recursion that ends.
import triton
import triton.language as tl
from triton import jit

STEP = tl.constexpr(3)
DEFAULT = 7


@jit
def scaled(x, factor=DEFAULT, *, plus: tl.constexpr = 0):
    return x * factor + plus


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


@triton.jit
def count(*values):
    return len(values)


@triton.jit
def nothing(x):
    x + 1


@triton.jit
def optional(x, other=None):
    if other is None:
        return x
    return x + other


# CHECK-LABEL: func.func @kernel
# CHECK-SAME: (%[[P:.*]]: !tile.ptr<i32>, %[[N:.*]]: i32)
@triton.jit
def kernel(p, n):
    # CHECK: %[[SEVEN:.*]] = arith.constant 7 : i32
    # CHECK: %[[A:.*]] = arith.muli %[[N]], %[[SEVEN]]
    a = scaled(n)
    # CHECK: %[[THREE:.*]] = arith.constant 3 : i32
    # CHECK: arith.muli %[[N]], %[[THREE]]
    # CHECK: arith.constant 2 : i32
    b = scaled(factor=STEP, x=n, plus=2)
    # CHECK: arith.addi %[[N]]
    # CHECK: arith.subi %[[N]]
    c, d = several(n)
    # A literal stays a compile-time number in the callee.
    # CHECK-NOT: arith.muli
    # CHECK: tile.arange 0, 8
    e = power(2, 3)
    f = tl.arange(0, power(2, 3))
    # CHECK-COUNT-2: arith.muli %[[N]]
    g = power(n, 2)
    h = apply(several, n)[0]
    i = optional(n)
    TUPLE: tl.constexpr = (1, 2, 3)
    j = count(*TUPLE, n)
    K: tl.constexpr = nothing(n) is None
    tl.static_assert(K)
    # CHECK: tile.store
    tl.store(p + f, a + b + c + d + e + g + h + i + j)


# Every operation has a place, and those of callees name the call too.
# LOC-NOT: unknown
# LOC-DAG: loc({{.*}}"{{.*}}calls.py":14:12 to :22)
# LOC-DAG: callsite
# LOC-NOT: unknown
