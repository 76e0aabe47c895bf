// What the lowering would have to believe.
// RUN: ditron-opt %s --dgpu-verify-preparation --split-input-file --verify-diagnostics

#L = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 i3 i4], warp = []>
func.func @width(%p: tensor<32x!tile.ptr<i32>, #L>) {
  // expected-error @below {{compiler bug: an access of a tensor does not say how wide it is (dgpu.vector_axis, dgpu.vector_elems)}}
  %x = tile.load %p : tensor<32x!tile.ptr<i32>, #L> -> tensor<32xi32, #L>
  return
}

// -----

#L = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 i3 i4], warp = []>
func.func @axis(%p: tensor<32x!tile.ptr<i32>, #L>, %x: tensor<32xi32, #L>) {
  // expected-error @below {{compiler bug: dgpu.vector_axis is 1 for a tensor of rank 1}}
  tile.store %p, %x {dgpu.vector_axis = 1 : i32, dgpu.vector_elems = 1 : i32} : tensor<32x!tile.ptr<i32>, #L>, tensor<32xi32, #L>
  return
}

// -----

#L = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 i3 i4], warp = []>
func.func @elems(%p: tensor<32x!tile.ptr<i32>, #L>, %x: tensor<32xi32, #L>) {
  // expected-error @below {{compiler bug: dgpu.vector_elems is 3; a power of two up to 32 is expected}}
  tile.store %p, %x {dgpu.vector_axis = 0 : i32, dgpu.vector_elems = 3 : i32} : tensor<32x!tile.ptr<i32>, #L>, tensor<32xi32, #L>
  return
}

// -----

#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
func.func @box(%map: !dgpu.tensor_map, %x: i32, %buffer: !dgpu.buffer<1 x 64x64 x bf16, #rows>) {
  // expected-error @below {{compiler bug: a tensor copy does not say the box and the swizzle of its map}}
  dgpu.tma_store %buffer[%x] to %map[%x, %x] : !dgpu.buffer<1 x 64x64 x bf16, #rows>
  return
}

// -----

#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
func.func @dimensions(%map: !dgpu.tensor_map, %x: i32, %buffer: !dgpu.buffer<1 x 64x64 x bf16, #rows>) {
  // expected-error @below {{compiler bug: a tensor copy with 2 offsets has a box of 1 dimensions}}
  dgpu.tma_store %buffer[%x] to %map[%x, %x] {box = array<i64: 64>, swizzle_bytes = 128 : i64} : !dgpu.buffer<1 x 64x64 x bf16, #rows>
  return
}

// -----

#L = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 i3 i4], warp = []>
func.func @effect(%x: tensor<32xi32, #L>, %p: tensor<32x!tile.ptr<i32>, #L>) {
  %y = tile.map_elementwise(%x, %p) pack 1 {
  ^bb0(%a: i32, %q: !tile.ptr<i32>):
    // expected-error @below {{compiler bug: the effect of tile.store would happen in every thread that computes the region}}
    tile.store %q, %a : !tile.ptr<i32>, i32
    tile.yield %a : i32
  } : (tensor<32xi32, #L>, tensor<32x!tile.ptr<i32>, #L>) -> tensor<32xi32, #L>
  return
}

// -----

module attributes {dgpu.num_warps = 16 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @registers() {
    // expected-error @below {{compiler bug: the partitions ask for 65536 registers; a block of 640 threads begins with 61440}}
    dgpu.warp_specialize consumer {
    } producer {
    } {consumer_registers = 120 : i32, producer_registers = 32 : i32}
    return
  }
}
