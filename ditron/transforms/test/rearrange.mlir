// Layouts of join, split, gather, histogram and map_elementwise: what costs nothing, and where conversions go.
// RUN: ditron-opt %s --split-input-file --dgpu-assign-layouts --dgpu-verify-layouts | FileCheck %s

// A join is a new register bit at the bottom; the store follows it where it is small. A split of the joined tensor is free.
// CHECK-DAG: #[[$L:L[0-9]*]] = #dgpu.layout<64, reg = {i5}, lane = [i0 i1 i2 i3 i4], warp = []>
// CHECK-DAG: #[[$J:L[0-9]*]] = #dgpu.layout<64x2, reg = {j0 i5}, lane = [i0 i1 i2 i3 i4], warp = []>
// CHECK-LABEL: func.func @join_split
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @join_split(%p: !tile.ptr<f32>) attributes {tile.kernel} {
    %i = tile.arange 0, 64 : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %at = tile.addptr %ps, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    // CHECK: %[[X:.*]] = tile.load {{.*}} -> tensor<64xf32, #[[$L]]>
    %x = tile.load %at : tensor<64x!tile.ptr<f32>> -> tensor<64xf32>
    // CHECK-NOT: convert_layout
    // CHECK: tile.join %[[X]], %{{.*}} : tensor<64xf32, #[[$L]]> -> tensor<64x2xf32, #[[$J]]>
    %y = arith.negf %x : tensor<64xf32>
    %j = tile.join %x, %y : tensor<64xf32> -> tensor<64x2xf32>
    // CHECK-NOT: convert_layout
    // CHECK: tile.split %{{.*}} : tensor<64x2xf32, #[[$J]]> -> tensor<64xf32, #[[$L]]>
    %a, %b = tile.split %j : tensor<64x2xf32> -> tensor<64xf32>
    %s = arith.subf %a, %b : tensor<64xf32>
    // CHECK-NOT: convert_layout
    // CHECK: tile.store
    tile.store %at, %s : tensor<64x!tile.ptr<f32>>, tensor<64xf32>
    return
  }
}

// -----

// The last dimension is in lanes: one conversion brings it into registers. Both halves have one layout.
// CHECK-DAG: #[[$S:L[0-9]*]] = #dgpu.layout<16x2, reg = {}, lane = [j0 i0 i1 i2 i3], warp = []>
// CHECK-DAG: #[[$T:L[0-9]*]] = #dgpu.layout<16x2, reg = {j0}, lane = [* i0 i1 i2 i3], warp = []>
// CHECK-LABEL: func.func @split_lanes
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @split_lanes(%p: !tile.ptr<i16>, %q: !tile.ptr<i16>) attributes {tile.kernel} {
    %i = tile.arange 0, 32 : tensor<32xi32>
    %ps = tile.splat %p : !tile.ptr<i16> -> tensor<32x!tile.ptr<i16>>
    %at = tile.addptr %ps, %i : tensor<32x!tile.ptr<i16>>, tensor<32xi32>
    %x = tile.load %at : tensor<32x!tile.ptr<i16>> -> tensor<32xi16>
    %pairs = tile.reshape %x : tensor<32xi16> -> tensor<16x2xi16>
    // CHECK: dgpu.convert_layout %{{.*}} : tensor<16x2xi16, #[[$S]]> -> tensor<16x2xi16, #[[$T]]>
    // CHECK-NEXT: tile.split
    %a, %b = tile.split %pairs : tensor<16x2xi16> -> tensor<16xi16>
    %sum = arith.addi %a, %b : tensor<16xi16>
    %h = tile.arange 0, 16 : tensor<16xi32>
    %qs = tile.splat %q : !tile.ptr<i16> -> tensor<16x!tile.ptr<i16>>
    %to = tile.addptr %qs, %h : tensor<16x!tile.ptr<i16>>, tensor<16xi32>
    tile.store %to, %sum : tensor<16x!tile.ptr<i16>>, tensor<16xi16>
    return
  }
}

// -----

// Scalars: a pair that every thread holds.
// CHECK: #[[$P:L[0-9]*]] = #dgpu.layout<2, reg = {i0}, lane = [* * * * *], warp = [* *]>
// CHECK-LABEL: func.func @scalars
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @scalars(%p: !tile.ptr<i32>, %n: i32, %m: i32) attributes {tile.kernel} {
    // CHECK: tile.join %{{.*}}, %{{.*}} : i32 -> tensor<2xi32, #[[$P]]>
    %j = tile.join %n, %m : i32 -> tensor<2xi32>
    %two = arith.addi %j, %j : tensor<2xi32>
    // CHECK: tile.split %{{.*}} : tensor<2xi32, #[[$P]]> -> i32
    %a, %b = tile.split %two : tensor<2xi32> -> i32
    %d = arith.subi %a, %b : i32
    tile.store %p, %d : !tile.ptr<i32>, i32
    return
  }
}

// -----

// The result of a gather lies like its index; that of an exchange like its source, whatever the index.
// CHECK-LABEL: func.func @gathers
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @gathers(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32>) attributes {tile.kernel} {
    %i = tile.arange 0, 256 : tensor<256xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
    %at = tile.addptr %ps, %i : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
    // CHECK: %[[X:.*]] = tile.load {{.*}} -> tensor<256xf32, #[[V:L[0-9]*]]>
    %x = tile.load %at : tensor<256x!tile.ptr<f32>> -> tensor<256xf32>
    %last = arith.constant dense<255> : tensor<256xi32>
    %back = arith.xori %i, %last : tensor<256xi32>
    // CHECK: %[[F:.*]] = tile.gather %[[X]][%{{.*}}] axis 0 {tile.exchange_mask = 255 : i32} : tensor<256xf32, #[[V]]>, tensor<256xi32, #[[V]]> -> tensor<256xf32, #[[V]]>
    %f = tile.gather %x[%back] axis 0 {tile.exchange_mask = 255 : i32} : tensor<256xf32>, tensor<256xi32> -> tensor<256xf32>
    %h = tile.arange 0, 32 : tensor<32xi32>
    // CHECK-NOT: convert_layout
    // CHECK: tile.gather %[[F]][%{{.*}}] axis 0 : tensor<256xf32, #[[V]]>, tensor<32xi32, #[[I:L[0-9]*]]> -> tensor<32xf32, #[[I]]>
    %g = tile.gather %f[%h] axis 0 : tensor<256xf32>, tensor<32xi32> -> tensor<32xf32>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<32x!tile.ptr<f32>>
    %to = tile.addptr %qs, %h : tensor<32x!tile.ptr<f32>>, tensor<32xi32>
    tile.store %to, %g : tensor<32x!tile.ptr<f32>>, tensor<32xf32>
    return
  }
}

// -----

// A sorting network has low bits in registers and high bits in warps, whatever the layout of the load and store around it, which
// conversions join with it. A tile too large for a conversion is sorted where the load put it.
// CHECK-DAG: #[[$SMALL:.*]] = #dgpu.layout<1024, reg = {i0 i1 i2}, lane = [i3 i4 i5 i6 i7], warp = [i8 i9]>
// CHECK-DAG: #[[$LARGE:.*]] = #dgpu.layout<32768, reg = {i0 i8 i9 i10 i11 i12 i13 i14}, lane = [i1 i2 i3 i4 i5], warp = [i6 i7]>
// CHECK-LABEL: func.func @networks
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @networks(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<i64> {tile.divisibility = 16 : i64}) attributes {tile.kernel} {
    %i = tile.arange 0, 1024 : tensor<1024xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %at = tile.addptr %ps, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // CHECK: tile.load
    // CHECK-NEXT: dgpu.convert_layout
    // CHECK-NEXT: tile.bitonic %{{.*}} stages 1 to 10 ascending : tensor<1024xf32, #[[$SMALL]]>
    // CHECK-NEXT: dgpu.convert_layout
    // CHECK-NEXT: tile.store
    %x = tile.load %at : tensor<1024x!tile.ptr<f32>> -> tensor<1024xf32>
    %s = tile.bitonic %x stages 1 to 10 ascending : tensor<1024xf32>
    tile.store %at, %s : tensor<1024x!tile.ptr<f32>>, tensor<1024xf32>
    %j = tile.arange 0, 32768 : tensor<32768xi32>
    %qs = tile.splat %q : !tile.ptr<i64> -> tensor<32768x!tile.ptr<i64>>
    %to = tile.addptr %qs, %j : tensor<32768x!tile.ptr<i64>>, tensor<32768xi32>
    // CHECK-NOT: convert_layout
    // CHECK: tile.bitonic %{{.*}} stages 1 to 15 descending : tensor<32768xi64, #[[$LARGE]]>
    // CHECK-NOT: convert_layout
    %y = tile.load %to : tensor<32768x!tile.ptr<i64>> -> tensor<32768xi64>
    %t = tile.bitonic %y stages 1 to 15 descending : tensor<32768xi64>
    tile.store %to, %t : tensor<32768x!tile.ptr<i64>>, tensor<32768xi64>
    return
  }
}
