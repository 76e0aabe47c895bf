// Partitions, mbarriers and tensor copies, and who of a partition does what.
// RUN: ditron-opt %s --dgpu-bind-tensor-maps --ditron-to-llvm=target=sim:sm_90a | FileCheck %s
// RUN: ditron-opt %s --dgpu-bind-tensor-maps --ditron-to-llvm=target=cuda:sm_90a | FileCheck %s --check-prefix=PTX

#rows = #dgpu.shared<128x128, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5 i6 j6]>

// CHECK: module attributes {{.*}}dgpu.launch_warps = 12 : i32
module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32} {
  // The map arrives by value; the simulator's kernel gets its address.
  // CHECK-LABEL: llvm.func internal @kernel
  // PTX-LABEL: llvm.func ptx_kernelcc @kernel(%{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>}
  // PTX-SAME: passthrough = {{.*}}["nvvm.reqntid", "384"], ["nvvm.minctasm", "1"]
  // PTX: prefetch.tensormap
  func.func @kernel(%map: !dgpu.tensor_map {dgpu.tensor_map = {box = [64 : i64, 64 : i64], swizzle = 128 : i64}}, %x: i32, %world: !tile.ptr<i64>)
      attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    // All warps of the block meet once, after the last initialisation.
    // CHECK-COUNT-3: llvm.call @ditron_sim_mbarrier_init
    // CHECK: llvm.call @ditron_sim_barrier
    // CHECK-NOT: llvm.call @ditron_sim_barrier
    // PTX-COUNT-3: mbarrier.init
    // PTX: fence.mbarrier_init.release.cluster;
    // PTX: barrier.cta.sync.aligned.all
    %full = dgpu.mbarrier_alloc {count = 1 : i32, offset_bytes = 32768 : i64} : !dgpu.mbarriers<2>
    %empty = dgpu.mbarrier_alloc {count = 8 : i32, offset_bytes = 32784 : i64} : !dgpu.mbarriers<1>
    %buffer = dgpu.buffer_alloc {offset_bytes = 0 : i64} : !dgpu.buffer<1 x 128x128 x bf16, #rows>
    // CHECK: llvm.call @ditron_sim_shuffle
    // PTX: shfl.sync.idx
    dgpu.warp_specialize consumer {
      // PTX: setmaxnreg.inc.sync.aligned.u32 232;
      dgpu.mbarrier_wait %full[%c0], %c0 : !dgpu.mbarriers<2>
      // CHECK: llvm.call @ditron_sim_named_barrier
      // PTX: bar.sync 1, 256;
      dgpu.barrier
      // Four boxes of 64 x 64: two panels of two halves each.
      // CHECK-COUNT-4: llvm.call @ditron_sim_tma_store(
      // PTX-COUNT-4: cp.async.bulk.tensor.2d.global.shared::cta
      dgpu.tma_store %buffer[%c0] to %map[%x, %x] : !dgpu.buffer<1 x 128x128 x bf16, #rows>
      dgpu.tma_store_commit
      dgpu.tma_store_wait 0 read
      // CHECK: llvm.call @ditron_sim_mbarrier_arrive
      dgpu.mbarrier_arrive %empty[%c0] : !dgpu.mbarriers<1>
    } producer {
      // PTX: setmaxnreg.dec.sync.aligned.u32 40;
      // CHECK: llvm.call @ditron_sim_warp_barrier
      // PTX: bar.warp.sync
      dgpu.barrier
      // PTX: elect.sync
      // PTX: mbarrier.arrive.expect_tx.shared::cta.b64 _, [$1], 32768;
      // CHECK: llvm.call @ditron_sim_mbarrier_expect_tx
      dgpu.mbarrier_expect %full[%c0], 32768 : !dgpu.mbarriers<2>
      // CHECK-COUNT-4: llvm.call @ditron_sim_tma_load
      // PTX-COUNT-4: mbarrier::complete_tx::bytes
      dgpu.tma_load %map[%x, %x] to %buffer[%c0], %full[%c0] : !dgpu.buffer<1 x 128x128 x bf16, #rows>, !dgpu.mbarriers<2>
    }
    return
  }

  // A warpgroup waits at its own barrier and opens the next one's; the last one opens the first's. The first turn comes from the last
  // warpgroup, and the first takes the last turn back.
  // CHECK-LABEL: llvm.func internal @turns
  // PTX-LABEL: llvm.func ptx_kernelcc @turns
  func.func @turns(%world: !tile.ptr<i64>) attributes {tile.kernel} {
    dgpu.warp_specialize consumer {
      // PTX: llvm.icmp "eq" %[[OWN:.*]], %{{.*}} : i32
      // PTX: llvm.cond_br
      // PTX: bar.arrive 8, 256;
      dgpu.pass_turn first
      // CHECK: llvm.call @ditron_sim_named_barrier
      // PTX: llvm.add
      // PTX: bar.sync $0, 256;
      dgpu.take_turn
      // CHECK: llvm.call @ditron_sim_named_barrier
      // PTX: llvm.select
      // PTX: bar.arrive $0, 256;
      dgpu.pass_turn
      // PTX: llvm.cond_br
      // PTX: bar.sync 8, 256;
      dgpu.take_turn first
    } producer {
    }
    return
  }

  // A copy of a matrix out of a tensor with a dimension more: that one's coordinate comes last, as the hardware counts.
  // CHECK-LABEL: llvm.func internal @outer
  // PTX-LABEL: llvm.func ptx_kernelcc @outer
  func.func @outer(%map: !dgpu.tensor_map {dgpu.tensor_map = {box = [1 : i64, 128 : i64, 64 : i64], swizzle = 128 : i64}}, %head: i32, %x: i32, %world: !tile.ptr<i64>)
      attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %full = dgpu.mbarrier_alloc {count = 1 : i32, offset_bytes = 32768 : i64} : !dgpu.mbarriers<2>
    %buffer = dgpu.buffer_alloc {offset_bytes = 0 : i64} : !dgpu.buffer<1 x 128x128 x bf16, #rows>
    dgpu.warp_specialize consumer {
    } producer {
      // PTX-COUNT-2: cp.async.bulk.tensor.3d.shared::cluster.global{{.*}}{$3, $4, $5}{{.*}} %arg2, %arg1, %
      dgpu.tma_load %map[%head, %x, %c0] to %buffer[%c0], %full[%c0] : !dgpu.buffer<1 x 128x128 x bf16, #rows>, !dgpu.mbarriers<2>
    }
    return
  }
}
