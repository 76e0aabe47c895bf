// Maps that do not say what their copies move.
// RUN: ditron-opt %s --dgpu-bind-tensor-maps --split-input-file --verify-diagnostics

#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
func.func @nothing(%map: !dgpu.tensor_map, %x: i32, %buffer: !dgpu.buffer<1 x 64x64 x bf16, #rows>) {
  // expected-error @below {{needs a map that is a kernel argument with the attribute 'dgpu.tensor_map'}}
  dgpu.tma_store %buffer[%x] to %map[%x, %x] : !dgpu.buffer<1 x 64x64 x bf16, #rows>
  return
}

// -----

#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
func.func @computed(%a: !dgpu.tensor_map {dgpu.tensor_map = {box = [64 : i64, 64 : i64], swizzle = 128 : i64}},
                    %b: !dgpu.tensor_map {dgpu.tensor_map = {box = [32 : i64, 64 : i64], swizzle = 128 : i64}}, %c: i1, %x: i32,
                    %buffer: !dgpu.buffer<1 x 64x64 x bf16, #rows>, %full: !dgpu.mbarriers<1>) {
  %map = arith.select %c, %a, %b : !dgpu.tensor_map
  // expected-error @below {{needs a map that is a kernel argument with the attribute 'dgpu.tensor_map'}}
  dgpu.tma_load %map[%x, %x] to %buffer[%x], %full[%x] : !dgpu.buffer<1 x 64x64 x bf16, #rows>, !dgpu.mbarriers<1>
  return
}

// -----

#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
func.func @box(%map: !dgpu.tensor_map {dgpu.tensor_map = {box = [], swizzle = 128 : i64}}, %x: i32, %buffer: !dgpu.buffer<1 x 64x64 x bf16, #rows>) {
  // expected-error @below {{has a map without the sizes of its box}}
  dgpu.tma_store %buffer[%x] to %map[%x, %x] : !dgpu.buffer<1 x 64x64 x bf16, #rows>
  return
}

// -----

#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
func.func @swizzle(%map: !dgpu.tensor_map {dgpu.tensor_map = {box = [64 : i64, 64 : i64]}}, %x: i32, %buffer: !dgpu.buffer<1 x 64x64 x bf16, #rows>) {
  // expected-error @below {{has a map that does not say its swizzle}}
  dgpu.tma_store %buffer[%x] to %map[%x, %x] : !dgpu.buffer<1 x 64x64 x bf16, #rows>
  return
}
