# RUN: not ditron-import %s:kernel --signature "*fp32, i32, fp32" 2>&1 | FileCheck %s
# Expressions that are not part of the language, and wrong operands of operators.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n, f):
    x = 0 < n < 3
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: comparisons cannot be chained in a kernel
    # CHECK-NEXT:     x = 0 < n < 3
    # CHECK-NEXT:         ^~~~~~~~~
    # CHECK-NEXT: note: write a < b and b < c
    x = lambda: n
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: lambda is not part of the kernel language; write a @jit function
    # CHECK-NEXT:     x = lambda: n
    # CHECK-NEXT:         ^~~~~~~~~
    x = {1: 2}
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: dicts and sets are not part of the kernel language
    # CHECK-NEXT:     x = {1: 2}
    # CHECK-NEXT:         ^~~~~~
    x = b"bytes"
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: b'bytes' is not part of the kernel language
    # CHECK-NEXT:     x = b"bytes"
    # CHECK-NEXT:         ^~~~~~~~
    x = n in (1, 2)
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator 'in' is not part of the kernel language
    # CHECK-NEXT:     x = n in (1, 2)
    # CHECK-NEXT:         ^~~~~~~~~~~
    x = n @ n
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator '@' does not take run-time int32 and run-time int32
    # CHECK-NEXT:     x = n @ n
    # CHECK-NEXT:         ^~~~~
    x = n ** 2
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator '**' needs compile-time operands, but got run-time int32 and compile-time int 2
    # CHECK-NEXT:     x = n ** 2
    # CHECK-NEXT:         ^~~~~~
    x = f // f
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: invalid operands of type run-time fp32 and run-time fp32 for operator '//': it needs integers; use / and tl.floor
    # CHECK-NEXT:     x = f // f
    # CHECK-NEXT:         ^~~~~~
    x = f & n
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: invalid operands of type run-time fp32 and run-time int32 for operator '&': it needs integers
    # CHECK-NEXT:     x = f & n
    # CHECK-NEXT:         ^~~~~
    x = ~f
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator '~' needs integers, but got run-time fp32
    # CHECK-NEXT:     x = ~f
    # CHECK-NEXT:         ^~
    x = not n
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator 'not' needs int1, but got run-time int32
    # CHECK-NEXT:     x = not n
    # CHECK-NEXT:         ^~~~~
    x = n and f
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator 'and' needs int1 operands, but got run-time int32
    # CHECK-NEXT:     x = n and f
    # CHECK-NEXT:         ^
    x = 1 // 0
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: integer division or modulo by zero
    # CHECK-NEXT:     x = 1 // 0
    # CHECK-NEXT:         ^~~~~~
    x = p * 2
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator '*' does not take run-time pointer<fp32> and compile-time int 2; a pointer takes + and - with an integer on its right, or + on its left
    # CHECK-NEXT:     x = p * 2
    # CHECK-NEXT:         ^~~~~
    x = p - p
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator '-' does not take run-time pointer<fp32> and run-time pointer<fp32>; a pointer takes + and - with an integer on its right, or + on its left
    # CHECK-NEXT:     x = p - p
    # CHECK-NEXT:         ^~~~~
    x = p < p
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator '<' does not take run-time pointer<fp32> and run-time pointer<fp32>
    # CHECK-NEXT:     x = p < p
    # CHECK-NEXT:         ^~~~~
    # CHECK-NEXT: note: pointers are compared as addresses: p.to(tl.int64)
    x = -p
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator '-' does not take run-time pointer<fp32>
    # CHECK-NEXT:     x = -p
    # CHECK-NEXT:         ^~
    x = n + None
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator '+' does not take run-time int32 and None
    # CHECK-NEXT:     x = n + None
    # CHECK-NEXT:         ^~~~~~~~
    x = (1, 2) + n
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: operator '+' does not take a tuple of 2 and run-time int32
    # CHECK-NEXT:     x = (1, 2) + n
    # CHECK-NEXT:         ^~~~~~~~~~
    x = n if n > 0 else f
    # CHECK: expressions.py:[[#@LINE-1]]:9: error: the two sides of a run-time conditional expression must have one type, but they are int32 and fp32
    # CHECK-NEXT:     x = n if n > 0 else f
    # CHECK-NEXT:         ^~~~~~~~~~~~~~~~~
