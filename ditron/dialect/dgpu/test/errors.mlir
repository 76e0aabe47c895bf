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

// -----

// expected-error@+1 {{at least one mbarrier, found 0}}
func.func private @mbarriers(!dgpu.mbarriers<0>)

// -----

#s = #dgpu.shared<4x2, bits = 32, offset = [j0 i0 i1]>
func.func @permuteOrder(%b: !dgpu.buffer<2 x 4x2 x f32, #s>) {
  // expected-error@+1 {{order must name each dimension}}
  %0 = dgpu.buffer_permute %b [1, 1] : !dgpu.buffer<2 x 4x2 x f32, #s> -> !dgpu.buffer<2 x 4x2 x f32, #s>
  return
}

// -----

#s = #dgpu.shared<4x2, bits = 32, offset = [j0 i0 i1]>
func.func @permuteType(%b: !dgpu.buffer<2 x 4x2 x f32, #s>) {
  // expected-error@+1 {{result must be}}
  %0 = dgpu.buffer_permute %b [1, 0] : !dgpu.buffer<2 x 4x2 x f32, #s> -> !dgpu.buffer<2 x 4x2 x f32, #s>
  return
}

// -----

#s = #dgpu.shared<4x2, bits = 32, offset = [j0 i0 i1]>
func.func @copyRank(%m: !dgpu.tensor_map, %x: i32, %b: !dgpu.buffer<2 x 4x2 x f32, #s>) {
  // expected-error@+1 {{has 1 offsets for a tile of rank 2}}
  dgpu.tma_store %b[%x] to %m[%x] : !dgpu.buffer<2 x 4x2 x f32, #s>
  return
}

// -----

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#plain = #dgpu.shared<16x16, bits = 16, offset = [j0 j1 j2 j3 i0 i1 i2 i3]>
func.func @dotLayout(%a: tensor<64x16xbf16, #c>, %b: !dgpu.buffer<1 x 16x16 x bf16, #plain>, %c: tensor<64x16xf32, #c>, %slot: i32) {
  // expected-error@+1 {{cannot read b from a buffer laid out as}}
  %0 = dgpu.warpgroup_dot %a, %b[%slot], %c : tensor<64x16xbf16, #c>, !dgpu.buffer<1 x 16x16 x bf16, #plain> -> tensor<64x16xf32, #c>
  return
}

// -----

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#short = #dgpu.shared<16x16, bits = 16, offset = [j0 j1 j2 j3 i0 i1 i2^j3 i3]>
func.func @dotPromotion(%a: tensor<64x16xbf16, #c>, %b: !dgpu.buffer<1 x 16x16 x bf16, #short>, %c: tensor<64x16xf32, #c>, %slot: i32) {
  // expected-error@+1 {{promotes sums of 32 products of 'bf16'; accepted are multiples of 32 of fp8}}
  %0 = dgpu.warpgroup_dot %a, %b[%slot], %c {promote_elems = 32 : i32} : tensor<64x16xbf16, #c>, !dgpu.buffer<1 x 16x16 x bf16, #short> -> tensor<64x16xf32, #c>
  return
}

// -----

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#short = #dgpu.shared<16x16, bits = 16, offset = [j0 j1 j2 j3 i0 i1 i2^j3 i3]>
func.func @dotTypes(%a: tensor<64x16xf16, #c>, %b: !dgpu.buffer<1 x 16x16 x bf16, #short>, %c: tensor<64x16xf32, #c>, %slot: i32) {
  // expected-error@+1 {{operands have different element types: 'f16' and 'bf16'}}
  %0 = dgpu.warpgroup_dot %a, %b[%slot], %c : tensor<64x16xf16, #c>, !dgpu.buffer<1 x 16x16 x bf16, #short> -> tensor<64x16xf32, #c>
  return
}

// -----

func.func @nestedPartition(%p: i1) {
  scf.if %p {
    // expected-error@+1 {{must stand at the top level of a kernel}}
    dgpu.warp_specialize consumer {
    } producer {
    }
  }
  return
}

// -----

func.func @idleProducers() {
  // expected-error@+1 {{has 8 active producer warps of 4}}
  dgpu.warp_specialize consumer {
  } producer {
  } {active_warps = 8 : i32}
  return
}

// -----

#s = #dgpu.shared<4x4, bits = 16, offset = [j0 j1 i0 i1]>
func.func @shortRows(%b: !dgpu.buffer<2 x 4x4 x bf16, #s>, %slot: i32, %p: !tile.ptr<bf16>) {
  // expected-error@+1 {{copies matrices whose rows are multiples of 16 bytes}}
  dgpu.async_gather %b[%slot] {
  ^bb0(%row: i32, %column: i32):
    dgpu.address %p : !tile.ptr<bf16>
  } : !dgpu.buffer<2 x 4x4 x bf16, #s>
  return
}

// -----

#s = #dgpu.shared<4x8, bits = 16, offset = [j0 j1 j2 i0 i1]>
func.func @placeOfThree(%b: !dgpu.buffer<2 x 4x8 x bf16, #s>, %slot: i32, %p: !tile.ptr<bf16>) {
  // expected-error@+1 {{needs a region of a row and a column, i32}}
  dgpu.async_gather %b[%slot] {
  ^bb0(%row: i32):
    dgpu.address %p : !tile.ptr<bf16>
  } : !dgpu.buffer<2 x 4x8 x bf16, #s>
  return
}

// -----

#s = #dgpu.shared<4x8, bits = 16, offset = [j0 j1 j2 i0 i1]>
func.func @wideElements(%b: !dgpu.buffer<2 x 4x8 x bf16, #s>, %slot: i32, %p: !tile.ptr<f32>) {
  // expected-error@+1 {{copies elements of 2 bytes, from}}
  dgpu.async_gather %b[%slot] {
  ^bb0(%row: i32, %column: i32):
    dgpu.address %p : !tile.ptr<f32>
  } : !dgpu.buffer<2 x 4x8 x bf16, #s>
  return
}

// -----

#s = #dgpu.shared<4x8, bits = 16, offset = [j0 j1 j2 i0 i1]>
func.func @heldForNobody(%b: !dgpu.buffer<2 x 4x8 x bf16, #s>, %slot: i32, %p: !tile.ptr<bf16>) {
  // expected-error@+1 {{needs a region that takes a value for each of those that are held of a row}}
  dgpu.async_gather %b[%slot] held %p : !tile.ptr<bf16> {
  ^bb0(%row: i32, %column: i32):
    dgpu.address %p : !tile.ptr<bf16>
  } : !dgpu.buffer<2 x 4x8 x bf16, #s>
  return
}

// -----

#s = #dgpu.shared<4x8, bits = 16, offset = [j0 j1 j2 i0 i1]>
func.func @otherValues(%b: !dgpu.buffer<2 x 4x8 x bf16, #s>) {
  // expected-error@+1 {{has results of other types than the values of a row}}
  %r = dgpu.gather_rows %b {
  ^bb0(%row: i32):
    dgpu.row_values %row : i32
  } : !dgpu.buffer<2 x 4x8 x bf16, #s> -> i64
  return
}
