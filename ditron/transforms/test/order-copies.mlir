// Where a store would overtake loads of copies by other warps, and only there.
// RUN: ditron-opt %s --dgpu-order-copies | FileCheck %s

#copies = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [* *]>
#once = #dgpu.layout<128, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [i5 i6]>
!ptrs = tensor<32x!tile.ptr<i32>, #copies>
!ints = tensor<32xi32, #copies>
!ptrs128 = tensor<128x!tile.ptr<i32>, #once>
!ints128 = tensor<128xi32, #once>

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // What is used behind the store is what was there before it, in all warps. One barrier is enough for two stores.
  // CHECK-LABEL: func.func @in_place
  // CHECK: tile.load
  // CHECK-NEXT: dgpu.barrier
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: return
  func.func @in_place(%x: !tile.ptr<i32>, %i: !ints) -> !ints {
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %base, %i : !ptrs, !ints
    %v = tile.load %p : !ptrs -> !ints
    tile.store %p, %i : !ptrs, !ints
    tile.store %p, %i : !ptrs, !ints
    return %v : !ints
  }

  // Who stores has loaded it: what goes nowhere else needs no barrier.
  // CHECK-LABEL: func.func @only_stored
  // CHECK-NOT: dgpu.barrier
  func.func @only_stored(%x: !tile.ptr<i32>, %i: !ints) {
    %c1 = arith.constant 1 : i32
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %base, %i : !ptrs, !ints
    %v = tile.load %p : !ptrs -> !ints
    %w = arith.addi %v, %i : !ints
    tile.store %p, %w : !ptrs, !ints
    %s = tile.load %x : !tile.ptr<i32> -> i32
    %t = arith.addi %s, %c1 : i32
    tile.store %x, %t : !tile.ptr<i32>, i32
    return
  }

  // No warp holds copies; another argument; another place; a barrier that is there.
  // CHECK-LABEL: func.func @not_needed
  // CHECK: tile.load
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: dgpu.barrier
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: return
  func.func @not_needed(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %i: !ints, %j: !ints128) -> (!ints128, i32, i32) {
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs128
    %p = tile.addptr %base, %j : !ptrs128, !ints128
    %x1 = tile.addptr %x, %c1 : !tile.ptr<i32>, i32
    %x2 = tile.addptr %x1, %c1 : !tile.ptr<i32>, i32
    %v = tile.load %p : !ptrs128 -> !ints128
    tile.store %p, %j : !ptrs128, !ints128
    %s = tile.load %x1 : !tile.ptr<i32> -> i32
    tile.store %y, %c1 : !tile.ptr<i32>, i32
    tile.store %x2, %c1 : !tile.ptr<i32>, i32
    %t = tile.load %x1 : !tile.ptr<i32> -> i32
    dgpu.barrier
    tile.store %x1, %c2 : !tile.ptr<i32>, i32
    return %v, %s, %t : !ints128, i32, i32
  }

  // The load of a turn, and the store of the next.
  // CHECK-LABEL: func.func @turns
  // CHECK: scf.for
  // CHECK-NEXT: dgpu.barrier
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: tile.load
  func.func @turns(%x: !tile.ptr<i32>, %n: i32) -> i32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
      tile.store %x, %i : !tile.ptr<i32>, i32
      %v = tile.load %x : !tile.ptr<i32> -> i32
      %next = arith.addi %sum, %v : i32
      scf.yield %next : i32
    }
    return %r : i32
  }

  // In a branch of some threads no barrier can stand.
  // CHECK-LABEL: func.func @divergent
  // CHECK: tile.load
  // CHECK: dgpu.barrier
  // CHECK-NEXT: scf.if
  // CHECK-NOT: dgpu.barrier
  func.func @divergent(%x: !tile.ptr<i32>) -> i32 {
    %c0 = arith.constant 0 : i32
    %v = tile.load %x : !tile.ptr<i32> -> i32
    %t = dist.thread_id 0
    %first = arith.cmpi eq, %t, %c0 : i32
    scf.if %first {
      tile.store %x, %c0 : !tile.ptr<i32>, i32
    }
    return %v : i32
  }
}
