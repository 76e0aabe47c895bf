# RUN: not ditron-import %s:kernel --signature "*i32, i32" 2>&1 | FileCheck %s
# RUN: not ditron-import %s:deep --signature "*i32, i32" 2>&1 | FileCheck %s --check-prefix=DEEP
# Rules of calls, unpacking and loop exits, with the words of Triton's messages.
import triton
import triton.language as tl


@triton.jit(noinline=True)
def heavy(x, k):
    return tl.arange(0, 8) + x


@triton.jit
def endless(x):
    return endless(x + 1)
    # DEEP: rules.py:[[#@LINE-1]]:12: error: calls are nested more than 64 deep: 'endless' seems to call itself without end
    # DEEP-NEXT:     return endless(x + 1)
    # DEEP-NEXT:            ^~~~~~~~~~~~~~
    # DEEP-NEXT: rules.py:[[#@LINE+62]]:5: note: the outermost call is here


@triton.jit
def exits(x):
    break
    # CHECK: rules.py:[[#@LINE-1]]:5: error: 'break' outside of a loop
    # CHECK-NEXT:     break
    # CHECK-NEXT:     ^~~~~


@triton.jit
def kernel(p, n):
    for i in range(n):
        exits(i)
    a = heavy(n, 3)
    b = heavy(a, 3)
    # CHECK: rules.py:[[#@LINE-1]]:15: error: Function heavy is marked noinline, but was called with non-scalar argument x: int32[8]
    # CHECK-NEXT:     b = heavy(a, 3)
    # CHECK-NEXT:               ^
    if (1, 2):
    # CHECK: rules.py:[[#@LINE-1]]:8: error: `if` conditionals can only accept values of type {bool, int, NoneType}, not objects of type tuple
    # CHECK-NEXT:     if (1, 2):
    # CHECK-NEXT:        ^~~~~~
        pass
    c, *rest = (1, 2, 3)
    # CHECK: rules.py:[[#@LINE-1]]:8: error: starred assignment targets are not supported
    # CHECK-NEXT:     c, *rest = (1, 2, 3)
    # CHECK-NEXT:        ^~~~~
    c, d, e = (1, 2)
    # CHECK: rules.py:[[#@LINE-1]]:5: error: not enough values to unpack (expected 3, got 2)
    # CHECK-NEXT:     c, d, e = (1, 2)
    # CHECK-NEXT:     ^~~~~~~
    (c, d), e = ((1, 2, 3), 4)
    # CHECK: rules.py:[[#@LINE-1]]:5: error: too many values to unpack (expected 2, got 3)
    # CHECK-NEXT:     (c, d), e = ((1, 2, 3), 4)
    # CHECK-NEXT:     ^~~~~~
    vals = [x + y for x, y in (1, 2)]
    # CHECK: rules.py:[[#@LINE-1]]:23: error: cannot unpack non-iterable value: compile-time int 1 into 2 names
    for i in range(n):
        if i == 3:
            break
        fresh = i
    tl.store(p, fresh)
    # CHECK: rules.py:[[#@LINE-1]]:17: error: name 'fresh' is not defined on every path to this place
    total = 0
    for i in range(n):
        if i == 3:
            total = 1.5
            # CHECK: rules.py:[[#@LINE-2]]:12: error: variable 'total' has different types after the two branches of this if: fp32 and int32
            break
    m = min(1.0, -0.0)
    # CHECK: rules.py:[[#@LINE-1]]:9: error: min of -0.0 is not defined: it is equal to 0.0
    while n > 3:
    # CHECK: rules.py:[[#@LINE-1]]:11: error: 'while' with 'else' is not part of the kernel language
        n -= 1
    else:
        pass


@triton.jit
def deep(p, n):
    endless(n)
