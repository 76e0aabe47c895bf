// Operands that take many registers of each thread through a loop are read from shared memory there.
// RUN: ditron-opt %s --split-input-file --dgpu-assign-layouts --dgpu-remove-conversions --dgpu-keep-operands --canonicalize --dgpu-verify-layouts | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-assign-layouts --dgpu-remove-conversions --dgpu-keep-operands=limit-bytes=65532 | FileCheck %s --check-prefix=SMALL

// 16 rows of 512 are 128 registers of each thread, as all warps have all of them; where they would be more than a quarter of shared memory they stay.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 2 : i32} {
  // CHECK-LABEL: func.func @deep
  // SMALL-LABEL: func.func @deep
  // SMALL-NOT: dgpu.buffer_store
  func.func @deep(%q: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %k: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
                  %out: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %r512 = tile.arange 0, 512 : tensor<512xi32>
    %columns = tile.expand_dims %r512 axis 0 : tensor<512xi32> -> tensor<1x512xi32>
    %r16 = tile.arange 0, 16 : tensor<16xi32>
    %rows = tile.expand_dims %r16 axis 1 : tensor<16xi32> -> tensor<16x1xi32>
    %c512 = arith.constant dense<512> : tensor<16x1xi32>
    %rowsq = arith.muli %rows, %c512 : tensor<16x1xi32>
    %rq = tile.broadcast %rowsq : tensor<16x1xi32> -> tensor<16x512xi32>
    %cq = tile.broadcast %columns : tensor<1x512xi32> -> tensor<16x512xi32>
    %oq = arith.addi %rq, %cq : tensor<16x512xi32>
    %qs = tile.splat %q : !tile.ptr<bf16> -> tensor<16x512x!tile.ptr<bf16>>
    %qp = tile.addptr %qs, %oq : tensor<16x512x!tile.ptr<bf16>>, tensor<16x512xi32>
    // CHECK: %[[Q:.*]] = tile.load
    %qv = tile.load %qp : tensor<16x512x!tile.ptr<bf16>> -> tensor<16x512xbf16>
    %r32 = tile.arange 0, 32 : tensor<32xi32>
    %keys = tile.expand_dims %r32 axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %depths = tile.expand_dims %r512 axis 1 : tensor<512xi32> -> tensor<512x1xi32>
    %k512 = arith.constant dense<512> : tensor<1x32xi32>
    %keyo = arith.muli %keys, %k512 : tensor<1x32xi32>
    %rk = tile.broadcast %keyo : tensor<1x32xi32> -> tensor<512x32xi32>
    %ck = tile.broadcast %depths : tensor<512x1xi32> -> tensor<512x32xi32>
    %ok = arith.addi %rk, %ck : tensor<512x32xi32>
    %ks = tile.splat %k : !tile.ptr<bf16> -> tensor<512x32x!tile.ptr<bf16>>
    %kp = tile.addptr %ks, %ok : tensor<512x32x!tile.ptr<bf16>>, tensor<512x32xi32>
    // CHECK: %[[BUFFER:.*]] = dgpu.buffer_alloc : !dgpu.buffer<1 x 16x512 x bf16
    // CHECK: dgpu.buffer_store %[[Q]]
    // CHECK-SAME: %[[BUFFER]]
    // CHECK: scf.for
    // CHECK: %[[A:.*]] = dgpu.buffer_load %[[BUFFER]]
    // CHECK: tile.dot %[[A]]
    // CHECK: tile.store
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %kv = tile.load %kp : tensor<512x32x!tile.ptr<bf16>> -> tensor<512x32xbf16>
      %d = tile.dot %qv, %kv, %acc : tensor<16x512xbf16>, tensor<512x32xbf16> -> tensor<16x32xf32>
      scf.yield %d : tensor<16x32xf32>
    }
    %ro = tile.broadcast %rows : tensor<16x1xi32> -> tensor<16x32xi32>
    %os = tile.splat %out : !tile.ptr<f32> -> tensor<16x32x!tile.ptr<f32>>
    %op = tile.addptr %os, %ro : tensor<16x32x!tile.ptr<f32>>, tensor<16x32xi32>
    tile.store %op, %r : tensor<16x32x!tile.ptr<f32>>, tensor<16x32xf32>
    return
  }
}

// -----

// 128 columns are 32 registers.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 2 : i32} {
  // CHECK-LABEL: func.func @shallow
  // CHECK-NOT: dgpu.buffer_store
  func.func @shallow(%q: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %k: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
                     %out: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %qs = tile.splat %q : !tile.ptr<bf16> -> tensor<16x128x!tile.ptr<bf16>>
    %qv = tile.load %qs : tensor<16x128x!tile.ptr<bf16>> -> tensor<16x128xbf16>
    %ks = tile.splat %k : !tile.ptr<bf16> -> tensor<128x32x!tile.ptr<bf16>>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %kv = tile.load %ks : tensor<128x32x!tile.ptr<bf16>> -> tensor<128x32xbf16>
      %d = tile.dot %qv, %kv, %acc : tensor<16x128xbf16>, tensor<128x32xbf16> -> tensor<16x32xf32>
      scf.yield %d : tensor<16x32xf32>
    }
    %os = tile.splat %out : !tile.ptr<f32> -> tensor<16x32x!tile.ptr<f32>>
    tile.store %os, %r : tensor<16x32x!tile.ptr<f32>>, tensor<16x32xf32>
    return
  }
}
