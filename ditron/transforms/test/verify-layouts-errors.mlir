// What the phase verifier refuses.
// RUN: ditron-opt %s --split-input-file --dgpu-verify-layouts --verify-diagnostics

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @none() {
    // expected-error @below {{compiler bug: a tensor has no layout after layout assignment: 'tensor<32xi32>'}}
    %0 = tile.arange 0, 32 : tensor<32xi32>
    return
  }
}

// -----

#two = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [*]>
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @warps() {
    // expected-error @below {{compiler bug: the layout is not one for this tensor on 4 warps of 32 lanes}}
    %0 = tile.arange 0, 32 : tensor<32xi32, #two>
    return
  }
}

// -----

#a = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [* *]>
#b = #dgpu.layout<32x1, reg = {i4}, lane = [* * * i0 i1], warp = [i2 i3]>
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @relation() {
    %0 = tile.arange 0, 32 : tensor<32xi32, #a>
    // expected-error @below {{compiler bug: operand 0 should have the layout 32, reg = {i4}, lane = [* * * i0 i1], warp = [i2 i3] but has 32, reg = {}}}
    %1 = tile.expand_dims %0 axis 1 : tensor<32xi32, #a> -> tensor<32x1xi32, #b>
    return
  }
}
