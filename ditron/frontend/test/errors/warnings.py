# RUN: ditron-import %s:kernel --signature "*fp32, i32" 2>&1 | FileCheck %s
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
