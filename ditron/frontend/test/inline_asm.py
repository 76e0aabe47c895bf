# RUN: ditron-import %s:kernel --signature "*i8, *fp32, *i32" | FileCheck %s
# Assembly on elements, and functions of libdevice by name and symbol.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language import core
from triton.language.extra import libdevice


@core.extern
def add_up(x, y, _semantic=None):
    return core.extern_elementwise(
        "libdevice", "", [x, y], {
            (core.dtype("fp32"), core.dtype("fp32")): ("__nv_fadd_ru", core.dtype("fp32")),
            (core.dtype("fp64"), core.dtype("fp64")): ("__nv_dadd_ru", core.dtype("fp64")),
        }, is_pure=True, _semantic=_semantic)


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(b, f, n):
    i = tl.arange(0, 64)
    x = tl.load(f + i)
    # CHECK: tile.inline_asm "cvt.rn.bf16x2.f32 $0, $1, $1;" "=r,r"(%{{.*}}) pack 1 {isPure} : (tensor<64xf32>) -> tensor<64xi32>
    tl.store(n + i, tl.inline_asm_elementwise("cvt.rn.bf16x2.f32 $0, $1, $1;", "=r,r", [x], tl.int32, is_pure=True, pack=1))
    # Four bytes share a register; two results.
    # CHECK: tile.inline_asm {{.*}} pack 4 : (tensor<64xi8>, tensor<64xi8>) -> (tensor<64xi8>, tensor<64xi32>)
    s, t = tl.inline_asm_elementwise("and.b32 $0, $5, $6; mov.b32 $1, 1; mov.b32 $2, 2; mov.b32 $3, 3; mov.b32 $4, 4;",
                                     "=r,=r,=r,=r,=r,r,r", [tl.load(b + i), tl.load(b + i)], (tl.int8, tl.int32), is_pure=False, pack=4)
    tl.store(b + i, s)
    tl.store(n + i, t)
    # CHECK: tile.extern_call "__nv_tgammaf"(%{{.*}}) {isPure} : (tensor<64xf32>) -> tensor<64xf32>
    tl.store(f + i, libdevice.tgamma(x))
    # CHECK: tile.extern_call "__nv_powif"
    tl.store(f + i, tl.extra.cuda.libdevice.pow(x, 3))
    # CHECK: tile.extern_call "__nv_isnanf"(%{{.*}}) {isPure} : (tensor<64xf32>) -> tensor<64xi32>
    tl.store(n + i, libdevice.isnan(x))
    # CHECK: tile.extern_call "__nv_fadd_rz"
    tl.store(f + i, dl.extern_elementwise("__nv_fadd_rz", [x, x]))
    # CHECK: tile.extern_call "__nv_fadd_ru"(%{{.*}}, %{{.*}}) {isPure} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    tl.store(f + i, add_up(x, 1.0))
    if tl.target_info.cuda_capability_geq(15, 0):
        tl.static_assert(False, "there is no such GPU")
