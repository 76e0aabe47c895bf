// One wrong descriptor operation per section.
// RUN: ditron-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{a descriptor has 1 to 5 dimensions, found 6}}
func.func private @rank(!tile.desc<1x1x1x1x1x8xf32>)

// -----

// expected-error@+1 {{a descriptor's elements are numbers of at least 8 bits, found 'i1'}}
func.func private @bits(!tile.desc<64xi1>)

// -----

func.func @pointee(%p: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1 : i64
  // expected-error@+1 {{base is '!tile.ptr<f32>', but the descriptor has elements of type 'bf16'}}
  %0 = tile.make_descriptor %p, [%n], [%one] : !tile.ptr<f32>, i32 -> !tile.desc<64xbf16>
  return
}

// -----

func.func @counts(%p: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1 : i64
  // expected-error@+1 {{needs a size and a stride for each of the 2 dimensions, found 1 sizes and 2 strides}}
  %0 = tile.make_descriptor %p, [%n], [%one, %one] : !tile.ptr<f32>, i32 -> !tile.desc<8x8xf32>
  return
}

// -----

func.func @lastStride(%p: !tile.ptr<f32>, %n: i32, %stride: i64) {
  // expected-error@+1 {{the last stride must be the constant 1}}
  %0 = tile.make_descriptor %p, [%n], [%stride] : !tile.ptr<f32>, i32 -> !tile.desc<8xf32>
  return
}

// -----

func.func @padding(%p: !tile.ptr<i32>, %n: i32) {
  %one = arith.constant 1 : i64
  // expected-error@+1 {{elements of type 'i32' have no NaN to pad with}}
  %0 = tile.make_descriptor %p, [%n], [%one] {padding = #tile.padding<nan>} : !tile.ptr<i32>, i32 -> !tile.desc<8xi32>
  return
}

// -----

func.func @offsets(%d: !tile.desc<8x8xf32>, %i: i32) {
  // expected-error@+1 {{needs an offset for each of the 2 dimensions, found 1}}
  %0 = tile.descriptor_load %d[%i] : !tile.desc<8x8xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @tile(%d: !tile.desc<8x8xf32>, %i: i32, %t: tensor<8x4xf32>) {
  // expected-error@+1 {{moves tiles of type 'tensor<8x8xf32>', found 'tensor<8x4xf32>'}}
  tile.descriptor_store %d[%i, %i], %t : !tile.desc<8x8xf32>, tensor<8x4xf32>
  return
}
