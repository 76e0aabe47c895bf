# RUN: ditron-import %s:after --signature "*fp32, *i32" | FileCheck %s --check-prefix=AFTER
# RUN: ditron-import %s:kernel --signature "*fp16:16, *bf16, i32, i32:16, i64" | FileCheck %s
# Block pointers: aggregates without a trace in the IR; loads and stores become pointers and masks.
import triton
import triton.language as tl
import triton_dist.language as dl


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(x, y, rows, columns, n):
    p = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 8), (16, 32), (1, 0))
    tl.static_assert(p.dtype.element_ty == tl.float16 and p.block_shape[1] == 32 and len(p.offsets) == 2)
    # Without a check there is no mask. The tile's first element is one scalar.
    # CHECK: %[[ORIGIN:.*]] = tile.addptr %arg0, %{{.*}} : !tile.ptr<f16>, i64
    # CHECK: %[[ALL:.*]] = tile.splat %[[ORIGIN]] : !tile.ptr<f16> -> tensor<16x32x!tile.ptr<f16>>
    # CHECK: %[[AT:.*]] = tile.addptr %[[ALL]], %{{.*}} : tensor<16x32x!tile.ptr<f16>>, tensor<16x32xi64>
    # CHECK: tile.load %[[AT]] : tensor<16x32x!tile.ptr<f16>> -> tensor<16x32xf16>
    v = tl.load(p)
    # One unsigned comparison excludes both ends.
    # CHECK: arith.cmpi ult, %{{.*}} : tensor<32xi64>
    # CHECK-NOT: arith.cmpi
    # CHECK: tile.load %{{.*}} mask %{{.*}} other %{{.*}} : tensor<16x32x!tile.ptr<f16>> mask tensor<16x32xi1> other tensor<16x32xf16>
    w = tl.load(p, boundary_check=(1,), padding_option="nan", cache_modifier=".cg")
    # What does not move is not carried with another value.
    # CHECK: scf.for
    for i in range(n):
        # CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %{{.*}} : i64
        p = tl.advance(p, (0, 32))
    # CHECK: tile.store %{{.*}}, %{{.*}} mask %{{.*}} : tensor<16x!tile.ptr<bf16>>, tensor<16xbf16> mask tensor<16xi1>
    q = tl.make_block_ptr(base=y, shape=[rows], strides=[1], offsets=[n], block_shape=[16], order=[0])
    tl.store(q.advance((16,)), tl.sum((v + w).to(tl.float32), 1), boundary_check=(0,))


# What a wait protects is read behind it.
# AFTER-LABEL: func.func @after
@triton.jit
def after(x, signal):
    p = tl.make_block_ptr(x, (64,), (1,), (0,), (16,), (0,))
    # AFTER: %[[TOKEN:.*]] = dist.wait
    # AFTER: %[[BASE:.*]] = dist.consume_token %arg0, %[[TOKEN]]
    # AFTER: tile.addptr %[[BASE]]
    p = dl.consume_token(p, dl.wait(signal, 1, "gpu", "acquire"))
    tl.store(x + tl.arange(0, 16), tl.load(p))
