# RUN: not ditron-import %s:kernel --signature "*fp32, i32, u32, fp32" 2>&1 | FileCheck %s
# Subscripts, attributes, f-strings, comprehensions, literals.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n, u, f):
    block = tl.arange(0, 64)
    x = n[0]
    # CHECK: expressions2.py:[[#@LINE-1]]:9: error: a scalar cannot be subscripted, but got run-time int32
    # CHECK-NEXT:     x = n[0]
    # CHECK-NEXT:         ^~~~
    # CHECK-NEXT: note: only None and ':' make sense here: x[None, :]
    x = p[0]
    # CHECK: expressions2.py:[[#@LINE-1]]:9: error: a scalar cannot be subscripted, but got run-time pointer<fp32>
    # CHECK-NEXT:     x = p[0]
    # CHECK-NEXT:         ^~~~
    # CHECK-NEXT: note: load through a pointer with tl.load(p + i)
    x = block[0]
    # CHECK: expressions2.py:[[#@LINE-1]]:15: error: unsupported tensor index
    # CHECK-NEXT:     x = block[0]
    # CHECK-NEXT:               ^
    # CHECK-NEXT: note: a block takes only None and ':' as indices
    x = block[:, :]
    # CHECK: expressions2.py:[[#@LINE-1]]:18: error: too many indices for block int32[64]
    # CHECK-NEXT:     x = block[:, :]
    # CHECK-NEXT:                  ^
    x = tl[0]
    # CHECK: expressions2.py:[[#@LINE-1]]:9: error: module 'triton.language' cannot be subscripted
    # CHECK-NEXT:     x = tl[0]
    # CHECK-NEXT:         ^~~~~
    x = (1, 2)[n]
    # CHECK: expressions2.py:[[#@LINE-1]]:16: error: the index of a tuple must be a compile-time int, but got run-time int32
    # CHECK-NEXT:     x = (1, 2)[n]
    # CHECK-NEXT:                ^
    x = (1, 2)[2]
    # CHECK: expressions2.py:[[#@LINE-1]]:16: error: index 2 is out of range for a tuple of 2
    # CHECK-NEXT:     x = (1, 2)[2]
    # CHECK-NEXT:                ^
    x = (1, 2, 3)[::0]
    # CHECK: expressions2.py:[[#@LINE-1]]:19: error: slice step cannot be zero
    # CHECK-NEXT:     x = (1, 2, 3)[::0]
    # CHECK-NEXT:                   ^~~
    x = block.size
    # CHECK: expressions2.py:[[#@LINE-1]]:15: error: block int32[64] has no attribute 'size'
    # CHECK-NEXT:     x = block.size
    # CHECK-NEXT:               ^~~~
    x = block.T
    # CHECK: expressions2.py:[[#@LINE-1]]:15: error: .T needs a block of rank 2, but got block int32[64]
    # CHECK-NEXT:     x = block.T
    # CHECK-NEXT:               ^
    x = tl.float32.element
    # CHECK: expressions2.py:[[#@LINE-1]]:20: error: dtype fp32 has no attribute 'element'
    # CHECK-NEXT:     x = tl.float32.element
    # CHECK-NEXT:                    ^~~~~~~
    X: tl.constexpr = f"{n}"
    # CHECK: expressions2.py:[[#@LINE-1]]:26: error: the parts of an f-string must be known at compile time, but got run-time int32
    # CHECK-NEXT:     X: tl.constexpr = f"{n}"
    # CHECK-NEXT:                          ^
    Y: tl.constexpr = f"{1.5:d}"
    # CHECK: expressions2.py:[[#@LINE-1]]:25: warning: the format of a value in an f-string has no effect in a kernel, as in Triton
    # CHECK-NEXT:     Y: tl.constexpr = f"{1.5:d}"
    # CHECK-NEXT:                         ^~~~~~~
    x = [i for i in n]
    # CHECK: expressions2.py:[[#@LINE-1]]:21: error: run-time int32 is not a sequence that is known at compile time
    # CHECK-NEXT:     x = [i for i in n]
    # CHECK-NEXT:                     ^
    x = [i for i in range(n)]
    # CHECK: expressions2.py:[[#@LINE-1]]:21: error: the bounds of this range are not compile-time ints
    # CHECK-NEXT:     x = [i for i in range(n)]
    # CHECK-NEXT:                     ^~~~~~~~
    x = [i for i in (1, 2) if n > 0]
    # CHECK: expressions2.py:[[#@LINE-1]]:31: error: the condition of a list comprehension must be known at compile time, but got run-time int1
    # CHECK-NEXT:     x = [i for i in (1, 2) if n > 0]
    # CHECK-NEXT:                               ^~~~~
    x = {i for i in (1, 2)}
    # CHECK: expressions2.py:[[#@LINE-1]]:9: error: only list comprehensions with one 'for' are part of the kernel language
    # CHECK-NEXT:     x = {i for i in (1, 2)}
    # CHECK-NEXT:         ^~~~~~~~~~~~~~~~~~~
    x = u + -1
    # CHECK: expressions2.py:[[#@LINE-1]]:9: error: negative number -1 cannot be used with the unsigned type uint32
    # CHECK-NEXT:     x = u + -1
    # CHECK-NEXT:         ^~~~~~
    x = block.to(tl.int8) + 300
    # CHECK: expressions2.py:[[#@LINE-1]]:9: error: number 300 is out of range for type int8
    # CHECK-NEXT:     x = block.to(tl.int8) + 300
    # CHECK-NEXT:         ^~~~~~~~~~~~~~~~~~~~~~~
    x = n / u
    # CHECK: expressions2.py:[[#@LINE-1]]:9: error: Cannot use /, //, or % with int32 and uint32 because they have different signedness
    # CHECK-NEXT:     x = n / u
    # CHECK-NEXT:         ^~~~~
    # CHECK-NEXT: note: cast one of them, for example x.to(tl.int32)
