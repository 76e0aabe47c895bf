# RUN: not ditron-import %s:kernel --signature "*fp32, i32, *kfp32, *i8, *fp64" 2>&1 | FileCheck %s
# Loads, stores, atomics, hints.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n, c, b, d):
    i = tl.arange(0, 64)
    tl.load(n)
    # CHECK: memory.py:[[#@LINE-1]]:13: error: argument 'pointer' of tl.load must be a pointer, a block of pointers or a block pointer, but got run-time int32
    # CHECK-NEXT:     tl.load(n)
    # CHECK-NEXT:             ^
    # CHECK-NEXT: note: the function is tl.load(pointer: mem, mask: num=None, other: num=None, boundary_check: shape=(), padding_option: str='', cache_modifier: str='', eviction_policy: str='', volatile: bool=False)
    tl.load(p, other=0)
    # CHECK: memory.py:[[#@LINE-1]]:22: error: argument 'other' of tl.load needs a mask
    # CHECK-NEXT:     tl.load(p, other=0)
    # CHECK-NEXT:                      ^
    tl.load(p + i, mask=i)
    # CHECK: memory.py:[[#@LINE-1]]:25: error: argument 'mask' of tl.load must be int1, but got block int32[64]
    # CHECK-NEXT:     tl.load(p + i, mask=i)
    # CHECK-NEXT:                         ^
    # CHECK-NEXT: note: compare it: mask != 0
    tl.load(p, mask=i < n)
    # CHECK: memory.py:[[#@LINE-1]]:21: error: argument 'mask' of tl.load is a block, but the pointer is a scalar
    # CHECK-NEXT:     tl.load(p, mask=i < n)
    # CHECK-NEXT:                     ^~~~~
    tl.load(p + i, mask=tl.arange(0, 32) < n)
    # CHECK: memory.py:[[#@LINE-1]]:5: error: Cannot make_shape_compatible: incompatible dimensions at index 0: 64 and 32 (of pointer<fp32>[64] and int1[32])
    # CHECK-NEXT:     tl.load(p + i, mask=tl.arange(0, 32) < n)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    # CHECK-NEXT: note: sizes must be equal, or one of them 1
    tl.load(p, cache_modifier=".wb")
    # CHECK: memory.py:[[#@LINE-1]]:31: error: argument 'cache_modifier' of tl.load cannot be '.wb'; it is one of '', '.ca', '.cg', '.cs', '.cv'
    # CHECK-NEXT:     tl.load(p, cache_modifier=".wb")
    # CHECK-NEXT:                               ^~~~~
    tl.load(p, eviction_policy="never")
    # CHECK: memory.py:[[#@LINE-1]]:32: error: argument 'eviction_policy' of tl.load cannot be 'never'; it is one of '', 'evict_first', 'evict_last'
    # CHECK-NEXT:     tl.load(p, eviction_policy="never")
    # CHECK-NEXT:                                ^~~~~~~
    tl.load(p, boundary_check=(0,))
    # CHECK: memory.py:[[#@LINE-1]]:5: error: `padding_option` or `boundary_check` argument is not supported for pointers and blocks of pointers
    # CHECK-NEXT:     tl.load(p, boundary_check=(0,))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.store(c, 1.0)
    # CHECK: memory.py:[[#@LINE-1]]:14: error: Cannot store to a constant pointer: tl.store through pointer<const fp32>
    # CHECK-NEXT:     tl.store(c, 1.0)
    # CHECK-NEXT:              ^
    tl.store(p, i)
    # CHECK: memory.py:[[#@LINE-1]]:17: error: argument 'value' of tl.store has shape (64,), which does not fit the pointer's shape ()
    # CHECK-NEXT:     tl.store(p, i)
    # CHECK-NEXT:                 ^
    tl.store(b, 300)
    # CHECK: memory.py:[[#@LINE-1]]:17: error: number 300 is out of range for type int8
    # CHECK-NEXT:     tl.store(b, 300)
    # CHECK-NEXT:                 ^~~
    tl.store(p, None)
    # CHECK: memory.py:[[#@LINE-1]]:17: error: argument 'value' of tl.store must be a number or a tensor, but got None
    # CHECK-NEXT:     tl.store(p, None)
    # CHECK-NEXT:                 ^~~~
    # CHECK-NEXT: note: the function is tl.store(pointer: mem, value: num, mask: num=None, boundary_check: shape=(), cache_modifier: str='', eviction_policy: str='', volatile: bool=False)
    tl.atomic_add(b, 1)
    # CHECK: memory.py:[[#@LINE-1]]:19: error: tl.atomic_add does not support elements of type int8
    # CHECK-NEXT:     tl.atomic_add(b, 1)
    # CHECK-NEXT:                   ^
    tl.atomic_and(p, 1)
    # CHECK: memory.py:[[#@LINE-1]]:19: error: tl.atomic_and does not support elements of type fp32
    # CHECK-NEXT:     tl.atomic_and(p, 1)
    # CHECK-NEXT:                   ^
    tl.atomic_add(p, 1.0, sem="seq_cst")
    # CHECK: memory.py:[[#@LINE-1]]:31: error: argument 'sem' of tl.atomic_add cannot be 'seq_cst'; it is one of 'relaxed', 'acquire', 'release', 'acq_rel'
    # CHECK-NEXT:     tl.atomic_add(p, 1.0, sem="seq_cst")
    # CHECK-NEXT:                               ^~~~~~~~~
    tl.atomic_add(p, 1.0, scope="world")
    # CHECK: memory.py:[[#@LINE-1]]:33: error: argument 'scope' of tl.atomic_add cannot be 'world'; it is one of 'gpu', 'cta', 'sys'
    # CHECK-NEXT:     tl.atomic_add(p, 1.0, scope="world")
    # CHECK-NEXT:                                 ^~~~~~~
    tl.atomic_cas(d, n, 1.0)
    # CHECK: memory.py:[[#@LINE-1]]:22: error: argument 'cmp' of tl.atomic_cas must have the element type fp64, but got run-time int32
    # CHECK-NEXT:     tl.atomic_cas(d, n, 1.0)
    # CHECK-NEXT:                      ^
    tl.atomic_cas(d, 0, 1)
    # CHECK: memory.py:[[#@LINE-1]]:22: error: argument 'cmp' of tl.atomic_cas must have the element type fp64, but got compile-time int 0
    # CHECK-NEXT:     tl.atomic_cas(d, 0, 1)
    # CHECK-NEXT:                      ^
    tl.multiple_of(i, (4, 4))
    # CHECK: memory.py:[[#@LINE-1]]:23: error: tl.multiple_of needs one number per dimension, 1 for block int32[64], but got 2
    # CHECK-NEXT:     tl.multiple_of(i, (4, 4))
    # CHECK-NEXT:                       ^~~~~~
    tl.multiple_of(n, 0)
    # CHECK: memory.py:[[#@LINE-1]]:23: error: tl.multiple_of needs positive numbers, but got 0
    # CHECK-NEXT:     tl.multiple_of(n, 0)
    # CHECK-NEXT:                       ^
