// How many blocks shall find registers on a multiprocessor is said to ptxas.
// RUN: ditron-opt %s -ditron-to-llvm=target=cuda:sm_90a | FileCheck %s

module attributes {dgpu.num_warps = 16 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.target = "cuda:sm_90a", dgpu.resident_blocks = 2 : i32} {
  // CHECK: passthrough = {{\[}}["nvvm.reqntid", "512"], ["nvvm.minctasm", "2"]]
  tile.func @kernel() {
    tile.return
  }
}
