// Effects in regions on scalars happen in the thread that performs the application.
// RUN: ditron-opt %s --dgpu-guard-effects | FileCheck %s

#L = #dgpu.layout<32, reg = {i0}, lane = [i1 i2 i3 i4 *], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Arithmetic and loads may be done by every thread that holds a copy.
  // CHECK-LABEL: func.func @pure
  // CHECK-NOT: dgpu.performs
  func.func @pure(%x: tensor<32xi32, #L>, %p: tensor<32x!tile.ptr<i32>, #L>) -> tensor<32xi32, #L> {
    %y = tile.map_elementwise(%x, %p) pack 1 {
    ^bb0(%a: i32, %q: !tile.ptr<i32>):
      %b = tile.load %q : !tile.ptr<i32> -> i32
      %c = arith.addi %a, %b : i32
      tile.yield %c : i32
    } : (tensor<32xi32, #L>, tensor<32x!tile.ptr<i32>, #L>) -> tensor<32xi32, #L>
    return %y : tensor<32xi32, #L>
  }

  // The effect alone is guarded, inside of the branch where it stands.
  // CHECK-LABEL: func.func @store
  // CHECK: tile.map_elementwise
  // CHECK: %[[PERFORMS:.*]] = dgpu.performs
  // CHECK: %[[POSITIVE:.*]] = arith.cmpi sgt
  // CHECK: scf.if %[[POSITIVE]] {
  // CHECK-NEXT: scf.if %[[PERFORMS]] {
  // CHECK-NEXT: tile.store %{{.*}}, %{{.*}} {dist.per_thread}
  // CHECK-NEXT: }
  func.func @store(%x: tensor<32xi32, #L>, %p: tensor<32x!tile.ptr<i32>, #L>) -> tensor<32xi32, #L> {
    %zero = arith.constant 0 : i32
    %y = tile.map_elementwise(%x, %p) pack 1 {
    ^bb0(%a: i32, %q: !tile.ptr<i32>):
      %positive = arith.cmpi sgt, %a, %zero : i32
      scf.if %positive {
        tile.store %q, %a : !tile.ptr<i32>, i32
      }
      tile.yield %a : i32
    } : (tensor<32xi32, #L>, tensor<32x!tile.ptr<i32>, #L>) -> tensor<32xi32, #L>
    return %y : tensor<32xi32, #L>
  }

  // A result that is used is zero where the effect does not happen.
  // CHECK-LABEL: func.func @used
  // CHECK: %[[PERFORMS:.*]] = dgpu.performs
  // CHECK: %[[OLD:.*]] = scf.if %[[PERFORMS]] -> (i32) {
  // CHECK-NEXT: %[[DONE:.*]] = tile.atomic_rmw {{.*}} {dist.per_thread}
  // CHECK-NEXT: scf.yield %[[DONE]]
  // CHECK-NEXT: } else {
  // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK-NEXT: scf.yield %[[ZERO]]
  // CHECK: tile.yield %[[OLD]]
  func.func @used(%x: tensor<32xi32, #L>, %p: tensor<32x!tile.ptr<i32>, #L>) -> tensor<32xi32, #L> {
    %y = tile.map_elementwise(%x, %p) pack 1 {
    ^bb0(%a: i32, %q: !tile.ptr<i32>):
      %old = tile.atomic_rmw add relaxed gpu %q, %a : !tile.ptr<i32>, i32 -> i32
      tile.yield %old : i32
    } : (tensor<32xi32, #L>, tensor<32x!tile.ptr<i32>, #L>) -> tensor<32xi32, #L>
    return %y : tensor<32xi32, #L>
  }
}
