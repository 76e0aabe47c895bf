// RUN: ditron-opt %s --dgpu-verify-registers=limit=8 --split-input-file --verify-diagnostics

#L = #dgpu.layout<512, reg = {i0 i1 i2}, lane = [i3 i4 i5 i6 i7], warp = [i8]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @just_fits(%x: tensor<512xf32, #L>, %y: tensor<512xi8, #L>) {
    %0 = arith.addf %x, %x : tensor<512xf32, #L>
    %1 = arith.addi %y, %y : tensor<512xi8, #L>
    return
  }
}

// -----

#L = #dgpu.layout<1024, reg = {i0 i1 i2 i9}, lane = [i3 i4 i5 i6 i7], warp = [i8]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @small_elements_take_a_register_each(%x: tensor<1024xi8, #L>) {
    // expected-error @below {{the tile int8[1024] takes 16 registers of each thread, on 2 warps; at most 8 are accepted (GPUs have 255): use smaller tiles or at least 4 warps}}
    %0 = arith.addi %x, %x : tensor<1024xi8, #L>
    return
  }
}

// -----

#L = #dgpu.layout<16x32, reg = {j0 j1 j2}, lane = [j3 j4 i0 i1 i2], warp = [i3]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @pointers_take_two(%p: !tile.ptr<f32>, %i: tensor<16x32xi32, #L>) {
    %none = arith.addi %i, %i : tensor<16x32xi32, #L>
    // expected-error @below {{the tile pointers[16, 32] takes 16 registers of each thread, on 2 warps; at most 8 are accepted}}
    %0 = tile.splat %p : !tile.ptr<f32> -> tensor<16x32x!tile.ptr<f32>, #L>
    return
  }
}

// -----

#L = #dgpu.layout<16384, reg = {i0 i1 i2 i3}, lane = [i4 i5 i6 i7 i8], warp = [i9 i10 i11 i12 i13]>
module attributes {dgpu.num_warps = 32 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @no_more_warps_to_offer(%x: tensor<16384xbf16, #L>) {
    // expected-error-re @below {{the tile bf16[16384] takes 16 registers {{.*}}: use smaller tiles{{$}}}}
    %0 = arith.addf %x, %x : tensor<16384xbf16, #L>
    return
  }
}
