// One function per message of the verifiers, and the layout text's own errors.
// RUN: ditron-opt %s --split-input-file --verify-diagnostics

#a = #dgpu.layout<8, reg = {i0}, lane = [i1 i2], warp = []>
// expected-error@+1 {{the layout is for a tensor of shape 8, but the tensor has shape 16}}
func.func private @encodingShape(tensor<16xf32, #a>)

// -----

// expected-error@+1 {{expected '<' and the text of a layout}}
func.func private @noText(tensor<8xf32, #dgpu.layout>)

// -----

// No owner for i2.
// expected-error@+1 {{i2}}
#a = #dgpu.layout<8, reg = {i0}, lane = [i1], warp = []>

// -----

// expected-error@+1 {{at least one slot, found 0}}
func.func private @slots(!dgpu.buffer<0 x 4 x f32, #dgpu.shared<4, bits = 32, offset = [i0 i1]>>)

// -----

// expected-error@+1 {{the shared layout is for a tile of shape 4, but the slots have shape 8}}
func.func private @slotShape(!dgpu.buffer<2 x 8 x f32, #dgpu.shared<4, bits = 32, offset = [i0 i1]>>)

// -----

// expected-error@+1 {{the shared layout is for elements of 32 bits, but 'f16' takes 16}}
func.func private @slotType(!dgpu.buffer<2 x 4 x f16, #dgpu.shared<4, bits = 32, offset = [i0 i1]>>)

// -----

#a = #dgpu.layout<8, reg = {i0}, lane = [i1 i2], warp = []>
func.func @convertType(%x: tensor<8xf32, #a>) {
  // expected-error@+1 {{changes the layout only, but source is}}
  %0 = dgpu.convert_layout %x : tensor<8xf32, #a> -> tensor<8xi32, #a>
  return
}

// -----

#a = #dgpu.layout<8, reg = {i0}, lane = [i1 i2], warp = []>
func.func @convertWithout(%x: tensor<8xf32>) {
  // expected-error@+1 {{source must have a #dgpu.layout, found 'tensor<8xf32>'}}
  %0 = dgpu.convert_layout %x : tensor<8xf32> -> tensor<8xf32, #a>
  return
}

// -----

#a = #dgpu.layout<8, reg = {i0}, lane = [i1 i2], warp = []>
#b = #dgpu.layout<8, reg = {}, lane = [i0 i1 i2], warp = []>
func.func @convertMachine(%x: tensor<8xf32, #a>) {
  // expected-error@+1 {{source and result must be spread over the same machine, but the source has 2 lane bits and the result 3}}
  %0 = dgpu.convert_layout %x : tensor<8xf32, #a> -> tensor<8xf32, #b>
  return
}

// -----

#s = #dgpu.shared<4, bits = 32, offset = [i0 i1]>
func.func @storeShape(%x: tensor<8xf32>, %b: !dgpu.buffer<2 x 4 x f32, #s>, %i: i32) {
  // expected-error@+1 {{value is 'tensor<8xf32>', but a slot has shape [4]}}
  dgpu.buffer_store %x, %b[%i] : tensor<8xf32>, !dgpu.buffer<2 x 4 x f32, #s>
  return
}

// -----

#s = #dgpu.shared<4, bits = 32, offset = [i0 i1]>
func.func @loadType(%b: !dgpu.buffer<2 x 4 x f32, #s>, %i: i32) {
  // expected-error@+1 {{result has elements of type 'i32', but the buffer holds 'f32'}}
  %0 = dgpu.buffer_load %b[%i] : !dgpu.buffer<2 x 4 x f32, #s> -> tensor<4xi32>
  return
}

// -----

#s = #dgpu.shared<4, bits = 32, offset = [i0 i1]>
func.func @copyScalar(%p: !tile.ptr<f32>, %b: !dgpu.buffer<2 x 4 x f32, #s>, %i: i32) {
  // expected-error@+1 {{copies behind a tensor of pointers, found '!tile.ptr<f32>'}}
  dgpu.async_copy %p to %b[%i] : !tile.ptr<f32>, !dgpu.buffer<2 x 4 x f32, #s>
  return
}

// -----

#s = #dgpu.shared<4, bits = 32, offset = [i0 i1]>
func.func @copyType(%p: tensor<4x!tile.ptr<i32>>, %b: !dgpu.buffer<2 x 4 x f32, #s>, %i: i32) {
  // expected-error@+1 {{pointer has elements of type 'i32', but the buffer holds 'f32'}}
  dgpu.async_copy %p to %b[%i] : tensor<4x!tile.ptr<i32>>, !dgpu.buffer<2 x 4 x f32, #s>
  return
}

// -----

#s = #dgpu.shared<4, bits = 32, offset = [i0 i1]>
func.func @copyMask(%p: tensor<4x!tile.ptr<f32>>, %b: !dgpu.buffer<2 x 4 x f32, #s>, %i: i32, %m: i1) {
  // expected-error@+1 {{mask must have the shape and layout of the pointer 'tensor<4x!tile.ptr<f32>>', found 'i1'}}
  dgpu.async_copy %p to %b[%i] mask %m : tensor<4x!tile.ptr<f32>>, !dgpu.buffer<2 x 4 x f32, #s> mask i1
  return
}
