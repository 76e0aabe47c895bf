# RUN: ditron-import %s:kernel --signature "*fp32, i32" | FileCheck %s
# Creation, indexing, broadcasting, reshaping, transposition.
import triton
import triton.language as tl


# CHECK-LABEL: func.func @kernel
# CHECK-SAME: (%[[P:[^:]+]]: !tile.ptr<f32>, %[[N:[^:]+]]: i32)
@triton.jit
def kernel(p, n):
    # CHECK: %[[I:.*]] = tile.arange 0, 16 : tensor<16xi32>
    i = tl.arange(0, 16)
    # CHECK: tile.arange -8, 8 : tensor<16xi32>
    tl.arange(-8, 8)
    # CHECK: arith.constant dense<0.000000e+00> : tensor<16x32xf16>
    z = tl.zeros((16, 32), tl.float16)
    # CHECK: arith.constant dense<7> : tensor<16xi64>
    tl.full([16], 7, dtype=tl.int64)
    # CHECK: arith.constant dense<0xFF800000> : tensor<4xf32>
    tl.full((4,), float("-inf"), tl.float32)
    # CHECK: arith.extsi %[[N]] : i32 to i64
    # CHECK: tile.splat %{{.*}} : i64 -> tensor<16xi64>
    tl.full((16,), n, tl.int64)
    # CHECK: arith.constant 3.000000e+00 : f32
    tl.full((), 3, tl.float32)
    # CHECK: tile.expand_dims %[[I]] axis 1 : tensor<16xi32> -> tensor<16x1xi32>
    c = i[:, None]
    # CHECK: tile.expand_dims %[[I]] axis 0 : tensor<16xi32> -> tensor<1x16xi32>
    r = i[None, :]
    # CHECK: tile.expand_dims %[[I]] axis 0
    # CHECK: tile.expand_dims %{{.*}} axis 2 : tensor<1x16xi32> -> tensor<1x16x1xi32>
    i[None, :, None]
    # CHECK: tile.expand_dims %[[I]] axis 0 : tensor<16xi32> -> tensor<1x16xi32>
    i[None]
    # Of a scalar ':' says nothing, and None makes a dimension.
    pid = tl.program_id(0)
    tl.static_assert(len(pid[None].shape) == 1 and len(pid[None, :].shape) == 1 and len(pid[:, None].shape) == 1)
    tl.static_assert(len(pid[None, None].shape) == 2 and len(pid[:].shape) == 0 and len((pid[:, None] + i[None, :]).shape) == 2)
    # Broadcasting: sizes of 1, missing leading dimensions, scalars.
    # CHECK: tile.broadcast %{{.*}} : tensor<16x1xi32> -> tensor<16x16xi32>
    # CHECK: tile.broadcast %{{.*}} : tensor<1x16xi32> -> tensor<16x16xi32>
    # CHECK: arith.addi %{{.*}} : tensor<16x16xi32>
    m = c + r
    # CHECK: tile.expand_dims %[[I]] axis 0
    # CHECK: tile.broadcast %{{.*}} : tensor<1x16xi32> -> tensor<16x16xi32>
    m * i
    # CHECK: tile.splat %[[N]] : i32 -> tensor<16x16xi32>
    m + n
    # CHECK: tile.broadcast %{{.*}} : tensor<16x1xi32> -> tensor<16x64xi32>
    c.broadcast_to(16, 64)
    # CHECK: tile.broadcast %{{.*}} : tensor<16x1xi32> -> tensor<16x16xi32>
    # CHECK: tile.broadcast %{{.*}} : tensor<1x16xi32> -> tensor<16x16xi32>
    x, y = tl.broadcast(c, r)
    # CHECK: tile.reshape %{{.*}} : tensor<16x16xi32> -> tensor<8x32xi32>
    tl.reshape(m, (8, 32))
    # CHECK: tile.reshape %{{.*}} : tensor<16x16xi32> -> tensor<4x64xi32>
    m.reshape(4, 64)
    # CHECK: tile.reshape %{{.*}} : tensor<16x16xi32> -> tensor<256xi32>
    m.ravel()
    # CHECK: tile.trans %{{.*}} [1, 0] : tensor<16x32xf16> -> tensor<32x16xf16>
    z.T
    # CHECK: tile.trans %{{.*}} [1, 0]
    tl.trans(z)
    # CHECK: tile.trans %{{.*}} [2, 0, 1] : tensor<4x8x8xi32> -> tensor<8x4x8xi32>
    tl.permute(m.reshape(4, 8, 8), (2, 0, 1))
    # CHECK: tile.expand_dims %{{.*}} axis 2 : tensor<16x16xi32> -> tensor<16x16x1xi32>
    tl.expand_dims(m, -1)
    # CHECK: tile.reshape %{{.*}} : tensor<16x1xi32> -> tensor<16xi32>
    tl.squeeze(c, 1)
    # CHECK: tile.unsplat %{{.*}} : tensor<1x1xi32> -> i32
    tl.full((1, 1), n, tl.int32).item()
    # Pointers: elements are counted, unsigned offsets are extended without sign.
    # CHECK: tile.splat %[[P]] : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    # CHECK: tile.addptr %{{.*}}, %[[I]]
    p + i
    # CHECK: arith.subi
    # CHECK: tile.addptr %[[P]]
    p - n
    # CHECK: arith.extui %{{.*}} : tensor<16xi32> to tensor<16xi64>
    # CHECK: tile.addptr %{{.*}} : tensor<16x!tile.ptr<f32>>, tensor<16xi64>
    p + i.to(tl.uint32)
    # CHECK: arith.select
    tl.where(i < n, p + i, p)
    # CHECK: arith.select %{{.*}} : tensor<16xi1>, tensor<16xf32>
    tl.where(i < n, 1.0, float("inf"))
    # CHECK: return
