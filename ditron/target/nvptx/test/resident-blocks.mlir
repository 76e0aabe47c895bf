// For how many blocks a multiprocessor shall have registers is said to ptxas.
// RUN: ditron-opt %s --split-input-file -ditron-to-llvm=target=cuda:sm_90a | FileCheck %s

module attributes {dgpu.num_warps = 16 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.resident_blocks = 2 : i32} {
  // CHECK: llvm.func ptx_kernelcc @kernel
  // CHECK-SAME: passthrough = {{\[}}["nvvm.reqntid", "512"], ["nvvm.minctasm", "2"]]
  func.func @kernel() {
    return
  }
}

// -----

// One is said, too: ptxas spends registers then.
module attributes {dgpu.num_warps = 16 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.resident_blocks = 1 : i32} {
  // CHECK: llvm.func ptx_kernelcc @one
  // CHECK-SAME: passthrough = {{\[}}["nvvm.reqntid", "512"], ["nvvm.minctasm", "1"]]
  func.func @one() {
    return
  }
}

// -----

// Unless somebody says it, or tiles are multiplied, whoever loads the kernel chooses.
module attributes {dgpu.num_warps = 16 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK: llvm.func ptx_kernelcc @free
  // CHECK-SAME: passthrough = {{\[}}["nvvm.reqntid", "512"]]
  func.func @free() {
    return
  }
}

// -----

// One warpgroup of two blocks gets the producer's registers, as two of one block do.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.resident_blocks = 2 : i32} {
  // CHECK: llvm.func ptx_kernelcc @partitions
  // CHECK-SAME: passthrough = {{\[}}["nvvm.reqntid", "256"], ["nvvm.minctasm", "2"]]
  func.func @partitions(%world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %full = dgpu.mbarrier_alloc {count = 1 : i32, offset_bytes = 0 : i64} : !dgpu.mbarriers<1>
    // CHECK: setmaxnreg.inc.sync.aligned.u32 232;
    // CHECK: setmaxnreg.dec.sync.aligned.u32 24;
    dgpu.warp_specialize consumer {
      dgpu.mbarrier_wait %full[%c0], %c0 : !dgpu.mbarriers<1>
    } producer {
      dgpu.mbarrier_arrive %full[%c0] : !dgpu.mbarriers<1>
    } {consumer_registers = 232 : i32, producer_registers = 24 : i32}
    return
  }
}
