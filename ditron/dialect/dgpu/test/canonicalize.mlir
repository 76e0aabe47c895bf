// RUN: ditron-opt %s --canonicalize | FileCheck %s

#a = #dgpu.layout<8, reg = {i0}, lane = [i1 i2], warp = []>
#b = #dgpu.layout<8, reg = {i2}, lane = [i0 i1], warp = []>
#c = #dgpu.layout<8, reg = {i1}, lane = [i2 i0], warp = []>

// CHECK-LABEL: func.func @conversions
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32, #[[A:L[0-9]*]]>)
func.func @conversions(%x: tensor<8xf32, #a>) -> (tensor<8xf32, #a>, tensor<8xf32, #a>, tensor<8xf32, #c>) {
  %same = dgpu.convert_layout %x : tensor<8xf32, #a> -> tensor<8xf32, #a>
  %there = dgpu.convert_layout %x : tensor<8xf32, #a> -> tensor<8xf32, #b>
  %back = dgpu.convert_layout %there : tensor<8xf32, #b> -> tensor<8xf32, #a>
  // CHECK-NEXT: %[[C:.*]] = dgpu.convert_layout %[[X]] : tensor<8xf32, #[[A]]> -> tensor<8xf32, #{{.*}}>
  %on = dgpu.convert_layout %there : tensor<8xf32, #b> -> tensor<8xf32, #c>
  // CHECK-NEXT: return %[[X]], %[[X]], %[[C]]
  return %same, %back, %on : tensor<8xf32, #a>, tensor<8xf32, #a>, tensor<8xf32, #c>
}

// What every thread can make by itself is not moved.
// CHECK-LABEL: func.func @creations
// CHECK-SAME: -> (tensor<8xf32, #[[B:L[0-9]*]]>, tensor<8xi32, #[[B]]>, tensor<8xi32, #[[B]]>)
func.func @creations(%x: f32) -> (tensor<8xf32, #b>, tensor<8xi32, #b>, tensor<8xi32, #b>) {
  // CHECK-NOT: dgpu.convert_layout
  // CHECK-DAG: arith.constant dense<7> : tensor<8xi32, #[[B]]>
  // CHECK-DAG: tile.splat %{{.*}} : f32 -> tensor<8xf32, #[[B]]>
  // CHECK-DAG: tile.arange 0, 8 : tensor<8xi32, #[[B]]>
  %0 = tile.splat %x : f32 -> tensor<8xf32, #a>
  %1 = dgpu.convert_layout %0 : tensor<8xf32, #a> -> tensor<8xf32, #b>
  %2 = tile.arange 0, 8 : tensor<8xi32, #a>
  %3 = dgpu.convert_layout %2 : tensor<8xi32, #a> -> tensor<8xi32, #b>
  %4 = arith.constant dense<7> : tensor<8xi32, #a>
  %5 = dgpu.convert_layout %4 : tensor<8xi32, #a> -> tensor<8xi32, #b>
  return %1, %3, %5 : tensor<8xf32, #b>, tensor<8xi32, #b>, tensor<8xi32, #b>
}
