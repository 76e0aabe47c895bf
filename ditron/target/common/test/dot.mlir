// Fragments are found by looking at the layouts; all of a dot's fragments go to one leaf.
// RUN: ditron-opt %s -split-input-file -ditron-to-llvm=target=sim | FileCheck %s

#A = #dgpu.layout<32x16, reg = {j0 j3 i3 i4}, lane = [j1 j2 i0 i1 i2], warp = []>
#B = #dgpu.layout<16x8, reg = {i0 i3}, lane = [i1 i2 j0 j1 j2], warp = []>
#C = #dgpu.layout<32x8, reg = {j0 i3 i4}, lane = [j1 j2 i0 i1 i2], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Two row tiles, one column tile, one step of k: A has 2 * 8 registers, B 4, C 2 * 4. The arrays are filled in the
  // instruction's order: A's second register of a fragment (row + 8) is the layout's register bit i3.
  // CHECK-LABEL: llvm.func internal @mma
  // CHECK-COUNT-3: llvm.alloca %{{.*}} x i8 {alignment = 64 : i64}
  // CHECK: %[[TYPE:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK: %[[M:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK: %[[N:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK: %[[K:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK: llvm.call @ditron_sim_mma(%{{.*}}, %[[TYPE]], %[[M]], %[[N]], %[[K]],
  // CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr -> f32
  func.func @mma(%a: tensor<32x16xf16, #A>, %b: tensor<16x8xf16, #B>, %c: tensor<32x8xf32, #C>, %q: tensor<32x8x!tile.ptr<f32>, #C>, %world: !tile.ptr<i64>) {
    %d = tile.dot %a, %b, %c : tensor<32x16xf16, #A>, tensor<16x8xf16, #B> -> tensor<32x8xf32, #C>
    tile.store %q, %d : tensor<32x8x!tile.ptr<f32>, #C>, tensor<32x8xf32, #C>
    return
  }
}

// -----

#A = #dgpu.layout<8x4, reg = {j0 j1}, lane = [* * i0 i1 i2], warp = []>
#B = #dgpu.layout<4x8, reg = {j0 i0 i1}, lane = [j1 j2 * * *], warp = []>
#C = #dgpu.layout<8x8, reg = {j0}, lane = [j1 j2 i0 i1 i2], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Each thread has its rows of A and columns of B: 1 x 2 x 4 multiply-adds in f32, bf16 widened before.
  // CHECK-LABEL: llvm.func internal @fma
  // CHECK: %[[TYPE:.*]] = llvm.mlir.constant(6 : i32)
  // CHECK: %[[M:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK: %[[N:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK: %[[K:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK: llvm.call @ditron_sim_fma_dot(%{{.*}}, %[[TYPE]], %[[M]], %[[N]], %[[K]],
  func.func @fma(%a: tensor<8x4xbf16, #A>, %b: tensor<4x8xbf16, #B>, %c: tensor<8x8xf32, #C>, %q: tensor<8x8x!tile.ptr<f32>, #C>, %world: !tile.ptr<i64>) {
    %d = tile.dot %a, %b, %c : tensor<8x4xbf16, #A>, tensor<4x8xbf16, #B> -> tensor<8x8xf32, #C>
    tile.store %q, %d : tensor<8x8x!tile.ptr<f32>, #C>, tensor<8x8xf32, #C>
    return
  }
}
