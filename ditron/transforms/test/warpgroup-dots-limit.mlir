// Operands for which shared memory has no room stay in registers.
// RUN: ditron-opt %s --dgpu-warpgroup-dots=limit-bytes=16384 | FileCheck %s

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 1 : i32, dgpu.wgmma} {
  // Two tiles of 8 KiB fit. Each loop has that room, since what is stored before one is dead behind it; the third tile of the last loop does not fit.
  // CHECK-LABEL: func.func @limit
  // CHECK-COUNT-4: dgpu.warpgroup_dot
  // CHECK: tile.dot
  // CHECK-NOT: dgpu.warpgroup_dot
  func.func @limit(%q: tensor<64x64xf16>, %v: tensor<64x64xf16>, %w: tensor<64x64xf16>, %pk: tensor<64x64x!tile.ptr<f16>>, %n: i32) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %k = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %k = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %m = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %e = arith.addf %m, %m : tensor<64x64xf16>
      %d = tile.dot %e, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %h = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    %t = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %x = arith.addf %h, %h : tensor<64x64xf16>
      %d = tile.dot %x, %v, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %f = tile.dot %x, %h, %d : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %g = tile.dot %x, %w, %f : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %g : tensor<64x64xf32>
    }
    return %r, %s, %t : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }

  // A tile that waits for a later loop takes room in the loop between, which needs all of it: so it is stored twice.
  // CHECK-LABEL: func.func @between
  // CHECK: dgpu.buffer_store %arg0
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: dgpu.buffer_store %arg0
  // CHECK: scf.for
  func.func @between(%q: tensor<64x64xf16>, %v: tensor<64x64xf16>, %pk: tensor<64x64x!tile.ptr<f16>>, %n: i32) -> tensor<64x64xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %k = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %r) -> tensor<64x64xf32> : i32 {
      %k = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %v, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %t = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %s) -> tensor<64x64xf32> : i32 {
      %k = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    return %t : tensor<64x64xf32>
  }
}
