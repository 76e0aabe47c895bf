// Tiles of dots that come through pointers are described where that is the same, and a producer then fetches them.
// RUN: ditron-opt %s --split-input-file --dgpu-describe-tiles | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-describe-tiles --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: ditron-opt %s --split-input-file --dgpu-describe-tiles='limit-bytes=30000' --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=NARROW

// A pointer that the loop moves: the loop carries the place in units of 8 elements, and no pointers any more.
// REMARK: remark: [Passed] describe | Category:dgpu-describe-tiles | Remark="the tile is described, for a producer to fetch"
// NARROW: remark: [Missed] describe | {{.*}}no producer would fetch it: rings of two slots do not fit shared memory
// CHECK-LABEL: func.func @moved
// CHECK-SAME: %[[A:[a-z0-9]+]]: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %[[STRIDE:[a-z0-9]+]]: i32
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 2147483647 : i32
// CHECK-DAG: %[[LOW:.*]] = arith.constant 1048576 : i32
// CHECK-DAG: %[[FAR:.*]] = arith.constant 8388608 : i64
// CHECK-DAG: %[[NEAR:.*]] = arith.constant 8 : i64
// CHECK-DAG: %[[WIDE:.*]] = arith.extsi %[[STRIDE]] : i32 to i64
// CHECK: %[[DESC:.*]] = tile.make_descriptor %[[A]], [%[[HIGH]], %[[LOW]], %{{.*}}, %{{.*}}], [%[[FAR]], %[[NEAR]], %[[WIDE]], %{{.*}}] : {{.*}} -> !tile.desc<1x1x64x64xf16>
// CHECK: %[[PID:.*]] = tile.program_id 0
// CHECK: %[[BEGIN:.*]] = arith.shrui
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9_]+}}, %[[U:[a-z0-9]+]] = %[[BEGIN]]) -> (tensor<64x64xf32>, i64)
// CHECK-DAG: %[[H:.*]] = arith.shrui %[[U]]
// CHECK-DAG: %[[H32:.*]] = arith.trunci %[[H]]
// CHECK-DAG: %[[L:.*]] = arith.andi %[[U]]
// CHECK-DAG: %[[L32:.*]] = arith.trunci %[[L]]
// CHECK: %[[T:.*]] = tile.descriptor_load %[[DESC]][%[[H32]], %[[L32]], %{{.*}}, %{{.*}}] : !tile.desc<1x1x64x64xf16> -> tensor<1x1x64x64xf16>
// CHECK-NEXT: %[[M:.*]] = tile.reshape %[[T]] : tensor<1x1x64x64xf16> -> tensor<64x64xf16>
// CHECK: tile.dot %[[M]], %[[M]]
// CHECK-NOT: tile.addptr
// CHECK: %[[NEXT:.*]] = arith.addi %[[U]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]] : tensor<64x64xf32>, i64
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @moved(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %pid = tile.program_id 0
    %first = arith.muli %pid, %stride : i32
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

// An address from the counter of the loop.
// REMARK: the tile is described, for a producer to fetch
// CHECK-LABEL: func.func @counted
// CHECK: tile.make_descriptor
// CHECK-DAG: %[[BEGIN:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[STEP:.*]] = arith.constant 8 : i64
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[U:.*]] = %[[BEGIN]]) -> (tensor<64x64xf32>, i64)
// CHECK: tile.descriptor_load
// CHECK: arith.addi %[[U]], %[[STEP]]
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @counted(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
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

// Columns that lie together: described as they lie.
// REMARK: the tile is described as it lies, transposed, for a producer to fetch
// CHECK-LABEL: func.func @transposed
// CHECK: %[[T:.*]] = tile.descriptor_load
// CHECK: %[[M:.*]] = tile.reshape %[[T]]
// CHECK: %[[TT:.*]] = tile.trans %[[M]] [1, 0]
// CHECK: tile.dot %[[TT]], %[[TT]]
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @transposed(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<1x64xi32>
    %far = arith.muli %row, %stride0 : tensor<1x64xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<1x64x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<1x64x!tile.ptr<f16>>, tensor<1x64xi32>
    %q2 = tile.broadcast %q1 : tensor<1x64x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
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

// A row beside a tile: described with one dimension less, and read as a matrix of one row.
// REMARK: the tile is described, for a producer to fetch
// REMARK: the row is described, and comes with the tiles of its block
// CHECK-LABEL: func.func @row
// CHECK: tile.make_descriptor {{.*}} -> !tile.desc<1x1x64xf32>
// CHECK: scf.for
// CHECK: tile.descriptor_load {{.*}} : !tile.desc<1x1x64x64xf16>
// CHECK: %[[R:.*]] = tile.descriptor_load %{{.*}}[%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] : !tile.desc<1x1x64xf32> -> tensor<1x1x64xf32>
// CHECK-NEXT: %[[M:.*]] = tile.reshape %[[R]] : tensor<1x1x64xf32> -> tensor<1x64xf32>
// CHECK-NEXT: tile.broadcast %[[M]]
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @row(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %f: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
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
    %f0 = tile.splat %f : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %f1 = tile.addptr %f0, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %acc = scf.for %k = %i0 to %turns step %i64 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %k0 = tile.splat %k : i32 -> tensor<64x64xi32>
      %at = tile.addptr %tile, %k0 : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      %t = tile.load %at : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %k1 = tile.splat %k : i32 -> tensor<64xi32>
      %f2 = tile.addptr %f1, %k1 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %r = tile.load %f2 : tensor<64x!tile.ptr<f32>> -> tensor<64xf32>
      %e = tile.expand_dims %r axis 0 : tensor<64xf32> -> tensor<1x64xf32>
      %b = tile.broadcast %e : tensor<1x64xf32> -> tensor<64x64xf32>
      %m = arith.mulf %d, %b : tensor<64x64xf32>
      %s = arith.addf %sum, %m : tensor<64x64xf32>
      scf.yield %s : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// What is left of a division is not negative, though it is written as a difference.
// REMARK: the tile is described, for a producer to fetch
// CHECK-LABEL: func.func @remainder
// CHECK: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @remainder(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %turns: i32, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %pid = tile.program_id 0
    %c48 = arith.constant 48 : i32
    %quotient = arith.divsi %pid, %c48 : i32
    %whole = arith.muli %quotient, %c48 : i32
    %rest = arith.subi %pid, %whole : i32
    %first = arith.muli %rest, %stride : i32
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
