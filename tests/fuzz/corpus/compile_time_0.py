import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

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
    tl.static_assert((BLOCK).bit_length() == 7 and math.pi > 3.14)
    tl.static_assert((True or undefined_name) and not (False and undefined_name))
    tl.static_print(BLOCK, KIND, OUT, NOTHING, (1, "x"))
    tl.static_print(f"<{BLOCK:5d}> {BLOCK:#x} {2.5:.2f} {KIND!r}")
    tl.static_print("a", "b", sep="-", end="")
    SHAPE: tl.constexpr = (BLOCK, BLOCK // 2)
    x = tl.zeros(SHAPE, dtype=OUT)
    tl.static_assert(x.shape == (64, 32) and x.shape[0] == 64 and x.numel == 2048 and x.dtype == tl.float16)
    tl.static_assert(x.type.element_ty == tl.float16 and tl.trans(x).shape == [32, 64])
    LATE: tl.constexpr
    LATE = 16
    y = tl.arange(0, LATE)
    b = True
    i = 3
    u = 4294967295
    w = 4294967296
    f = 2.5
    d = 1e300
    tl.static_assert(b.dtype == tl.int1 and u.dtype == tl.uint32 and w.dtype == tl.int64 and d.dtype == tl.float64)
    tl.static_assert((z := y).shape == (16,))
    g = z + (k := 2)
