// The same GEMM as in gemm.mlir on warpgroups: pointers are copied straight to swizzled rings, the dot of an iteration runs while
// the next copies are started, and is waited for one iteration later, in front of the only barrier.
// RUN: ditron-opt %s --dgpu-warpgroup-dots --dgpu-assign-layouts --dgpu-verify-layouts --dgpu-remove-conversions \
// RUN:   --dgpu-pipeline-loops --canonicalize --cse --dgpu-allocate-shared --dgpu-insert-barriers --dgpu-verify-layouts \
// RUN:   --dgpu-verify-allocation | FileCheck %s

// RUN: sed 's/num_stages = 3/num_stages = 5/' %s | ditron-opt --dgpu-warpgroup-dots --dgpu-assign-layouts --dgpu-remove-conversions \
// RUN:   --dgpu-pipeline-loops --canonicalize --cse --dgpu-allocate-shared --dgpu-insert-barriers --dgpu-verify-layouts \
// RUN:   --dgpu-verify-allocation | FileCheck %s --check-prefix=DEEP

// With more stages a dot stays in flight over the barrier, and copies run one iteration less ahead.
// DEEP-COUNT-3: dgpu.async_commit
// DEEP: %[[LOOP:.*]]:4 = scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] = %{{[^,]*}}, %[[SLOT:[^ ]*]] =
// DEEP-NEXT: dgpu.async_wait 2
// DEEP: dgpu.fence_async
// DEEP-NEXT: dgpu.barrier
// DEEP-NEXT: %[[D:.*]] = dgpu.warpgroup_dot %{{.*}}[%[[SLOT]]], %{{.*}}[%[[SLOT]]], %[[ACC]]
// DEEP-NOT: dgpu.barrier
// DEEP: dgpu.async_commit
// DEEP: %[[W:.*]] = dgpu.warpgroup_wait 1, %[[D]]
// DEEP: scf.yield %[[W]]
// DEEP: }
// DEEP-NEXT: dgpu.warpgroup_wait 0, %[[LOOP]]#0

// CHECK-DAG: #[[$C:L[0-9]*]] = #dgpu.layout<64x64, reg = {j0 j3 j4 j5 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
// CHECK-DAG: #[[$SA:S[0-9]*]] = #dgpu.shared<64x32, bits = 16, offset = [j0 j1 j2 j3 j4 i0 i1^j3 i2^j4 i3 i4 i5]>
// CHECK-DAG: #[[$SB:S[0-9]*]] = #dgpu.shared<32x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4]>
// CHECK: %[[A:.*]] = dgpu.buffer_alloc {offset_bytes = {{0|12288}} : i64} : !dgpu.buffer<3 x 64x32 x bf16, #[[$SA]]>
// CHECK: %[[B:.*]] = dgpu.buffer_alloc {offset_bytes = {{0|12288}} : i64} : !dgpu.buffer<3 x 32x64 x bf16, #[[$SB]]>
// CHECK-COUNT-2: dgpu.async_commit
// CHECK: %[[LOOP:.*]]:4 = scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] = %{{[^,]*}}, %[[SLOT:[^ ]*]] =
// CHECK-NEXT: dgpu.async_wait 1
// CHECK: dgpu.fence_async
// CHECK-NEXT: %[[W:.*]] = dgpu.warpgroup_wait 0, %[[ACC]]
// CHECK-NEXT: dgpu.barrier
// CHECK-NEXT: %[[D:.*]] = dgpu.warpgroup_dot %[[A]][%[[SLOT]]], %[[B]][%[[SLOT]]], %[[W]]
// CHECK-NOT: dgpu.barrier
// CHECK-NOT: dgpu.buffer_store
// CHECK: dgpu.async_copy %{{.*}} to %[[A]]
// CHECK-NOT: dgpu.barrier
// CHECK: dgpu.async_copy %{{.*}} to %[[B]]
// CHECK-NEXT: dgpu.async_commit
// CHECK: scf.yield %[[D]]
// CHECK: }
// CHECK-NEXT: %[[R:.*]] = dgpu.warpgroup_wait 0, %[[LOOP]]#0
// CHECK-NEXT: dgpu.async_wait 0
// CHECK-NEXT: arith.truncf %[[R]] : tensor<64x64xf32, #[[$C]]>
// CHECK: dgpu.barrier
// CHECK-NEXT: dgpu.convert_layout %{{.*}} {offset_bytes = 0 : i64}
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma} {
  func.func @gemm(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
                  %c: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %m: i32, %n: i32 {tile.divisibility = 16 : i64},
                  %k: i32 {tile.divisibility = 16 : i64}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %zeroA = arith.constant dense<0.0> : tensor<64x32xbf16>
    %zeroB = arith.constant dense<0.0> : tensor<32x64xbf16>
    %step = arith.constant dense<32> : tensor<64x32xi32>
    %pidm = tile.program_id 0
    %pidn = tile.program_id 1
    %m0 = arith.muli %pidm, %c64 : i32
    %n0 = arith.muli %pidn, %c64 : i32
    %r64 = tile.arange 0, 64 : tensor<64xi32>
    %r32 = tile.arange 0, 32 : tensor<32xi32>
    %m0s = tile.splat %m0 : i32 -> tensor<64xi32>
    %n0s = tile.splat %n0 : i32 -> tensor<64xi32>
    %offm = arith.addi %m0s, %r64 : tensor<64xi32>
    %offn = arith.addi %n0s, %r64 : tensor<64xi32>
    %offmE = tile.expand_dims %offm axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %offnE = tile.expand_dims %offn axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %kRow = tile.expand_dims %r32 axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %kCol = tile.expand_dims %r32 axis 1 : tensor<32xi32> -> tensor<32x1xi32>
    // a_ptrs = a + offm[:, None] * k + offk[None, :]
    %ks = tile.splat %k : i32 -> tensor<64x1xi32>
    %aRow = arith.muli %offmE, %ks : tensor<64x1xi32>
    %aRowB = tile.broadcast %aRow : tensor<64x1xi32> -> tensor<64x32xi32>
    %kRowB = tile.broadcast %kRow : tensor<1x32xi32> -> tensor<64x32xi32>
    %aOff = arith.addi %aRowB, %kRowB : tensor<64x32xi32>
    %aS = tile.splat %a : !tile.ptr<bf16> -> tensor<64x32x!tile.ptr<bf16>>
    %aPtr = tile.addptr %aS, %aOff : tensor<64x32x!tile.ptr<bf16>>, tensor<64x32xi32>
    // b_ptrs = b + offk[:, None] * n + offn[None, :]
    %ns = tile.splat %n : i32 -> tensor<32x1xi32>
    %bRow = arith.muli %kCol, %ns : tensor<32x1xi32>
    %bRowB = tile.broadcast %bRow : tensor<32x1xi32> -> tensor<32x64xi32>
    %bColB = tile.broadcast %offnE : tensor<1x64xi32> -> tensor<32x64xi32>
    %bOff = arith.addi %bRowB, %bColB : tensor<32x64xi32>
    %bS = tile.splat %b : !tile.ptr<bf16> -> tensor<32x64x!tile.ptr<bf16>>
    %bPtr = tile.addptr %bS, %bOff : tensor<32x64x!tile.ptr<bf16>>, tensor<32x64xi32>
    %bStepScalar = arith.muli %n, %c32 : i32
    %bStep = tile.splat %bStepScalar : i32 -> tensor<32x64xi32>
    %r:3 = scf.for %k0 = %c0 to %k step %c32 iter_args(%acc = %zero, %ap = %aPtr, %bp = %bPtr)
        -> (tensor<64x64xf32>, tensor<64x32x!tile.ptr<bf16>>, tensor<32x64x!tile.ptr<bf16>>) : i32 {
      %left = arith.subi %k, %k0 : i32
      %leftA = tile.splat %left : i32 -> tensor<1x32xi32>
      %leftB = tile.splat %left : i32 -> tensor<32x1xi32>
      %mA1 = arith.cmpi slt, %kRow, %leftA : tensor<1x32xi32>
      %mB1 = arith.cmpi slt, %kCol, %leftB : tensor<32x1xi32>
      %mA = tile.broadcast %mA1 : tensor<1x32xi1> -> tensor<64x32xi1>
      %mB = tile.broadcast %mB1 : tensor<32x1xi1> -> tensor<32x64xi1>
      %av = tile.load %ap mask %mA other %zeroA : tensor<64x32x!tile.ptr<bf16>> mask tensor<64x32xi1> other tensor<64x32xbf16> -> tensor<64x32xbf16>
      %bv = tile.load %bp mask %mB other %zeroB : tensor<32x64x!tile.ptr<bf16>> mask tensor<32x64xi1> other tensor<32x64xbf16> -> tensor<32x64xbf16>
      %d = tile.dot %av, %bv, %acc : tensor<64x32xbf16>, tensor<32x64xbf16> -> tensor<64x64xf32>
      %an = tile.addptr %ap, %step : tensor<64x32x!tile.ptr<bf16>>, tensor<64x32xi32>
      %bn = tile.addptr %bp, %bStep : tensor<32x64x!tile.ptr<bf16>>, tensor<32x64xi32>
      scf.yield %d, %an, %bn : tensor<64x64xf32>, tensor<64x32x!tile.ptr<bf16>>, tensor<32x64x!tile.ptr<bf16>>
    }
    %t = arith.truncf %r#0 : tensor<64x64xf32> to tensor<64x64xbf16>
    %nRow = tile.splat %n : i32 -> tensor<64x1xi32>
    %cRow = arith.muli %offmE, %nRow : tensor<64x1xi32>
    %cRowB = tile.broadcast %cRow : tensor<64x1xi32> -> tensor<64x64xi32>
    %cColB = tile.broadcast %offnE : tensor<1x64xi32> -> tensor<64x64xi32>
    %cOff = arith.addi %cRowB, %cColB : tensor<64x64xi32>
    %cS = tile.splat %c : !tile.ptr<bf16> -> tensor<64x64x!tile.ptr<bf16>>
    %cPtr = tile.addptr %cS, %cOff : tensor<64x64x!tile.ptr<bf16>>, tensor<64x64xi32>
    %mS = tile.splat %m : i32 -> tensor<64x1xi32>
    %nS = tile.splat %n : i32 -> tensor<1x64xi32>
    %inM = arith.cmpi slt, %offmE, %mS : tensor<64x1xi32>
    %inN = arith.cmpi slt, %offnE, %nS : tensor<1x64xi32>
    %inMB = tile.broadcast %inM : tensor<64x1xi1> -> tensor<64x64xi1>
    %inNB = tile.broadcast %inN : tensor<1x64xi1> -> tensor<64x64xi1>
    %in = arith.andi %inMB, %inNB : tensor<64x64xi1>
    tile.store %cPtr, %t mask %in : tensor<64x64x!tile.ptr<bf16>>, tensor<64x64xbf16> mask tensor<64x64xi1>
    return
  }
}
