// No path leads from an accumulator's initial value past a loop of dots to the wait behind it.
// RUN: ditron-opt %s --nvptx-guard-accumulator-loops --split-input-file | FileCheck %s

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
#bt = #dgpu.shared<64x16, bits = 16, offset = [i0 i1 i2 i3 i4 i5 j0^i3 j1^i4 j2^i5 j3]>
// CHECK-LABEL: func.func @read
// CHECK: %[[TURN:.*]] = arith.cmpi slt, %c0_i32, %arg0
// CHECK: %[[R:.*]]:2 = scf.if %[[TURN]]
// CHECK-NEXT: %[[LOOP:.*]] = scf.for %{{.*}} iter_args(%{{.*}} = %arg1)
// CHECK: %[[WAIT:.*]] = dgpu.warpgroup_wait 0, %[[LOOP]]
// CHECK-NEXT: scf.yield %[[LOOP]], %[[WAIT]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[KEPT:.*]] = dgpu.warpgroup_wait 2147483647, %arg1
// CHECK-NEXT: scf.yield %arg1, %[[KEPT]]
// CHECK: return %[[R]]#1
func.func @read(%turns: i32, %zero: tensor<64x16xf32, #c>, %a: !dgpu.buffer<1 x 64x64 x bf16, #rows>,
                %b: !dgpu.buffer<1 x 64x16 x bf16, #bt>) -> tensor<64x16xf32, #c> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %turns step %c1 iter_args(%acc = %zero) -> (tensor<64x16xf32, #c>) : i32 {
    %d = dgpu.warpgroup_dot %a[%i], %b[%i], %acc : !dgpu.buffer<1 x 64x64 x bf16, #rows>, !dgpu.buffer<1 x 64x16 x bf16, #bt> -> tensor<64x16xf32, #c>
    scf.yield %d : tensor<64x16xf32, #c>
  }
  %w = dgpu.warpgroup_wait 0, %r : tensor<64x16xf32, #c>
  return %w : tensor<64x16xf32, #c>
}

// -----

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
#bt = #dgpu.shared<64x16, bits = 16, offset = [i0 i1 i2 i3 i4 i5 j0^i3 j1^i4 j2^i5 j3]>
// The first turn does not read the accumulator: nothing sets registers to the initial value.
// CHECK-LABEL: func.func @unread
// CHECK: scf.if
// CHECK-NEXT: %[[ANY:.*]] = ub.poison
// CHECK-NEXT: scf.for %{{.*}} iter_args(%{{.*}} = %[[ANY]])
// CHECK: } else {
// CHECK-NEXT: dgpu.warpgroup_wait 2147483647, %arg1
func.func @unread(%turns: i32, %zero: tensor<64x16xf32, #c>, %a: !dgpu.buffer<1 x 64x64 x bf16, #rows>,
                  %b: !dgpu.buffer<1 x 64x16 x bf16, #bt>) -> tensor<64x16xf32, #c> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %turns step %c1 iter_args(%acc = %zero) -> (tensor<64x16xf32, #c>) : i32 {
    %later = arith.cmpi ne, %i, %c0 : i32
    %d = dgpu.warpgroup_dot %a[%i], %b[%i], %acc if %later : !dgpu.buffer<1 x 64x64 x bf16, #rows>, !dgpu.buffer<1 x 64x16 x bf16, #bt> -> tensor<64x16xf32, #c>
    scf.yield %d : tensor<64x16xf32, #c>
  }
  %w = dgpu.warpgroup_wait 0, %r : tensor<64x16xf32, #c>
  return %w : tensor<64x16xf32, #c>
}

// -----

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
#bt = #dgpu.shared<64x16, bits = 16, offset = [i0 i1 i2 i3 i4 i5 j0^i3 j1^i4 j2^i5 j3]>
// Dots that are complete at the end of each turn leave nothing in flight.
// CHECK-LABEL: func.func @complete
// CHECK-NOT: scf.if
func.func @complete(%turns: i32, %zero: tensor<64x16xf32, #c>, %a: !dgpu.buffer<1 x 64x64 x bf16, #rows>,
                    %b: !dgpu.buffer<1 x 64x16 x bf16, #bt>) -> tensor<64x16xf32, #c> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %turns step %c1 iter_args(%acc = %zero) -> (tensor<64x16xf32, #c>) : i32 {
    %d = dgpu.warpgroup_dot %a[%i], %b[%i], %acc : !dgpu.buffer<1 x 64x64 x bf16, #rows>, !dgpu.buffer<1 x 64x16 x bf16, #bt> -> tensor<64x16xf32, #c>
    %w = dgpu.warpgroup_wait 0, %d : tensor<64x16xf32, #c>
    scf.yield %w : tensor<64x16xf32, #c>
  }
  return %r : tensor<64x16xf32, #c>
}
