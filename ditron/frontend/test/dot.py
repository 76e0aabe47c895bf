# RUN: ditron-import %s:kernel --signature "*fp16, *i8, *fp32, *bf16, *fp64, *fp8e4nv" | FileCheck %s
# tl.dot: result types, accumulators, precision.
import triton
import triton.language as tl


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(h, c, f, b, d, e):
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    x = tl.load(h + tile)
    # CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<32x32xf32>
    # CHECK: tile.dot %{{.*}}, %{{.*}}, %[[ZERO]] : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    acc = tl.dot(x, x)
    # CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : {{.*}} -> tensor<32x32xf32>
    acc = tl.dot(x, x, acc)
    # CHECK: tile.dot {{.*}} -> tensor<32x32xf16>
    half = tl.dot(x, x, out_dtype=tl.float16)
    # CHECK: tile.dot {{.*}} -> tensor<32x32xf16>
    tl.dot(x, x, acc=half)
    y = tl.load(c + tile)
    # CHECK: arith.constant dense<0> : tensor<32x32xi32>
    # CHECK: tile.dot {{.*}} : tensor<32x32xi8>, tensor<32x32xi8> -> tensor<32x32xi32>
    tl.dot(y, y)
    z = tl.load(f + tile)
    # CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x32xf32>
    tl.dot(z, z)
    # CHECK: tile.dot {{.*}} {precision = #tile.precision<ieee>}
    tl.dot(z, z, input_precision="ieee")
    # CHECK: tile.dot {{.*}} {precision = #tile.precision<tf32x3>}
    tl.dot(z, z, input_precision="tf32x3")
    # CHECK: tile.dot {{.*}} {precision = #tile.precision<ieee>}
    tl.dot(z, z, allow_tf32=False)
    w = tl.load(b + tile)
    # CHECK: tile.dot {{.*}} : tensor<32x32xbf16>, tensor<32x32xbf16> -> tensor<32x32xf32>
    tl.dot(w, w.T)
    v = tl.load(d + tile)
    # CHECK: tile.dot {{.*}} -> tensor<32x32xf64>
    tl.dot(v, v)
    g = tl.load(e + tile)
    # CHECK: tile.dot {{.*}} : tensor<32x32xf8E4M3FN>, tensor<32x32xf8E4M3FN> -> tensor<32x32xf32>
    tl.dot(g, g)
