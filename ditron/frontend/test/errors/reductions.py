# RUN: not ditron-import %s:kernel --signature "*fp32, i32, fp32" 2>&1 | FileCheck %s
# Dot products, reductions, scans.
import triton
import triton.language as tl


@triton.jit
def pair(a, b):
    return a, b


@triton.jit
def integer(a, b):
    return 1 if a > b else 2


@triton.jit
def blocky(a, b):
    return tl.sum(tl.zeros((4,), tl.float32)) + a + b


@triton.jit
def narrow(a, b):
    return (a + b).to(tl.float16)


@triton.jit
def kernel(p, n, f):
    x = tl.zeros((64, 64), tl.float32)
    h = tl.zeros((64, 64), tl.float16)
    tl.sum(f)
    # CHECK: reductions.py:[[#@LINE-1]]:12: error: tl.sum needs a block of numbers, but got run-time fp32
    # CHECK-NEXT:     tl.sum(f)
    # CHECK-NEXT:            ^
    tl.sum(x, axis=2)
    # CHECK: reductions.py:[[#@LINE-1]]:20: error: axis 2 is out of range for fp32[64, 64]
    # CHECK-NEXT:     tl.sum(x, axis=2)
    # CHECK-NEXT:                    ^
    tl.max(x, return_indices=True)
    # CHECK: reductions.py:[[#@LINE-1]]:5: error: tl.max with indices needs an axis
    # CHECK-NEXT:     tl.max(x, return_indices=True)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.xor_sum(x)
    # CHECK: reductions.py:[[#@LINE-1]]:16: error: tl.xor_sum needs integers, but got block fp32[64, 64]
    # CHECK-NEXT:     tl.xor_sum(x)
    # CHECK-NEXT:                ^
    tl.softmax(h)
    # CHECK: reductions.py:[[#@LINE-1]]:16: error: tl.softmax: Expected dtype ['fp32', 'fp64'] but got fp16 for argument 'x'
    # CHECK-NEXT:     tl.softmax(h)
    # CHECK-NEXT:                ^
    tl.reduce(x, 0, tl.sum)
    # CHECK: reductions.py:[[#@LINE-1]]:21: error: argument 'combine_fn' of tl.reduce must be a @jit function, but got function 'tl.sum'
    # CHECK-NEXT:     tl.reduce(x, 0, tl.sum)
    # CHECK-NEXT:                     ^~~~~~
    # CHECK-NEXT: note: the function is tl.reduce(input, axis: int | None, combine_fn: fn, keep_dims: bool=False, reduction_ordering: const=None)
    tl.reduce(x, 0, pair)
    # CHECK: reductions.py:[[#@LINE-1]]:21: error: the combine function 'pair' must give 1 values, but gives 2
    # CHECK-NEXT:     tl.reduce(x, 0, pair)
    # CHECK-NEXT:                     ^~~~
    tl.sum(x, 0, reduction_ordering="outer_tree")
    # CHECK: reductions.py:[[#@LINE-1]]:37: error: argument 'reduction_ordering' of tl.sum cannot be 'outer_tree'; it is one of 'unordered', 'inner_tree'
    # CHECK-NEXT:     tl.sum(x, 0, reduction_ordering="outer_tree")
    # CHECK-NEXT:                                     ^~~~~~~~~~~~
    tl.reduce(x, 0, integer)
    # CHECK: reductions.py:[[#@LINE-1]]:21: error: the combine function 'integer' must give fp32, but gives run-time int32
    # CHECK-NEXT:     tl.reduce(x, 0, integer)
    # CHECK-NEXT:                     ^~~~~~~
    tl.reduce(x, 0, narrow)
    # CHECK: reductions.py:[[#@LINE-1]]:21: error: the combine function 'narrow' must give fp32, but gives run-time fp16
    # CHECK-NEXT:     tl.reduce(x, 0, narrow)
    # CHECK-NEXT:                     ^~~~~~
    tl.reduce(x, 0, blocky)
    # CHECK: reductions.py:[[#@LINE-1]]:5: error: the function 'blocky' works on single elements: it cannot make blocks or wait for other threads
    # CHECK-NEXT:     tl.reduce(x, 0, blocky)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~
    tl.reduce(f, 0, pair)
    # CHECK: reductions.py:[[#@LINE-1]]:15: error: tl.reduce needs a block or a tuple of blocks of one shape, but got run-time fp32
    # CHECK-NEXT:     tl.reduce(f, 0, pair)
    # CHECK-NEXT:               ^
    tl.dot(x, tl.zeros((64,), tl.float32))
    # CHECK: reductions.py:[[#@LINE-1]]:5: error: tl.dot needs two blocks of the same rank, 2 or more: Both inputs must be either 2D or 3D; (lhs: fp32[64, 64] vs rhs: fp32[64])
    # CHECK-NEXT:     tl.dot(x, tl.zeros((64,), tl.float32))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.dot(h, tl.zeros((32, 64), tl.float16))
    # CHECK: reductions.py:[[#@LINE-1]]:5: error: First input shape ((64, 64)) and second input shape ((32, 64)) are not compatible for matmul: the inner sizes are 64 and 32
    # CHECK-NEXT:     tl.dot(h, tl.zeros((32, 64), tl.float16))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.dot(tl.zeros((64, 8), tl.float16), tl.zeros((8, 64), tl.float16))
    # CHECK: reductions.py:[[#@LINE-1]]:5: error: Input shapes should have M >= 1, N >= 1 and K >= 16 for elements of 16 bits, but K is 8
    # CHECK-NEXT:     tl.dot(tl.zeros((64, 8), tl.float16), tl.zeros((8, 64), tl.float16))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.dot(h, h, out_dtype=tl.bfloat16)
    # CHECK: reductions.py:[[#@LINE-1]]:28: error: out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16 and cast with `.to(tl.bfloat16)`
    # CHECK-NEXT:     tl.dot(h, h, out_dtype=tl.bfloat16)
    # CHECK-NEXT:                            ^~~~~~~~~~~
    tl.dot(h, h, out_dtype=tl.int32)
    # CHECK: reductions.py:[[#@LINE-1]]:28: warning: out_dtype int32 is ignored: tl.dot of fp16 gives fp32
    # CHECK-NEXT:     tl.dot(h, h, out_dtype=tl.int32)
    # CHECK-NEXT:                            ^~~~~~~~
    tl.dot(h, h, acc=tl.zeros((64, 32), tl.float32))
    # CHECK: reductions.py:[[#@LINE-1]]:22: error: argument 'acc' of tl.dot must be fp32[64, 64], but got block fp32[64, 32]
    # CHECK-NEXT:     tl.dot(h, h, acc=tl.zeros((64, 32), tl.float32))
    # CHECK-NEXT:                      ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.dot(x, x, input_precision="fp32")
    # CHECK: reductions.py:[[#@LINE-1]]:34: error: argument 'input_precision' of tl.dot cannot be 'fp32'; it is one of 'tf32', 'tf32x3', 'ieee'
    # CHECK-NEXT:     tl.dot(x, x, input_precision="fp32")
    # CHECK-NEXT:                                  ^~~~~~
