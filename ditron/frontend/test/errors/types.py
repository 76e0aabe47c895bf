# RUN: not ditron-import %s:kernel --signature "*fp32, i32, fp32, fp8e5, u32" 2>&1 | FileCheck %s
# Casts and elementwise functions.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n, f, e, u):
    p.to(tl.int32)
    # CHECK: types.py:[[#@LINE-1]]:5: error: cannot cast pointer<fp32> to int32: pointers convert to int64 and to other pointers only
    # CHECK-NEXT:     p.to(tl.int32)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~
    n.to(tl.pointer_type(tl.int8))
    # CHECK: types.py:[[#@LINE-1]]:5: error: cannot cast int32 to pointer<int8>: only int64 converts to a pointer
    # CHECK-NEXT:     n.to(tl.pointer_type(tl.int8))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    n.to(tl.float16, bitcast=True)
    # CHECK: types.py:[[#@LINE-1]]:5: error: Cannot bitcast data-type of size 32 (int32) to data-type of size 16 (fp16)
    # CHECK-NEXT:     n.to(tl.float16, bitcast=True)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    n.to(tl.float8e5)
    # CHECK: types.py:[[#@LINE-1]]:5: error: cannot cast int32 to fp8e5 directly; cast to fp32 first
    # CHECK-NEXT:     n.to(tl.float8e5)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~
    f.to(tl.float16, fp_downcast_rounding="up")
    # CHECK: types.py:[[#@LINE-1]]:43: error: rounding must be 'rtne' or 'rtz', not 'up'
    # CHECK-NEXT:     f.to(tl.float16, fp_downcast_rounding="up")
    # CHECK-NEXT:                                           ^~~~
    f.to(tl.float64, fp_downcast_rounding="rtz")
    # CHECK: types.py:[[#@LINE-1]]:43: error: a rounding is only for casts to a narrower floating point type, not from fp32 to fp64
    # CHECK-NEXT:     f.to(tl.float64, fp_downcast_rounding="rtz")
    # CHECK-NEXT:                                           ^~~~~
    f.to(tl.block_type(tl.float32, (4,)))
    # CHECK: types.py:[[#@LINE-1]]:10: error: fp32[4] is not the type of an element
    # CHECK-NEXT:     f.to(tl.block_type(tl.float32, (4,)))
    # CHECK-NEXT:          ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    e + n
    # CHECK: types.py:[[#@LINE-1]]:5: error: operands of types fp8e5 and int32 cannot be combined; cast one of them first
    # CHECK-NEXT:     e + n
    # CHECK-NEXT:     ^~~~~
    tl.exp(n)
    # CHECK: types.py:[[#@LINE-1]]:12: error: tl.exp: Expected dtype ['fp32', 'fp64'] but got i32 for argument 'x'
    # CHECK-NEXT:     tl.exp(n)
    # CHECK-NEXT:            ^
    # CHECK-NEXT: note: cast it first: x.to(tl.float32)
    tl.sigmoid(f.to(tl.float16))
    # CHECK: types.py:[[#@LINE-1]]:16: error: tl.sigmoid: Expected dtype ['fp32', 'fp64'] but got fp16 for argument 'x'
    # CHECK-NEXT:     tl.sigmoid(f.to(tl.float16))
    # CHECK-NEXT:                ^~~~~~~~~~~~~~~~
    # CHECK-NEXT: note: cast it first: x.to(tl.float32)
    tl.where(f > 0, p, n)
    # CHECK: types.py:[[#@LINE-1]]:5: error: tl.where cannot choose between run-time pointer<fp32> and run-time int32: pointers must have the same type
    # CHECK-NEXT:     tl.where(f > 0, p, n)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~
    tl.clamp(n, 0, 1)
    # CHECK: types.py:[[#@LINE-1]]:14: error: tl.clamp needs floating point values, but got run-time int32
    # CHECK-NEXT:     tl.clamp(n, 0, 1)
    # CHECK-NEXT:              ^
    tl.cdiv(f, 2)
    # CHECK: types.py:[[#@LINE-1]]:13: error: argument 'x' of tl.cdiv must be an integer, but got run-time fp32
    # CHECK-NEXT:     tl.cdiv(f, 2)
    # CHECK-NEXT:             ^
    tl.fma(n, n, n)
    # CHECK: types.py:[[#@LINE-1]]:5: error: tl.fma needs floating point operands, but got int32
    # CHECK-NEXT:     tl.fma(n, n, n)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~
    tl.fdiv(n, n)
    # CHECK: types.py:[[#@LINE-1]]:5: error: tl.fdiv needs floating point operands, but got int32
    # CHECK-NEXT:     tl.fdiv(n, n)
    # CHECK-NEXT:     ^~~~~~~~~~~~~
    tl.umulhi(n.to(tl.int8), n.to(tl.int8))
    # CHECK: types.py:[[#@LINE-1]]:5: error: tl.umulhi needs 32 or 64 bit integers, but got int8
    # CHECK-NEXT:     tl.umulhi(n.to(tl.int8), n.to(tl.int8))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.abs(p)
    # CHECK: types.py:[[#@LINE-1]]:5: error: tl.abs does not take run-time pointer<fp32>
    # CHECK-NEXT:     tl.abs(p)
    # CHECK-NEXT:     ^~~~~~~~~
    tl.pointer_type(tl.float32, 3)
    # CHECK: types.py:[[#@LINE-1]]:33: error: only pointers to global memory (address space 1) are supported
    # CHECK-NEXT:     tl.pointer_type(tl.float32, 3)
    # CHECK-NEXT:                                 ^
    n % u
    # CHECK: types.py:[[#@LINE-1]]:5: error: Cannot use /, //, or % with int32 and uint32 because they have different signedness
    # CHECK-NEXT:     n % u
    # CHECK-NEXT:     ^~~~~
    # CHECK-NEXT: note: cast one of them, for example x.to(tl.int32)
