// Sums of a loop that take more registers than four warps have make a block of eight.
// RUN: ditron-opt %s --split-input-file --dgpu-widen-blocks | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-widen-blocks --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: sed 's/, dgpu.wgmma//' %s | ditron-opt --split-input-file --dgpu-widen-blocks | FileCheck %s --check-prefix=OTHER

// REMARK-COUNT-1: 8 warps instead of 4: the loop's sums would take 272 registers of each thread
// REMARK-NOT: 8 warps
// OTHER-NOT: dgpu.num_warps = 8

// Two sums of 128 registers, and one of 16 beside them.
// CHECK: dgpu.num_warps = 8
// CHECK: func.func @wide
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  func.func @wide(%a: tensor<128x16xf16>, %b: tensor<16x128xf16>, %e: tensor<128x128xf16>, %f: tensor<128x16xf16>, %n: i32) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %none = arith.constant dense<0.0> : tensor<128x16xf32>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %zero) -> (tensor<128x128xf32>, tensor<128x128xf32>) : i32 {
      %s = tile.dot %e, %f, %none : tensor<128x128xf16>, tensor<128x16xf16> -> tensor<128x16xf32>
      %h = arith.truncf %s : tensor<128x16xf32> to tensor<128x16xf16>
      %u = tile.dot %h, %b, %x : tensor<128x16xf16>, tensor<16x128xf16> -> tensor<128x128xf32>
      %v = tile.dot %a, %b, %y : tensor<128x16xf16>, tensor<16x128xf16> -> tensor<128x128xf32>
      scf.yield %u, %v : tensor<128x128xf32>, tensor<128x128xf32>
    }
    return %r#0, %r#1 : tensor<128x128xf32>, tensor<128x128xf32>
  }
}

// -----

// One sum of 128 registers.
// CHECK: dgpu.num_warps = 4
// CHECK: func.func @narrow
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  func.func @narrow(%a: tensor<128x16xf16>, %b: tensor<16x128xf16>, %n: i32) -> tensor<128x128xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero) -> tensor<128x128xf32> : i32 {
      %u = tile.dot %a, %b, %x : tensor<128x16xf16>, tensor<16x128xf16> -> tensor<128x128xf32>
      scf.yield %u : tensor<128x128xf32>
    }
    return %r : tensor<128x128xf32>
  }
}

// -----

// Two warpgroups need 128 rows.
// CHECK: dgpu.num_warps = 4
// CHECK: func.func @flat
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  func.func @flat(%a: tensor<64x16xf16>, %b: tensor<16x256xf16>, %n: i32) -> (tensor<64x256xf32>, tensor<64x256xf32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x256xf32>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %zero) -> (tensor<64x256xf32>, tensor<64x256xf32>) : i32 {
      %u = tile.dot %a, %b, %x : tensor<64x16xf16>, tensor<16x256xf16> -> tensor<64x256xf32>
      %v = tile.dot %a, %b, %y : tensor<64x16xf16>, tensor<16x256xf16> -> tensor<64x256xf32>
      scf.yield %u, %v : tensor<64x256xf32>, tensor<64x256xf32>
    }
    return %r#0, %r#1 : tensor<64x256xf32>, tensor<64x256xf32>
  }
}

// -----

// The kernel sees its threads.
// CHECK: dgpu.num_warps = 4
// CHECK: func.func @threads
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  func.func @threads(%a: tensor<128x16xf16>, %b: tensor<16x256xf16>, %n: i32) -> tensor<128x256xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    dist.sync_threads
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero) -> tensor<128x256xf32> : i32 {
      %u = tile.dot %a, %b, %x : tensor<128x16xf16>, tensor<16x256xf16> -> tensor<128x256xf32>
      scf.yield %u : tensor<128x256xf32>
    }
    return %r : tensor<128x256xf32>
  }
}
