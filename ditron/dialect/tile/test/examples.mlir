// Operations with regions as their descriptions show them (dialect/test/documented.test).
// RUN: ditron-opt %s | ditron-opt | FileCheck %s

// CHECK-LABEL: func.func @regions
func.func @regions(%x: tensor<64xf32>, %y: tensor<4x64xf32>, %i: tensor<64xi32>) {
  // CHECK: tile.map_elementwise
  %0 = tile.map_elementwise(%x) pack 1 { ^bb0(%a: f32):
    %b = arith.mulf %a, %a : f32
    tile.yield %b : f32
  } : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: tile.reduce
  %1 = tile.reduce(%y) axis 1 { ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  } : (tensor<4x64xf32>) -> tensor<4xf32>
  // CHECK: tile.scan
  %2 = tile.scan(%i) axis 0 { ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  } : (tensor<64xi32>) -> tensor<64xi32>
  return
}
