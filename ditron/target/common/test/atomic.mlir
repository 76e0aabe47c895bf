// Atomics happen once per element, and the old value reaches every copy.
// RUN: ditron-opt %s -split-input-file -ditron-to-llvm=target=sim | FileCheck %s

#L = #dgpu.layout<16, reg = {}, lane = [i0 i1 i2 i3 *], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Copies in lanes: the old value goes by a shuffle from lane & ~16.
  // CHECK-LABEL: llvm.func internal @lanes
  // CHECK: %[[REP:.*]] = llvm.icmp "eq"
  // CHECK: %[[P:.*]] = llvm.zext %[[REP]] : i1 to i32
  // CHECK: llvm.call @ditron_sim_atomic_rmw(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[P]],
  // CHECK: llvm.mlir.constant(-17 : i32)
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK-NOT: ditron_sim_barrier
  // CHECK: llvm.return
  func.func @lanes(%p: !tile.ptr<i32>, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 16 : tensor<16xi32, #L>
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>, #L>
    %a = tile.addptr %b, %i : tensor<16x!tile.ptr<i32>, #L>, tensor<16xi32, #L>
    %o = tile.atomic_rmw add relaxed gpu %a, %i : tensor<16x!tile.ptr<i32>, #L>, tensor<16xi32, #L> -> tensor<16xi32, #L>
    tile.store %a, %o : tensor<16x!tile.ptr<i32>, #L>, tensor<16xi32, #L>
    return
  }
}

// -----

module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Scalar: release covers the block's stores (barrier before); thread 0 swaps under a branch; the old value goes to the
  // block through scratch memory, whose barrier serves the acquire as well.
  // CHECK-LABEL: llvm.func internal @scalar
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK: llvm.cond_br
  // CHECK: llvm.call @ditron_sim_atomic_cas
  // CHECK: llvm.store
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK-NOT: ditron_sim_barrier
  // CHECK: llvm.return
  func.func @scalar(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %x: i32, %y: i32, %world: !tile.ptr<i64>) {
    %o = tile.atomic_cas acq_rel sys %p, %x, %y {offset_bytes = 16 : i64} : !tile.ptr<i32>, i32 -> i32
    tile.store %q, %o : !tile.ptr<i32>, i32
    return
  }
}

// -----

module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Nobody uses the old value: no scratch memory is needed.
  // CHECK-LABEL: llvm.func internal @unused
  // CHECK: llvm.call @ditron_sim_atomic_rmw
  // CHECK-NOT: ditron_sim_barrier
  // CHECK: llvm.return
  func.func @unused(%p: !tile.ptr<bf16>, %x: bf16, %world: !tile.ptr<i64>) {
    %o = tile.atomic_rmw fadd relaxed gpu %p, %x : !tile.ptr<bf16>, bf16 -> bf16
    return
  }
}
