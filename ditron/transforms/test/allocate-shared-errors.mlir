// RUN: ditron-opt %s --dgpu-allocate-shared=limit-bytes=8192 --verify-diagnostics --split-input-file

#x = #dgpu.layout<32x32, reg = {j0 j1 i4}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]>
#y = #dgpu.layout<32x32, reg = {j4 i0 i1}, lane = [i2 i3 i4 j0 j1], warp = [j2 j3]>
#s = #dgpu.shared<32x32, bits = 32, offset = [j0 j1 j2 j3 j4 i0 i1 i2 i3 i4]>

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // expected-error @below {{the kernel needs 12288 bytes of shared memory, the target has 8192 bytes for a block; use smaller tiles or fewer stages (num_stages)}}
  func.func @too_much(%v: tensor<32x32xf32, #x>) -> tensor<32x32xf32, #y> {
    %c0 = arith.constant 0 : i32
    // expected-note @below {{tiles in shared memory need 8192 bytes here}}
    %b = dgpu.buffer_alloc : !dgpu.buffer<2 x 32x32 x f32, #s>
    dgpu.buffer_store %v, %b[%c0] : tensor<32x32xf32, #x>, !dgpu.buffer<2 x 32x32 x f32, #s>
    // expected-note @below {{moving a tile between threads needs 4096 bytes here}}
    %y = dgpu.convert_layout %v : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    %l = dgpu.buffer_load %b[%c0] : !dgpu.buffer<2 x 32x32 x f32, #s> -> tensor<32x32xf32, #y>
    %s = arith.addf %y, %l : tensor<32x32xf32, #y>
    return %s : tensor<32x32xf32, #y>
  }
}

// -----

#x = #dgpu.layout<32x32, reg = {j0 j1 i4}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]>
#y = #dgpu.layout<32x32, reg = {j4 i0 i1}, lane = [i2 i3 i4 j0 j1], warp = [j2 j3]>

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // expected-error @below {{the kernel needs 16384 bytes of shared memory}}
  func.func @one_note_for_equal_needs(%v: tensor<32x32xf64, #x>, %w: tensor<32x32xf64, #x>)
      -> (tensor<32x32xf64, #y>, tensor<32x32xf64, #y>) {
    // expected-note @unknown {{moving a tile between threads needs 8192 bytes here}}
    %y = dgpu.convert_layout %v : tensor<32x32xf64, #x> -> tensor<32x32xf64, #y> loc(unknown)
    %z = dgpu.convert_layout %w : tensor<32x32xf64, #x> -> tensor<32x32xf64, #y> loc(unknown)
    return %y, %z : tensor<32x32xf64, #y>, tensor<32x32xf64, #y>
  }
}
