// Dots of few columns take an A that their loop does not change from registers, to which it is read in front of the loop.
// RUN: ditron-opt %s --split-input-file --dgpu-load-operands --dgpu-verify-layouts | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-load-operands --remarks-filter=dgpu-load-operands --remark-format=emitRemark -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: ditron-opt %s --split-input-file --dgpu-load-operands=most-registers=60 | FileCheck %s --check-prefix=FEW

#c32 = #dgpu.layout<128x32, reg = {j0 j3 j4 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5 i6]>
#c64 = #dgpu.layout<128x64, reg = {j0 j3 j4 j5 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5 i6]>
#a = #dgpu.shared<128x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5 i6]>
#b32 = #dgpu.shared<64x32, bits = 16, offset = [i0 i1 i2 i3 i4 i5 i3^j0 i4^j1 i5^j2 j3 j4]>
#b64 = #dgpu.shared<64x64, bits = 16, offset = [i0 i1 i2 i3 i4 i5 i3^j0 i4^j1 i5^j2 j3 j4 j5]>
#rows = #dgpu.layout<128x64, reg = {j0 j1 j2 i5 i6}, lane = [j3 j4 j5 i0 i1], warp = [i2 i3 i4]>

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  // Both dots read one tile; it takes 16 registers of each thread beside their sums, twice 16, and a tile from before the loop, 16 more.
  // CHECK-LABEL: func.func @few_columns
  // CHECK: %[[BUFFER:.*]] = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64
  // CHECK: %[[A:.*]] = dgpu.buffer_load %[[BUFFER]][%{{.*}}] {{.*}} -> tensor<128x64xf16, #[[LAYOUT:.*]]>
  // CHECK-NEXT: scf.for
  // CHECK: dgpu.warpgroup_dot %[[A]], %{{.*}}[%{{.*}}], %{{.*}} : tensor<128x64xf16, #[[LAYOUT]]>
  // CHECK-NEXT: dgpu.warpgroup_dot %[[A]], %{{.*}}[%{{.*}}], %{{.*}} : tensor<128x64xf16, #[[LAYOUT]]>
  // REMARK: remark: [Passed] operand {{.*}} Remark="A is in 16 registers of each thread, beside 48"
  // REMARK: remark: [Passed] operand {{.*}} Remark="A is in 16 registers of each thread, beside 64"
  // FEW-LABEL: func.func @few_columns
  // FEW-NOT: dgpu.buffer_load
  // FEW: return
  func.func @few_columns(%n: i32, %more: tensor<128x32xf32, #c32>) -> tensor<128x32xf32, #c32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x32xf32, #c32>
    %a = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #a>
    %b = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x32 x f16, #b32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x32xf32, #c32>) : i32 {
      %s0 = dgpu.warpgroup_dot %a[%c0], %b[%c0], %zero : !dgpu.buffer<1 x 128x64 x f16, #a>, !dgpu.buffer<2 x 64x32 x f16, #b32> -> tensor<128x32xf32, #c32>
      %t0 = dgpu.warpgroup_dot %a[%c0], %b[%c1], %zero : !dgpu.buffer<1 x 128x64 x f16, #a>, !dgpu.buffer<2 x 64x32 x f16, #b32> -> tensor<128x32xf32, #c32>
      %s = dgpu.warpgroup_wait 1, %s0 : tensor<128x32xf32, #c32>
      %t = dgpu.warpgroup_wait 0, %t0 : tensor<128x32xf32, #c32>
      %u = arith.mulf %s, %t : tensor<128x32xf32, #c32>
      %v = arith.addf %u, %more : tensor<128x32xf32, #c32>
      %w = arith.addf %v, %sum : tensor<128x32xf32, #c32>
      scf.yield %w : tensor<128x32xf32, #c32>
    }
    return %r : tensor<128x32xf32, #c32>
  }

  // 64 columns: reading both operands takes as long as multiplying them.
  // CHECK-LABEL: func.func @enough_columns
  // CHECK-NOT: dgpu.buffer_load
  // CHECK: return
  func.func @enough_columns(%n: i32) -> tensor<128x64xf32, #c64> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #c64>
    %a = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #a>
    %b = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #b64>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x64xf32, #c64>) : i32 {
      %s0 = dgpu.warpgroup_dot %a[%c0], %b[%c0], %zero : !dgpu.buffer<1 x 128x64 x f16, #a>, !dgpu.buffer<2 x 64x64 x f16, #b64> -> tensor<128x64xf32, #c64>
      %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x64xf32, #c64>
      %w = arith.maximumf %s, %sum : tensor<128x64xf32, #c64>
      scf.yield %w : tensor<128x64xf32, #c64>
    }
    return %r : tensor<128x64xf32, #c64>
  }

  // CHECK-LABEL: func.func @stored_in_the_loop
  // CHECK-NOT: dgpu.buffer_load
  // CHECK: return
  // REMARK: remark: [Missed] operand {{.*}} Remark="A is read from shared memory for each multiply: another tile in each turn"
  func.func @stored_in_the_loop(%n: i32, %tile: tensor<128x64xf16, #rows>) -> tensor<128x32xf32, #c32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x32xf32, #c32>
    %a = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #a>
    %b = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x32 x f16, #b32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x32xf32, #c32>) : i32 {
      dgpu.buffer_store %tile, %a[%c0] : tensor<128x64xf16, #rows>, !dgpu.buffer<1 x 128x64 x f16, #a>
      %s0 = dgpu.warpgroup_dot %a[%c0], %b[%c0], %zero : !dgpu.buffer<1 x 128x64 x f16, #a>, !dgpu.buffer<2 x 64x32 x f16, #b32> -> tensor<128x32xf32, #c32>
      %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x32xf32, #c32>
      %w = arith.maximumf %s, %sum : tensor<128x32xf32, #c32>
      scf.yield %w : tensor<128x32xf32, #c32>
    }
    return %r : tensor<128x32xf32, #c32>
  }

  // A dot that runs into the next turn would read the registers behind the loop.
  // CHECK-LABEL: func.func @in_flight
  // CHECK-NOT: dgpu.buffer_load
  // CHECK: return
  // REMARK: remark: [Missed] operand {{.*}} Remark="A is read from shared memory for each multiply: the dot runs into the next turn"
  func.func @in_flight(%n: i32) -> tensor<128x32xf32, #c32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x32xf32, #c32>
    %a = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #a>
    %b = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x32 x f16, #b32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x32xf32, #c32>) : i32 {
      %s0 = dgpu.warpgroup_dot %a[%c0], %b[%c0], %sum : !dgpu.buffer<1 x 128x64 x f16, #a>, !dgpu.buffer<2 x 64x32 x f16, #b32> -> tensor<128x32xf32, #c32>
      scf.yield %s0 : tensor<128x32xf32, #c32>
    }
    %w = dgpu.warpgroup_wait 0, %r : tensor<128x32xf32, #c32>
    return %w : tensor<128x32xf32, #c32>
  }
}

// -----

#c = #dgpu.layout<64x32, reg = {j0 j3 j4 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#a = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
#b = #dgpu.shared<64x32, bits = 16, offset = [i0 i1 i2 i3 i4 i5 i3^j0 i4^j1 i5^j2 j3 j4]>

// Blocks of 128 threads that take few registers reside many at a time; with more of them there would be fewer.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  // CHECK-LABEL: func.func @many_blocks
  // CHECK-NOT: dgpu.buffer_load
  // CHECK: return
  // REMARK: remark: [Missed] operand {{.*}} Remark="A is read from shared memory for each multiply: it would take 16 registers of each thread beside 16"
  func.func @many_blocks(%n: i32) -> tensor<64x32xf32, #c> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #c>
    %a = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x f16, #a>
    %b = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x32 x f16, #b>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x32xf32, #c>) : i32 {
      %s0 = dgpu.warpgroup_dot %a[%c0], %b[%c0], %zero : !dgpu.buffer<1 x 64x64 x f16, #a>, !dgpu.buffer<2 x 64x32 x f16, #b> -> tensor<64x32xf32, #c>
      %s = dgpu.warpgroup_wait 0, %s0 : tensor<64x32xf32, #c>
      %w = arith.maximumf %s, %sum : tensor<64x32xf32, #c>
      scf.yield %w : tensor<64x32xf32, #c>
    }
    return %r : tensor<64x32xf32, #c>
  }
}
