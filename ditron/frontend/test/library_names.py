# RUN: ditron-import %s:kernel --signature "*fp32, *i64, i32" | FileCheck %s
# The names under which public kernels reach for Triton's own functions: its inner modules, private helpers, tl.extra.cuda.
import triton
import triton.language as tl
import triton.language.extra.cuda.libdevice
import triton.language.random as random
from triton.language import core
from triton.language.core import get_int_dtype
from triton.language.extra import libdevice
from triton.language.extra.cuda import gdc_wait, num_threads
from triton.language.extra.cuda.libdevice import tanh
from triton.language.extra.cuda.utils import num_warps
from triton.language.extra.libdevice import ffs
from triton.language.standard import _get_int_dtype, _is_power_of_two, _log2, zeros_like


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(p, q, n):
    i = core.arange(0, 64)
    tl.static_assert(_log2(64) == 6 and _log2(65) == 6 and _log2(1) == 0)
    tl.static_assert(_is_power_of_two(64) and not _is_power_of_two(0) and not tl.standard._is_power_of_two(65))
    tl.static_assert(get_int_dtype(16, True) == tl.int16 and _get_int_dtype(bitwidth=64, signed=False) == tl.uint64)
    tl.static_assert(tl.core.get_int_dtype(8, False) == tl.uint8 and get_int_dtype(1, False) == tl.int1)
    tl.static_assert(num_warps() == 4 and num_threads() == 128 and tl.extra.cuda.num_warps() == 4)
    x = tl.load(p + i)
    # CHECK: tile.reduce
    # CHECK: arith.addf
    tl.store(p, tl.reduce(x, 0, tl.standard._sum_combine))
    # CHECK: tile.reduce
    # CHECK: arith.maxnumf
    tl.store(p, core.reduce(x, 0, tl.standard._elementwise_max))
    # CHECK: tile.reduce
    # CHECK: arith.cmpf ogt
    value, at = tl.reduce((x, i), 0, tl.standard._argmax_combine_tie_break_left)
    tl.store(q, at)
    # CHECK: tile.scan
    # CHECK: arith.mulf
    tl.store(p + i, tl.associative_scan(x, 0, tl.standard._prod_combine))
    # CHECK: tile.store {{.*}} : tensor<64x!tile.ptr<f32>>, tensor<64xf32>
    tl.store(p + i, zeros_like(x))
    tl.static_assert(tl.dtype("uint32") == tl.uint32 and tl.dtype("fp16") == tl.float16)
    # CHECK: math.tanh
    # CHECK: math.tanh
    # CHECK: math.tanh
    # CHECK: math.tanh
    tl.store(p + i, tanh(libdevice.tanh(tl.extra.libdevice.tanh(tl.extra.cuda.libdevice.tanh(x)))))
    # Of Triton these are signed.
    tl.static_assert(tl.extra.cuda.smid().dtype == tl.int32 and tl.extra.cuda.globaltimer().dtype == tl.int64)
    tl.static_assert(random.randint(3, i).dtype == tl.uint32 and tl.random.rand(3, i).dtype == tl.float32)
    # CHECK: dist.intrinsic "gdc_wait"
    gdc_wait()
    tl.static_assert(ffs(n).dtype == tl.int32)
    y = tl.extra.cuda.convert_custom_float8_sm80(x, tl.float8e4b15)
    tl.static_assert(y.dtype == tl.float8e4b15)
    tl.static_assert(tl.extra.cuda.convert_custom_float8_sm80(y, tl.float32).dtype == tl.float32)
