// What is needed only behind a loop of dots is computed behind it, while the last dot runs.
// RUN: ditron-opt %s --dgpu-sink-tail-work --split-input-file | FileCheck %s

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
#bt = #dgpu.shared<64x16, bits = 16, offset = [i0 i1 i2 i3 i4 i5 j0^i3 j1^i4 j2^i5 j3]>
// CHECK-LABEL: func.func @loop
// What a turn needs stays, and so does what the loop's bounds need.
// CHECK: %[[USED:.*]] = arith.divsi %arg1, %arg2
// CHECK: %[[TURNS:.*]] = arith.muli %arg3, %arg3
// CHECK-NOT: arith.remsi
// CHECK: %[[R:.*]] = scf.for %{{.*}} to %[[TURNS]]
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[REST:.*]] = arith.remsi %arg1, %arg2
// CHECK-NEXT: %[[PLACE:.*]] = arith.muli %[[REST]], %arg3
// CHECK-NEXT: dgpu.warpgroup_wait 0, %[[R]]
// CHECK-NEXT: tile.store %arg0, %[[PLACE]]
func.func @loop(%out: !tile.ptr<i32>, %x: i32, %y: i32, %turns: i32, %zero: tensor<64x16xf32, #c>,
                %a: !dgpu.buffer<1 x 64x64 x bf16, #rows>, %b: !dgpu.buffer<1 x 64x16 x bf16, #bt>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %used = arith.divsi %x, %y : i32
  %rest = arith.remsi %x, %y : i32
  %place = arith.muli %rest, %turns : i32
  %bound = arith.muli %turns, %turns : i32
  %r = scf.for %i = %c0 to %bound step %c1 iter_args(%acc = %zero) -> (tensor<64x16xf32, #c>) : i32 {
    %d = dgpu.warpgroup_dot %a[%used], %b[%used], %acc : !dgpu.buffer<1 x 64x64 x bf16, #rows>, !dgpu.buffer<1 x 64x16 x bf16, #bt> -> tensor<64x16xf32, #c>
    scf.yield %d : tensor<64x16xf32, #c>
  }
  %w = dgpu.warpgroup_wait 0, %r : tensor<64x16xf32, #c>
  tile.store %out, %place : !tile.ptr<i32>, i32
  return
}

// -----

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
#bt = #dgpu.shared<64x16, bits = 16, offset = [i0 i1 i2 i3 i4 i5 j0^i3 j1^i4 j2^i5 j3]>
// In a branch that is taken if there is a turn: the work is done whether or not there is one.
// CHECK-LABEL: func.func @branch
// CHECK-NOT: arith.remsi
// CHECK: %[[R:.*]]:2 = scf.if
// CHECK: %[[LOOP:.*]] = scf.for
// CHECK: }
// CHECK-NEXT: %[[FIRST:.*]] = arith.remsi %arg1, %arg2
// CHECK-NEXT: %[[W:.*]] = dgpu.warpgroup_wait 0, %[[LOOP]]
// CHECK-NEXT: scf.yield %[[W]], %[[FIRST]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[SECOND:.*]] = arith.remsi %arg1, %arg2
// CHECK-NEXT: scf.yield %arg4, %[[SECOND]]
// CHECK: tile.store %arg0, %[[R]]#1
func.func @branch(%out: !tile.ptr<i32>, %x: i32, %y: i32, %turns: i32, %zero: tensor<64x16xf32, #c>,
                  %a: !dgpu.buffer<1 x 64x64 x bf16, #rows>, %b: !dgpu.buffer<1 x 64x16 x bf16, #bt>) -> tensor<64x16xf32, #c> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %rest = arith.remsi %x, %y : i32
  %hasTurn = arith.cmpi slt, %c0, %turns : i32
  %r = scf.if %hasTurn -> tensor<64x16xf32, #c> {
    %l = scf.for %i = %c0 to %turns step %c1 iter_args(%acc = %zero) -> (tensor<64x16xf32, #c>) : i32 {
      %d = dgpu.warpgroup_dot %a[%i], %b[%i], %acc : !dgpu.buffer<1 x 64x64 x bf16, #rows>, !dgpu.buffer<1 x 64x16 x bf16, #bt> -> tensor<64x16xf32, #c>
      scf.yield %d : tensor<64x16xf32, #c>
    }
    %w = dgpu.warpgroup_wait 0, %l : tensor<64x16xf32, #c>
    scf.yield %w : tensor<64x16xf32, #c>
  } else {
    scf.yield %zero : tensor<64x16xf32, #c>
  }
  tile.store %out, %rest : !tile.ptr<i32>, i32
  return %r : tensor<64x16xf32, #c>
}

// -----

// Nothing runs under the end of a loop without dots.
// CHECK-LABEL: func.func @ordinary
// CHECK: arith.remsi
// CHECK: scf.for
// CHECK: tile.store
func.func @ordinary(%out: !tile.ptr<i32>, %x: i32, %y: i32, %turns: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %rest = arith.remsi %x, %y : i32
  %r = scf.for %i = %c0 to %turns step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %s = arith.addi %sum, %i : i32
    scf.yield %s : i32
  }
  dgpu.warpgroup_wait 0
  %place = arith.addi %rest, %r : i32
  tile.store %out, %place : !tile.ptr<i32>, i32
  return
}
