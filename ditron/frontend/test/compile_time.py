# RUN: ditron-import %s:kernel --signature "*bf16, 1, constexpr BLOCK=64, constexpr KIND='gelu', constexpr OUT=fp16, constexpr NOTHING=None" | FileCheck %s
# Compile-time evaluation: Python's arithmetic, strings, tuples, dtypes, globals, f-strings.
import math

import triton
import triton.language as tl
from triton.language.extra import libdevice

LIMIT = tl.constexpr(2**70)
NAMES = tl.constexpr(("a", "b"))
HALF = tl.float16
HELPER = tl.cdiv


@triton.jit
def kernel(p, n, BLOCK: tl.constexpr, KIND: tl.constexpr, OUT: tl.constexpr, NOTHING: tl.constexpr):
    """The whole kernel is compile-time checks; static_print shows what they see."""
    tl.static_assert(-7 // 2 == -4 and -7 % 3 == 2 and 7 / 2 == 3.5 and 2**10 == 1024)
    tl.static_assert(LIMIT // 2**60 == 1024 and (1 << 65) >> 60 == 32)
    tl.static_assert(n == 1, "an argument that is specialised to 1 is a compile-time int")
    tl.static_assert(KIND == "gelu" and KIND != "relu")
    tl.static_assert(OUT == tl.float16 and OUT == HALF and OUT != tl.bfloat16)
    tl.static_assert(p.dtype.element_ty == tl.bfloat16 and p.dtype.is_ptr() and not p.dtype.is_floating())
    tl.static_assert(p.dtype.element_ty.primitive_bitwidth == 16 and tl.int64.int_bitwidth == 64)
    tl.static_assert(tl.uint8.is_int_unsigned() and tl.int8.is_int_signed() and tl.float8e5.is_fp8())
    tl.static_assert(NOTHING is None and p is not None)
    tl.static_assert(HELPER(10, 4) == 3 and triton.cdiv(8, 4) == 2 and triton.next_power_of_2(33) == 64)
    tl.static_assert(len(NAMES) == 2 and NAMES[-1] == "b" and (1, 2) + (3,) == (1, 2, 3) and (0,) * 2 == (0, 0))
    tl.static_assert((1, 2, 3, 4)[1:3] == (2, 3) and (1, 2, 3)[::-1] == (3, 2, 1) and KIND[0] == "g")
    tl.static_assert(min(3, 1, 2) == 1 and max((4, 5)) == 5 and int(2.9) == 2 and float("inf") > 1e30)
    tl.static_assert([i * i for i in range(4) if i % 2 == 1] == (1, 9))
    tl.static_assert(isinstance(n, int) and isinstance(p, tl.tensor) and not isinstance(n, (tl.tensor, str)))
    tl.static_assert(hasattr(p, "dtype") and not hasattr(p, "size") and getattr(p, "size", 3) == 3)
    tl.static_assert(not hasattr(BLOCK, "dtype") and hasattr(BLOCK, "bit_length"), "numbers of Python have no dtype")
    for _ in range(0, 1, num_stages=1):  # which Python's own range does not have: Triton drops it
        pass
    tl.static_assert((BLOCK).bit_length() == 7 and math.pi > 3.14)
    tl.static_assert((True or undefined_name) and not (False and undefined_name))

    # CHECK: // static_print: 64 gelu fp16 None (1, 'x')
    # CHECK-NEXT: // static_print: <64> 64 2.5 'gelu'
    # CHECK-NEXT: // static_print: a-b
    tl.static_print(BLOCK, KIND, OUT, NOTHING, (1, "x"))
    # Triton drops the formats.
    tl.static_print(f"<{BLOCK:5d}> {BLOCK:#x} {2.5:.2f} {KIND!r}")
    tl.static_print("a", "b", sep="-", end="")

    # CHECK-LABEL: func.func @kernel(%arg0: !tile.ptr<bf16>)
    SHAPE: tl.constexpr = (BLOCK, BLOCK // 2)
    # CHECK: arith.constant dense<0.000000e+00> : tensor<64x32xf16>
    x = tl.zeros(SHAPE, dtype=OUT)
    tl.static_assert(x.shape == (64, 32) and x.shape[0] == 64 and x.numel == 2048 and x.dtype == tl.float16)
    tl.static_assert(x.type.element_ty == tl.float16 and tl.trans(x).shape == [32, 64])
    # A declaration without value takes the next assignment.
    LATE: tl.constexpr
    LATE = 16
    # CHECK: tile.arange 0, 16
    y = tl.arange(0, LATE)
    # Numbers decay when they are assigned: bool to i1, int to the narrowest of i32, u32, i64, float to f32.
    # CHECK: arith.constant true
    # CHECK: arith.constant 3 : i32
    # CHECK: arith.constant -1 : i32
    # CHECK: arith.constant 4294967296 : i64
    # CHECK: arith.constant 2.500000e+00 : f32
    # CHECK: arith.constant 1.000000e+300 : f64
    b = True
    i = 3
    u = 4294967295
    w = 4294967296
    f = 2.5
    d = 1e300
    tl.static_assert(b.dtype == tl.int1 and u.dtype == tl.uint32 and w.dtype == tl.int64 and d.dtype == tl.float64)
    # The walrus assigns, too.
    tl.static_assert((z := y).shape == (16,))
    g = z + (k := 2)
