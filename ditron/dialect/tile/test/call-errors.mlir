// RUN: ditron-opt %s -split-input-file -verify-diagnostics

func.func @join_shape(%a: tensor<4xf32>) {
  // expected-error @+1 {{have the shape [4, 2]}}
  %0 = tile.join %a, %a : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @gather_sizes(%a: tensor<4x8xf32>, %index: tensor<4x4xi32>) {
  // expected-error @+1 {{same size along dimension 1}}
  %0 = tile.gather %a[%index] axis 0 : tensor<4x8xf32>, tensor<4x4xi32> -> tensor<4x4xf32>
  return
}

// -----

func.func @map_yield(%a: tensor<8xf32>) {
  %0 = tile.map_elementwise(%a) pack 2 {
  ^bb0(%x0: f32, %x1: f32):
    // expected-error @+1 {{must yield ('f32', 'f32'), found ('f32')}}
    tile.yield %x0 : f32
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @print_signs(%a: i32) {
  // expected-error @+1 {{has 1 values, but says of 0 whether they have a sign}}
  tile.print "x"(%a) {isSigned = array<i1>} : i32
  return
}
