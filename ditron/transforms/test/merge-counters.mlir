// Numbers that a loop carries and that are its counter become it.
// RUN: ditron-opt --tile-merge-counters %s | FileCheck %s

// As Triton's persistent products count their tiles a second time: a step earlier, and the step comes first in each turn.
// CHECK-LABEL: func.func @a_step_earlier
func.func @a_step_earlier(%p: !tile.ptr<i32>, %start: i32, %n: i32) {
  %step = arith.constant 132 : i32
  %init = arith.subi %start, %step : i32
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i32 {
  %end = scf.for %i = %start to %n step %step iter_args(%c = %init) -> (i32) : i32 {
    // CHECK: tile.addptr %{{.*}}, %[[I]]
    %next = arith.addi %c, %step : i32
    %q = tile.addptr %p, %next : !tile.ptr<i32>, i32
    tile.store %q, %i : !tile.ptr<i32>, i32
    scf.yield %next : i32
  }
  return
}

// From the same number on; what it has become is used behind the loop.
// CHECK-LABEL: func.func @from_the_beginning
func.func @from_the_beginning(%p: !tile.ptr<i32>, %start: i32, %n: i32, %step: i32) -> i32 {
  // CHECK: %[[END:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (i32)
  %end = scf.for %i = %start to %n step %step iter_args(%c = %start) -> (i32) : i32 {
    // CHECK: tile.addptr %{{.*}}, %[[I]]
    // CHECK: %[[NEXT:.*]] = arith.addi %[[C]]
    // CHECK: scf.yield %[[NEXT]]
    %q = tile.addptr %p, %c : !tile.ptr<i32>, i32
    tile.store %q, %i : !tile.ptr<i32>, i32
    %next = arith.addi %c, %step : i32
    scf.yield %next : i32
  }
  // CHECK: return %[[END]]
  return %end : i32
}

// Other steps, other beginnings, and a step that only the loop knows: left alone.
// CHECK-LABEL: func.func @others
func.func @others(%p: !tile.ptr<i32>, %start: i32, %n: i32, %step: i32) {
  %c1 = arith.constant 1 : i32
  %early = arith.subi %start, %step : i32
  // CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[D:.*]] = %{{.*}})
  %r:3 = scf.for %i = %start to %n step %step iter_args(%a = %start, %b = %c1, %d = %early) -> (i32, i32, i32) : i32 {
    // CHECK: tile.store %{{.*}}, %[[A]]
    // CHECK: tile.store %{{.*}}, %[[B]]
    // CHECK: %[[NEXT:.*]] = arith.addi %[[D]]
    // CHECK: tile.store %{{.*}}, %[[NEXT]]
    tile.store %p, %a : !tile.ptr<i32>, i32
    tile.store %p, %b : !tile.ptr<i32>, i32
    %nextD = arith.addi %d, %step : i32
    tile.store %p, %nextD : !tile.ptr<i32>, i32
    %nextA = arith.addi %a, %c1 : i32
    %nextB = arith.addi %b, %step : i32
    scf.yield %nextA, %nextB, %nextD : i32, i32, i32
  }
  return
}
