// RUN: ditron-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @splats
// CHECK-SAME: (%[[X:.*]]: f32)
func.func @splats(%x: f32) -> (tensor<4x8xf32>, tensor<8x4xf32>, tensor<32xf32>, tensor<2x2xi32>, f32) {
  // CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2> : tensor<2x2xi32>
  // CHECK-DAG: %[[A:.*]] = tile.splat %[[X]] : f32 -> tensor<4x8xf32>
  // CHECK-DAG: %[[B:.*]] = tile.splat %[[X]] : f32 -> tensor<8x4xf32>
  // CHECK-DAG: %[[C:.*]] = tile.splat %[[X]] : f32 -> tensor<32xf32>
  %0 = tile.splat %x : f32 -> tensor<8xf32>
  %1 = tile.expand_dims %0 axis 0 : tensor<8xf32> -> tensor<1x8xf32>
  %2 = tile.broadcast %1 : tensor<1x8xf32> -> tensor<4x8xf32>
  %3 = tile.trans %2 [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %4 = tile.reshape %2 : tensor<4x8xf32> -> tensor<32xf32>
  %c2 = arith.constant 2 : i32
  %5 = tile.splat %c2 : i32 -> tensor<2x1xi32>
  %6 = tile.broadcast %5 : tensor<2x1xi32> -> tensor<2x2xi32>
  %7 = tile.splat %x : f32 -> tensor<1xf32>
  %8 = tile.unsplat %7 : tensor<1xf32> -> f32
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[TWO]], %[[X]]
  return %2, %3, %4, %6, %8 : tensor<4x8xf32>, tensor<8x4xf32>, tensor<32xf32>, tensor<2x2xi32>, f32
}

// CHECK-LABEL: func.func @shapes
// CHECK-SAME: (%[[X:[^:]*]]: tensor<2x4x8xf32>, %[[Y:[^:]*]]: tensor<8x1xf32>)
func.func @shapes(%x: tensor<2x4x8xf32>, %y: tensor<8x1xf32>) -> (tensor<8x2x4xf32>, tensor<2x4x8xf32>, tensor<64xf32>, tensor<8x4xf32>) {
  // Source dimension 1 of the first trans is dimension 2 of x: order[i] = inner[outer[i]].
  // CHECK-DAG: %[[T:.*]] = tile.trans %[[X]] [2, 0, 1] : tensor<2x4x8xf32> -> tensor<8x2x4xf32>
  %0 = tile.trans %x [0, 2, 1] : tensor<2x4x8xf32> -> tensor<2x8x4xf32>
  %1 = tile.trans %0 [1, 0, 2] : tensor<2x8x4xf32> -> tensor<8x2x4xf32>
  %2 = tile.trans %0 [0, 2, 1] : tensor<2x8x4xf32> -> tensor<2x4x8xf32>
  // CHECK-DAG: %[[R:.*]] = tile.reshape %[[X]] : tensor<2x4x8xf32> -> tensor<64xf32>
  %3 = tile.reshape %x : tensor<2x4x8xf32> -> tensor<8x8xf32>
  %4 = tile.reshape %3 : tensor<8x8xf32> -> tensor<64xf32>
  // CHECK-DAG: %[[B:.*]] = tile.broadcast %[[Y]] : tensor<8x1xf32> -> tensor<8x4xf32>
  %5 = tile.broadcast %y : tensor<8x1xf32> -> tensor<8x1xf32>
  %6 = tile.broadcast %5 : tensor<8x1xf32> -> tensor<8x4xf32>
  // CHECK: return %[[T]], %[[X]], %[[R]], %[[B]]
  return %1, %2, %4, %6 : tensor<8x2x4xf32>, tensor<2x4x8xf32>, tensor<64xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @pointers
// CHECK-SAME: (%[[P:[^:]*]]: !tile.ptr<f32>, %[[Q:[^:]*]]: tensor<8x!tile.ptr<f32>>)
func.func @pointers(%p: !tile.ptr<f32>, %q: tensor<8x!tile.ptr<f32>>) -> (!tile.ptr<f32>, tensor<8x!tile.ptr<f32>>, !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %0 = tile.addptr %p, %c0 : !tile.ptr<f32>, i32
  %zeros = arith.constant dense<0> : tensor<8xi64>
  %1 = tile.addptr %q, %zeros : tensor<8x!tile.ptr<f32>>, tensor<8xi64>
  %2 = tile.ptr_cast %p : !tile.ptr<f32> -> !tile.ptr<i8>
  %3 = tile.ptr_cast %2 : !tile.ptr<i8> -> !tile.ptr<f32>
  // CHECK-NEXT: return %[[P]], %[[Q]], %[[P]]
  return %0, %1, %3 : !tile.ptr<f32>, tensor<8x!tile.ptr<f32>>, !tile.ptr<f32>
}

// CHECK-LABEL: func.func @masks
// CHECK-SAME: (%[[P:[^:]*]]: tensor<8x!tile.ptr<f32>>, %[[O:[^:]*]]: tensor<8xf32>)
func.func @masks(%p: tensor<8x!tile.ptr<f32>>, %o: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8xf32>
  %true = arith.constant dense<true> : tensor<8xi1>
  %false = arith.constant dense<false> : tensor<8xi1>
  // CHECK-NEXT: %[[L:.*]] = tile.load %[[P]] : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  %0 = tile.load %p mask %true other %o : tensor<8x!tile.ptr<f32>> mask tensor<8xi1> other tensor<8xf32> -> tensor<8xf32>
  %1 = tile.load %p mask %false other %o : tensor<8x!tile.ptr<f32>> mask tensor<8xi1> other tensor<8xf32> -> tensor<8xf32>
  %2 = tile.load %p mask %false : tensor<8x!tile.ptr<f32>> mask tensor<8xi1> -> tensor<8xf32>
  // CHECK-NEXT: tile.store %[[P]], %[[O]] : tensor<8x!tile.ptr<f32>>, tensor<8xf32>
  tile.store %p, %o mask %true : tensor<8x!tile.ptr<f32>>, tensor<8xf32> mask tensor<8xi1>
  tile.store %p, %o mask %false : tensor<8x!tile.ptr<f32>>, tensor<8xf32> mask tensor<8xi1>
  // CHECK-NEXT: return %[[L]], %[[O]], %[[ZERO]]
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// A load whose result nobody uses goes away, a volatile one stays.
// CHECK-LABEL: func.func @effects
func.func @effects(%p: !tile.ptr<i32>) {
  // CHECK-NEXT: tile.load %{{.*}} {isVolatile = true}
  // CHECK-NEXT: return
  %0 = tile.load %p : !tile.ptr<i32> -> i32
  %1 = tile.load %p {isVolatile = true} : !tile.ptr<i32> -> i32
  return
}

// An addition to a dot from zero is the dot's own.
// CHECK-LABEL: func.func @add_to_dot
// CHECK-SAME: (%[[A:.*]]: tensor<16x32xf16>, %[[B:.*]]: tensor<32x8xf16>, %[[X:.*]]: tensor<16x8xf32>
// CHECK: %[[D:.*]] = tile.dot %[[A]], %[[B]], %[[X]] : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
// CHECK-NEXT: return %[[D]]
func.func @add_to_dot(%a: tensor<16x32xf16>, %b: tensor<32x8xf16>, %x: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x8xf32>
  %d = tile.dot %a, %b, %zero : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
  %s = arith.addf %x, %d : tensor<16x8xf32>
  return %s : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @add_to_dot_of_integers
// CHECK: tile.dot
// CHECK-NOT: arith.addi
func.func @add_to_dot_of_integers(%a: tensor<16x32xi8>, %b: tensor<32x8xi8>, %x: tensor<16x8xi32>) -> tensor<16x8xi32> {
  %zero = arith.constant dense<0> : tensor<16x8xi32>
  %d = tile.dot %a, %b, %zero : tensor<16x32xi8>, tensor<32x8xi8> -> tensor<16x8xi32>
  %s = arith.addi %d, %x : tensor<16x8xi32>
  return %s : tensor<16x8xi32>
}

// Not where the sum has more bits than the tensor core's, where the dot has another use, begins with something else, or stands before a loop.
// CHECK-LABEL: func.func @add_beside_dot
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK: scf.for
// CHECK: arith.addf
func.func @add_beside_dot(%a: tensor<16x32xf8E4M3FN>, %b: tensor<32x8xf8E4M3FN>, %c: tensor<16x32xf16>, %d: tensor<32x8xf16>, %x: tensor<16x8xf32>, %n: i32)
    -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) {
  %zero = arith.constant dense<0.0> : tensor<16x8xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %narrow = tile.dot %a, %b, %zero : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN> -> tensor<16x8xf32>
  %s0 = arith.addf %x, %narrow : tensor<16x8xf32>
  %shared = tile.dot %c, %d, %zero : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
  %s1 = arith.addf %x, %shared : tensor<16x8xf32>
  %begun = tile.dot %c, %d, %s1 : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
  %s2 = arith.addf %x, %begun : tensor<16x8xf32>
  %before = tile.dot %c, %d, %zero : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
  %s3 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> tensor<16x8xf32> : i32 {
    %more = arith.addf %sum, %before : tensor<16x8xf32>
    scf.yield %more : tensor<16x8xf32>
  }
  return %s0, %s1, %s2, %s3, %shared : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>
}
