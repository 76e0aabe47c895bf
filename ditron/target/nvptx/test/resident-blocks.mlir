// For how many blocks a multiprocessor shall have registers is said to ptxas.
// RUN: ditron-opt %s -ditron-to-llvm=target=cuda:sm_90a | FileCheck %s

module attributes {dgpu.num_warps = 16 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.resident_blocks = 2 : i32} {
  // CHECK: llvm.func ptx_kernelcc @kernel
  // CHECK-SAME: passthrough = {{\[}}["nvvm.reqntid", "512"], ["nvvm.minctasm", "2"]]
  func.func @kernel() {
    return
  }
}
