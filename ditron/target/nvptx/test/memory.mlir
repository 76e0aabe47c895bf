// Loads and stores: plain ones are LLVM's, in the right address space; predicates and hints make inline PTX.
// RUN: ditron-opt %s -split-input-file -dgpu-annotate-accesses -ditron-to-llvm=target=cuda:sm_80 | FileCheck %s

#L = #dgpu.layout<512, reg = {i0 i1 i2 i8}, lane = [i3 i4 i5 i6 i7], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Pointer parameters are global; a promised alignment is passed on. The block size is exact.
  // CHECK-LABEL: llvm.func ptx_kernelcc @plain(
  // CHECK-SAME: %{{.*}}: !llvm.ptr<1> {llvm.align = 16 : i64}, %{{.*}}: !llvm.ptr<1>)
  // CHECK-SAME: passthrough = {{\[}}["nvvm.reqntid", "32"]]
  // Eight f16 in a row are four words.
  // CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK-COUNT-2: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  func.func @plain(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 512 : tensor<512xi32, #L>
    %b = tile.splat %p : !tile.ptr<f16> -> tensor<512x!tile.ptr<f16>, #L>
    %a = tile.addptr %b, %i : tensor<512x!tile.ptr<f16>, #L>, tensor<512xi32, #L>
    %x = tile.load %a : tensor<512x!tile.ptr<f16>, #L> -> tensor<512xf16, #L>
    tile.store %a, %x : tensor<512x!tile.ptr<f16>, #L>, tensor<512xf16, #L>
    return
  }
}

// -----

#L = #dgpu.layout<512, reg = {i0 i1 i2 i8}, lane = [i3 i4 i5 i6 i7], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // The predicate guards the instruction; the results keep zero where it is false.
  // CHECK-LABEL: llvm.func ptx_kernelcc @masked
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "@$3 ld.global.v2.b32 {$0, $1}, [$2];", "=r,=r,l,b,0,1"
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "@$0 st.global.v2.b32 [$1], {$2, $3};", "b,l,r,r"
  func.func @masked(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 4 : i64}, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 512 : tensor<512xi32, #L>
    %ns = tile.splat %n : i32 -> tensor<512xi32, #L>
    %m = arith.cmpi slt, %i, %ns : tensor<512xi32, #L>
    %b = tile.splat %p : !tile.ptr<f16> -> tensor<512x!tile.ptr<f16>, #L>
    %a = tile.addptr %b, %i : tensor<512x!tile.ptr<f16>, #L>, tensor<512xi32, #L>
    %x = tile.load %a mask %m : tensor<512x!tile.ptr<f16>, #L> mask tensor<512xi1, #L> -> tensor<512xf16, #L>
    tile.store %a, %x mask %m : tensor<512x!tile.ptr<f16>, #L>, tensor<512xf16, #L> mask tensor<512xi1, #L>
    return
  }
}

// -----

#L = #dgpu.layout<32, reg = {i0 i1}, lane = [i2 i3 i4 * *], warp = [*]>
#S = #dgpu.shared<32, bits = 32, offset = [i0 i1 i2 i3 i4]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Eight threads have the row, the others hold the same and copy it, too: a branch, or a predicate of which ptxas makes one, would stand between dots
  // in flight.
  // CHECK-LABEL: llvm.func ptx_kernelcc @row
  // CHECK-NOT: llvm.cond_br
  // CHECK-NOT: llvm.inline_asm {{.*}}cp.async.cg
  // CHECK: llvm.call_intrinsic "llvm.nvvm.cp.async.cg.shared.global.16"
  // CHECK-NOT: llvm.cond_br
  // CHECK: llvm.return
  func.func @row(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) {
    %c0 = arith.constant 0 : i32
    %i = tile.arange 0, 32 : tensor<32xi32, #L>
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<32x!tile.ptr<f32>, #L>
    %a = tile.addptr %b, %i : tensor<32x!tile.ptr<f32>, #L>, tensor<32xi32, #L>
    %ring = dgpu.buffer_alloc {offset_bytes = 0 : i64} : !dgpu.buffer<1 x 32 x f32, #S>
    dgpu.async_copy %a to %ring[%c0] : tensor<32x!tile.ptr<f32>, #L>, !dgpu.buffer<1 x 32 x f32, #S>
    dgpu.async_commit
    dgpu.async_wait 0
    return
  }
}
