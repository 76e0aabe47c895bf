// Layouts for which a shape operation would have to move data are refused, not mislowered.
// RUN: ditron-opt %s -split-input-file -verify-diagnostics -ditron-to-llvm

#A = #dgpu.layout<64, reg = {i0}, lane = [i1 i2 i3 i4 i5], warp = []>
#B = #dgpu.layout<8x8, reg = {j1}, lane = [j0 j2 i0 i1 i2], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.target = "sim"} {
  func.func @reshape(%x: tensor<64xi32, #A>, %world: !tile.ptr<i64>) {
    // expected-error @+2 {{would move data between threads; its result layout should be 8x8, reg = {j0}, lane = [j1 j2 i0 i1 i2], warp = []}}
    // expected-error @+1 {{failed to legalize operation 'tile.reshape'}}
    %r = tile.reshape %x : tensor<64xi32, #A> -> tensor<8x8xi32, #B>
    return
  }
}

// -----

#A = #dgpu.layout<64, reg = {i0}, lane = [i1 i2 i3 i4 i5], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.target = "sim"} {
  func.func @constant(%world: !tile.ptr<i64>) {
    // expected-error @+2 {{with different elements has no register to live in}}
    // expected-error @+1 {{failed to legalize operation 'arith.constant'}}
    %c = arith.constant dense<[1, 2]> : tensor<2xi32, #dgpu.layout<2, reg = {i0}, lane = [* * * * *], warp = []>>
    return
  }
}

// -----

// expected-error @below {{unknown simulated target 'sim:sm_7'; known: sim:sm_80}}
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.target = "sim:sm_7"} {
}
