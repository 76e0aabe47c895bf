// Wide accesses, fences, the shared memory of kernels and intrinsics, on the simulator.
// RUN: ditron-opt %s -split-input-file -dgpu-annotate-accesses -ditron-to-llvm=target=sim:sm_90a | FileCheck %s

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Up to eight bytes at a time.
  // CHECK-LABEL: llvm.func internal @wide
  // CHECK: %[[LOW:.*]] = llvm.call @ditron_sim_ld
  // CHECK: llvm.bitcast {{.*}} : i64 to vector<2xf32>
  // CHECK: llvm.call @ditron_sim_ld
  // CHECK: llvm.bitcast {{.*}} : i64 to vector<2xf32>
  // CHECK: llvm.bitcast {{.*}} : vector<2xf32> to i64
  // CHECK: llvm.call @ditron_sim_st
  // CHECK: llvm.call @ditron_sim_st
  // CHECK: llvm.bitcast {{.*}} : i32 to vector<2xf16>
  func.func @wide(%p: !tile.ptr<f32>, %h: !tile.ptr<f16>) {
    %0:4 = dist.ld_vector acquire sys %p : !tile.ptr<f32> -> f32, f32, f32, f32
    dist.st_vector relaxed gpu %p, %0#3, %0#2, %0#1, %0#0 : !tile.ptr<f32>, f32, f32, f32, f32
    %1:2 = dist.ld_vector relaxed gpu %h : !tile.ptr<f16> -> f16, f16
    dist.st_vector relaxed gpu %h, %1#1, %1#0 : !tile.ptr<f16>, f16, f16
    return
  }
}

// -----

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.shared_bytes = 2048 : i64} {
  // Pointers to shared memory keep their kind through a loop and a select: accesses are announced as generic (2), others as
  // global (0).
  // CHECK-LABEL: llvm.func internal @shared
  // CHECK: llvm.getelementptr %{{.*}}[1024]
  // CHECK: %[[GENERIC:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK: llvm.call @ditron_sim_access(%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %[[GENERIC]], %
  // CHECK: llvm.call @ditron_sim_fence
  func.func @shared(%p: !tile.ptr<f32>, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %own = dist.shared_alloc 1024 align 1024 {offset_bytes = 1024 : i64} : !tile.ptr<f32>
    %at = scf.for %i = %c0 to %n step %c1 iter_args(%q = %own) -> !tile.ptr<f32> : i32 {
      %next = tile.addptr %q, %i : !tile.ptr<f32>, i32
      scf.yield %next : !tile.ptr<f32>
    }
    %either = arith.select %c, %at, %p : !tile.ptr<f32>
    %x = tile.load %either : !tile.ptr<f32> -> f32
    dist.fence acq_rel sys
    tile.store %p, %x : !tile.ptr<f32>, f32
    return
  }
}

// -----

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: llvm.func internal @intrinsics
  // CHECK: llvm.call @ditron_sim_register
  // CHECK: llvm.call @ditron_sim_mbarrier_init
  // CHECK: llvm.call @ditron_sim_mbarrier_test
  // CHECK: llvm.call @ditron_sim_map_replace
  // CHECK: llvm.call @ditron_sim_tma_store_wait
  // CHECK: llvm.call @ditron_sim_warp_barrier
  func.func @intrinsics(%p: !tile.ptr<i64>, %n: i32) {
    %0 = dist.intrinsic "globaltimer"() : () -> i64
    dist.intrinsic "mbarrier_init"(%p, %n) : (!tile.ptr<i64>, i32) -> ()
    %1 = dist.intrinsic "mbarrier_try_wait_parity"(%p, %n) : (!tile.ptr<i64>, i32) -> i1
    dist.intrinsic "tensormap_replace_global_dim"(%p, %n) {options = {ordinal = 1 : i64}} : (!tile.ptr<i64>, i32) -> ()
    dist.intrinsic "bulk_wait_group"() {options = {pending = 1 : i64, read = 1 : i64}} : () -> ()
    dist.intrinsic "bar_warp_sync"() : () -> ()
    return
  }
}
