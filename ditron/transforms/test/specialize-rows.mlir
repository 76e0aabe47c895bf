// Rows that something else than a dot uses come with the tiles of their block: in their slot, with their mbarriers.
// RUN: ditron-opt %s --split-input-file --dgpu-specialize-warps | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-specialize-warps --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// The row is read where it was loaded, behind the dot, and the slot is given back behind that.
// REMARK: a producer warp loads 2 tile(s) into a ring of 3 slots of 8448 bytes
// CHECK-LABEL: func.func @behind_the_dot
// CHECK-DAG: %[[TILES:.*]] = dgpu.buffer_alloc : !dgpu.buffer<3 x 64x64 x f16
// CHECK-DAG: %[[ROWS:.*]] = dgpu.buffer_alloc : !dgpu.buffer<3 x 1x64 x f32
// CHECK: scf.for
// CHECK: dgpu.mbarrier_wait %[[FULL:[0-9]+]][%[[SLOT:.*]]],
// CHECK: %[[D:.*]] = dgpu.warpgroup_wait 0
// CHECK: %[[R:.*]] = dgpu.buffer_load %[[ROWS]][%[[SLOT]]] {{.*}} -> tensor<1x64xf32>
// CHECK-NEXT: dgpu.mbarrier_arrive %{{.*}}[%[[SLOT]]]
// CHECK: tile.broadcast %[[R]]
// CHECK: } producer {
// CHECK: dgpu.mbarrier_expect %{{.*}}, 8448
// CHECK-NEXT: dgpu.tma_load {{.*}} to %[[TILES]]
// CHECK-NEXT: dgpu.tma_load {{.*}} to %[[ROWS]]
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @behind_the_dot(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %f: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %df = tile.make_descriptor %f, [%size, %size], [%c64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<1x64xf32>
    %acc = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %row = tile.descriptor_load %df[%k, %i0] : !tile.desc<1x64xf32> -> tensor<1x64xf32>
      %factors = tile.broadcast %row : tensor<1x64xf32> -> tensor<64x64xf32>
      %e = arith.mulf %d, %factors : tensor<64x64xf32>
      %s = arith.addf %sum, %e : tensor<64x64xf32>
      scf.yield %s : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// A row that is read before the dots is waited for before it is read.
// CHECK-LABEL: func.func @before_the_dot
// CHECK: scf.for
// CHECK: dgpu.mbarrier_wait
// CHECK: dgpu.buffer_load
// CHECK: dgpu.warpgroup_dot
// CHECK: dgpu.mbarrier_arrive
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @before_the_dot(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %f: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %df = tile.make_descriptor %f, [%size, %size], [%c64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<1x64xf32>
    %acc = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %row = tile.descriptor_load %df[%k, %i0] : !tile.desc<1x64xf32> -> tensor<1x64xf32>
      %begin = tile.broadcast %row : tensor<1x64xf32> -> tensor<64x64xf32>
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %begin : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %s = arith.addf %sum, %d : tensor<64x64xf32>
      scf.yield %s : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// Nothing is fetched for dots beside this row: the threads load it themselves.
// REMARK: Missed{{.*}}no producer warp loads this tile: no tile of a dot is fetched beside it
// CHECK-LABEL: func.func @alone
// CHECK: } producer {
// CHECK-NOT: 1x64 x f32
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @alone(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %f: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %df = tile.make_descriptor %f, [%size, %size], [%c64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<1x64xf32>
    %row = tile.descriptor_load %df[%i0, %i0] : !tile.desc<1x64xf32> -> tensor<1x64xf32>
    %begin = tile.broadcast %row : tensor<1x64xf32> -> tensor<64x64xf32>
    %acc = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %begin) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// The producer gets to this row when the loop over other tiles is over, for which the consumer waits for what would come with the row.
// REMARK: Missed{{.*}}no producer warp loads this tile: a loop or wait stands between it and the tiles of its block
// CHECK-LABEL: func.func @behind_a_loop
// CHECK: } producer {
// CHECK-NOT: 1x64 x f32
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @behind_a_loop(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %f: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %df = tile.make_descriptor %f, [%size, %size], [%c64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<1x64xf32>
    %acc = scf.for %s = %i0 to %turns step %i1 iter_args(%all = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%s, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %sums = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %all) -> tensor<64x64xf32> : i32 {
        %tb = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
        %d = tile.dot %ta, %tb, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %d : tensor<64x64xf32>
      }
      %row = tile.descriptor_load %df[%s, %i0] : !tile.desc<1x64xf32> -> tensor<1x64xf32>
      %factors = tile.broadcast %row : tensor<1x64xf32> -> tensor<64x64xf32>
      %e = arith.mulf %sums, %factors : tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// The second slot of so short a row would not begin where copies may.
// REMARK: Missed{{.*}}no producer warp loads this tile: rows of less than 128 bytes
// CHECK-LABEL: func.func @short
// CHECK: } producer {
// CHECK: dgpu.tma_load
// CHECK-NOT: 1x16 x f32
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @short(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %f: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %df = tile.make_descriptor %f, [%size, %size], [%c64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<1x16xf32>
    %db = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<16x64xf16>
    %zeros = arith.constant dense<0.0> : tensor<64x16xf32>
    %acc = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zeros) -> tensor<64x16xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %tb = tile.descriptor_load %db[%k, %i0] : !tile.desc<16x64xf16> -> tensor<16x64xf16>
      %bt = tile.trans %tb [1, 0] : tensor<16x64xf16> -> tensor<64x16xf16>
      %d = tile.dot %ta, %bt, %zeros : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
      %row = tile.descriptor_load %df[%k, %i0] : !tile.desc<1x16xf32> -> tensor<1x16xf32>
      %factors = tile.broadcast %row : tensor<1x16xf32> -> tensor<64x16xf32>
      %e = arith.mulf %d, %factors : tensor<64x16xf32>
      %s = arith.addf %sum, %e : tensor<64x16xf32>
      scf.yield %s : tensor<64x16xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x16x!tile.ptr<f32>>, tensor<64x16xf32>
    return
  }
}

// -----

// A row whose place the producer cannot know does not keep the tiles from their ring.
// REMARK: Missed{{.*}}no producer warp loads this tile: its offset cannot be computed ahead
// REMARK: a producer warp loads 1 tile(s)
// CHECK-LABEL: func.func @found_by_others
// CHECK: } producer {
// CHECK: dgpu.tma_load
// CHECK-NOT: 1x64 x f32
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @found_by_others(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %f: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %n: !tile.ptr<i32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %df = tile.make_descriptor %f, [%size, %size], [%c64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<1x64xf32>
    %acc:2 = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero, %place = %i0) -> (tensor<64x64xf32>, i32) : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %row = tile.descriptor_load %df[%place, %i0] : !tile.desc<1x64xf32> -> tensor<1x64xf32>
      %next = tile.atomic_rmw add relaxed gpu %n, %i1 : !tile.ptr<i32>, i32 -> i32
      %factors = tile.broadcast %row : tensor<1x64xf32> -> tensor<64x64xf32>
      %e = arith.mulf %d, %factors : tensor<64x64xf32>
      %s = arith.addf %sum, %e : tensor<64x64xf32>
      scf.yield %s, %next : tensor<64x64xf32>, i32
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc#0 : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}
