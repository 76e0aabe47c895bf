// dgpu.order_lanes: a call of the simulator, with the addresses that it depends on; on a GPU, where LLVM and ptxas see one thread only, a
// barrier of the warp, unless it depends on the launch whether two arguments meet: then they see that one thread's may.
// RUN: ditron-opt %s -ditron-to-llvm=target=sim | FileCheck %s
// RUN: ditron-opt %s -ditron-to-llvm=target=cuda:sm_80 | FileCheck %s --check-prefix=GPU

module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: @order(
  // CHECK-SAME: %[[X:[^:]*]]: !llvm.ptr, %[[Y:[^:]*]]: !llvm.ptr
  // CHECK: llvm.call @ditron_sim_order_lanes(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}})
  // CHECK: llvm.store %[[Y]]
  // CHECK: llvm.store %[[X]]
  // CHECK: llvm.call @ditron_sim_order_lanes
  // GPU-LABEL: @order(
  // GPU: %[[LANES:.*]] = llvm.mlir.constant(-1 : i32)
  // GPU-NEXT: llvm.call_intrinsic "llvm.nvvm.bar.warp.sync"(%[[LANES]])
  // GPU-NOT: {{call|store|barrier}}
  // GPU: llvm.return
  func.func @order(%x: !tile.ptr<f32>, %y: !tile.ptr<i8>) {
    dgpu.order_lanes
    dgpu.order_lanes(%y : !tile.ptr<i8>) after(%x : !tile.ptr<f32>)
    return
  }

  // Calls one after the other use the same arrays: the stack of long code is that of short code.
  // CHECK-LABEL: @again(
  // CHECK-COUNT-2: llvm.alloca
  // CHECK-NOT: llvm.alloca
  // CHECK-COUNT-3: llvm.call @ditron_sim_order_lanes
  // CHECK: llvm.return
  func.func @again(%x: !tile.ptr<f32>, %y: !tile.ptr<i8>) {
    dgpu.order_lanes(%y : !tile.ptr<i8>) after(%x : !tile.ptr<f32>)
    dgpu.order_lanes(%x : !tile.ptr<f32>) after(%y : !tile.ptr<i8>)
    dgpu.order_lanes(%y : !tile.ptr<i8>) after(%x : !tile.ptr<f32>)
    return
  }
}
