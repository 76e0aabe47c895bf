// Shape operations rename registers; arange computes the thread part once.
// RUN: ditron-opt %s -split-input-file -ditron-to-llvm=target=sim | FileCheck %s

// Lane bits 0,1 and 2..4 go to different places (two shifts), a warp bit owns bit 0, one lane holds copies.
#L = #dgpu.layout<64, reg = {i3 i5}, lane = [i1 i2 * i4 *], warp = [i0]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: llvm.func internal @arange
  // CHECK-DAG: %[[SELF:.*]] = llvm.call @ditron_sim_self()
  // CHECK-DAG: %[[LANEAT:.*]] = llvm.getelementptr %[[SELF]][4]
  // CHECK-DAG: %[[LANE:.*]] = llvm.load %[[LANEAT]] invariant
  // CHECK-DAG: %[[WARPAT:.*]] = llvm.getelementptr %[[SELF]][8]
  // CHECK-DAG: %[[WARP:.*]] = llvm.load %[[WARPAT]] invariant
  // CHECK: %[[M11:.*]] = llvm.mlir.constant(11 : i32)
  // CHECK: %[[LOW:.*]] = llvm.and %[[LANE]], %[[M11]]
  // CHECK: %[[LANES:.*]] = llvm.shl %[[LOW]], %{{.*}}
  // CHECK: %[[WARPS:.*]] = llvm.and %[[WARP]], %{{.*}}
  // CHECK: %[[THREAD:.*]] = llvm.or %[[LANES]], %[[WARPS]]
  // CHECK: %[[BASE:.*]] = llvm.add %[[THREAD]], %{{.*}}
  // CHECK: llvm.mlir.constant(8 : i32)
  // CHECK: llvm.add %[[BASE]]
  // CHECK: llvm.mlir.constant(32 : i32)
  // CHECK: llvm.add %[[BASE]]
  // CHECK: llvm.mlir.constant(40 : i32)
  // CHECK: llvm.add %[[BASE]]
  func.func @arange(%p: !tile.ptr<i32>, %world: !tile.ptr<i64>) {
    %i = tile.arange 64, 128 : tensor<64xi32, #L>
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #L>
    %a = tile.addptr %b, %i : tensor<64x!tile.ptr<i32>, #L>, tensor<64xi32, #L>
    tile.store %a, %i : tensor<64x!tile.ptr<i32>, #L>, tensor<64xi32, #L>
    return
  }
}

// -----

#N = #dgpu.layout<8x1, reg = {i2}, lane = [i0 i1 * * *], warp = []>
#W = #dgpu.layout<8x16, reg = {j3 i2}, lane = [i0 i1 j0 j1 j2], warp = []>
#T = #dgpu.layout<16x8, reg = {j2 i3}, lane = [j0 j1 i0 i1 i2], warp = []>
#F = #dgpu.layout<8, reg = {i2}, lane = [i0 i1 * * *], warp = []>
#R = #dgpu.layout<128, reg = {i2 i6}, lane = [i3 i4 i5 i0 i1], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // expand_dims, broadcast and trans give no instruction: two source registers, stored four times, in the order of the
  // transposed layout's registers (bit j2 below bit i3).
  // CHECK-LABEL: llvm.func internal @rename
  // CHECK: %[[X0:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> i32
  // CHECK: %[[X1:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> i32
  // CHECK: llvm.store %[[X0]]
  // CHECK: llvm.store %[[X1]]
  // CHECK: llvm.store %[[X0]]
  // CHECK: llvm.store %[[X1]]
  func.func @rename(%p: !tile.ptr<i32>, %q: tensor<16x8x!tile.ptr<i32>, #T>, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 8 : tensor<8xi32, #F>
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<8x!tile.ptr<i32>, #F>
    %a = tile.addptr %b, %i : tensor<8x!tile.ptr<i32>, #F>, tensor<8xi32, #F>
    %x = tile.load %a : tensor<8x!tile.ptr<i32>, #F> -> tensor<8xi32, #F>
    %e = tile.expand_dims %x axis 1 : tensor<8xi32, #F> -> tensor<8x1xi32, #N>
    %w = tile.broadcast %e : tensor<8x1xi32, #N> -> tensor<8x16xi32, #W>
    %t = tile.trans %w [1, 0] : tensor<8x16xi32, #W> -> tensor<16x8xi32, #T>
    tile.store %q, %t : tensor<16x8x!tile.ptr<i32>, #T>, tensor<16x8xi32, #T>
    return
  }
}
