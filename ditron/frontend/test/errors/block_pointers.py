# RUN: not ditron-import %s:kernel --signature "*fp32, *i32, i32, i64, fp32, *kfp32" 2>&1 | FileCheck %s
# Block pointers.
import triton
import triton.language as tl


@triton.jit
def kernel(p, q, n, wide, f, r):
    tl.make_block_ptr(p + tl.arange(0, 4), (n,), (1,), (0,), (16,), (0,))
    # CHECK: block_pointers.py:[[#@LINE-1]]:23: error: Expected `base` to be a pointer type (but not a block pointer type or others), but got block pointer<fp32>[4]
    tl.make_block_ptr(p, (n, n), (1,), (0,), (16,), (0,))
    # CHECK: block_pointers.py:[[#@LINE-1]]:26: error: Expected shape/strides/offsets/block_shape to have the same length: argument 'shape' of tl.make_block_ptr has 2 values, not 1
    tl.make_block_ptr(p, (f,), (1,), (0,), (16,), (0,))
    # CHECK: block_pointers.py:[[#@LINE-1]]:26: error: argument 'shape' of tl.make_block_ptr must hold scalar integers, but element 0 is run-time fp32
    tl.make_block_ptr(p, (n, n), (n, 1), (0, 0), (16, 16), (1, 1))
    # CHECK: block_pointers.py:[[#@LINE-1]]:60: error: Expected a permutation of (0, 1, ..., len(order)-1) in order, one number per dimension, but got (1, 1)
    b = tl.make_block_ptr(p, (n, n), (n, 1), (0, 0), (16, 16), (1, 0))
    i = tl.make_block_ptr(q, (n,), (1,), (0,), (16,), (0,))
    tl.load(b, mask=n > 0)
    # CHECK: block_pointers.py:[[#@LINE-1]]:21: error: `mask` and `other` arguments cannot be specified for loading block pointers
    tl.load(b, boundary_check=(2,))
    # CHECK: block_pointers.py:[[#@LINE-1]]:31: error: boundary_check names dimension 2, but the block pointer has 2
    tl.load(b, boundary_check=(0, 0))
    # CHECK: block_pointers.py:[[#@LINE-1]]:31: error: Duplicate dimension 0 in `boundary_check`
    tl.load(i, boundary_check=(0,), padding_option="nan")
    # CHECK: block_pointers.py:[[#@LINE-1]]:52: error: Padding option `nan` is not supported for integer block pointers
    tl.load(p, boundary_check=(0,))
    # CHECK: block_pointers.py:[[#@LINE-1]]:5: error: `padding_option` or `boundary_check` argument is not supported for pointers and blocks of pointers
    tl.advance(b, (16, 0))
    # CHECK: block_pointers.py:[[#@LINE-1]]:5: error: The result of tl.advance is not being used.
    b = tl.advance(p, (16, 0))
    # CHECK: block_pointers.py:[[#@LINE-1]]:20: error: argument 'base' of tl.advance must be a block pointer, but got run-time pointer<fp32>
    tl.load(f)
    # CHECK: block_pointers.py:[[#@LINE-1]]:13: error: argument 'pointer' of tl.load must be a pointer, a block of pointers or a block pointer, but got run-time fp32
