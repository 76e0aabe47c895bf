// What the hardware cannot do is said at the operation.
// RUN: ditron-opt %s --dgpu-bind-tensor-maps --ditron-to-llvm=target=sim:sm_90a --split-input-file --verify-diagnostics
// RUN: not ditron-opt %s --ditron-to-llvm=target=sim:sm_80 --split-input-file 2>&1 | FileCheck %s

#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
// CHECK: 'dgpu.tma_load' op is not available on this target
func.func @box(%map: !dgpu.tensor_map {dgpu.tensor_map = {box = [256 : i64, 64 : i64], swizzle = 128 : i64}}, %x: i32, %full: !dgpu.mbarriers<1>,
               %buffer: !dgpu.buffer<1 x 64x64 x bf16, #rows>) {
  // expected-error @below {{it does not consist of them}}
  // expected-error @below {{failed to legalize operation 'dgpu.tma_load'}}
  dgpu.tma_load %map[%x, %x] to %buffer[%x], %full[%x] : !dgpu.buffer<1 x 64x64 x bf16, #rows>, !dgpu.mbarriers<1>
  return
}

// -----

// The second box would begin in the middle of the swizzle's pattern.
#narrow = #dgpu.shared<4x128, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 j6]>
func.func @pattern(%map: !dgpu.tensor_map {dgpu.tensor_map = {box = [4 : i64, 64 : i64], swizzle = 128 : i64}}, %x: i32,
                   %buffer: !dgpu.buffer<1 x 4x128 x bf16, #narrow>) {
  // expected-error @below {{compiler bug: tensor copies of boxes 4x64 with a swizzle of 128 bytes do not move the tile 4x128, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 j6]: a box begins at byte 512, not at a multiple of 1024}}
  // expected-error @below {{failed to legalize operation 'dgpu.tma_store'}}
  dgpu.tma_store %buffer[%x] to %map[%x, %x] : !dgpu.buffer<1 x 4x128 x bf16, #narrow>
  return
}

// -----

// The same for the slots of a ring.
#small = #dgpu.shared<4x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4]>
func.func @slots(%map: !dgpu.tensor_map {dgpu.tensor_map = {box = [4 : i64, 64 : i64], swizzle = 128 : i64}}, %x: i32,
                 %buffer: !dgpu.buffer<2 x 4x64 x bf16, #small>) {
  // expected-error @below {{compiler bug: slots of 512 bytes, which is no multiple of the 1024 at which a box begins}}
  // expected-error @below {{failed to legalize operation 'dgpu.tma_store'}}
  dgpu.tma_store %buffer[%x] to %map[%x, %x] : !dgpu.buffer<2 x 4x64 x bf16, #small>
  return
}
