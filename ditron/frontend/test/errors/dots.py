# RUN: not ditron-import %s:kernel --signature "*fp32, i32, i64" 2>&1 | FileCheck %s
# Dots, and accesses of tensor descriptors that expand to pointers.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n, wide):
    x = tl.zeros((16, 32), tl.float16)
    s = tl.zeros((16, 16), tl.float16)
    tl.dot(x, s)
    # CHECK: dots.py:[[#@LINE-1]]:5: error: First input shape ((16, 32)) and second input shape ((16, 16)) are not compatible for matmul: the inner sizes are 32 and 16
    tl.dot(tl.zeros((16, 8), tl.float16), tl.zeros((8, 16), tl.float16))
    # CHECK: dots.py:[[#@LINE-1]]:5: error: Input shapes should have M >= 1, N >= 1 and K >= 16
    u = tl.zeros((32, 32), tl.uint8)
    tl.dot(u, u)
    # CHECK: dots.py:[[#@LINE-1]]:5: error: only int8 supported!
    tl.dot(s, s, out_dtype=tl.bfloat16)
    # CHECK: dots.py:[[#@LINE-1]]:28: error: out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16
    e = tl.zeros((64, 64), tl.float8e5)
    tl.dot(e, e, max_num_imprecise_acc=128)
    # CHECK: dots.py:[[#@LINE-1]]:40: error: max_num_imprecise_acc (128) must be <= K (64)
    tl.dot(x, s[None, :, :])
    # CHECK: dots.py:[[#@LINE-1]]:5: error: tl.dot needs two blocks of the same rank, 2 or more: Both inputs must be either 2D or 3D; (lhs: fp16[16, 32] vs rhs: fp16[1, 16, 16])
    tl.dot_scaled(e, None, "e3m0", e, None, "e5m2")
    # CHECK: dots.py:[[#@LINE-1]]:28: error: NYI: lhs_format e3m0
    tl.dot_scaled(e, u, "e5m2", e, None, "e5m2")
    # CHECK: dots.py:[[#@LINE-1]]:22: error: lhs_scale must be a tensor of shape [..., 64, 2]. Got (32, 32)

    d = tl.make_tensor_descriptor(p, [n, n], [n, 1], [8, 64])
    d.atomic_max([0, 0], tl.zeros((8, 64), tl.float32))
    # CHECK: dots.py:[[#@LINE-1]]:5: error: Unsupported dtype: desc.atomic_max of fp32
    d.atomic_add([0, 0], tl.zeros((8, 64), tl.float16))
    # CHECK: dots.py:[[#@LINE-1]]:26: error: argument 'value' of desc.atomic_add must have the descriptor's type fp32, but got block fp16[8, 64]
    d.gather(tl.arange(0, 8), 0)
    # CHECK: dots.py:[[#@LINE-1]]:5: error: descriptor block must have 1 row, but got (8, 64)
    g = tl.make_tensor_descriptor(p, [n, n], [n, 1], [1, 64])
    g.gather(tl.arange(0, 4), 0)
    # CHECK: dots.py:[[#@LINE-1]]:14: error: descriptor gather must have at least 8 rows, but got 4
    g.gather(tl.arange(0, 8), wide)
    # CHECK: dots.py:[[#@LINE-1]]:31: error: y offsets only support 32 bit integers, but got run-time int64
