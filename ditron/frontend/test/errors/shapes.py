# RUN: not ditron-import %s:kernel --signature "*fp32, i32, fp32" 2>&1 | FileCheck %s
# Creation and shapes.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n, f):
    tl.program_id(3)
    # CHECK: shapes.py:[[#@LINE-1]]:19: error: program_id axis must be 0, 1, or 2, but is 3
    # CHECK-NEXT:     tl.program_id(3)
    # CHECK-NEXT:                   ^
    tl.num_programs(-1)
    # CHECK: shapes.py:[[#@LINE-1]]:21: error: program_id axis must be 0, 1, or 2, but is -1
    # CHECK-NEXT:     tl.num_programs(-1)
    # CHECK-NEXT:                     ^~
    tl.arange(0, 48)
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: the length of tl.arange must be a power of 2, but is 48
    # CHECK-NEXT:     tl.arange(0, 48)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~
    tl.arange(8, 8)
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: tl.arange needs an end above its start, but got 8 and 8
    # CHECK-NEXT:     tl.arange(8, 8)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~
    tl.arange(0, 1 << 40)
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: the bounds of tl.arange must fit into int32
    # CHECK-NEXT:     tl.arange(0, 1 << 40)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~
    tl.zeros((3,), tl.float32)
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: Shape element 0 must be a power of 2, but is 3
    # CHECK-NEXT:     tl.zeros((3,), tl.float32)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.zeros((2048, 2048), tl.float32)
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: a block may have at most 1048576 elements, but this shape has more
    # CHECK-NEXT:     tl.zeros((2048, 2048), tl.float32)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    block = tl.zeros((64, 32), tl.float32)
    tl.full((64,), 300, tl.int8)
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: number 300 is out of range for type int8
    # CHECK-NEXT:     tl.full((64,), 300, tl.int8)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.full((64,), -1, tl.uint8)
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: negative number -1 cannot be used with the unsigned type uint8
    # CHECK-NEXT:     tl.full((64,), -1, tl.uint8)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.full((64,), block, tl.float32)
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: a block is filled with a scalar, not with block fp32[64, 32]
    # CHECK-NEXT:     tl.full((64,), block, tl.float32)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.reshape(block, (64, 64))
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: reshape() cannot change total number of elements in tensor: fp32[64, 32] does not fit into shape (64, 64)
    # CHECK-NEXT:     tl.reshape(block, (64, 64))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.trans(tl.arange(0, 4))
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: a transposition needs a block of rank 2 or more, but got block int32[4]
    # CHECK-NEXT:     tl.trans(tl.arange(0, 4))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~
    tl.trans(block, (0, 0))
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: (0, 0) is not a permutation of the 2 dimensions of fp32[64, 32]
    # CHECK-NEXT:     tl.trans(block, (0, 0))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~
    tl.expand_dims(block, 4)
    # CHECK: shapes.py:[[#@LINE-1]]:27: error: invalid axis 4: it is out of range for a result of rank 3
    # CHECK-NEXT:     tl.expand_dims(block, 4)
    # CHECK-NEXT:                           ^
    tl.expand_dims(block, (0, 0))
    # CHECK: shapes.py:[[#@LINE-1]]:27: error: duplicate axis 0: it is given twice
    # CHECK-NEXT:     tl.expand_dims(block, (0, 0))
    # CHECK-NEXT:                           ^~~~~~
    tl.broadcast_to(block, (64, 64))
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: cannot broadcast fp32[64, 32] to shape (64, 64); the ranks must be equal and each size equal or 1
    # CHECK-NEXT:     tl.broadcast_to(block, (64, 64))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.squeeze(block, 0)
    # CHECK: shapes.py:[[#@LINE-1]]:23: error: dimension 0 of fp32[64, 32] does not have size 1
    # CHECK-NEXT:     tl.squeeze(block, 0)
    # CHECK-NEXT:                       ^
    block.item()
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: item() needs exactly one element, but got block fp32[64, 32]
    # CHECK-NEXT:     block.item()
    # CHECK-NEXT:     ^~~~~~~~~~~~
    tl.broadcast(block, tl.arange(0, 64))
    # CHECK: shapes.py:[[#@LINE-1]]:5: error: Cannot make_shape_compatible: incompatible dimensions at index 1: 32 and 64 (of fp32[64, 32] and int32[64])
    # CHECK-NEXT:     tl.broadcast(block, tl.arange(0, 64))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    # CHECK-NEXT: note: sizes must be equal, or one of them 1
