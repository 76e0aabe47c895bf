// RUN: ditron-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @threadAxes
func.func @threadAxes() -> (i32, i32) {
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[TID:.*]] = dist.thread_id 0
  %0 = dist.thread_id 0
  %1 = dist.thread_id 2
  // CHECK: return %[[TID]], %[[ZERO]]
  return %0, %1 : i32, i32
}

// The own rank's copy of a symmetric object is the object.
// CHECK-LABEL: func.func @ownCopy
// CHECK-SAME: (%[[P:.*]]: !tile.ptr<f32>)
func.func @ownCopy(%p: !tile.ptr<f32>) -> !tile.ptr<f32> {
  %rank = dist.rank
  %0 = dist.symm_at %p, %rank : !tile.ptr<f32>
  // CHECK-NEXT: return %[[P]]
  return %0 : !tile.ptr<f32>
}

// Nobody removes, merges or moves what other threads or ranks can see.
// CHECK-LABEL: func.func @kept
func.func @kept(%s: !tile.ptr<i32>, %n: i32, %c: i1) {
  // CHECK-NEXT: dist.wait
  // CHECK-NEXT: dist.wait
  // CHECK-NEXT: dist.ld
  // CHECK-NEXT: dist.shuffle
  // CHECK-NEXT: dist.ballot
  // CHECK-NEXT: dist.sync_threads
  // CHECK-NEXT: return
  %0 = dist.wait ge sys acquire %s, %n, %n : !tile.ptr<i32>, i32
  %1 = dist.wait ge sys acquire %s, %n, %n : !tile.ptr<i32>, i32
  %2 = dist.ld acquire sys %s : !tile.ptr<i32> -> i32
  %3 = dist.shuffle idx %n, %n, %n : i32
  %4 = dist.ballot %n, %c
  dist.sync_threads
  return
}
