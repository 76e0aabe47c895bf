// Elementwise operations once per register; broadcast values once in all; floats that the target does not compute in.
// RUN: ditron-opt %s -split-input-file -ditron-to-llvm=target=sim | FileCheck %s

#L = #dgpu.layout<128, reg = {i0 i6}, lane = [i1 i2 i3 i4 i5], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: llvm.func internal @registers
  // CHECK-COUNT-4: llvm.fadd %{{.*}}, %{{.*}} : f32
  // CHECK-NOT: llvm.fadd
  // CHECK-COUNT-4: llvm.select %{{.*}} : i1, f32
  // CHECK: llvm.return
  func.func @registers(%p: !tile.ptr<f32>, %c: i1, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 128 : tensor<128xi32, #L>
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #L>
    %a = tile.addptr %b, %i : tensor<128x!tile.ptr<f32>, #L>, tensor<128xi32, #L>
    %x = tile.load %a : tensor<128x!tile.ptr<f32>, #L> -> tensor<128xf32, #L>
    %s = arith.addf %x, %x : tensor<128xf32, #L>
    %z = arith.select %c, %s, %x : tensor<128xf32, #L>
    tile.store %a, %z : tensor<128x!tile.ptr<f32>, #L>, tensor<128xf32, #L>
    return
  }
}

// -----

#L = #dgpu.layout<128, reg = {i0 i6}, lane = [i1 i2 i3 i4 i5], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // A splat is one value in all registers, and so is what is computed from splats.
  // CHECK-LABEL: llvm.func internal @aliases
  // CHECK: %[[SQUARE:.*]] = llvm.mul %arg1, %arg1 : i32
  // CHECK-NOT: llvm.mul %arg1
  // CHECK-COUNT-4: llvm.add %[[SQUARE]], %{{.*}} : i32
  // CHECK: llvm.return
  func.func @aliases(%p: !tile.ptr<i32>, %n: i32, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 128 : tensor<128xi32, #L>
    %ns = tile.splat %n : i32 -> tensor<128xi32, #L>
    %nn = arith.muli %ns, %ns : tensor<128xi32, #L>
    %x = arith.addi %nn, %i : tensor<128xi32, #L>
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>, #L>
    %a = tile.addptr %b, %i : tensor<128x!tile.ptr<i32>, #L>, tensor<128xi32, #L>
    tile.store %a, %x : tensor<128x!tile.ptr<i32>, #L>, tensor<128xi32, #L>
    return
  }
}

// -----

module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // bf16 is stored as i16 and computed in f32; f16 is native here.
  // CHECK-LABEL: llvm.func internal @formats(
  // CHECK-SAME: %[[X:.*]]: i16, %[[H:.*]]: f16, %{{.*}}: !llvm.ptr)
  // CHECK: llvm.mlir.constant(16256 : i16) : i16
  // CHECK: %[[WIDE:.*]] = llvm.zext %[[X]] : i16 to i32
  // CHECK: %[[HIGH:.*]] = llvm.shl %[[WIDE]], %{{.*}} : i32
  // CHECK: %[[F:.*]] = llvm.bitcast %[[HIGH]] : i32 to f32
  // CHECK: llvm.fadd %[[F]], %{{.*}} : f32
  // CHECK: llvm.trunc %{{.*}} : i32 to i16
  // CHECK: llvm.fmul %[[H]], %[[H]] : f16
  func.func @formats(%x: bf16, %h: f16, %world: !tile.ptr<i64>) {
    %one = arith.constant 1.0 : bf16
    %s = arith.addf %x, %one : bf16
    %hh = arith.mulf %h, %h : f16
    %b = arith.bitcast %s : bf16 to i16
    %c = arith.bitcast %hh : f16 to i16
    %d = arith.addi %b, %c : i16
    %zero = arith.constant 0 : i16
    %ok = arith.cmpi ne, %d, %zero : i16
    tile.assume %ok
    return
  }
}

// -----

// One look at each factor, a vote, and products in one arm.
#L = #dgpu.layout<8x64, reg = {j0 j1 j2}, lane = [j3 j4 i0 i1 i2], warp = [j5]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: llvm.func internal @scale
  // CHECK: %[[BITS:.*]] = llvm.bitcast %arg1 : f32 to i32
  // CHECK: %[[ONE:.*]] = llvm.mlir.constant(1065353216 : i32)
  // CHECK: llvm.xor %[[BITS]], %[[ONE]]
  // CHECK: llvm.call @ditron_sim_ballot
  // CHECK: llvm.cond_br
  // CHECK-COUNT-8: llvm.fmul
  // CHECK-NOT: llvm.fmul
  // CHECK: llvm.return
  func.func @scale(%p: !tile.ptr<f32>, %f: f32, %world: !tile.ptr<i64>) {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<8x64x!tile.ptr<f32>, #L>
    %x = tile.load %b : tensor<8x64x!tile.ptr<f32>, #L> -> tensor<8x64xf32, #L>
    %w = tile.splat %f : f32 -> tensor<8x64xf32, #L>
    %y = dgpu.scale %x, %w : tensor<8x64xf32, #L>
    tile.store %b, %y : tensor<8x64x!tile.ptr<f32>, #L>, tensor<8x64xf32, #L>
    return
  }
}
