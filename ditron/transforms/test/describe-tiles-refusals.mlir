// Loads through pointers that stay what they are, and why.
// RUN: ditron-opt %s --split-input-file --dgpu-describe-tiles | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-describe-tiles --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// With a mask that is no end of an index.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: its mask says more than where an index ends
// CHECK-LABEL: func.func @masked
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @masked(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %mask0: i1, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %mask = tile.splat %mask0 : i1 -> tensor<64x64xi1>
    %step = arith.muli %stride, %i64 : i32
    %by = tile.splat %step : i32 -> tensor<64x64xi32>
    %acc, %end = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %at = %tile) -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %t = tile.load %at mask %mask : tensor<64x64x!tile.ptr<f16>> mask tensor<64x64xi1> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// Nobody knows where it begins.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: it is not known to begin at a multiple of 16 bytes
// CHECK-LABEL: func.func @unaligned
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @unaligned(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %first: i32, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %start = tile.addptr %a, %first : !tile.ptr<f16>, i32
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %start : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %step = arith.muli %stride, %i64 : i32
    %by = tile.splat %step : i32 -> tensor<64x64xi32>
    %acc, %end = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %at = %tile) -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// The argument may lie anywhere.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: the argument it begins at is not known to be divisible by 16
// CHECK-LABEL: func.func @unaligned_base
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @unaligned_base(%a: !tile.ptr<f16>, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %step = arith.muli %stride, %i64 : i32
    %by = tile.splat %step : i32 -> tensor<64x64xi32>
    %acc, %end = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %at = %tile) -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// Rows may lie anywhere.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: its stride is not known to be a multiple of 16 bytes
// CHECK-LABEL: func.func @unaligned_rows
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @unaligned_rows(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %acc = scf.for %k = %i0 to %turns step %i64 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %k0 = tile.splat %k : i32 -> tensor<64x64xi32>
      %at = tile.addptr %tile, %k0 : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// A difference of arguments.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: it may begin in front of the argument
// CHECK-LABEL: func.func @in_front
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @in_front(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %first: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %before = arith.subi %stride, %first : i32
    %start = tile.addptr %a, %before : !tile.ptr<f16>, i32
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %start : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %step = arith.muli %stride, %i64 : i32
    %by = tile.splat %step : i32 -> tensor<64x64xi32>
    %acc, %end = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %at = %tile) -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// A loop that goes backward.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: it may begin in front of the argument
// CHECK-LABEL: func.func @backward
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @backward(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %back = arith.constant -64 : i32
    %step = arith.muli %stride, %back : i32
    %by = tile.splat %step : i32 -> tensor<64x64xi32>
    %acc, %end = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %at = %tile) -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// What the kernel itself writes.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: 'tile.store' may write what it reads
// CHECK-LABEL: func.func @written
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @written(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %step = arith.muli %stride, %i64 : i32
    %by = tile.splat %step : i32 -> tensor<64x64xi32>
    %acc, %end = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %at = %tile) -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>
    }
    %half = arith.truncf %acc : tensor<64x64xf32> to tensor<64x64xf16>
    tile.store %tile, %half : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xf16>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// A tensor map cannot have the stride: it is computed.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: its stride is neither a number nor an argument of the kernel
// CHECK-LABEL: func.func @computed_stride
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @computed_stride(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %size: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride = arith.addi %size, %i64 : i32
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %step = arith.muli %stride, %i64 : i32
    %by = tile.splat %step : i32 -> tensor<64x64xi32>
    %acc, %end = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %at = %tile) -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// Nothing lies together.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: neither its rows nor its columns are contiguous
// CHECK-LABEL: func.func @strided
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @strided(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %row0 = tile.splat %stride : i32 -> tensor<1x64xi32>
    %apart = arith.muli %row, %row0 : tensor<1x64xi32>
    %near = tile.broadcast %apart : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %step = arith.muli %stride, %i64 : i32
    %by = tile.splat %step : i32 -> tensor<64x64xi32>
    %acc, %end = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %at = %tile) -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// A producer pays for loops.
// REMARK: [Missed] describe | Category:dgpu-describe-tiles{{.*}}the tile comes through pointers: no producer would fetch it: no tile of a loop would be fetched
// CHECK-LABEL: func.func @no_loop
// CHECK-NOT: tile.descriptor_load
// CHECK: tile.load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @no_loop(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %t = tile.load %tile : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
    %acc = tile.dot %t, %t, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// A dot takes both operands from rings, or none: the tile that could be described stays with the other one.
// REMARK: the tile comes through pointers: its mask says more than where an index ends
// REMARK: the tile comes through pointers: no producer would fetch it: tl.dot: another operand is not fetched
// CHECK-LABEL: func.func @beside_masked
// CHECK-NOT: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @beside_masked(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %mask0: i1, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %far = arith.muli %column, %stride0 : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %step = arith.muli %stride, %i64 : i32
    %by = tile.splat %step : i32 -> tensor<64x64xi32>
    %mask = tile.splat %mask0 : i1 -> tensor<64x64xi1>
    %acc, %end = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %at = %tile) -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %u = tile.load %at mask %mask : tensor<64x64x!tile.ptr<f16>> mask tensor<64x64xi1> -> tensor<64x64xf16>
      %d = tile.dot %t, %u, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}
