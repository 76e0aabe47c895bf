// Dots whose operands are loaded beside them, or known before their loop, become warpgroup dots.
// RUN: ditron-opt %s --dgpu-warpgroup-dots --canonicalize | FileCheck %s

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  // The buffers follow the contiguous dimension of the pointers; here unknown, so rows.
  // CHECK-LABEL: func.func @loads
  // CHECK: %[[A:.*]] = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x f16
  // CHECK-NEXT: %[[B:.*]] = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x f16
  // CHECK-NEXT: %[[BT:.*]] = dgpu.buffer_permute %[[B]] [1, 0]
  // CHECK: scf.for
  // CHECK: %[[TA:.*]] = tile.load
  // CHECK: %[[TB:.*]] = tile.load
  // CHECK: dgpu.buffer_store %[[TA]], %[[A]][
  // CHECK-NEXT: dgpu.fence_async
  // CHECK-NEXT: dgpu.buffer_store %[[TB]], %[[B]][
  // CHECK-NEXT: dgpu.fence_async
  // CHECK-NEXT: %[[D:.*]] = dgpu.warpgroup_dot %[[A]][%{{.*}}], %[[BT]][%{{.*}}], %{{.*}}
  // CHECK-NEXT: %[[W:.*]] = dgpu.warpgroup_wait 0, %[[D]]
  // CHECK-NEXT: scf.yield %[[W]]
  func.func @loads(%pa: tensor<64x64x!tile.ptr<f16>>, %pb: tensor<64x64x!tile.ptr<f16>>, %n: i32) -> tensor<64x64xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %a = tile.load %pa : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %b = tile.load %pb : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %t = tile.trans %b [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %a, %t, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    return %r : tensor<64x64xf32>
  }

  // What is known before the loop is stored once. What another dot computed is read from registers.
  // CHECK-LABEL: func.func @chain
  // CHECK: dgpu.buffer_store %arg0
  // CHECK-NEXT: dgpu.fence_async
  // CHECK: scf.for
  // CHECK-COUNT-1: dgpu.buffer_store
  // CHECK: dgpu.warpgroup_dot %{{.*}}[%{{.*}}], %{{.*}}[%{{.*}}], %{{.*}} : !dgpu.buffer
  // CHECK: %[[H:.*]] = arith.truncf
  // CHECK: dgpu.warpgroup_dot %[[H]], %{{.*}}[%{{.*}}], %{{.*}} : tensor<64x64xf16>
  func.func @chain(%q: tensor<64x64xf16>, %v: tensor<64x64xf16>, %pk: tensor<64x64x!tile.ptr<f16>>, %n: i32) -> tensor<64x64xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %k = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %s = tile.dot %q, %k, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %h = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
      %d = tile.dot %h, %v, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    return %r : tensor<64x64xf32>
  }

  // What is known before two loops is stored before the first, for both.
  // CHECK-LABEL: func.func @two_loops
  // CHECK: %[[Q:.*]] = dgpu.buffer_alloc
  // CHECK: dgpu.buffer_store %arg0, %[[Q]][
  // CHECK: scf.for
  // CHECK: dgpu.warpgroup_dot %[[Q]][
  // CHECK-NOT: dgpu.buffer_store %arg0
  // CHECK: scf.for
  // CHECK: dgpu.warpgroup_dot %[[Q]][
  func.func @two_loops(%q: tensor<64x64xf16>, %pk: tensor<64x64x!tile.ptr<f16>>, %n: i32) -> tensor<64x64xf32> {
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
      %d = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    return %s : tensor<64x64xf32>
  }

  // Two dots of what was loaded once, here and transposed, read one buffer.
  // CHECK-LABEL: func.func @twice
  // CHECK: dgpu.buffer_store %arg0
  // CHECK: %[[B:.*]] = dgpu.buffer_alloc
  // CHECK-NEXT: %[[BT:.*]] = dgpu.buffer_permute %[[B]] [1, 0]
  // CHECK: scf.for
  // CHECK: %[[T:.*]] = tile.load
  // CHECK: dgpu.buffer_store %[[T]], %[[B]][
  // CHECK: dgpu.warpgroup_dot %{{.*}}, %[[BT]][
  // CHECK-NOT: dgpu.buffer_store
  // CHECK: dgpu.warpgroup_dot %{{.*}}, %[[B]][
  // CHECK-NOT: tile.dot
  func.func @twice(%q: tensor<64x64xf16>, %pk: tensor<64x64x!tile.ptr<f16>>, %n: i32) -> tensor<64x64xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %k = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %t = tile.trans %k [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %q, %t, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
      %d = tile.dot %p, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    return %r : tensor<64x64xf32>
  }

  // What one branch has stored the other one has not.
  // CHECK-LABEL: func.func @branches
  // CHECK: %[[T:[0-9]+]] = tile.load
  // CHECK: scf.if
  // CHECK: dgpu.buffer_store %[[T]], %[[FIRST:[0-9]+]][
  // CHECK: dgpu.warpgroup_dot %{{.*}}, %[[FIRST]][
  // CHECK: } else {
  // CHECK: dgpu.buffer_store %[[T]], %[[OTHER:[0-9]+]][
  // CHECK: dgpu.warpgroup_dot %{{.*}}, %[[OTHER]][
  func.func @branches(%q: tensor<64x64xf16>, %pk: tensor<64x64x!tile.ptr<f16>>, %c: i1) -> tensor<64x64xf32> {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %one = arith.constant dense<1.0> : tensor<64x64xf32>
    %x = arith.addf %q, %q : tensor<64x64xf16>
    %k = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
    %r = scf.if %c -> tensor<64x64xf32> {
      %d = tile.dot %x, %k, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      %d = tile.dot %x, %k, %one : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    return %r : tensor<64x64xf32>
  }

  // Not if something else wants it as well.
  // CHECK-LABEL: func.func @twice_and_more
  // CHECK-NOT: dgpu.warpgroup_dot
  // CHECK: return
  func.func @twice_and_more(%q: tensor<64x64xf16>, %pk: tensor<64x64x!tile.ptr<f16>>, %pc: tensor<64x64x!tile.ptr<f16>>, %n: i32) -> tensor<64x64xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %k = tile.load %pk : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      tile.store %pc, %k : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xf16>
      scf.yield %d : tensor<64x64xf32>
    }
    return %r : tensor<64x64xf32>
  }

  // fp32 in shared memory would be cut to tf32: registers are rounded.
  // CHECK-LABEL: func.func @tf32
  // CHECK: tile.dot
  // CHECK-NOT: dgpu.warpgroup_dot
  // CHECK: return
  func.func @tf32(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %t = tile.trans %b [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
    %d = tile.dot %a, %t, %c : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    return %d : tensor<64x64xf32>
  }

  // A computed B, and accumulators of 16 bits, stay with the instructions of single warps.
  // CHECK-LABEL: func.func @others
  // CHECK: tile.dot
  // CHECK: tile.dot
  // CHECK-NOT: dgpu.warpgroup_dot
  func.func @others(%a: tensor<64x64xf16>, %pb: tensor<64x64x!tile.ptr<f16>>, %c: tensor<64x64xf16>, %n: i32) -> (tensor<64x64xf32>, tensor<64x64xf16>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %b = tile.load %pb : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %m = arith.mulf %b, %b : tensor<64x64xf16>
      %d = tile.dot %a, %m, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %h = tile.dot %a, %a, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
    return %r, %h : tensor<64x64xf32>, tensor<64x64xf16>
  }

  // One dot after the other, without a loop: a tile is stored once for each side on which dots read it, whichever dot was the first.
  // CHECK-LABEL: func.func @in_a_row
  // CHECK-COUNT-4: dgpu.buffer_store
  // CHECK-NOT: dgpu.buffer_store
  // CHECK: return
  func.func @in_a_row(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %c: tensor<64x64xf16>) -> tensor<64x64xf32> {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %0 = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %1 = tile.dot %a, %c, %0 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %2 = tile.dot %c, %b, %1 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %3 = tile.dot %a, %c, %2 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    return %3 : tensor<64x64xf32>
  }
}
