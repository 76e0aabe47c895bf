// What is needed only behind a loop of dots is computed behind it, while the last dot runs, whether or not the loop has a turn.
// RUN: ditron-opt %s --ditron-to-llvm=target=cuda:sm_90a | FileCheck %s

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
#bt = #dgpu.shared<64x16, bits = 16, offset = [i0 i1 i2 i3 i4 i5 j0^i3 j1^i4 j2^i5 j3]>

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: @kernel
  func.func @kernel(%out: !tile.ptr<i32>, %x: i32, %y: i32, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x16xf32, #c>
    %a = dgpu.buffer_alloc {offset_bytes = 0 : i64} : !dgpu.buffer<1 x 64x64 x bf16, #rows>
    %b = dgpu.buffer_alloc {offset_bytes = 8192 : i64} : !dgpu.buffer<1 x 64x16 x bf16, #bt>
    // Before the loop: the quotient that a turn needs. After it: the other, in either arm of the branch.
    // CHECK-NOT: llvm.srem
    // CHECK: llvm.sdiv
    // CHECK-NOT: llvm.srem
    // CHECK: wgmma.mma_async
    // CHECK: llvm.srem
    // CHECK: llvm.mul
    // CHECK: wgmma.wait_group.sync.aligned 0;
    // CHECK: llvm.srem
    // CHECK-NOT: llvm.srem
    // CHECK: llvm.return
    %used = arith.divsi %x, %y : i32
    %rest = arith.remsi %x, %y : i32
    %place = arith.muli %rest, %turns : i32
    %r = scf.for %i = %c0 to %turns step %c1 iter_args(%acc = %zero) -> (tensor<64x16xf32, #c>) : i32 {
      %slot = arith.subi %used, %used : i32
      %d = dgpu.warpgroup_dot %a[%slot], %b[%slot], %acc : !dgpu.buffer<1 x 64x64 x bf16, #rows>, !dgpu.buffer<1 x 64x16 x bf16, #bt> -> tensor<64x16xf32, #c>
      scf.yield %d : tensor<64x16xf32, #c>
    }
    %w = dgpu.warpgroup_wait 0, %r : tensor<64x16xf32, #c>
    %stage = dgpu.buffer_alloc {offset_bytes = 16384 : i64} : !dgpu.buffer<1 x 64x16 x f32, #dgpu.shared<64x16, bits = 32, offset = [j0 j1 j2 j3 i0 i1 i2 i3 i4 i5]>>
    dgpu.buffer_store %w, %stage[%c0] : tensor<64x16xf32, #c>, !dgpu.buffer<1 x 64x16 x f32, #dgpu.shared<64x16, bits = 32, offset = [j0 j1 j2 j3 i0 i1 i2 i3 i4 i5]>>
    tile.store %out, %place : !tile.ptr<i32>, i32
    return
  }
}
