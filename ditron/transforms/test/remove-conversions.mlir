// Conversions that disappear, move or become cheaper.
// RUN: ditron-opt %s --dgpu-remove-conversions --dgpu-verify-layouts | FileCheck %s

#x = #dgpu.layout<32x32, reg = {j0 j1 i4}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]>
#y = #dgpu.layout<32x32, reg = {j4 i0 i1}, lane = [i2 i3 i4 j0 j1], warp = [j2 j3]>
#x1 = #dgpu.layout<32, reg = {i0 i1}, lane = [i2 i3 i4 * *], warp = [* *]>
#x1e = #dgpu.layout<1x32, reg = {j0 j1}, lane = [j2 j3 j4 * *], warp = [* *]>
#y1 = #dgpu.layout<32, reg = {i4}, lane = [* * * i0 i1], warp = [i2 i3]>
#y1e = #dgpu.layout<1x32, reg = {j4}, lane = [* * * j0 j1], warp = [j2 j3]>
#row = #dgpu.layout<16, reg = {}, lane = [i0 i1 i2 i3 *], warp = [* *]>
#rowe = #dgpu.layout<1x16, reg = {}, lane = [j0 j1 j2 j3 *], warp = [* *]>
#column = #dgpu.layout<1x16, reg = {j0 j3}, lane = [j1 j2 * * *], warp = [* *]>
#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#a = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#short = #dgpu.shared<16x16, bits = 16, offset = [j0 j1 j2 j3 i0 i1 i2^j3 i3]>
// CHECK-DAG: #[[$X:L[0-9]*]] = #dgpu.layout<32x32, reg = {j0 j1 i4}
// CHECK-DAG: #[[$Y:L[0-9]*]] = #dgpu.layout<32x32, reg = {j4 i0 i1}
// CHECK-DAG: #[[$Y1:L[0-9]*]] = #dgpu.layout<32, reg = {i4}

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Index arithmetic is computed again in the wanted layout.
  // CHECK-LABEL: func.func @rematerialise
  func.func @rematerialise(%n: i32) -> tensor<32x32xi1, #y> {
    // CHECK-NOT: dgpu.convert_layout
    // CHECK: tile.arange 0, 32 : tensor<32xi32, #[[$Y1]]>
    // CHECK: tile.broadcast {{.*}} -> tensor<32x32xi32, #[[$Y]]>
    // CHECK: arith.cmpi slt, {{.*}} : tensor<32x32xi32, #[[$Y]]>
    // CHECK: return
    %r = tile.arange 0, 32 : tensor<32xi32, #x1>
    %e = tile.expand_dims %r axis 0 : tensor<32xi32, #x1> -> tensor<1x32xi32, #x1e>
    %b = tile.broadcast %e : tensor<1x32xi32, #x1e> -> tensor<32x32xi32, #x>
    %ns = tile.splat %n : i32 -> tensor<32x32xi32, #x>
    %c = arith.cmpi slt, %b, %ns : tensor<32x32xi32, #x>
    %y = dgpu.convert_layout %c : tensor<32x32xi1, #x> -> tensor<32x32xi1, #y>
    return %y : tensor<32x32xi1, #y>
  }

  // Of a loaded row that is broadcast, the row is converted.
  // CHECK-LABEL: func.func @broadcast
  func.func @broadcast(%p: tensor<1x32x!tile.ptr<f32>, #x1e>) -> tensor<32x32xf32, #y> {
    // CHECK: %[[ROW:.*]] = tile.load
    // CHECK: %[[MOVED:.*]] = dgpu.convert_layout %[[ROW]] : {{.*}} -> tensor<1x32xf32, #[[$Y1E:L[0-9]*]]>
    // CHECK-NEXT: tile.broadcast %[[MOVED]] : tensor<1x32xf32, #[[$Y1E]]> -> tensor<32x32xf32, #[[$Y]]>
    // CHECK-NEXT: return
    %v = tile.load %p : tensor<1x32x!tile.ptr<f32>, #x1e> -> tensor<1x32xf32, #x1e>
    %b = tile.broadcast %v : tensor<1x32xf32, #x1e> -> tensor<32x32xf32, #x>
    %y = dgpu.convert_layout %b : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    return %y : tensor<32x32xf32, #y>
  }

  // A loaded value is not loaded again; the conversion stays.
  // CHECK-LABEL: func.func @load
  func.func @load(%p: tensor<32x32x!tile.ptr<f32>, #x>) -> tensor<32x32xf32, #y> {
    %v = tile.load %p : tensor<32x32x!tile.ptr<f32>, #x> -> tensor<32x32xf32, #x>
    // CHECK: dgpu.convert_layout
    %y = dgpu.convert_layout %v : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    return %y : tensor<32x32xf32, #y>
  }

  // CHECK-LABEL: func.func @there_and_back
  func.func @there_and_back(%v: tensor<32x32xf32, #x>) -> tensor<32x32xf32, #x> {
    // CHECK-NEXT: return
    %y = dgpu.convert_layout %v : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    %x = dgpu.convert_layout %y : tensor<32x32xf32, #y> -> tensor<32x32xf32, #x>
    return %x : tensor<32x32xf32, #x>
  }

  // The narrow side of a cast is converted, in both directions.
  // CHECK-LABEL: func.func @casts
  func.func @casts(%v: tensor<32x32xf16, #x>, %s: tensor<32x32xf32, #y>) -> (tensor<32x32xf32, #y>, tensor<32x32xf16, #x>) {
    // CHECK: %[[N:.*]] = dgpu.convert_layout %{{.*}} : tensor<32x32xf16, #[[$X]]> -> tensor<32x32xf16, #[[$Y]]>
    // CHECK: arith.extf %[[N]]
    %w = arith.extf %v : tensor<32x32xf16, #x> to tensor<32x32xf32, #x>
    %y = dgpu.convert_layout %w : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    // CHECK: %[[T:.*]] = arith.truncf %{{.*}} : tensor<32x32xf32, #[[$Y]]> to tensor<32x32xf16, #[[$Y]]>
    // CHECK: dgpu.convert_layout %[[T]] : tensor<32x32xf16, #[[$Y]]> -> tensor<32x32xf16, #[[$X]]>
    %x = dgpu.convert_layout %s : tensor<32x32xf32, #y> -> tensor<32x32xf32, #x>
    %t = arith.truncf %x : tensor<32x32xf32, #x> to tensor<32x32xf16, #x>
    return %y, %t : tensor<32x32xf32, #y>, tensor<32x32xf16, #x>
  }

  // CHECK-LABEL: func.func @hoist
  func.func @hoist(%v: tensor<32x32xf32, #x>, %n: i32, %zero: tensor<32x32xf32, #y>) -> tensor<32x32xf32, #y> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: dgpu.convert_layout
    // CHECK: scf.for
    // CHECK-NOT: dgpu.convert_layout
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32, #y>) : i32 {
      %y = dgpu.convert_layout %v : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
      %s = arith.addf %acc, %y : tensor<32x32xf32, #y>
      scf.yield %s : tensor<32x32xf32, #y>
    }
    return %r : tensor<32x32xf32, #y>
  }

  // Equal conversions are one.
  // CHECK-LABEL: func.func @merge
  // CHECK: dgpu.convert_layout
  // CHECK-NOT: dgpu.convert_layout
  // CHECK: return
  func.func @merge(%v: tensor<32x32xf32, #x>) -> tensor<32x32xf32, #y> {
    %a = dgpu.convert_layout %v : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    %b = dgpu.convert_layout %v : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    %s = arith.addf %a, %b : tensor<32x32xf32, #y>
    return %s : tensor<32x32xf32, #y>
  }

  // Warpgroups that compute between their dots do not meet at a barrier for a row: each thread loads what it needs of it.
  // CHECK-LABEL: func.func @row_beside_dots
  // CHECK: tile.load {{.*}} -> tensor<16xf32, #[[$COLUMN:L[0-9]*]]>
  // CHECK-NOT: tile.load
  // CHECK-NOT: dgpu.convert_layout
  // CHECK: return
  func.func @row_beside_dots(%p: !tile.ptr<f32>, %a: tensor<64x16xbf16, #a>, %c: tensor<64x16xf32, #c>, %slot: i32) -> tensor<64x16xf32, #c> {
    %b = dgpu.buffer_alloc : !dgpu.buffer<1 x 16x16 x bf16, #short>
    %d = dgpu.warpgroup_dot %a, %b[%slot], %c : tensor<64x16xbf16, #a>, !dgpu.buffer<1 x 16x16 x bf16, #short> -> tensor<64x16xf32, #c>
    %w = dgpu.warpgroup_wait 0, %d : tensor<64x16xf32, #c>
    %r = tile.arange 0, 16 : tensor<16xi32, #row>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>, #row>
    %q = tile.addptr %ps, %r : tensor<16x!tile.ptr<f32>, #row>, tensor<16xi32, #row>
    %v = tile.load %q : tensor<16x!tile.ptr<f32>, #row> -> tensor<16xf32, #row>
    %e = tile.expand_dims %v axis 0 : tensor<16xf32, #row> -> tensor<1x16xf32, #rowe>
    %m = dgpu.convert_layout %e : tensor<1x16xf32, #rowe> -> tensor<1x16xf32, #column>
    %s = tile.broadcast %m : tensor<1x16xf32, #column> -> tensor<64x16xf32, #c>
    %o = arith.subf %w, %s : tensor<64x16xf32, #c>
    return %o : tensor<64x16xf32, #c>
  }

  // Beside dots of warpgroups what leads to a conversion leaves the loop as well: here the column that the loop makes of what is known before it.
  // CHECK-LABEL: func.func @chain_beside_dots
  // CHECK: tile.expand_dims
  // CHECK: dgpu.convert_layout
  // CHECK: scf.for
  // CHECK-NOT: dgpu.convert_layout
  // CHECK: return
  func.func @chain_beside_dots(%p: tensor<16x!tile.ptr<f32>, #row>, %a: tensor<64x16xbf16, #a>, %c: tensor<64x16xf32, #c>, %n: i32) -> tensor<64x16xf32, #c> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = dgpu.buffer_alloc : !dgpu.buffer<1 x 16x16 x bf16, #short>
    %v = tile.load %p : tensor<16x!tile.ptr<f32>, #row> -> tensor<16xf32, #row>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x16xf32, #c>) : i32 {
      %d = dgpu.warpgroup_dot %a, %b[%c0], %acc : tensor<64x16xbf16, #a>, !dgpu.buffer<1 x 16x16 x bf16, #short> -> tensor<64x16xf32, #c>
      %w = dgpu.warpgroup_wait 0, %d : tensor<64x16xf32, #c>
      %e = tile.expand_dims %v axis 0 : tensor<16xf32, #row> -> tensor<1x16xf32, #rowe>
      %m = dgpu.convert_layout %e : tensor<1x16xf32, #rowe> -> tensor<1x16xf32, #column>
      %s = tile.broadcast %m : tensor<1x16xf32, #column> -> tensor<64x16xf32, #c>
      %o = arith.subf %w, %s : tensor<64x16xf32, #c>
      scf.yield %o : tensor<64x16xf32, #c>
    }
    return %r : tensor<64x16xf32, #c>
  }

  // What something else reads, too, is loaded once.
  // CHECK-LABEL: func.func @row_with_two_users
  // CHECK: tile.load {{.*}} -> tensor<16xf32, #[[$ROW:L[0-9]*]]>
  // CHECK: dgpu.convert_layout
  func.func @row_with_two_users(%p: tensor<16x!tile.ptr<f32>, #row>, %a: tensor<64x16xbf16, #a>, %c: tensor<64x16xf32, #c>, %slot: i32)
      -> (tensor<64x16xf32, #c>, tensor<1x16xf32, #column>, tensor<16xf32, #row>) {
    %b = dgpu.buffer_alloc : !dgpu.buffer<1 x 16x16 x bf16, #short>
    %d = dgpu.warpgroup_dot %a, %b[%slot], %c : tensor<64x16xbf16, #a>, !dgpu.buffer<1 x 16x16 x bf16, #short> -> tensor<64x16xf32, #c>
    %w = dgpu.warpgroup_wait 0, %d : tensor<64x16xf32, #c>
    %v = tile.load %p : tensor<16x!tile.ptr<f32>, #row> -> tensor<16xf32, #row>
    %e = tile.expand_dims %v axis 0 : tensor<16xf32, #row> -> tensor<1x16xf32, #rowe>
    %m = dgpu.convert_layout %e : tensor<1x16xf32, #rowe> -> tensor<1x16xf32, #column>
    return %w, %m, %v : tensor<64x16xf32, #c>, tensor<1x16xf32, #column>, tensor<16xf32, #row>
  }
}
