// Joins and splits rename registers, exchanges take one butterfly, gathers stay in the warp or go through shared memory, histograms
// count there; regions with branches are put in place for each register, side effects under a condition.
// RUN: ditron-opt %s -split-input-file -dgpu-guard-effects -ditron-to-llvm=target=sim | FileCheck %s

#H = #dgpu.layout<64, reg = {i1}, lane = [i0 i2 i3 i4 i5], warp = []>
#P = #dgpu.layout<64x2, reg = {j0 i1}, lane = [i0 i2 i3 i4 i5], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: llvm.func internal @join_split
  // CHECK-SAME: (%[[A0:.*]]: i32, %[[A1:.*]]: i32, %[[B0:.*]]: i32, %[[B1:.*]]: i32,
  // CHECK-NOT: shuffle
  // CHECK: llvm.sub %[[B0]], %[[A0]]
  // CHECK: llvm.sub %[[B1]], %[[A1]]
  func.func @join_split(%a: tensor<64xi32, #H>, %b: tensor<64xi32, #H>, %q: tensor<64x!tile.ptr<i32>, #H>, %world: !tile.ptr<i64>) {
    %j = tile.join %b, %a : tensor<64xi32, #H> -> tensor<64x2xi32, #P>
    %x, %y = tile.split %j : tensor<64x2xi32, #P> -> tensor<64xi32, #H>
    %d = arith.subi %x, %y : tensor<64xi32, #H>
    tile.store %q, %d : tensor<64x!tile.ptr<i32>, #H>, tensor<64xi32, #H>
    return
  }
}

// -----

#L = #dgpu.layout<64, reg = {i1}, lane = [i0 i2 i3 i4 i5], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Registers change places, and one butterfly takes both of them (as one word) to lane XOR 31.
  // CHECK-LABEL: llvm.func internal @reverse
  // CHECK-COUNT-1: llvm.call @ditron_sim_shuffle
  // CHECK-NOT: llvm.call @ditron_sim_shuffle
  // CHECK-NOT: llvm.select
  // CHECK: llvm.return
  func.func @reverse(%x: tensor<64xi32, #L>, %i: tensor<64xi32, #L>, %q: tensor<64x!tile.ptr<i32>, #L>, %world: !tile.ptr<i64>) {
    %r = tile.gather %x[%i] axis 0 {tile.exchange_mask = 63 : i32} : tensor<64xi32, #L>, tensor<64xi32, #L> -> tensor<64xi32, #L>
    tile.store %q, %r : tensor<64x!tile.ptr<i32>, #L>, tensor<64xi32, #L>
    return
  }
  // For each register of the result both registers of the source come (as one word), and bit 1 of the index chooses.
  // CHECK-LABEL: llvm.func internal @any
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.select
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.select
  // CHECK-NOT: ditron_sim_barrier
  // CHECK: llvm.return
  func.func @any(%x: tensor<64xi32, #L>, %i: tensor<64xi32, #L>, %q: tensor<64x!tile.ptr<i32>, #L>, %world: !tile.ptr<i64>) {
    %r = tile.gather %x[%i] axis 0 : tensor<64xi32, #L>, tensor<64xi32, #L> -> tensor<64xi32, #L>
    tile.store %q, %r : tensor<64x!tile.ptr<i32>, #L>, tensor<64xi32, #L>
    return
  }
}

// -----

#W = #dgpu.layout<64, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [i5]>
#B = #dgpu.layout<16, reg = {}, lane = [i0 i1 i2 i3 *], warp = [*]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: llvm.func internal @shared
  // CHECK: llvm.store
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK: llvm.load
  func.func @shared(%x: tensor<64xi32, #W>, %i: tensor<64xi32, #W>, %q: tensor<64x!tile.ptr<i32>, #W>, %world: !tile.ptr<i64>) {
    %r = tile.gather %x[%i] axis 0 {offset_bytes = 16 : i64} : tensor<64xi32, #W>, tensor<64xi32, #W> -> tensor<64xi32, #W>
    tile.store %q, %r : tensor<64x!tile.ptr<i32>, #W>, tensor<64xi32, #W>
    return
  }
  // Zeros, a barrier, one addition where the number is a bin, a barrier, the bins.
  // CHECK-LABEL: llvm.func internal @count
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK: llvm.icmp "ult"
  // CHECK: llvm.cond_br
  // CHECK: llvm.atomicrmw add
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK: llvm.load
  func.func @count(%x: tensor<64xi32, #W>, %q: tensor<16x!tile.ptr<i32>, #B>, %world: !tile.ptr<i64>) {
    %h = tile.histogram %x {offset_bytes = 0 : i64} : tensor<64xi32, #W> -> tensor<16xi32, #B>
    tile.store %q, %h : tensor<16x!tile.ptr<i32>, #B>, tensor<16xi32, #B>
    return
  }
}

// -----

#L = #dgpu.layout<32, reg = {i0}, lane = [i1 i2 i3 i4 *], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Two registers: the branch stands there twice. One lane of two that hold the same performs the atomic.
  // CHECK-LABEL: llvm.func internal @map
  // CHECK: llvm.icmp "sgt"
  // CHECK: llvm.cond_br
  // CHECK: llvm.cond_br
  // CHECK: llvm.call @ditron_sim_atomic_rmw
  // CHECK: llvm.icmp "sgt"
  // CHECK: llvm.cond_br
  // CHECK: llvm.cond_br
  // CHECK: llvm.call @ditron_sim_atomic_rmw
  // CHECK-NOT: llvm.call @ditron_sim_atomic_rmw
  // CHECK: llvm.return
  func.func @map(%x: tensor<32xi32, #L>, %p: tensor<32x!tile.ptr<i32>, #L>, %world: !tile.ptr<i64>) {
    %zero = arith.constant 0 : i32
    %y = tile.map_elementwise(%x, %p) pack 1 {
    ^bb0(%a: i32, %q: !tile.ptr<i32>):
      %positive = arith.cmpi sgt, %a, %zero : i32
      scf.if %positive {
        %old = tile.atomic_rmw add relaxed gpu %q, %a : !tile.ptr<i32>, i32 -> i32
      }
      tile.yield %a : i32
    } : (tensor<32xi32, #L>, tensor<32x!tile.ptr<i32>, #L>) -> tensor<32xi32, #L>
    tile.store %p, %y : tensor<32x!tile.ptr<i32>, #L>, tensor<32xi32, #L>
    return
  }
}
