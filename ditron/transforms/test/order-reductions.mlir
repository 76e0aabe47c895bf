// Which reductions keep the order of their elements.
// RUN: ditron-opt %s --tile-order-reductions | FileCheck %s
// RUN: ditron-opt %s --tile-order-reductions=strict | FileCheck %s --check-prefix=STRICT
// RUN: ditron-opt %s --tile-order-reductions --remarks-filter=.* --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: func.func @sum
// CHECK: tile.reduce(%{{.*}}) axis 0 {
// STRICT: axis 0 ordering inner_tree
// REMARK-NOT: remark
func.func @sum(%x: tensor<64xf32>) -> f32 {
  %s = tile.reduce(%x) axis 0 { ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  } : (tensor<64xf32>) -> f32
  return %s : f32
}

// What is given stays.
// CHECK-LABEL: func.func @given
// CHECK: axis 0 ordering unordered
// STRICT: axis 0 ordering unordered
func.func @given(%x: tensor<64xi32>) -> i32 {
  %s = tile.reduce(%x) axis 0 ordering unordered { ^bb0(%a: i32, %b: i32):
    %c = arith.subi %a, %b : i32
    tile.yield %c : i32
  } : (tensor<64xi32>) -> i32
  return %s : i32
}

// Mean and number of two sets, the joint mean with rounding: commutes as real numbers do.
// CHECK-LABEL: func.func @welford
// CHECK: axis 0 {
func.func @welford(%x: tensor<64xf32>, %n: tensor<64xf32>) -> f32 {
  %s:2 = tile.reduce(%x, %n) axis 0 { ^bb0(%m1: f32, %n1: f32, %m2: f32, %n2: f32):
    %d = arith.subf %m2, %m1 : f32
    %k = arith.addf %n1, %n2 : f32
    %w = arith.divf %n2, %k : f32
    %p = arith.mulf %d, %w : f32
    %m = arith.addf %m1, %p : f32
    tile.yield %m, %k : f32, f32
  } : (tensor<64xf32>, tensor<64xf32>) -> (f32, f32)
  return %s#0 : f32
}

// Affine maps: associative, and order matters.
// CHECK-LABEL: func.func @affine
// CHECK: axis 0 ordering inner_tree
// REMARK: order-reductions.mlir:[[#@LINE+2]]:{{.*}}keeps the order of the elements
func.func @affine(%x: tensor<64xf32>, %y: tensor<64xf32>) -> f32 {
  %s:2 = tile.reduce(%x, %y) axis 0 { ^bb0(%a1: f32, %b1: f32, %a2: f32, %b2: f32):
    %a = arith.mulf %a1, %a2 : f32
    %p = arith.mulf %b1, %a2 : f32
    %b = arith.addf %p, %b2 : f32
    tile.yield %a, %b : f32, f32
  } : (tensor<64xf32>, tensor<64xf32>) -> (f32, f32)
  return %s#1 : f32
}

// The index of a maximum: only a tie tells left from right.
// CHECK-LABEL: func.func @first
// CHECK: axis 0 ordering inner_tree
func.func @first(%x: tensor<64xf32>, %i: tensor<64xi32>) -> i32 {
  %s:2 = tile.reduce(%x, %i) axis 0 { ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %w = arith.cmpf oge, %a, %b : f32
    %v = arith.select %w, %a, %b : f32
    %k = arith.select %w, %ai, %bi : i32
    tile.yield %v, %k : f32, i32
  } : (tensor<64xf32>, tensor<64xi32>) -> (f32, i32)
  return %s#1 : i32
}

// The same with a rule for ties.
// CHECK-LABEL: func.func @lowest
// CHECK: axis 0 {
func.func @lowest(%x: tensor<64xf32>, %i: tensor<64xi32>) -> i32 {
  %s:2 = tile.reduce(%x, %i) axis 0 { ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %g = arith.cmpf ogt, %a, %b : f32
    %e = arith.cmpf oeq, %a, %b : f32
    %l = arith.cmpi slt, %ai, %bi : i32
    %t = arith.andi %e, %l : i1
    %w = arith.ori %g, %t : i1
    %v = arith.select %w, %a, %b : f32
    %k = arith.select %w, %ai, %bi : i32
    tile.yield %v, %k : f32, i32
  } : (tensor<64xf32>, tensor<64xi32>) -> (f32, i32)
  return %s#1 : i32
}
