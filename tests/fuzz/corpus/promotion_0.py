import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

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
@triton.jit
def operations(a8, a32, a64, u32, b, h, f):
    a32 // a32
    u32 // u32
    a32 % a32
    u32 % u32
    f % f
    u32 / u32
    a32 >> a32
    u32 >> u32
    a8 + a32
    a64 + u32
    b + a32
    a32 < a32
    u32 < u32
    f < f
    f != f
    h > 0.5
    -f
    -a32
    ~a32
    not b
    b and a32 > 3
    b or a32 > 3
    tl.maximum(f, f)
    tl.maximum(f, f, propagate_nan=True)
    tl.minimum(u32, u32)
    a64.to(tl.int8)
    f.to(tl.int32)
    f.to(tl.uint32)
    f.to(tl.uint8)
    f.to(tl.int1)
    f.to(tl.bfloat16)
    f.to(tl.float16, fp_downcast_rounding="rtz")
    h.to(tl.bfloat16)
    f.to(tl.uint32, bitcast=True)
    a64.to(tl.pointer_type(tl.float16)).to(tl.int64)
