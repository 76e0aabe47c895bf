// A tensor copy whose map nobody has looked at.
// RUN: ditron-opt %s --ditron-to-llvm=target=sim:sm_90a --verify-diagnostics

#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
func.func @map(%map: !dgpu.tensor_map, %x: i32, %buffer: !dgpu.buffer<1 x 64x64 x bf16, #rows>) {
  // expected-error @below {{does not say the box and the swizzle of its map; run dgpu-bind-tensor-maps first}}
  // expected-error @below {{failed to legalize operation 'dgpu.tma_store'}}
  dgpu.tma_store %buffer[%x] to %map[%x, %x] : !dgpu.buffer<1 x 64x64 x bf16, #rows>
  return
}
