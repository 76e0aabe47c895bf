// What both blocks of a cluster load at the same turn they fetch by halves into both.
// RUN: ditron-opt %s --dgpu-specialize-warps --split-input-file | FileCheck %s

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.tma, dgpu.wgmma} {
  // The rows of A are the block's, those of B the cluster's: its map has boxes of half a tile.
  // CHECK-LABEL: func.func @shares
  // CHECK-SAME: box = [64, 64]
  // CHECK-SAME: box = [32, 64]
  // CHECK: dgpu.mbarrier_alloc {count = 1 : i32}
  // CHECK: %[[EMPTY:.*]] = dgpu.mbarrier_alloc {cluster, count = 4 : i32}
  // CHECK: dgpu.cluster_barrier
  // CHECK: dgpu.warp_specialize consumer
  // CHECK: dgpu.mbarrier_arrive %[[EMPTY]]{{.*}} {cluster}
  // CHECK: dgpu.cluster_barrier
  // CHECK: producer
  // CHECK: dgpu.tma_load
  // CHECK-NOT: {{[{ ]}}cluster
  // CHECK-SAME: {{$}}
  // CHECK-NEXT: dgpu.tma_load {{.*}} {cluster}
  // CHECK: } {cluster_blocks = 2 : i32}
  func.func @shares(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
                    %c: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %K: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>)
      attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %K64 = arith.extsi %K : i32 to i64
    %da = tile.make_descriptor %a, [%K, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<64x64xbf16>
    %db = tile.make_descriptor %b, [%K, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<64x64xbf16>
    %dc = tile.make_descriptor %c, [%K, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<64x64xbf16>
    %i0 = arith.constant 0 : i32
    %two = arith.constant 2 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %block = tile.program_id 0
    %cluster = arith.divsi %block, %two : i32
    %row = arith.muli %block, %i64 : i32
    %column = arith.muli %cluster, %i64 : i32
    %r = scf.for %k = %i0 to %K step %i64 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %x = tile.descriptor_load %da[%row, %k] : !tile.desc<64x64xbf16> -> tensor<64x64xbf16>
      %y = tile.descriptor_load %db[%column, %k] : !tile.desc<64x64xbf16> -> tensor<64x64xbf16>
      %t = tile.trans %y [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %d = tile.dot %x, %t, %acc : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } {tile.cluster_blocks = 2 : i32}
    %n = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.descriptor_store %dc[%row, %column], %n : !tile.desc<64x64xbf16>, tensor<64x64xbf16>
    return
  }
}

// -----

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.tma, dgpu.wgmma} {
  // Blocks that make different numbers of turns cannot fetch for each other; what memory says may differ too.
  // CHECK-LABEL: func.func @apart
  // CHECK: dgpu.warp_specialize
  // CHECK-NOT: {{[{ ]}}cluster
  func.func @apart(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %n: !tile.ptr<i32>,
                   %c: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %K: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>)
      attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %K64 = arith.extsi %K : i32 to i64
    %da = tile.make_descriptor %a, [%K, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<64x64xbf16>
    %db = tile.make_descriptor %b, [%K, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<64x64xbf16>
    %dc = tile.make_descriptor %c, [%K, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<64x64xbf16>
    %i0 = arith.constant 0 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %turns = tile.load %n : !tile.ptr<i32> -> i32
    %r = scf.for %k = %i0 to %turns step %i64 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %x = tile.descriptor_load %da[%i0, %k] : !tile.desc<64x64xbf16> -> tensor<64x64xbf16>
      %y = tile.descriptor_load %db[%i0, %k] : !tile.desc<64x64xbf16> -> tensor<64x64xbf16>
      %t = tile.trans %y [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %d = tile.dot %x, %t, %acc : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } {tile.cluster_blocks = 2 : i32}
    %s = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.descriptor_store %dc[%i0, %i0], %s : !tile.desc<64x64xbf16>, tensor<64x64xbf16>
    return
  }
}
