// RUN: ditron-opt %s | ditron-opt | FileCheck %s
// Operations that hand elements to functions, and those that pair, gather and count elements: what is printed parses again.

// CHECK-LABEL: func.func @pairs
func.func @pairs(%a: tensor<4x8xf32>, %s: i32, %index: tensor<2x8xi32>, %numbers: tensor<16xi32>, %mask: tensor<16xi1>) {
  // CHECK: tile.join %{{.*}}, %{{.*}} : tensor<4x8xf32> -> tensor<4x8x2xf32>
  %0 = tile.join %a, %a : tensor<4x8xf32> -> tensor<4x8x2xf32>
  // CHECK: tile.join %{{.*}}, %{{.*}} : i32 -> tensor<2xi32>
  %1 = tile.join %s, %s : i32 -> tensor<2xi32>
  // CHECK: tile.split %{{.*}} : tensor<4x8x2xf32> -> tensor<4x8xf32>
  %2, %3 = tile.split %0 : tensor<4x8x2xf32> -> tensor<4x8xf32>
  // CHECK: tile.split %{{.*}} : tensor<2xi32> -> i32
  %4, %5 = tile.split %1 : tensor<2xi32> -> i32
  // CHECK: tile.gather %{{.*}}[%{{.*}}] axis 0 : tensor<4x8xf32>, tensor<2x8xi32> -> tensor<2x8xf32>
  %6 = tile.gather %a[%index] axis 0 : tensor<4x8xf32>, tensor<2x8xi32> -> tensor<2x8xf32>
  // CHECK: tile.histogram %{{.*}} mask %{{.*}} : tensor<16xi32> mask tensor<16xi1> -> tensor<8xi32>
  %7 = tile.histogram %numbers mask %mask : tensor<16xi32> mask tensor<16xi1> -> tensor<8xi32>
  return
}

// CHECK-LABEL: func.func @calls
func.func @calls(%a: tensor<16xf32>, %s: f32, %c: tensor<16xi1>) {
  // CHECK: tile.map_elementwise(%{{.*}}, %{{.*}}) pack 2 {
  %0 = tile.map_elementwise(%a, %a) pack 2 {
  ^bb0(%x0: f32, %x1: f32, %y0: f32, %y1: f32):
    %sum = arith.addf %x0, %y1 : f32
    tile.yield %sum, %x1 : f32, f32
  } : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  // CHECK: tile.extern_call "__nv_tanhf"(%{{.*}}) {isPure} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = tile.extern_call "__nv_tanhf"(%a) {isPure} : (tensor<16xf32>) -> tensor<16xf32>
  // CHECK: tile.inline_asm "mov.b32 $0, $1;" "=r,r"(%{{.*}}) pack 1 : (f32) -> i32
  %2 = tile.inline_asm "mov.b32 $0, $1;" "=r,r"(%s) pack 1 : (f32) -> i32
  // CHECK: tile.print "x"(%{{.*}}, %{{.*}}) {isSigned = array<i1: false, true>} : tensor<16xf32>, i32
  tile.print "x"(%a, %2) {isSigned = array<i1: false, true>} : tensor<16xf32>, i32
  // CHECK: tile.assert %{{.*}}, "positive" mask %{{.*}} : tensor<16xi1> mask tensor<16xi1>
  tile.assert %c, "positive" mask %c : tensor<16xi1> mask tensor<16xi1>
  return
}
