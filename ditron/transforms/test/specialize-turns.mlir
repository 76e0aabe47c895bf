// Operands that a turn computes go to shared memory; a storer waits for turns.
// RUN: ditron-opt %s --dgpu-specialize-warps --canonicalize | FileCheck %s
// RUN: ditron-opt %s --dgpu-specialize-warps --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 2 : i32, dgpu.wgmma, dgpu.tma} {
  // CHECK-LABEL: func.func @turns
  // CHECK-SAME: box = [64, 32], element = f32
  // CHECK: %[[SUMS:.*]] = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x f32
  // CHECK: %[[P:.*]] = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x bf16
  // CHECK-NEXT: dgpu.warp_specialize consumer {
  // CHECK: dgpu.warpgroup_dot
  // CHECK: %[[T:.*]] = arith.truncf
  // CHECK-NEXT: dgpu.buffer_store %[[T]], %[[P]]
  // CHECK-NEXT: dgpu.fence_async
  // CHECK: %[[D:.*]] = dgpu.warpgroup_dot
  // CHECK: %[[W:.*]] = dgpu.warpgroup_wait 0, %[[D]]
  // CHECK: dgpu.mbarrier_wait %[[EMPTY:.*]][%{{.*}}], %{{.*}}
  // CHECK-NEXT: dgpu.buffer_store %[[W]], %[[SUMS]]
  // CHECK-NEXT: dgpu.fence_async
  // CHECK-NEXT: dgpu.mbarrier_arrive %[[FULL:.*]][%{{.*}}] {after_loads}
  // CHECK-NOT: dist.wait
  // CHECK: producer {
  // CHECK-NOT: dist.wait
  // CHECK: dgpu.tma_load
  // CHECK-NOT: dist.wait
  // CHECK: storer {
  // CHECK: scf.for %[[I:[a-z0-9]+]] =
  // CHECK: dist.wait eq gpu acquire %[[COUNTER:.*]], %{{.*}}, %[[I]]
  // CHECK-NEXT: dgpu.mbarrier_wait %[[FULL]]
  // CHECK-NEXT: dgpu.tma_store %[[SUMS]][%{{.*}}] to %{{.*}} {adds}
  // CHECK-NEXT: dgpu.tma_store_commit
  // CHECK-NEXT: dgpu.tma_store_wait 0 read
  // CHECK-NEXT: dgpu.mbarrier_arrive %[[EMPTY]]
  // CHECK-NEXT: dgpu.tma_store_wait 0{{$}}
  // CHECK-NEXT: tile.atomic_rmw add release gpu %[[COUNTER]]
  // CHECK-NOT: descriptor_add_in_turn
  // REMARK: a storer's warp waits for the turn and adds 16384 bytes
  func.func @turns(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %sums: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %counters: !tile.ptr<i32>,
                   %n: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %da = tile.make_descriptor %a, [%n, %i64], [%c64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<64x64xbf16>
    %ds = tile.make_descriptor %sums, [%n, %i64], [%c64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<64x64xf32>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %k = tile.descriptor_load %da[%i0, %i0] : !tile.desc<64x64xbf16> -> tensor<64x64xbf16>
    %kt = tile.trans %k [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.for %i = %i0 to %n step %i1 : i32 {
      %row = arith.muli %i, %i64 : i32
      %x = tile.descriptor_load %da[%row, %i0] : !tile.desc<64x64xbf16> -> tensor<64x64xbf16>
      %xt = tile.trans %x [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %s = tile.dot %k, %xt, %zero : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %d = tile.dot %kt, %p, %zero : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      %counter = tile.addptr %counters, %i : !tile.ptr<i32>, i32
      tile.descriptor_add_in_turn %ds[%row, %i0], %d at %counter turn %i : !tile.desc<64x64xf32>, tensor<64x64xf32>, !tile.ptr<i32>
    }
    return
  }

  // Where a turn depends on a tile, the consumers wait for it by themselves.
  // CHECK-LABEL: func.func @computed_turn
  // CHECK: dgpu.warp_specialize consumer {
  // CHECK: tile.descriptor_add_in_turn
  // CHECK-NOT: storer
  // REMARK: the consumers wait for their turn: a storer cannot compute where and when: it depends on
  func.func @computed_turn(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %sums: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %counter: !tile.ptr<i32>,
                           %n: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %da = tile.make_descriptor %a, [%n, %i64], [%c64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<64x64xbf16>
    %ds = tile.make_descriptor %sums, [%n, %i64], [%c64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<64x64xf32>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %i = %i0 to %n step %i1 : i32 {
      %row = arith.muli %i, %i64 : i32
      %x = tile.descriptor_load %da[%row, %i0] : !tile.desc<64x64xbf16> -> tensor<64x64xbf16>
      %xt = tile.trans %x [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %d = tile.dot %x, %xt, %zero : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      %turn = tile.atomic_rmw add relaxed gpu %counter, %i0 : !tile.ptr<i32>, i32 -> i32
      tile.descriptor_add_in_turn %ds[%row, %i0], %d at %counter turn %turn : !tile.desc<64x64xf32>, tensor<64x64xf32>, !tile.ptr<i32>
    }
    return
  }
}
