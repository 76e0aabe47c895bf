// Buffers, slots and asynchronous copies.
// RUN: ditron-opt %s -split-input-file -dgpu-annotate-accesses -ditron-to-llvm=target=sim | FileCheck %s

#L = #dgpu.layout<8x64, reg = {j0 j1 j2}, lane = [j3 j4 j5 i0 i1], warp = [i2]>
#Lf = #dgpu.layout<512, reg = {i0 i1 i2}, lane = [i3 i4 i5 i6 i7], warp = [i8]>
!ring = !dgpu.buffer<3 x 8x64 x f16, #dgpu.shared<8x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5]>>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // A slot has 1024 bytes. Each thread copies one piece of 16 bytes; the swizzle XORs three bits of the thread's own ids, so
  // the address has no register part.
  // CHECK-LABEL: llvm.func internal @copy
  // CHECK: %[[BASE:.*]] = llvm.getelementptr %{{.*}}[4096] : (!llvm.ptr) -> !llvm.ptr, i8
  // CHECK: %[[SLOT:.*]] = llvm.sext %arg1 : i32 to i64
  // CHECK: %[[BYTES:.*]] = llvm.mlir.constant(1024 : i64)
  // CHECK: %[[OFFSET:.*]] = llvm.mul %[[SLOT]], %[[BYTES]]
  // CHECK: llvm.getelementptr %[[BASE]][%[[OFFSET]]]
  // CHECK: llvm.xor
  // CHECK: %[[SIZE:.*]] = llvm.mlir.constant(16 : i32)
  // CHECK: llvm.call @ditron_sim_async_copy(%{{.*}}, %{{.*}}, %{{.*}}, %[[SIZE]],
  // CHECK-NOT: ditron_sim_async_copy
  // CHECK: llvm.call @ditron_sim_async_commit
  // CHECK: %[[PENDING:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK: llvm.call @ditron_sim_async_wait(%{{.*}}, %[[PENDING]],
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<8xf16>
  func.func @copy(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %slot: i32, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 512 : tensor<512xi32, #Lf>
    %o = tile.reshape %i : tensor<512xi32, #Lf> -> tensor<8x64xi32, #L>
    %h = tile.hint %o {contiguity = array<i64: 1, 64>, divisibility = array<i64: 64, 64>} : tensor<8x64xi32, #L>
    %b = tile.splat %p : !tile.ptr<f16> -> tensor<8x64x!tile.ptr<f16>, #L>
    %a = tile.addptr %b, %h : tensor<8x64x!tile.ptr<f16>, #L>, tensor<8x64xi32, #L>
    %ring = dgpu.buffer_alloc {offset_bytes = 4096 : i64} : !ring
    dgpu.async_copy %a to %ring[%slot] : tensor<8x64x!tile.ptr<f16>, #L>, !ring
    dgpu.async_commit
    dgpu.async_wait 1
    dgpu.barrier
    %x = dgpu.buffer_load %ring[%slot] : !ring -> tensor<8x64xf16, #L>
    tile.store %a, %x : tensor<8x64x!tile.ptr<f16>, #L>, tensor<8x64xf16, #L>
    return
  }
}
