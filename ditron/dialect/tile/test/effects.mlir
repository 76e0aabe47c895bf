// What common subexpression elimination may do with memory operations.
// RUN: ditron-opt %s --cse | FileCheck %s

// CHECK-LABEL: func.func @loads
func.func @loads(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) -> i32 {
  // CHECK-COUNT-1: tile.load
  // CHECK-NOT: tile.load
  %0 = tile.load %p : !tile.ptr<i32> -> i32
  %1 = tile.load %p : !tile.ptr<i32> -> i32
  // CHECK: return
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}

// CHECK-LABEL: func.func @storeBetween
func.func @storeBetween(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) -> i32 {
  // CHECK-COUNT-2: tile.load
  %0 = tile.load %p : !tile.ptr<i32> -> i32
  tile.store %q, %0 : !tile.ptr<i32>, i32
  %1 = tile.load %p : !tile.ptr<i32> -> i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}

// A wait acquires: the load behind it is another one.
// CHECK-LABEL: func.func @waitBetween
func.func @waitBetween(%p: !tile.ptr<i32>, %s: !tile.ptr<i32>, %n: i32) -> i32 {
  // CHECK: tile.load
  // CHECK: dist.wait
  // CHECK: tile.load
  %0 = tile.load %p : !tile.ptr<i32> -> i32
  %token = dist.wait ge sys acquire %s, %n, %n : !tile.ptr<i32>, i32
  %1 = tile.load %p : !tile.ptr<i32> -> i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}

// CHECK-LABEL: func.func @volatile
func.func @volatile(%p: !tile.ptr<i32>) -> i32 {
  // CHECK-COUNT-2: tile.load
  %0 = tile.load %p {isVolatile = true} : !tile.ptr<i32> -> i32
  %1 = tile.load %p {isVolatile = true} : !tile.ptr<i32> -> i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
