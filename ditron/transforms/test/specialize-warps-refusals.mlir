// Loads that no producer can take over stay as they are; who asked for specialisation is told why.
// RUN: ditron-opt %s --dgpu-specialize-warps --verify-diagnostics --split-input-file | FileCheck %s
// CHECK-NOT: dgpu.warp_specialize

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @strides(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i64, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%stride, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    // expected-warning @below {{the loop is not warp-specialised}}
    %acc = scf.for %k = %i0 to %i8 step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      // expected-note @below {{no producer warp loads this tile: its rows are not known to begin at multiples of 16 bytes}}
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } {tile.warp_specialize}
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// The kernel writes what it reads.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @in_place(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    // expected-warning @below {{the loop is not warp-specialised}}
    scf.for %k = %i0 to %i8 step %i1 : i32 {
      // expected-note @below {{no producer warp loads this tile: 'tile.descriptor_store' may write what it reads}}
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
      tile.descriptor_store %da[%k, %i0], %h : !tile.desc<64x64xf16>, tensor<64x64xf16>
    } {tile.warp_specialize}
    return
  }
}

// -----

// What a loop waits for may not be read ahead of it. A barrier tells nothing of other blocks.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @polling(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %flag: !tile.ptr<i32>, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    scf.while : () -> () {
      %seen = dist.ld acquire gpu %flag : !tile.ptr<i32> -> i32
      %again = arith.cmpi eq, %seen, %i0 : i32
      scf.condition(%again)
    } do {
      scf.yield
    }
    dist.sync_threads
    // expected-warning @below {{the loop is not warp-specialised}}
    %acc = scf.for %k = %i0 to %i8 step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      // expected-note @below {{no producer warp loads this tile: a loop before it may wait for what it reads (dl.wait and consume_token would say so)}}
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } {tile.warp_specialize}
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// Warpgroups multiply no doubles.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @types(%a: !tile.ptr<f64> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f64>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf64>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f64>, i32, i32 -> !tile.desc<64x64xf64>
    // expected-warning @below {{the loop is not warp-specialised}}
    %acc = scf.for %k = %i0 to %i8 step %i1 iter_args(%sum = %zero) -> tensor<64x64xf64> : i32 {
      // expected-note @below {{tl.dot: no instruction multiplies f64 into f64}}
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf64> -> tensor<64x64xf64>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf64>, tensor<64x64xf64> -> tensor<64x64xf64>
      scf.yield %d : tensor<64x64xf64>
    } {tile.warp_specialize}
    %p = tile.splat %out : !tile.ptr<f64> -> tensor<64x64x!tile.ptr<f64>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f64>>, tensor<64x64xf64>
    return
  }
}

// -----

// Bulk copies of the kernel's own write what it reads.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @copies_in_place(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %stage = dist.shared_alloc 1024 align 128 : !tile.ptr<f16>
    %word = dist.shared_alloc 8 align 16 : !tile.ptr<i32>
    dist.st relaxed gpu %word, %i1 : !tile.ptr<i32>, i32
    dist.intrinsic "bulk_store"(%a, %stage, %size) : (!tile.ptr<f16>, !tile.ptr<f16>, i32) -> ()
    dist.intrinsic "bulk_commit_group"() : () -> ()
    dist.intrinsic "bulk_wait_group"() {pending = 0 : i32, read = false} : () -> ()
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    // expected-warning @below {{the loop is not warp-specialised}}
    %acc = scf.for %k = %i0 to %i8 step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      // expected-note @below {{no producer warp loads this tile: 'dist.intrinsic' may write what it reads}}
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } {tile.warp_specialize}
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}
