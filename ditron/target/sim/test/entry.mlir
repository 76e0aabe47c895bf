// The entry point, and the constants that name source lines.
// RUN: ditron-opt %s -ditron-to-llvm=target=sim:sm_80 | FileCheck %s

// CHECK: llvm.mlir.global internal constant @[[SITE:ditron_site_[0-9]+]]
// CHECK: llvm.mlir.addressof @[[FILE:ditron_file_[0-9]+]]
// CHECK: llvm.mlir.constant(7 : i32)
// CHECK: llvm.mlir.constant(9 : i32)
// CHECK: llvm.mlir.global internal constant @[[FILE]]("kernel.py\00")

// CHECK: llvm.func @ditron_sim_self() -> !llvm.ptr attributes {memory_effects = #llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none, errnoMem = none, targetMem0 = none, targetMem1 = none>, no_unwind, will_return}

// CHECK: llvm.func internal @kernel(%{{.*}}: !llvm.ptr, %{{.*}}: i16, %{{.*}}: i1, %{{.*}}: !llvm.ptr)
// CHECK: llvm.mlir.addressof @[[SITE]]

// CHECK-LABEL: llvm.func @kernel__entry(%arg0: !llvm.ptr)
// CHECK: %[[A0:.*]] = llvm.load %arg0 : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.load %[[A0]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[P1:.*]] = llvm.getelementptr %arg0[8]
// CHECK: %[[A1:.*]] = llvm.load %[[P1]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.load %[[A1]] : !llvm.ptr -> i16
// CHECK: llvm.getelementptr %arg0[16]
// CHECK: %[[BYTE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK: llvm.icmp "ne" %[[BYTE]]
// CHECK: llvm.call @kernel(
// CHECK: llvm.return
#place = loc("kernel.py":7:9)
#caller = loc("kernel.py":30:3)
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @kernel(%p: !tile.ptr<bf16>, %x: bf16, %c: i1, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    tile.store %p, %x mask %c : !tile.ptr<bf16>, bf16 mask i1 loc(callsite(#place at #caller))
    return
  }
}
