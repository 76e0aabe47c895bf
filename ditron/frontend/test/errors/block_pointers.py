# RUN: not ditron-import %s:kernel --signature "*fp32, *i32, i32, i64, fp32, *kfp32" 2>&1 | FileCheck %s
# Block pointers, dots and accesses of descriptors.
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

    x = tl.zeros((16, 32), tl.float16)
    s = tl.zeros((16, 16), tl.float16)
    tl.dot(x, s)
    # CHECK: block_pointers.py:[[#@LINE-1]]:5: error: First input shape ((16, 32)) and second input shape ((16, 16)) are not compatible for matmul: the inner sizes are 32 and 16
    tl.dot(tl.zeros((16, 8), tl.float16), tl.zeros((8, 16), tl.float16))
    # CHECK: block_pointers.py:[[#@LINE-1]]:5: error: Input shapes should have M >= 1, N >= 1 and K >= 16
    u = tl.zeros((32, 32), tl.uint8)
    tl.dot(u, u)
    # CHECK: block_pointers.py:[[#@LINE-1]]:5: error: only int8 supported!
    tl.dot(s, s, out_dtype=tl.bfloat16)
    # CHECK: block_pointers.py:[[#@LINE-1]]:28: error: out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16
    e = tl.zeros((64, 64), tl.float8e5)
    tl.dot(e, e, max_num_imprecise_acc=128)
    # CHECK: block_pointers.py:[[#@LINE-1]]:40: error: max_num_imprecise_acc (128) must be <= K (64)
    tl.dot(x, s[None, :, :])
    # CHECK: block_pointers.py:[[#@LINE-1]]:5: error: tl.dot needs two blocks of the same rank, 2 or more: Both inputs must be either 2D or 3D; (lhs: fp16[16, 32] vs rhs: fp16[1, 16, 16])
    tl.dot_scaled(e, None, "e3m0", e, None, "e5m2")
    # CHECK: block_pointers.py:[[#@LINE-1]]:28: error: NYI: lhs_format e3m0
    tl.dot_scaled(e, u, "e5m2", e, None, "e5m2")
    # CHECK: block_pointers.py:[[#@LINE-1]]:22: error: lhs_scale must be a tensor of shape [..., 64, 2]. Got (32, 32)

    d = tl.make_tensor_descriptor(p, [n, n], [n, 1], [8, 64])
    d.atomic_max([0, 0], tl.zeros((8, 64), tl.float32))
    # CHECK: block_pointers.py:[[#@LINE-1]]:5: error: Unsupported dtype: desc.atomic_max of fp32
    d.atomic_add([0, 0], tl.zeros((8, 64), tl.float16))
    # CHECK: block_pointers.py:[[#@LINE-1]]:26: error: argument 'value' of desc.atomic_add must have the descriptor's type fp32, but got block fp16[8, 64]
    d.gather(tl.arange(0, 8), 0)
    # CHECK: block_pointers.py:[[#@LINE-1]]:5: error: descriptor block must have 1 row, but got (8, 64)
    g = tl.make_tensor_descriptor(p, [n, n], [n, 1], [1, 64])
    g.gather(tl.arange(0, 4), 0)
    # CHECK: block_pointers.py:[[#@LINE-1]]:14: error: descriptor gather must have at least 8 rows, but got 4
    g.gather(tl.arange(0, 8), wide)
    # CHECK: block_pointers.py:[[#@LINE-1]]:31: error: y offsets only support 32 bit integers, but got run-time int64
