# RUN: not ditron-import %s:kernel --signature "*fp32, i32, fp32, fp64" 2>&1 | FileCheck %s
# Rarer mistakes in calls, numbers and operators.
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton_dist.language.extra.language_extra import __ballot_sync

HOST, OTHER = range(2)


@triton.jit
def any_keywords(**options):
    pass


@triton.jit
def kernel(p, n, f, d):
    any_keywords(a=1)
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: parameter '**options': such parameters are not part of the kernel language
    # CHECK-NEXT:     any_keywords(a=1)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~
    # CHECK-NEXT: more_calls.py:[[#@LINE-10]]:1: note: the function is declared here
    # CHECK-NEXT: def any_keywords(**options):
    # CHECK-NEXT: ^~~~~~~~~~~~~~~~~~~~~~~~~~~~
    __ballot_sync(0xFFFFFFFF, tl.arange(0, 4) > 2)
    # CHECK: more_calls.py:[[#@LINE-1]]:31: error: argument 'predicate' of __ballot_sync must be a scalar, but got block int1[4]
    # CHECK-NEXT:     __ballot_sync(0xFFFFFFFF, tl.arange(0, 4) > 2)
    # CHECK-NEXT:                               ^~~~~~~~~~~~~~~~~~~
    libdevice.pow(f, d)
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: input arg type does not match: libdevice.pow takes (fp32, int32), (fp64, int32), (fp32, fp32), (fp64, fp64), but got (fp32, fp64)
    # CHECK-NEXT:     libdevice.pow(f, d)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~
    getattr(n, "x", 1, 2)
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: getattr takes two or three arguments
    # CHECK-NEXT:     getattr(n, "x", 1, 2)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~
    u = tl.zeros((64, 64), tl.uint8)
    tl.dot(u, u)
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: only int8 supported! tl.dot does not multiply uint8
    # CHECK-NEXT:     tl.dot(u, u)
    # CHECK-NEXT:     ^~~~~~~~~~~~
    x = tl.zeros((64, 64), tl.float32)
    tl.dot(x, x.to(tl.float16))
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: Both operands must be same dtype. Got fp32 and fp16
    # CHECK-NEXT:     tl.dot(x, x.to(tl.float16))
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.dot(x, x, input_precision="ieee", allow_tf32=False)
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: Only one of input_precision and allow_tf32 can be specified
    # CHECK-NEXT:     tl.dot(x, x, input_precision="ieee", allow_tf32=False)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    big = 1 << 64
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: integer 18446744073709551616 does not fit into 64 bits
    # CHECK-NEXT:     big = 1 << 64
    # CHECK-NEXT:     ^~~
    n + (1 << 64)
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: number 18446744073709551616 is out of range for type int32
    # CHECK-NEXT:     n + (1 << 64)
    # CHECK-NEXT:     ^~~~~~~~~~~~~
    n < (1 << 64)
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: integer 18446744073709551616 does not fit into 64 bits
    # CHECK-NEXT:     n < (1 << 64)
    # CHECK-NEXT:     ^~~~~~~~~~~~~
    tl.store(p, HOST)
    # CHECK: more_calls.py:[[#@LINE-1]]:17: error: Cannot access global variable 'HOST' from a kernel: it is not wrapped in tl.constexpr
    # CHECK-NEXT:     tl.store(p, HOST)
    # CHECK-NEXT:                 ^~~~
    # CHECK-NEXT: more_calls.py:[[#@LINE-59]]:1: note: defined here
    # CHECK-NEXT: HOST, OTHER = range(2)
    # CHECK-NEXT: ^~~~
    # CHECK-NEXT: note: write HOST = tl.constexpr(...) at module level, or pass it as an argument
    (1, 2) * (1 << 40)
    # CHECK: more_calls.py:[[#@LINE-1]]:5: error: the tuple would be too long
    # CHECK-NEXT:     (1, 2) * (1 << 40)
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~
    x = (yield)
    # CHECK: more_calls.py:[[#@LINE-1]]:10: error: this expression is not part of the kernel language
    # CHECK-NEXT:     x = (yield)
    # CHECK-NEXT:          ^~~~~
    tl.pointer_type(tl.block_type(tl.float32, (4,)))
    # CHECK: more_calls.py:[[#@LINE-1]]:21: error: a pointer points at a scalar, not at a block
    # CHECK-NEXT:     tl.pointer_type(tl.block_type(tl.float32, (4,)))
    # CHECK-NEXT:                     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    tl.dtype("float32")
    # CHECK: more_calls.py:[[#@LINE-1]]:14: error: tl.dtype has no type 'float32'; its names are int1, int8 ... int64, uint8 ... uint64, fp8e5, fp8e4nv, fp8e4b15, fp16, bf16, fp32, fp64 and void
    # CHECK-NEXT:     tl.dtype("float32")
    # CHECK-NEXT:              ^~~~~~~~~
    for i in tl.static_range(500000):
    # CHECK: more_calls.py:[[#@LINE-1]]:14: error: a loop of more than 400000 iterations cannot be unrolled
    # CHECK-NEXT:     for i in tl.static_range(500000):
    # CHECK-NEXT:              ^~~~~~~~~~~~~~~~~~~~~~~
        pass
    return n
    # CHECK: more_calls.py:[[#@LINE-1]]:12: error: a kernel cannot return a value, but this returns run-time int32
    # CHECK-NEXT:     return n
    # CHECK-NEXT:            ^
