// inner_tree: axis bits in ascending order, wherever they are. Else registers, lanes, warps.
// RUN: ditron-opt %s -split-input-file -ditron-to-llvm=target=sim | FileCheck %s

#L = #dgpu.layout<8x8, reg = {j1}, lane = [j0 i0 i1 i2 j2], warp = []>
#R = #dgpu.layout<8, reg = {}, lane = [* i0 i1 i2 *], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // j0 is a lane bit below the register bit j1: first a shuffle of both registers (in one 64-bit word), then the registers
  // combine, then the last lane bit. Addition commutes, so no operand is selected.
  // CHECK-LABEL: llvm.func internal @sum
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK-NOT: llvm.select
  // CHECK: llvm.fadd
  // CHECK: llvm.fadd
  // CHECK: llvm.fadd
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.fadd
  // CHECK-NOT: llvm.fadd
  // CHECK: llvm.return
  func.func @sum(%x: tensor<8x8xf32, #L>, %q: tensor<8x!tile.ptr<f32>, #R>, %world: !tile.ptr<i64>) {
    %s = tile.reduce (%x) axis 1 ordering inner_tree { ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    } : (tensor<8x8xf32, #L>) -> tensor<8xf32, #R>
    tile.store %q, %s : tensor<8x!tile.ptr<f32>, #R>, tensor<8xf32, #R>
    return
  }

  // The registers first, then a shuffle of one value for each lane bit.
  // CHECK-LABEL: llvm.func internal @nearest
  // CHECK-NOT: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.fadd
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.fadd
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.fadd
  // CHECK-NOT: llvm.fadd
  // CHECK: llvm.return
  func.func @nearest(%x: tensor<8x8xf32, #L>, %q: tensor<8x!tile.ptr<f32>, #R>, %world: !tile.ptr<i64>) {
    %s = tile.reduce (%x) axis 1 { ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    } : (tensor<8x8xf32, #L>) -> tensor<8xf32, #R>
    tile.store %q, %s : tensor<8x!tile.ptr<f32>, #R>, tensor<8xf32, #R>
    return
  }
}

// -----

#L = #dgpu.layout<64, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [i5]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Not commutative: the side whose bit is 0 is put on the left. The warp bit goes through scratch memory at 32: lane 0 stores, lanes
  // load the value of the warp that their bit 0 names, and a shuffle brings the other's.
  // CHECK-LABEL: llvm.func internal @last
  // CHECK-COUNT-5: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.getelementptr %{{.*}}[32] : (!llvm.ptr) -> !llvm.ptr, i8
  // CHECK: llvm.store
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK: llvm.load
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.select
  // CHECK: llvm.select
  // CHECK: llvm.sub
  func.func @last(%x: tensor<64xi32, #L>, %q: !tile.ptr<i32>, %world: !tile.ptr<i64>) {
    %s = tile.reduce (%x) axis 0 { ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tile.yield %c : i32
    } {offset_bytes = 32 : i64} : (tensor<64xi32, #L>) -> i32
    tile.store %q, %s : !tile.ptr<i32>, i32
    return
  }
}

// -----

#L = #dgpu.layout<64x16, reg = {i4 i5}, lane = [j0 j1 j2 j3 i0], warp = [i1 i2 i3]>
#R = #dgpu.layout<16, reg = {}, lane = [i0 i1 i2 i3 *], warp = [* * *]>
module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Eight warps and one lane bit with copies: one round. Each thread loads four values and combines them, a shuffle does the rest.
  // 16 lanes of 8 warps store 4 bytes each.
  // CHECK-LABEL: llvm.func internal @columns
  // CHECK: llvm.store
  // CHECK-NOT: llvm.store
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK-COUNT-4: llvm.load
  // CHECK-NOT: llvm.load
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.fadd
  // CHECK-NOT: @ditron_sim_barrier
  // CHECK: llvm.return
  func.func @columns(%x: tensor<64x16xf32, #L>, %q: tensor<16x!tile.ptr<f32>, #R>, %world: !tile.ptr<i64>) {
    %s = tile.reduce (%x) axis 0 { ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    } {offset_bytes = 0 : i64} : (tensor<64x16xf32, #L>) -> tensor<16xf32, #R>
    tile.store %q, %s : tensor<16x!tile.ptr<f32>, #R>, tensor<16xf32, #R>
    return
  }
}
