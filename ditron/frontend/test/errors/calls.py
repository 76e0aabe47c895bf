# RUN: not ditron-import %s:kernel --signature "*fp32, i32, fp32" 2>&1 | FileCheck %s
# Calls of @jit functions and of the language's functions with wrong arguments.
import triton
import triton.language as tl


@triton.jit
def needs_float(x):
    return tl.exp(x)


@triton.jit
def through(x):
    return needs_float(x)


@triton.jit
def two(x, y, *, z=0):
    if x > y:
        return x
    return 1.5


@triton.jit
def endless(x):
    return endless(x)


@triton.jit
def kernel(p, n, f):
    through(n)
    # CHECK: calls.py:[[#@LINE-23]]:19: error: tl.exp: Expected dtype ['fp32', 'fp64'] but got i32 for argument 'x'
    # CHECK-NEXT:     return tl.exp(x)
    # CHECK-NEXT:                   ^
    # CHECK-NEXT: calls.py:[[#@LINE-21]]:12: note: called from here
    # CHECK-NEXT:     return needs_float(x)
    # CHECK-NEXT:            ^~~~~~~~~~~~~~
    # CHECK-NEXT: calls.py:[[#@LINE-7]]:5: note: called from here
    # CHECK-NEXT:     through(n)
    # CHECK-NEXT:     ^~~~~~~~~~
    # CHECK-NEXT: note: cast it first: x.to(tl.float32)
    two(n)
    # CHECK: calls.py:[[#@LINE-1]]:5: error: the call of 'two' has no argument for parameter 'y'
    # CHECK-NEXT:     two(n)
    # CHECK-NEXT:     ^~~~~~
    # CHECK-NEXT: calls.py:[[#@LINE-28]]:1: note: the function is declared here
    # CHECK-NEXT: def two(x, y, *, z=0):
    # CHECK-NEXT: ^~~~~~~~~~~~~~~~~~~~~~
    two(n, n, n)
    # CHECK: calls.py:[[#@LINE-1]]:15: error: function 'two' takes 2 positional arguments, but more are given
    # CHECK-NEXT:     two(n, n, n)
    # CHECK-NEXT:               ^
    # CHECK-NEXT: calls.py:[[#@LINE-35]]:1: note: the function is declared here
    # CHECK-NEXT: def two(x, y, *, z=0):
    # CHECK-NEXT: ^~~~~~~~~~~~~~~~~~~~~~
    two(n, n, w=1)
    # CHECK: calls.py:[[#@LINE-1]]:15: error: function 'two' has no parameter 'w'
    # CHECK-NEXT:     two(n, n, w=1)
    # CHECK-NEXT:               ^
    # CHECK-NEXT: calls.py:[[#@LINE-42]]:1: note: the function is declared here
    # CHECK-NEXT: def two(x, y, *, z=0):
    # CHECK-NEXT: ^~~~~~~~~~~~~~~~~~~~~~
    two(n, n, x=1)
    # CHECK: calls.py:[[#@LINE-1]]:15: error: parameter 'x' of function 'two' is given twice
    # CHECK-NEXT:     two(n, n, x=1)
    # CHECK-NEXT:               ^
    # CHECK-NEXT: calls.py:[[#@LINE-49]]:1: note: the function is declared here
    # CHECK-NEXT: def two(x, y, *, z=0):
    # CHECK-NEXT: ^~~~~~~~~~~~~~~~~~~~~~
    two(n, y=n)
    # CHECK: calls.py:[[#@LINE-50]]:5: error: Return type mismatch: int32 and fp32
    # CHECK-NEXT:     return 1.5
    # CHECK-NEXT:     ^~~~~~~~~~
    # CHECK-NEXT: calls.py:[[#@LINE-4]]:5: note: called from here
    # CHECK-NEXT:     two(n, y=n)
    # CHECK-NEXT:     ^~~~~~~~~~~
    # CHECK-NEXT: calls.py:[[#@LINE-57]]:9: note: the other return is here
    # CHECK-NEXT:         return x
    # CHECK-NEXT:         ^~~~~~~~
    two(**n)
    # CHECK: calls.py:[[#@LINE-1]]:9: error: '**' arguments are not part of the kernel language
    # CHECK-NEXT:     two(**n)
    # CHECK-NEXT:         ^~~
    n(1)
    # CHECK: calls.py:[[#@LINE-1]]:5: error: run-time int32 cannot be called
    # CHECK-NEXT:     n(1)
    # CHECK-NEXT:     ^
    tl.program_id()
    # CHECK: calls.py:[[#@LINE-1]]:5: error: tl.program_id needs an argument for 'axis'
    # CHECK-NEXT:     tl.program_id()
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~
    # CHECK-NEXT: note: the function is tl.program_id(axis: int)
    tl.program_id(0, 1)
    # CHECK: calls.py:[[#@LINE-1]]:22: error: tl.program_id takes at most 1 argument, but more are given
    # CHECK-NEXT:     tl.program_id(0, 1)
    # CHECK-NEXT:                      ^
    # CHECK-NEXT: note: the function is tl.program_id(axis: int)
    tl.program_id(axes=0)
    # CHECK: calls.py:[[#@LINE-1]]:19: error: tl.program_id has no parameter 'axes'; did you mean 'axis'?
    # CHECK-NEXT:     tl.program_id(axes=0)
    # CHECK-NEXT:                   ^~~~
    # CHECK-NEXT: note: the function is tl.program_id(axis: int)
    tl.program_id(0, axis=0)
    # CHECK: calls.py:[[#@LINE-1]]:22: error: argument 'axis' of tl.program_id is given twice
    # CHECK-NEXT:     tl.program_id(0, axis=0)
    # CHECK-NEXT:                      ^~~~
    # CHECK-NEXT: note: the function is tl.program_id(axis: int)
    tl.program_id(n)
    # CHECK: calls.py:[[#@LINE-1]]:19: error: argument 'axis' of tl.program_id must be a compile-time int, but got run-time int32
    # CHECK-NEXT:     tl.program_id(n)
    # CHECK-NEXT:                   ^
    # CHECK-NEXT: note: the function is tl.program_id(axis: int)
    size = 64
    tl.arange(0, size)
    # CHECK: calls.py:[[#@LINE-1]]:18: error: argument 'end' of tl.arange must be a compile-time int, but got run-time int32
    # CHECK-NEXT:     tl.arange(0, size)
    # CHECK-NEXT:                  ^~~~
    # CHECK-NEXT: note: a number becomes a run-time value when it is assigned; declare the name with `: tl.constexpr`
    tl.zeros((size,), tl.float32)
    # CHECK: calls.py:[[#@LINE-1]]:14: error: argument 'shape' of tl.zeros must be compile-time ints, but got a tuple of 1 with run-time int32 in it
    # CHECK-NEXT:     tl.zeros((size,), tl.float32)
    # CHECK-NEXT:              ^~~~~~~
    # CHECK-NEXT: note: a number becomes a run-time value when it is assigned; declare the name with `: tl.constexpr`
    tl.zeros((64,), 5)
    # CHECK: calls.py:[[#@LINE-1]]:21: error: argument 'dtype' of tl.zeros must be a dtype, but got compile-time int 5
    # CHECK-NEXT:     tl.zeros((64,), 5)
    # CHECK-NEXT:                     ^
    # CHECK-NEXT: note: the function is tl.zeros(shape: shape, dtype: dtype)
    endless(n)
    # CHECK: calls.py:[[#@LINE-104]]:12: error: calls are nested more than 64 deep: 'endless' seems to call itself without end
    # CHECK-NEXT:     return endless(x)
    # CHECK-NEXT:            ^~~~~~~~~~
    # CHECK-NEXT: calls.py:[[#@LINE-4]]:5: note: the outermost call is here
    # CHECK-NEXT:     endless(n)
    # CHECK-NEXT:     ^~~~~~~~~~
