// Descriptor accesses become pointers and masks.
// RUN: ditron-opt %s --tile-lower-descriptors | FileCheck %s
// RUN: ditron-opt %s --tile-lower-descriptors --canonicalize | FileCheck %s --check-prefix=NONE

// NONE-NOT: make_descriptor
// NONE-NOT: tile.descriptor

// The program id is no offset before the tensor: ranges are compared with what is left of the sizes. What does not depend on the
// loop stands before it: the rows' mask, all offsets inside of the tile.
// CHECK-LABEL: func.func @loop
// CHECK-DAG: %[[STEPS:.*]] = tile.arange 0, 64 : tensor<64xi32>
// CHECK-DAG: %[[STRIDE:.*]] = arith.trunci %arg3 : i64 to i32
// CHECK-DAG: %[[STRIDES:.*]] = tile.splat %[[STRIDE]] : i32 -> tensor<64xi32>
// CHECK-DAG: %[[ROWS:.*]] = arith.muli %{{.*}}, %[[STRIDES]] : tensor<64xi32>
// CHECK-DAG: %[[LEFT:.*]] = arith.subi %arg1, %{{.*}} : i32
// CHECK-DAG: %[[ROWMASK:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<64xi32>
// CHECK: scf.for
// CHECK-NOT: tile.arange
// CHECK: %[[ORIGIN:.*]] = arith.addi %{{.*}}, %{{.*}} : i64
// CHECK: %[[FIRST:.*]] = tile.addptr %arg0, %[[ORIGIN]] : !tile.ptr<f16>, i64
// CHECK: %[[SPLAT:.*]] = tile.splat %[[FIRST]] : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>>
// CHECK: %[[POINTERS:.*]] = tile.addptr %[[SPLAT]], %{{.*}} : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
// CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<32xi32>
// CHECK: %[[MASK:.*]] = arith.andi %{{.*}}, %{{.*}} : tensor<64x32xi1>
// CHECK: tile.load %[[POINTERS]] mask %[[MASK]] : tensor<64x32x!tile.ptr<f16>> mask tensor<64x32xi1> -> tensor<64x32xf16>
func.func @loop(%p: !tile.ptr<f16>, %m: i32, %k: i32, %stride: i64) -> tensor<64x32xf16> {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf16>
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %d = tile.make_descriptor %p, [%m, %k], [%stride, %one] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x32xf16>
  %sum = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero) -> (tensor<64x32xf16>) : i32 {
    %t = tile.descriptor_load %d[%row, %i] : !tile.desc<64x32xf16> -> tensor<64x32xf16>
    %next = arith.addf %acc, %t : tensor<64x32xf16>
    scf.yield %next : tensor<64x32xf16>
  }
  return %sum : tensor<64x32xf16>
}

// An offset that may be negative; a size of 64 bits; padding.
// CHECK-LABEL: func.func @negative
// CHECK: arith.constant 2147483647 : i64
// CHECK: arith.minsi
// CHECK: arith.trunci
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} : tensor<64xi32>
// CHECK: %[[NAN:.*]] = arith.constant dense<0x7FC00000> : tensor<64xf32>
// CHECK: tile.load %{{.*}} mask %{{.*}} other %[[NAN]]
func.func @negative(%p: !tile.ptr<f32>, %n: i64, %i: i32) -> tensor<64xf32> {
  %one = arith.constant 1 : i64
  %d = tile.make_descriptor %p, [%n], [%one] {padding = #tile.padding<nan>} : !tile.ptr<f32>, i64 -> !tile.desc<64xf32>
  %t = tile.descriptor_load %d[%i] : !tile.desc<64xf32> -> tensor<64xf32>
  return %t : tensor<64xf32>
}

// Where all is known, there is no mask; a token orders the base.
// CHECK-LABEL: func.func @known
// CHECK: %[[BASE:.*]] = dist.consume_token %arg0, %arg1 : !tile.ptr<f32>
// CHECK: tile.splat %[[BASE]]
// CHECK-NOT: arith.cmpi
// CHECK: %[[T:.*]] = tile.load %{{.*}} : tensor<1x64x!tile.ptr<f32>> -> tensor<1x64xf32>
// CHECK: tile.store %{{.*}}, %[[T]] mask %{{.*}} :
func.func @known(%p: !tile.ptr<f32>, %token: i32, %m: i32) {
  %one = arith.constant 1 : i64
  %stride = arith.constant 128 : i64
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c128 = arith.constant 128 : i32
  %d = tile.make_descriptor %p, [%c8, %c128], [%stride, %one] : !tile.ptr<f32>, i32, i32 -> !tile.desc<1x64xf32>
  %e = tile.make_descriptor %p, [%m, %c128], [%stride, %one] : !tile.ptr<f32>, i32, i32 -> !tile.desc<1x64xf32>
  %after = dist.consume_token %d, %token : !tile.desc<1x64xf32>
  %t = tile.descriptor_load %after[%c0, %c0] : !tile.desc<1x64xf32> -> tensor<1x64xf32>
  tile.descriptor_store %e[%c8, %c0], %t : !tile.desc<1x64xf32>, tensor<1x64xf32>
  return
}

// Five dimensions.
// CHECK-LABEL: func.func @five
// CHECK: tile.load {{.*}} -> tensor<1x2x4x2x16xi8>
func.func @five(%p: !tile.ptr<i8>, %n: i32, %s: i64, %i: i32) -> tensor<1x2x4x2x16xi8> {
  %one = arith.constant 1 : i64
  %d = tile.make_descriptor %p, [%n, %n, %n, %n, %n], [%s, %s, %s, %s, %one] : !tile.ptr<i8>, i32, i32, i32, i32, i32 -> !tile.desc<1x2x4x2x16xi8>
  %t = tile.descriptor_load %d[%i, %i, %i, %i, %i] : !tile.desc<1x2x4x2x16xi8> -> tensor<1x2x4x2x16xi8>
  return %t : tensor<1x2x4x2x16xi8>
}

// Whoever loads what a descriptor store has written, in whichever thread, finds it: a barrier stands behind the store. Other tensors,
// and what comes before, need none.
// CHECK-LABEL: func.func @read_back
// CHECK: tile.load
// CHECK: tile.store
// CHECK-NEXT: dist.sync_threads
// CHECK: tile.load
// CHECK: tile.store
// CHECK-NOT: dist.sync_threads
// CHECK: return
func.func @read_back(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1 : i64
  %stride = arith.constant 64 : i64
  %c0 = arith.constant 0 : i32
  %d = tile.make_descriptor %p, [%n, %n], [%stride, %one] : !tile.ptr<f32>, i32, i32 -> !tile.desc<8x8xf32>
  %e = tile.make_descriptor %q, [%n, %n], [%stride, %one] : !tile.ptr<f32>, i32, i32 -> !tile.desc<8x8xf32>
  %before = tile.descriptor_load %d[%c0, %c0] : !tile.desc<8x8xf32> -> tensor<8x8xf32>
  tile.descriptor_store %d[%c0, %c0], %before : !tile.desc<8x8xf32>, tensor<8x8xf32>
  %after = tile.descriptor_load %d[%c0, %c0] : !tile.desc<8x8xf32> -> tensor<8x8xf32>
  tile.descriptor_store %e[%c0, %c0], %after : !tile.desc<8x8xf32>, tensor<8x8xf32>
  return
}
