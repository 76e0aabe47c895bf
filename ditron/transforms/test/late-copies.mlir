// Copies of later turns start in front of a turn's last wait.
// RUN: ditron-opt %s --dgpu-late-copies=limit-bytes=65536 --dgpu-verify-layouts | FileCheck %s
// Where shared memory has room for a second block, and its threads for registers, one computes while the other copies.
// RUN: ditron-opt %s --dgpu-late-copies | FileCheck %s --check-prefix=BLOCKS

#c = #dgpu.layout<128x32, reg = {j0 j3 j4 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5 i6]>
#a = #dgpu.shared<128x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5 i6]>
#b = #dgpu.shared<64x32, bits = 16, offset = [i0 i1 i2 i3 i4 i5 i3^j0 i4^j1 i5^j2 j3 j4]>
#p = #dgpu.layout<64x32, reg = {i0 i1 i2}, lane = [i3 i4 i5 j0 j1], warp = [j2 j3 j4]>
!tile = !dgpu.buffer<1 x 128x64 x f16, #a>
!ring = !dgpu.buffer<8 x 64x32 x f16, #b>
!at = tensor<64x32x!tile.ptr<f16>, #p>

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  // Two turns ahead: slot + 2, or slot - 6 of 8.
  // CHECK-LABEL: func.func @moves
  // CHECK: scf.for
  // CHECK: %[[S0:.*]] = dgpu.warpgroup_dot
  // CHECK-NEXT: %[[T0:.*]] = dgpu.warpgroup_dot
  // CHECK-NEXT: %[[S:.*]] = dgpu.warpgroup_wait 1, %[[S0]]
  // CHECK-NEXT: math.exp2 %[[S]]
  // CHECK-NEXT: dgpu.async_copy
  // CHECK-NEXT: dgpu.async_commit
  // CHECK-NEXT: dgpu.warpgroup_wait 0, %[[T0]]
  // BLOCKS-LABEL: func.func @moves
  // BLOCKS: dgpu.warpgroup_dot
  // BLOCKS-NEXT: dgpu.warpgroup_dot
  // BLOCKS-NEXT: dgpu.async_copy
  func.func @moves(%from: !at, %n: i32) -> tensor<128x32xf32, #c> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c6 = arith.constant 6 : i32
    %zero = arith.constant dense<0.0> : tensor<128x32xf32, #c>
    %a = dgpu.buffer_alloc : !tile
    %b = dgpu.buffer_alloc : !ring
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %slot = %c0) -> (tensor<128x32xf32, #c>, i32) : i32 {
      dgpu.async_wait 1
      dgpu.fence_async
      dgpu.barrier
      %less = arith.subi %slot, %c6 : i32
      %more = arith.addi %slot, %c2 : i32
      %begins = arith.cmpi slt, %slot, %c6 : i32
      %ahead = arith.select %begins, %more, %less : i32
      %s0 = dgpu.warpgroup_dot %a[%c0], %b[%slot], %zero : !tile, !ring -> tensor<128x32xf32, #c>
      %t0 = dgpu.warpgroup_dot %a[%c0], %b[%slot], %zero : !tile, !ring -> tensor<128x32xf32, #c>
      dgpu.async_copy %from to %b[%ahead] : !at, !ring
      dgpu.async_commit
      %s = dgpu.warpgroup_wait 1, %s0 : tensor<128x32xf32, #c>
      %e = math.exp2 %s : tensor<128x32xf32, #c>
      %t = dgpu.warpgroup_wait 0, %t0 : tensor<128x32xf32, #c>
      %u = arith.mulf %e, %t : tensor<128x32xf32, #c>
      %w = arith.addf %u, %sum : tensor<128x32xf32, #c>
      scf.yield %w, %ahead : tensor<128x32xf32, #c>, i32
    }
    dgpu.async_wait 0
    return %r#0 : tensor<128x32xf32, #c>
  }

  // The dot in between reads a slot that may be the one that is written: nothing but the barrier says that it has been read.
  // CHECK-LABEL: func.func @same_slot
  // CHECK: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.async_copy
  // CHECK-NEXT: dgpu.async_commit
  // CHECK-NEXT: dgpu.warpgroup_dot
  func.func @same_slot(%from: !at, %n: i32, %other: i32) -> tensor<128x32xf32, #c> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x32xf32, #c>
    %a = dgpu.buffer_alloc : !tile
    %b = dgpu.buffer_alloc : !ring
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x32xf32, #c>) : i32 {
      dgpu.async_wait 1
      dgpu.fence_async
      dgpu.barrier
      %ahead = arith.addi %i, %c1 : i32
      %s0 = dgpu.warpgroup_dot %a[%c0], %b[%i], %zero : !tile, !ring -> tensor<128x32xf32, #c>
      dgpu.async_copy %from to %b[%ahead] : !at, !ring
      dgpu.async_commit
      %t0 = dgpu.warpgroup_dot %a[%c0], %b[%other], %zero : !tile, !ring -> tensor<128x32xf32, #c>
      %s = dgpu.warpgroup_wait 1, %s0 : tensor<128x32xf32, #c>
      %e = math.exp2 %s : tensor<128x32xf32, #c>
      %t = dgpu.warpgroup_wait 0, %t0 : tensor<128x32xf32, #c>
      %u = arith.mulf %e, %t : tensor<128x32xf32, #c>
      scf.yield %u : tensor<128x32xf32, #c>
    }
    dgpu.async_wait 0
    return %r : tensor<128x32xf32, #c>
  }

  // The next turn waits for what this one copies: the sooner it starts the better.
  // CHECK-LABEL: func.func @needed_at_once
  // CHECK: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.async_copy
  func.func @needed_at_once(%from: !at, %n: i32) -> tensor<128x32xf32, #c> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x32xf32, #c>
    %a = dgpu.buffer_alloc : !tile
    %b = dgpu.buffer_alloc : !ring
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x32xf32, #c>) : i32 {
      dgpu.async_wait 0
      dgpu.fence_async
      dgpu.barrier
      %ahead = arith.addi %i, %c1 : i32
      %s0 = dgpu.warpgroup_dot %a[%c0], %b[%i], %zero : !tile, !ring -> tensor<128x32xf32, #c>
      %t0 = dgpu.warpgroup_dot %a[%c0], %b[%i], %zero : !tile, !ring -> tensor<128x32xf32, #c>
      dgpu.async_copy %from to %b[%ahead] : !at, !ring
      dgpu.async_commit
      %s = dgpu.warpgroup_wait 1, %s0 : tensor<128x32xf32, #c>
      %e = math.exp2 %s : tensor<128x32xf32, #c>
      %t = dgpu.warpgroup_wait 0, %t0 : tensor<128x32xf32, #c>
      %u = arith.mulf %e, %t : tensor<128x32xf32, #c>
      scf.yield %u : tensor<128x32xf32, #c>
    }
    dgpu.async_wait 0
    return %r : tensor<128x32xf32, #c>
  }
}
