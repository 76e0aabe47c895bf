// Loops without dots, of which the author says num_stages.
// RUN: ditron-opt %s --split-input-file --dgpu-assign-layouts --dgpu-remove-conversions --dgpu-pipeline-loops=limit-bytes=20480 --dgpu-verify-layouts | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-assign-layouts --dgpu-remove-conversions --dgpu-pipeline-loops=limit-bytes=20480 --remarks-filter=dgpu-pipeline-loops --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// A row of each turn, with a store to another argument; what the mask leaves out is `other`, where copies write zeros. Of four stages of 4 KB as many as fit.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32} {
  // CHECK-LABEL: func.func @rows
  // REMARK: remark: [Passed] pipeline {{.*}} Remark="pipelined: 4 slots of 4096 bytes, copies of 16 bytes"
  func.func @rows(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i64},
                  %n: i32 {tile.divisibility = 16 : i64}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: %[[LOWEST:.*]] = arith.constant dense<0xFF800000>
    %lowest = arith.constant dense<0xFF800000> : tensor<1024xf32>
    %range = tile.arange 0, 1024 : tensor<1024xi32>
    %ns = tile.splat %n : i32 -> tensor<1024xi32>
    %mask = arith.cmpi slt, %range, %ns : tensor<1024xi32>
    // CHECK: %[[RING:.*]] = dgpu.buffer_alloc : !dgpu.buffer<4 x 1024 x f32
    // CHECK-COUNT-3: dgpu.async_copy %{{.*}} to %[[RING]]
    // CHECK: scf.for
    scf.for %i = %c0 to %n step %c1 : i32 {
      // CHECK: dgpu.async_wait 2
      // CHECK: dgpu.async_copy %{{.*}} to %[[RING]]
      // CHECK: dgpu.async_commit
      // CHECK: %[[READ:.*]] = dgpu.buffer_load %[[RING]]
      // CHECK: %[[ROW:.*]] = arith.select %{{.*}}, %[[READ]], %[[LOWEST]]
      // CHECK: tile.store %{{.*}}, %[[ROW]]
      %start = arith.muli %i, %n : i32
      %xr = tile.addptr %x, %start : !tile.ptr<f32>, i32
      %xs = tile.splat %xr : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
      %xp = tile.addptr %xs, %range : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
      %row = tile.load %xp mask %mask other %lowest : tensor<1024x!tile.ptr<f32>> mask tensor<1024xi1> other tensor<1024xf32> -> tensor<1024xf32>
      %yr = tile.addptr %y, %start : !tile.ptr<f32>, i32
      %ys = tile.splat %yr : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
      %yp = tile.addptr %ys, %range : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
      tile.store %yp, %row mask %mask : tensor<1024x!tile.ptr<f32>>, tensor<1024xf32> mask tensor<1024xi1>
    } {tile.num_stages = 4 : i32}
    // CHECK: dgpu.async_wait 0
    return
  }
}

// -----

// In place: the next turn may load what this one stores.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @in_place
  // CHECK-NOT: dgpu.async_copy
  // REMARK: remark: [Missed] pipeline {{.*}} Remark="the load is not pipelined: the loop may write what it reads"
  func.func @in_place(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %range = tile.arange 0, 1024 : tensor<1024xi32>
    %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %range : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %next = tile.splat %n : i32 -> tensor<1024xi32>
    scf.for %i = %c0 to %n step %c1 iter_args(%p = %xp) -> (tensor<1024x!tile.ptr<f32>>) : i32 {
      %row = tile.load %p : tensor<1024x!tile.ptr<f32>> -> tensor<1024xf32>
      %q = tile.addptr %p, %next : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
      tile.store %q, %row : tensor<1024x!tile.ptr<f32>>, tensor<1024xf32>
      scf.yield %q : tensor<1024x!tile.ptr<f32>>
    } {tile.num_stages = 4 : i32}
    return
  }

  // Two turns of 16 KB are more than there is room for.
  // CHECK-LABEL: func.func @large
  // CHECK-NOT: dgpu.async_copy
  // REMARK: remark: [Missed] pipeline {{.*}} Remark="the loop is not pipelined: shared memory has no room for two turns of 16384 bytes"
  func.func @large(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<4096xf32>
    %range = tile.arange 0, 4096 : tensor<4096xi32>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<4096xf32>) : i32 {
      %start = arith.muli %i, %n : i32
      %xr = tile.addptr %x, %start : !tile.ptr<f32>, i32
      %xs = tile.splat %xr : !tile.ptr<f32> -> tensor<4096x!tile.ptr<f32>>
      %xp = tile.addptr %xs, %range : tensor<4096x!tile.ptr<f32>>, tensor<4096xi32>
      %row = tile.load %xp : tensor<4096x!tile.ptr<f32>> -> tensor<4096xf32>
      %t = arith.addf %s, %row : tensor<4096xf32>
      scf.yield %t : tensor<4096xf32>
    } {tile.num_stages = 3 : i32}
    %out = tile.splat %x : !tile.ptr<f32> -> tensor<4096x!tile.ptr<f32>>
    %op = tile.addptr %out, %range : tensor<4096x!tile.ptr<f32>>, tensor<4096xi32>
    tile.store %op, %sum : tensor<4096x!tile.ptr<f32>>, tensor<4096xf32>
    return
  }

  // Nobody has asked.
  // CHECK-LABEL: func.func @unasked
  // CHECK-NOT: dgpu.async_copy
  func.func @unasked(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<1024xf32>
    %range = tile.arange 0, 1024 : tensor<1024xi32>
    %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %range : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<1024xf32>) : i32 {
      %row = tile.load %xp : tensor<1024x!tile.ptr<f32>> -> tensor<1024xf32>
      %t = arith.addf %s, %row : tensor<1024xf32>
      scf.yield %t : tensor<1024xf32>
    }
    %out = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %op = tile.addptr %out, %range : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    tile.store %op, %sum : tensor<1024x!tile.ptr<f32>>, tensor<1024xf32>
    return
  }
}
