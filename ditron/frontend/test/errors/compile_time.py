# RUN: not ditron-import %s:kernel --signature "*fp32, i32" 2>&1 | FileCheck %s
# Functions that work at compile time.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n):
    tl.static_assert(1 == 2)
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: static assertion failed
    # CHECK-NEXT:     tl.static_assert(1 == 2)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~
    tl.static_assert(1 == 2, f"sizes {1} and {2}")
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: static assertion failed: sizes 1 and 2
    # CHECK-NEXT:     tl.static_assert(1 == 2, f"sizes {1} and {2}")
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.static_assert(n == 2, "run time")
    # CHECK: compile_time.py:[[#@LINE-1]]:22: error: argument 'cond' of tl.static_assert must be a compile-time value, but got run-time int1
    # CHECK-NEXT:     tl.static_assert(n == 2, "run time")
    # CHECK-NEXT:                      ^~~~~~
    # CHECK-NEXT: note: the function is tl.static_assert(cond: const, msg: const='')
    int(n)
    # CHECK: compile_time.py:[[#@LINE-1]]:9: error: argument 'x' of int must be a compile-time value, but got run-time int32
    # CHECK-NEXT:     int(n)
    # CHECK-NEXT:         ^
    # CHECK-NEXT: note: the function is int(x: const=0)
    int("x")
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: invalid literal for int() with base 10: 'x'
    # CHECK-NEXT:     int("x")
    # CHECK-NEXT:     ^~~~~~~~
    float(None)
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: float() argument must be a string or a real number, not 'NoneType'
    # CHECK-NEXT:     float(None)
    # CHECK-NEXT:     ^~~~~~~~~~~
    len(n)
    # CHECK: compile_time.py:[[#@LINE-1]]:9: error: run-time int32 has no length
    # CHECK-NEXT:     len(n)
    # CHECK-NEXT:         ^
    len(3)
    # CHECK: compile_time.py:[[#@LINE-1]]:9: error: compile-time int 3 has no length
    # CHECK-NEXT:     len(3)
    # CHECK-NEXT:         ^
    min()
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: min needs at least one argument
    # CHECK-NEXT:     min()
    # CHECK-NEXT:     ^~~~~
    min(1, float("nan"))
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: min of nan is not defined
    # CHECK-NEXT:     min(1, float("nan"))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~
    min(1, "x")
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: '<' not supported between instances of 'str' and 'int'
    # CHECK-NEXT:     min(1, "x")
    # CHECK-NEXT:     ^~~~~~~~~~~
    max((1, 2), n)
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: max does not take a tuple of 2 and run-time int32
    # CHECK-NEXT:     max((1, 2), n)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~
    list(n)
    # CHECK: compile_time.py:[[#@LINE-1]]:10: error: run-time int32 is not a sequence that is known at compile time
    # CHECK-NEXT:     list(n)
    # CHECK-NEXT:          ^
    isinstance(n, 3)
    # CHECK: compile_time.py:[[#@LINE-1]]:19: error: isinstance does not know compile-time int 3 as a class
    # CHECK-NEXT:     isinstance(n, 3)
    # CHECK-NEXT:                   ^
    getattr(n, "missing")
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: run-time int32 has no attribute 'missing'
    # CHECK-NEXT:     getattr(n, "missing")
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~
    print(n)
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: the first argument of print must be a compile-time string, which begins every line
    # CHECK-NEXT:     print(n)
    # CHECK-NEXT:     ^~~~~~~~
    tl.device_print()
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: the first argument of tl.device_print must be a compile-time string, which begins every line
    # CHECK-NEXT:     tl.device_print()
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~
    tl.tensor(n)
    # CHECK: compile_time.py:[[#@LINE-1]]:5: error: tl.tensor is a class for isinstance and cannot be called
    # CHECK-NEXT:     tl.tensor(n)
    # CHECK-NEXT:     ^~~~~~~~~~~~
