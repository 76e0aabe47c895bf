# RUN: not ditron-import %s:kernel --signature "*fp32, i32" 2>&1 | FileCheck %s
# What cannot be executed at compile time.
import os

import triton
import triton.language as tl


@triton.constexpr_function
def raises(n):
    if n > 3:
        raise ValueError(f"{n} is too large")
    return n


@triton.constexpr_function
def outer(n):
    return raises(n) + 1


@triton.constexpr_function
def endless():
    while True:
        pass


@triton.constexpr_function
def recursive(n):
    return recursive(n + 1)


@triton.jit
def other(x):
    return x


@triton.constexpr_function
def calls_jit():
    return other(1)


@triton.constexpr_function
def arithmetic(a, b):
    return a + b


@triton.constexpr_function
def table():
    return {"a": 1}


@triton.constexpr_function
def huge():
    return [0] * 10**9


HOME = tl.constexpr(os.environ["NO_SUCH_VARIABLE"])


@triton.jit
def kernel(p, n):
    outer(7)
    # CHECK: constexpr_functions.py:12:9: error: ValueError: 7 is too large
    # CHECK-NEXT:         raise ValueError(f"{n} is too large")
    # CHECK-NEXT:         ^
    # CHECK-NEXT: constexpr_functions.py:18:12: note: called from here
    # CHECK-NEXT:     return raises(n) + 1
    # CHECK-NEXT:            ^~~~~~~~~
    # CHECK-NEXT: constexpr_functions.py:[[#@LINE-7]]:5: note: called from here
    endless()
    # CHECK: constexpr_functions.py:{{23:11|24:9}}: error: the evaluation at compile time took more than 4000000 steps
    recursive(0)
    # CHECK: constexpr_functions.py:29:12: error: calls at compile time are nested more than 160 deep: 'recursive' seems to call itself without end
    calls_jit()
    # CHECK: constexpr_functions.py:39:12: error: @jit function 'other' cannot be called at compile time
    arithmetic(1, n)
    # CHECK: constexpr_functions.py:44:12: error: operator + cannot be computed at compile time: the operands are compile-time int {{[0-9]+}} and run-time int32
    arithmetic(1)
    # CHECK: constexpr_functions.py:[[#@LINE-1]]:5: error: the call of 'arithmetic' has no argument for parameter 'b'
    arithmetic(1, c=2)
    # CHECK: constexpr_functions.py:[[#@LINE-1]]:19: error: function 'arithmetic' has no parameter 'c'
    table()
    # CHECK: constexpr_functions.py:[[#@LINE-1]]:5: error: a value of type 'dict' exists only at compile time and has no meaning in a kernel
    huge()
    # CHECK: constexpr_functions.py:54:12: error: a list at compile time may have at most 1048576 elements
    tl.store(p, HOME)
    # CHECK: constexpr_functions.py:57:21: error: the environment has no variable 'NO_SUCH_VARIABLE'
    # CHECK-NEXT: HOME = tl.constexpr(os.environ["NO_SUCH_VARIABLE"])
    # CHECK-NEXT:                     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    # CHECK-NEXT: constexpr_functions.py:86:17: note: needed here
