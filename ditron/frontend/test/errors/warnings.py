# RUN: ditron-import %s:kernel --signature "*fp32, i32" --capability 90 2>&1 | FileCheck %s
# What is suspicious but no error.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n):
    x = n << 32
    # CHECK: warnings.py:[[#@LINE-1]]:9: warning: shifting int32 by 32 is undefined
    # CHECK-NEXT:     x = n << 32
    # CHECK-NEXT:         ^~~~~~~
    tl.assume(False)
    # CHECK: warnings.py:[[#@LINE-1]]:5: warning: this assumption is false at compile time
    # CHECK-NEXT:     tl.assume(False)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~
    i = tl.arange(0, 32)
    tl.where(i & 1, i, 0)
    # CHECK: warnings.py:[[#@LINE-1]]:14: warning: tl.where with a condition of type int32, which is no int1: Triton converts it, and calls that deprecated; compare it: condition != 0
    # CHECK-NEXT:     tl.where(i & 1, i, 0)
    # CHECK-NEXT:              ^~~~~
    tl.view(i, (4, 8))
    # CHECK: warnings.py:[[#@LINE-1]]:5: warning: tl.view is deprecated in Triton: use tl.reshape
    max(i, n)
    # CHECK: warnings.py:[[#@LINE-1]]:5: warning: max of blocks is deprecated in Triton: use tl.maximum
    a = tl.zeros((32, 32), tl.float8e4b15)
    tl.dot(a, a)
    # CHECK: warnings.py:[[#@LINE-1]]:5: warning: fp8e4b15 is deprecated on Hopper and later: it is multiplied as fp16; use fp8e4nv or fp8e5
    # CHECK-NOT: warning
    tl.where(i > 1, i, 0)
    max(n, 3)
    tl.reshape(i, (4, 8))
