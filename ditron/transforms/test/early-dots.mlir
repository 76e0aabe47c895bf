// A turn that computes between its dots: what is known at the first dot starts with it, sums run into the next turn, rows have rings, each of which few
// threads copy, and one barrier is enough. What is stored to shared memory before the loop waits for its loads behind the first copies.
// RUN: ditron-opt %s --dgpu-warpgroup-dots --dgpu-assign-layouts --dgpu-remove-conversions --dgpu-pipeline-loops --dgpu-early-dots --canonicalize --cse \
// RUN:   --dgpu-allocate-shared --dgpu-insert-barriers --dgpu-verify-layouts --dgpu-verify-allocation | FileCheck %s
// RUN: ditron-opt %s --dgpu-warpgroup-dots --dgpu-assign-layouts --dgpu-remove-conversions --dgpu-pipeline-loops --dgpu-early-dots \
// RUN:   --remarks-filter='dgpu-early.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// With three stages copies overwrite what the turn before has read: its sums are complete before the barrier.
// RUN: sed 's/num_stages = 5/num_stages = 3/' %s | ditron-opt --dgpu-warpgroup-dots --dgpu-assign-layouts --dgpu-remove-conversions \
// RUN:   --dgpu-pipeline-loops --dgpu-early-dots --canonicalize --cse --dgpu-allocate-shared --dgpu-insert-barriers --dgpu-verify-layouts \
// RUN:   --dgpu-verify-allocation | FileCheck %s --check-prefix=THREE

// REMARK: the dot starts with the turn's first one

// CHECK: #[[ROW:.*]] = #dgpu.layout<32, reg = {i0 i1}, lane = [i2 i3 i4 * *], warp = [* *]>
// CHECK: %[[KRING:.*]] = dgpu.buffer_alloc {{.*}} : !dgpu.buffer<5 x 32x64 x f16
// CHECK: %[[VRING:.*]] = dgpu.buffer_alloc {{.*}} : !dgpu.buffer<5 x 32x64 x f16
// CHECK: %[[ROWS:.*]] = dgpu.buffer_alloc {{.*}} : !dgpu.buffer<5 x 32 x f32
// CHECK-NOT: dgpu.buffer_store
// CHECK-COUNT-3: dgpu.async_commit
// CHECK-NEXT: dgpu.buffer_store
// CHECK-NEXT: dgpu.fence_async
// CHECK-NEXT: dgpu.buffer_store
// CHECK-NEXT: dgpu.fence_async
// CHECK: %[[LOOP:.*]]:{{[0-9]+}} = scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] = %{{[^,]*}}, %[[SLOT:[^ ]*]] =
// CHECK-NEXT: dgpu.async_wait 2
// CHECK: dgpu.fence_async
// CHECK-NEXT: dgpu.barrier
// CHECK-NEXT: %[[S0:.*]] = dgpu.warpgroup_dot
// CHECK-NEXT: %[[D0:.*]] = dgpu.warpgroup_dot
// CHECK-NOT: dgpu.barrier
// CHECK: dgpu.async_copy %{{.*}} to %[[KRING]]
// CHECK: dgpu.async_copy %{{.*}} to %[[VRING]]
// CHECK: dgpu.async_copy %{{.*}} to %[[ROWS]]{{.*}} : tensor<32x!tile.ptr<f32>, #[[ROW]]>
// CHECK-NEXT: dgpu.async_commit
// CHECK: dgpu.buffer_load %[[ROWS]][%[[SLOT]]]
// CHECK: %[[S:.*]]:2 = dgpu.warpgroup_wait 1, %[[S0]], %[[ACC]]
// CHECK-NEXT: arith.subf %[[S]]#0
// CHECK: %[[D:.*]] = dgpu.warpgroup_wait 0, %[[D0]]
// CHECK-NEXT: arith.mulf %{{.*}}, %[[D]]
// CHECK: %[[NEW:.*]] = dgpu.warpgroup_dot %{{.*}}, %{{.*}}[%[[SLOT]]], %[[S]]#1
// CHECK-NOT: dgpu.barrier
// CHECK: scf.yield %[[NEW]]
// CHECK: }
// CHECK-NEXT: dgpu.warpgroup_wait 0, %[[LOOP]]#0

// THREE-COUNT-2: dgpu.async_commit
// THREE: scf.for %{{.*}} iter_args(%[[ACC:[^ ]*]] =
// THREE-NEXT: dgpu.async_wait 1
// THREE: dgpu.fence_async
// THREE-NEXT: dgpu.warpgroup_wait 0, %[[ACC]]
// THREE-NEXT: dgpu.barrier
// THREE-NEXT: dgpu.warpgroup_dot
// THREE-NEXT: dgpu.warpgroup_dot
// THREE-NOT: dgpu.barrier
// THREE: scf.yield
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 5 : i32, dgpu.wgmma} {
  func.func @chain(%qp: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %gp: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: !tile.ptr<f16> {tile.divisibility = 16 : i64},
                   %v: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %rows: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f32> {tile.divisibility = 16 : i64},
                   %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant dense<64> : tensor<32x1xi32>
    %lines = arith.constant dense<64> : tensor<64x1xi32>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %row = tile.arange 0, 32 : tensor<32xi32>
    %column = tile.arange 0, 64 : tensor<64xi32>
    %column1 = tile.expand_dims %column axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %columns = tile.broadcast %column1 : tensor<1x64xi32> -> tensor<32x64xi32>
    %line = tile.arange 0, 64 : tensor<64xi32>
    %line1 = tile.expand_dims %line axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %lineat = arith.muli %line1, %lines : tensor<64x1xi32>
    %lineall = tile.broadcast %lineat : tensor<64x1xi32> -> tensor<64x64xi32>
    %columnall = tile.broadcast %column1 : tensor<1x64xi32> -> tensor<64x64xi32>
    %own = arith.addi %lineall, %columnall : tensor<64x64xi32>
    %qall = tile.splat %qp : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %gall = tile.splat %gp : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %qat = tile.addptr %qall, %own : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %gat = tile.addptr %gall, %own : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %q = tile.load %qat : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
    %g = tile.load %gat : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
    %kall = tile.splat %k : !tile.ptr<f16> -> tensor<32x64x!tile.ptr<f16>>
    %vall = tile.splat %v : !tile.ptr<f16> -> tensor<32x64x!tile.ptr<f16>>
    %rowsall = tile.splat %rows : !tile.ptr<f32> -> tensor<32x!tile.ptr<f32>>
    %r = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %begin = tile.splat %i : i32 -> tensor<32xi32>
      %at = arith.addi %begin, %row : tensor<32xi32>
      %at1 = tile.expand_dims %at axis 1 : tensor<32xi32> -> tensor<32x1xi32>
      %at64 = arith.muli %at1, %c64 : tensor<32x1xi32>
      %atall = tile.broadcast %at64 : tensor<32x1xi32> -> tensor<32x64xi32>
      %place = arith.addi %atall, %columns : tensor<32x64xi32>
      %kp = tile.addptr %kall, %place : tensor<32x64x!tile.ptr<f16>>, tensor<32x64xi32>
      %vp = tile.addptr %vall, %place : tensor<32x64x!tile.ptr<f16>>, tensor<32x64xi32>
      %rp = tile.addptr %rowsall, %at : tensor<32x!tile.ptr<f32>>, tensor<32xi32>
      %kt = tile.load %kp : tensor<32x64x!tile.ptr<f16>> -> tensor<32x64xf16>
      %kk = tile.trans %kt [1, 0] : tensor<32x64xf16> -> tensor<64x32xf16>
      %s = tile.dot %q, %kk, %none : tensor<64x64xf16>, tensor<64x32xf16> -> tensor<64x32xf32>
      %m = tile.load %rp : tensor<32x!tile.ptr<f32>> -> tensor<32xf32>
      %m1 = tile.expand_dims %m axis 0 : tensor<32xf32> -> tensor<1x32xf32>
      %mm = tile.broadcast %m1 : tensor<1x32xf32> -> tensor<64x32xf32>
      %x = arith.subf %s, %mm : tensor<64x32xf32>
      %p = math.exp2 %x : tensor<64x32xf32>
      %vt = tile.load %vp : tensor<32x64x!tile.ptr<f16>> -> tensor<32x64xf16>
      %vv = tile.trans %vt [1, 0] : tensor<32x64xf16> -> tensor<64x32xf16>
      %d = tile.dot %g, %vv, %none : tensor<64x64xf16>, tensor<64x32xf16> -> tensor<64x32xf32>
      %e = arith.mulf %p, %d : tensor<64x32xf32>
      %h = arith.truncf %e : tensor<64x32xf32> to tensor<64x32xf16>
      %new = tile.dot %h, %kt, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
      scf.yield %new : tensor<64x64xf32>
    }
    %call = tile.splat %c : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %cat = tile.addptr %call, %own : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
    tile.store %cat, %r : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}
