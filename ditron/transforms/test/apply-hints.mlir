// RUN: ditron-opt --tile-apply-hints --split-input-file %s | FileCheck %s

// What comes behind a hint uses its result, what stands before it does not; a second hint says more of the first one's.
// CHECK-LABEL: func.func @behind
// CHECK-SAME: (%[[P:.*]]: tensor<64x!tile.ptr<f16>>)
func.func @behind(%p: tensor<64x!tile.ptr<f16>>) {
  // CHECK: %[[X:.*]] = tile.load %[[P]]
  // CHECK: %[[H:.*]] = tile.hint %[[P]] {divisibility
  // CHECK: %[[G:.*]] = tile.hint %[[H]] {contiguity
  // CHECK: tile.store %[[G]], %[[X]]
  %x = tile.load %p : tensor<64x!tile.ptr<f16>> -> tensor<64xf16>
  %h = tile.hint %p {divisibility = array<i64: 16>} : tensor<64x!tile.ptr<f16>>
  %g = tile.hint %p {contiguity = array<i64: 64>} : tensor<64x!tile.ptr<f16>>
  tile.store %p, %x : tensor<64x!tile.ptr<f16>>, tensor<64xf16>
  return
}

// -----

// Pointers that a loop carries: of this turn's, and of what the next one's are computed from. A hint in a branch holds in the branch.
// CHECK-LABEL: func.func @carried
func.func @carried(%p: tensor<64x!tile.ptr<f16>>, %step: tensor<64xi32>, %x: tensor<64xf16>, %n: i32, %some: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: scf.for {{.*}} iter_args(%[[Q:.*]] = %{{.*}})
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p) -> (tensor<64x!tile.ptr<f16>>) : i32 {
    // CHECK: scf.if
    // CHECK: %[[B:.*]] = tile.hint %[[Q]] {constancy
    // CHECK: tile.store %[[B]]
    scf.if %some {
      %b = tile.hint %q {constancy = array<i64: 2>} : tensor<64x!tile.ptr<f16>>
      tile.store %q, %x : tensor<64x!tile.ptr<f16>>, tensor<64xf16>
    }
    // CHECK: tile.store %[[Q]]
    // CHECK: %[[H:.*]] = tile.hint %[[Q]]
    // CHECK: tile.store %[[H]]
    // CHECK: tile.addptr %[[H]]
    tile.store %q, %x : tensor<64x!tile.ptr<f16>>, tensor<64xf16>
    %h = tile.hint %q {divisibility = array<i64: 16>} : tensor<64x!tile.ptr<f16>>
    tile.store %q, %x : tensor<64x!tile.ptr<f16>>, tensor<64xf16>
    %r = tile.addptr %q, %step : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    scf.yield %r : tensor<64x!tile.ptr<f16>>
  }
  return
}
