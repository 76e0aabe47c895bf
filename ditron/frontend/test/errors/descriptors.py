# RUN: not ditron-import %s:kernel --signature "*fp32, i32, i64, *i32, *i1, *kfp32, fp32" 2>&1 | FileCheck %s
# Tensor descriptors.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n, wide, q, flags, r, f):
    tl.make_tensor_descriptor(n, [n], [1], [64])
    # CHECK: descriptors.py:[[#@LINE-1]]:31: error: argument 'base' of tl.make_tensor_descriptor must be a pointer or a block of pointers, but got run-time int32
    tl.make_tensor_descriptor(p + tl.arange(0, 4), [n], [1], [64])
    # CHECK: descriptors.py:[[#@LINE-1]]:31: error: argument 'base' of tl.make_tensor_descriptor must be a scalar pointer, but got block pointer<fp32>[4]
    tl.make_tensor_descriptor(flags, [n], [1], [64])
    # CHECK: descriptors.py:[[#@LINE-1]]:31: error: tl.make_tensor_descriptor does not support elements of type int1
    tl.make_tensor_descriptor(p, [n], [1], [1, 1, 1, 1, 1, 64])
    # CHECK: descriptors.py:[[#@LINE-1]]:44: error: a tensor descriptor has 1 to 5 dimensions, but block_shape has 6
    tl.make_tensor_descriptor(p, [n], [1], [48])
    # CHECK: descriptors.py:[[#@LINE-1]]:44: error: Shape element 0 must be a power of 2, but is 48
    tl.make_tensor_descriptor(p, [n, n], [n, 1], [8, 2])
    # CHECK: descriptors.py:[[#@LINE-1]]:50: error: Descriptor block shape must have at least 16 bytes in the last dimension, but got 2 * 4 = 8 bytes
    # CHECK: note: of fp32 that is 4 elements; what lies outside of the tensor is not accessed
    tl.make_tensor_descriptor(p, [n], [n, 1], [8, 64])
    # CHECK: descriptors.py:[[#@LINE-1]]:34: error: argument 'shape' of tl.make_tensor_descriptor needs one value per dimension, 2 of them, but got 1
    tl.make_tensor_descriptor(p, [n, f], [n, 1], [8, 64])
    # CHECK: descriptors.py:[[#@LINE-1]]:34: error: argument 'shape' of tl.make_tensor_descriptor must hold scalar integers, but element 1 is run-time fp32
    tl.make_tensor_descriptor(p, [n, n], [n, n], [8, 64])
    # CHECK: descriptors.py:[[#@LINE-1]]:42: error: Tensor descriptor last dim must be 1: the last stride must be the compile-time 1, but got run-time int32
    # CHECK: note: write 1, or pass an argument that is 1: it is specialised
    tl.make_tensor_descriptor(p, [n], [1], [64], padding_option="one")
    # CHECK: descriptors.py:[[#@LINE-1]]:65: error: padding_option must be 'zero' or 'nan', but got 'one'
    tl.make_tensor_descriptor(q, [n], [1], [64], padding_option="nan")
    # CHECK: descriptors.py:[[#@LINE-1]]:65: error: padding_option 'nan' needs floating point elements, but they are int32
    d = tl.make_tensor_descriptor(p, [n, n], [n, 1], [8, 64])
    d.load([n])
    # CHECK: descriptors.py:[[#@LINE-1]]:12: error: argument 'offsets' of desc.load needs one value per dimension, 2 of them, but got 1
    d.load([n, wide])
    # CHECK: descriptors.py:[[#@LINE-1]]:12: error: offsets of desc.load only support 32 bit integers, but element 1 is run-time int64
    tl.load_tensor_descriptor(p, [n, n])
    # CHECK: descriptors.py:[[#@LINE-1]]:31: error: argument 'desc' of tl.load_tensor_descriptor must be a tensor descriptor, but got run-time pointer<fp32>
    d.store([n, n], tl.zeros((64, 8), tl.float32))
    # CHECK: descriptors.py:[[#@LINE-1]]:21: error: argument 'value' of desc.store must have the descriptor's block shape (8, 64), but got block fp32[64, 8]
    c = tl.make_tensor_descriptor(r, [n], [1], [64])
    c.store([n], tl.zeros((64,), tl.float32))
    # CHECK: descriptors.py:[[#@LINE-1]]:5: error: Cannot store to a constant pointer: desc.store through pointer<const fp32>
    d.gather(tl.arange(0, 8), 0)
    # CHECK: descriptors.py:[[#@LINE-1]]:5: error: descriptor block must have 1 row, but got (8, 64)
    d.strid
    # CHECK: descriptors.py:[[#@LINE-1]]:7: error: tensor descriptor fp32[8, 64] has no attribute 'strid'
    d + 1
    # CHECK: descriptors.py:[[#@LINE-1]]:5: error: {{.*}}tensor descriptor fp32[8, 64]
    for i in range(n):
        d = tl.make_tensor_descriptor(p, [n, n], [n, 1], [16, 64])
        # CHECK: descriptors.py:[[#@LINE-1]]:9: error: Loop-carried variable d has initial type tensor descriptor fp32[8, 64] but is re-assigned to tensor descriptor fp32[16, 64] in loop
