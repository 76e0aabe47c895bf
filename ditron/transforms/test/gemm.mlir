// The whole way of a GEMM loop with pointer increments and masks: fragments in the loop, no conversion in it, two rings that are
// copied ahead, one barrier per iteration, and the epilogue's conversion in the bytes of the rings.
// RUN: ditron-opt %s --dgpu-assign-layouts --dgpu-verify-layouts --dgpu-remove-conversions --dgpu-verify-layouts \
// RUN:   --dgpu-pipeline-loops --canonicalize --cse --dgpu-allocate-shared --dgpu-insert-barriers --dgpu-verify-layouts \
// RUN:   --dgpu-verify-allocation | FileCheck %s

// CHECK-DAG: #[[$A:L[0-9]*]] = #dgpu.layout<64x32, reg = {j0 j3 j4 i3 i5}, lane = [j1 j2 i0 i1 i2], warp = [i4 *]>
// CHECK-DAG: #[[$B:L[0-9]*]] = #dgpu.layout<32x64, reg = {j4 j5 i0 i3 i4}, lane = [i1 i2 j0 j1 j2], warp = [* j3]>
// CHECK-DAG: #[[$C:L[0-9]*]] = #dgpu.layout<64x64, reg = {j0 j4 j5 i3 i5}, lane = [j1 j2 i0 i1 i2], warp = [i4 j3]>
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32} {
  // CHECK-LABEL: func.func @gemm
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
    // CHECK: %[[RA:.*]] = dgpu.buffer_alloc {offset_bytes = {{0|12288}} : i64} : !dgpu.buffer<3 x 64x32 x bf16
    // CHECK: %[[RB:.*]] = dgpu.buffer_alloc {offset_bytes = {{0|12288}} : i64} : !dgpu.buffer<3 x 32x64 x bf16
    // CHECK-COUNT-2: dgpu.async_copy
    // CHECK: dgpu.async_commit
    // CHECK-COUNT-2: dgpu.async_copy
    // CHECK: dgpu.async_commit
    // CHECK-NOT: dgpu.async_c
    // CHECK: scf.for
    // CHECK-NEXT: dgpu.async_wait 1
    // CHECK-NOT: dgpu.convert_layout
    // CHECK: dgpu.barrier
    // CHECK-NEXT: dgpu.async_copy
    // CHECK-NOT: dgpu.barrier
    // CHECK: dgpu.async_copy
    // CHECK: dgpu.async_commit
    // CHECK-DAG: dgpu.buffer_load %[[RA]]{{.*}} -> tensor<64x32xbf16, #[[$A]]>
    // CHECK-DAG: dgpu.buffer_load %[[RB]]{{.*}} -> tensor<32x64xbf16, #[[$B]]>
    // CHECK: tile.dot {{.*}} tensor<64x32xbf16, #[[$A]]>, tensor<32x64xbf16, #[[$B]]> -> tensor<64x64xf32, #[[$C]]>
    // CHECK-NOT: dgpu.barrier
    // CHECK: scf.yield
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
    // CHECK: dgpu.async_wait 0
    // CHECK: %[[T:.*]] = arith.truncf {{.*}} #[[$C]]> to tensor<64x64xbf16, #[[$C]]>
    // CHECK: dgpu.barrier
    // CHECK-NEXT: dgpu.convert_layout %[[T]] {offset_bytes = 0 : i64}
    // CHECK-NOT: dgpu.convert_layout
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
