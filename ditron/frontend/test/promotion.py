# RUN: ditron-import %s:types --signature "*fp32, i8, i16, i32, i64, u8, u32, u64, i1, fp16, bf16, fp32, fp64, fp8e5" | FileCheck %s --check-prefix=TYPES --allow-empty
# RUN: ditron-import %s:operations --signature "i8, i32, i64, u32, i1, fp16, fp32" | FileCheck %s
# The operand rules of the language: which type two operands meet in, and which operation follows from the sign.
import triton
import triton.language as tl


# Every line is a row of the table of promotions; the types are checked while importing.
# TYPES: func.func @types
@triton.jit
def types(p, a8, a16, a32, a64, u8, u32, u64, b, h, bf, f, d, e):
    tl.static_assert((a32 + a32).dtype == tl.int32 and (a32 / a32).dtype == tl.float32 and (a32 // a32).dtype == tl.int32)
    tl.static_assert((a32 + a64).dtype == tl.int64 and (a64 / a64).dtype == tl.float32 and (a32 % a64).dtype == tl.int64)
    tl.static_assert((a32 + u32).dtype == tl.uint32 and (a64 + u32).dtype == tl.int64 and (a64 * u64).dtype == tl.uint64)
    tl.static_assert((a16 + h).dtype == tl.float16 and (a16 / h).dtype == tl.float32 and (a16 % h).dtype == tl.float32)
    tl.static_assert((a32 + bf).dtype == tl.float32 and (a32 / bf).dtype == tl.float32)
    tl.static_assert((h + bf).dtype == tl.float16 and (h * h).dtype == tl.float16 and (h / h).dtype == tl.float32)
    tl.static_assert((bf + bf).dtype == tl.bfloat16 and (bf / bf).dtype == tl.float32 and (bf % bf).dtype == tl.float32)
    tl.static_assert((h + 2).dtype == tl.float16 and (h + 2.5).dtype == tl.float16 and (h / 2).dtype == tl.float32)
    tl.static_assert((bf * 2.0).dtype == tl.bfloat16 and (2.0 / bf).dtype == tl.float32)
    tl.static_assert((a8 + 2).dtype == tl.int8 and (a8 / 2).dtype == tl.float32 and (a8 // 2).dtype == tl.int8)
    tl.static_assert((a8 + 2.5).dtype == tl.float32 and (a8 + a32).dtype == tl.int32 and (u8 + a16).dtype == tl.int16)
    tl.static_assert((f + d).dtype == tl.float64 and (f + h).dtype == tl.float32 and (f * 2).dtype == tl.float32)
    tl.static_assert((e + e).dtype == tl.float8e5 and (e * h).dtype == tl.float16)
    tl.static_assert((b + b).dtype == tl.int1 and (b + 1).dtype == tl.int32 and (b & True).dtype == tl.int1)
    tl.static_assert((a8 << 1).dtype == tl.int8 and (a8 | a32).dtype == tl.int32 and (~u8).dtype == tl.uint8)
    tl.static_assert((a32 < u32).dtype == tl.int1 and (h > 0.5).dtype == tl.int1 and (a8 < 300).dtype == tl.int1)
    tl.static_assert(tl.minimum(bf, bf).dtype == tl.float32 and tl.maximum(h, h).dtype == tl.float16)
    tl.static_assert(tl.minimum(h, 2.0).dtype == tl.float32 and min(a8, 3).dtype == tl.int32)
    tl.static_assert(tl.where(b, h, 1.0).dtype == tl.float16 and tl.where(b, 1, 2).dtype == tl.int32)
    tl.static_assert(tl.cdiv(a32, 4).dtype == tl.int32 and tl.cdiv(a64, a32).dtype == tl.int64)
    tl.static_assert((p + a64).dtype == p.dtype and (a32 + p).dtype == p.dtype and (-h).dtype == tl.float16)
    tl.static_assert((a64 // a32).dtype == tl.int64 and (u32 // u8).dtype == tl.uint32 and (u64 >> 3).dtype == tl.uint64)


# CHECK-LABEL: func.func @operations
# CHECK-SAME: (%[[A8:[^:]+]]: i8, %[[A32:[^:]+]]: i32, %[[A64:[^:]+]]: i64, %[[U:[^:]+]]: i32, %[[B:[^:]+]]: i1, %[[H:[^:]+]]: f16, %[[F:[^:]+]]: f32)
@triton.jit
def operations(a8, a32, a64, u32, b, h, f):
    # CHECK-NEXT: arith.divsi %[[A32]], %[[A32]]
    a32 // a32
    # CHECK-NEXT: arith.divui %[[U]], %[[U]]
    u32 // u32
    # CHECK-NEXT: arith.remsi
    a32 % a32
    # CHECK-NEXT: arith.remui
    u32 % u32
    # CHECK-NEXT: arith.remf
    f % f
    # CHECK-NEXT: arith.uitofp %[[U]] : i32 to f32
    # CHECK-NEXT: arith.uitofp %[[U]] : i32 to f32
    # CHECK-NEXT: arith.divf
    u32 / u32
    # CHECK-NEXT: arith.shrsi
    a32 >> a32
    # CHECK-NEXT: arith.shrui
    u32 >> u32
    # Sign extension by the source: signed, unsigned, bool.
    # CHECK-NEXT: arith.extsi %[[A8]] : i8 to i32
    # CHECK-NEXT: arith.addi
    a8 + a32
    # CHECK-NEXT: arith.extui %[[U]] : i32 to i64
    # CHECK-NEXT: arith.addi
    a64 + u32
    # CHECK-NEXT: arith.extui %[[B]] : i1 to i32
    # CHECK-NEXT: arith.addi
    b + a32
    # CHECK-NEXT: arith.cmpi slt
    a32 < a32
    # CHECK-NEXT: arith.cmpi ult
    u32 < u32
    # CHECK-NEXT: arith.cmpf olt
    f < f
    # CHECK-NEXT: arith.cmpf une
    f != f
    # A comparison makes a tensor of the literal first: fp16 with 0.5 is compared in fp32.
    # CHECK-NEXT: arith.extf %[[H]] : f16 to f32
    # CHECK-NEXT: arith.constant 5.000000e-01 : f32
    # CHECK-NEXT: arith.cmpf ogt
    h > 0.5
    # CHECK-NEXT: arith.negf
    -f
    # CHECK-NEXT: arith.constant 0 : i32
    # CHECK-NEXT: arith.subi
    -a32
    # CHECK-NEXT: arith.constant -1 : i32
    # CHECK-NEXT: arith.xori
    ~a32
    # CHECK-NEXT: arith.constant true
    # CHECK-NEXT: arith.xori %[[B]]
    not b
    # CHECK: arith.andi
    b and a32 > 3
    # CHECK: arith.ori
    b or a32 > 3
    # CHECK-NEXT: arith.maxnumf
    tl.maximum(f, f)
    # CHECK-NEXT: arith.maximumf
    tl.maximum(f, f, propagate_nan=True)
    # CHECK-NEXT: arith.minui
    tl.minimum(u32, u32)
    # Casts.
    # CHECK-NEXT: arith.trunci
    a64.to(tl.int8)
    # CHECK-NEXT: arith.fptosi
    f.to(tl.int32)
    # CHECK-NEXT: arith.fptoui
    f.to(tl.uint32)
    # CHECK-NEXT: arith.fptosi {{.*}} : f32 to i32
    # CHECK-NEXT: arith.trunci {{.*}} : i32 to i8
    f.to(tl.uint8)
    # CHECK: arith.cmpf une
    f.to(tl.int1)
    # CHECK-NEXT: arith.truncf %[[F]] : f32 to bf16
    f.to(tl.bfloat16)
    # CHECK-NEXT: arith.truncf %[[F]] toward_zero : f32 to f16
    f.to(tl.float16, fp_downcast_rounding="rtz")
    # A cast to the same type takes a rounding, and does nothing; a bitcast does not look at it.
    f.to(tl.float32, fp_downcast_rounding="rtz")
    # CHECK-NEXT: arith.bitcast %[[F]] : f32 to i32
    f.to(tl.int32, fp_downcast_rounding="rtne", bitcast=True)
    # CHECK-NEXT: arith.extf %[[H]] : f16 to f32
    # CHECK-NEXT: arith.truncf %{{.*}} : f32 to bf16
    h.to(tl.bfloat16)
    # CHECK-NEXT: arith.bitcast %[[F]] : f32 to i32
    f.to(tl.uint32, bitcast=True)
    # CHECK-NEXT: tile.int_to_ptr %[[A64]]
    # CHECK-NEXT: tile.ptr_to_int
    a64.to(tl.pointer_type(tl.float16)).to(tl.int64)
    # CHECK-NEXT: return
