// Each class of conversion plan.
// RUN: ditron-opt %s -split-input-file -ditron-to-llvm=target=sim | FileCheck %s

#A = #dgpu.layout<64, reg = {i0}, lane = [i1 i2 i3 i4 i5], warp = []>
#B = #dgpu.layout<64, reg = {i1}, lane = [i0 i2 i3 i4 i5], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // A register bit and a lane bit change places: select what is sent, one shuffle, two selects.
  // CHECK-LABEL: llvm.func internal @exchange
  // CHECK: %[[SENT:.*]] = llvm.select
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.select
  // CHECK: llvm.select
  // CHECK-NOT: llvm.select
  // CHECK-NOT: ditron_sim_barrier
  // CHECK: llvm.return
  func.func @exchange(%x: tensor<64xi32, #A>, %q: tensor<64x!tile.ptr<i32>, #B>, %world: !tile.ptr<i64>) {
    %y = dgpu.convert_layout %x : tensor<64xi32, #A> -> tensor<64xi32, #B>
    tile.store %q, %y : tensor<64x!tile.ptr<i32>, #B>, tensor<64xi32, #B>
    return
  }
}

// -----

#A = #dgpu.layout<64, reg = {i5}, lane = [i0 i1 i2 i3 i4], warp = [*]>
#B = #dgpu.layout<64, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [i5]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Each warp owns what it needs already: one select by its own warp bit, no data moves.
  // CHECK-LABEL: llvm.func internal @select
  // CHECK: llvm.select
  // CHECK-NOT: ditron_sim_shuffle
  // CHECK-NOT: ditron_sim_barrier
  // CHECK: llvm.return
  func.func @select(%x: tensor<64xi32, #A>, %q: tensor<64x!tile.ptr<i32>, #B>, %world: !tile.ptr<i64>) {
    %y = dgpu.convert_layout %x : tensor<64xi32, #A> -> tensor<64xi32, #B>
    tile.store %q, %y : tensor<64x!tile.ptr<i32>, #B>, tensor<64xi32, #B>
    return
  }
}

// -----

#A = #dgpu.layout<16x16, reg = {j0 j1}, lane = [j2 j3 i0 i1 i2], warp = [i3]>
#B = #dgpu.layout<16x16, reg = {i0 i1}, lane = [i2 i3 j0 j1 j2], warp = [j3]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // A transpose across warps goes through shared memory: store, block barrier, load. Each side is announced once.
  // CHECK-LABEL: llvm.func internal @shared
  // CHECK: llvm.call @ditron_sim_access
  // CHECK: llvm.store
  // CHECK-NOT: ditron_sim_access
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK: llvm.call @ditron_sim_access
  // CHECK: llvm.load
  // CHECK-NOT: ditron_sim_shuffle
  // CHECK: llvm.return
  func.func @shared(%x: tensor<16x16xf32, #A>, %q: tensor<16x16x!tile.ptr<f32>, #B>, %world: !tile.ptr<i64>) {
    %y = dgpu.convert_layout %x {offset_bytes = 128 : i64} : tensor<16x16xf32, #A> -> tensor<16x16xf32, #B>
    tile.store %q, %y : tensor<16x16x!tile.ptr<f32>, #B>, tensor<16x16xf32, #B>
    return
  }
}
