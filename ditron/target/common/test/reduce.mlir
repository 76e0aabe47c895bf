// The canonical tree: axis bits in ascending order, wherever they are.
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
