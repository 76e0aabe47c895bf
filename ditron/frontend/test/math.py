# RUN: ditron-import %s:kernel --signature "fp32, fp64, i32, u32" | FileCheck %s
# Elementwise functions.
import triton
import triton.language as tl
from triton.language.extra import libdevice


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(f, d, n, u):
    # CHECK: math.exp %arg0 : f32
    tl.exp(f)
    # CHECK: math.exp2 %arg1 : f64
    tl.math.exp2(d)
    # CHECK: math.log %
    f.log()
    # CHECK: math.log2
    tl.log2(f)
    # CHECK: math.sqrt
    tl.sqrt(f)
    # CHECK: math.rsqrt
    libdevice.rsqrt(f)
    # CHECK: math.sin
    tl.sin(f)
    # CHECK: math.cos
    tl.cos(f)
    # CHECK: math.erf
    tl.erf(f)
    # CHECK: math.floor
    tl.floor(f)
    # CHECK: math.ceil
    tl.ceil(f)
    # CHECK: math.tanh
    tl.extra.libdevice.tanh(f)
    # CHECK: math.absf
    tl.abs(f)
    # CHECK: math.absi
    abs(n)
    # The absolute value of an unsigned number is itself.
    # CHECK-NOT: math.abs
    tl.abs(u)
    # CHECK: math.fma %arg0, %arg0, %{{.*}} : f32
    tl.fma(f, f, 2.0)
    # CHECK: arith.divf {{.*}} fastmath<afn>
    tl.fdiv(f, 2.0)
    # CHECK: arith.divf
    # CHECK-NOT: afn
    tl.div_rn(f, f)
    # CHECK: arith.mului_extended
    tl.umulhi(u, u)
    # CHECK: arith.negf
    # CHECK: math.exp
    # CHECK: arith.addf
    # CHECK: arith.divf
    tl.sigmoid(f)
    # CHECK: arith.maxnumf
    # CHECK: arith.minnumf
    tl.clamp(f, 0.0, 1.0)
    # CHECK: arith.addi
    # CHECK: arith.divsi
    tl.cdiv(n, 16)
    # CHECK: arith.divsi
    # CHECK: arith.minsi
    i, j = tl.swizzle2d(n, n, n, n, 4)
    # CHECK: math.powf
    libdevice.pow(f, f)
    # CHECK: return
