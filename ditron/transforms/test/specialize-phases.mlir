// A kernel of two phases keeps a tile beside the loop of each. Where shared memory does not suffice for both, the second one gets the place of the first
// one as soon as the loop in front of it is over; and the tiles of both loops have the same ring, though one has rows beside them.
// RUN: ditron-opt %s --dgpu-specialize-warps=limit-bytes=104000 --canonicalize | FileCheck %s --check-prefix=TIGHT
// RUN: ditron-opt %s --dgpu-specialize-warps=limit-bytes=200000 --canonicalize | FileCheck %s --check-prefix=WIDE

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  // TIGHT-LABEL: func.func @phases
  // TIGHT: %[[KEPT:.*]] = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x bf16
  // TIGHT: %[[FULL:.*]] = dgpu.mbarrier_alloc {count = 1 : i32}
  // TIGHT: %[[EMPTY:.*]] = dgpu.mbarrier_alloc {count = 8 : i32}
  // TIGHT-NOT: !dgpu.buffer<1 x 128x64
  // TIGHT: dgpu.buffer_alloc : !dgpu.buffer<3 x 128x64 x bf16
  // TIGHT-NOT: dgpu.buffer_alloc : !dgpu.buffer<{{[13]}} x 128x64
  // TIGHT: dgpu.buffer_alloc : !dgpu.buffer<3 x 1x128 x f32
  // TIGHT-NOT: dgpu.buffer_alloc
  // TIGHT: consumer {
  // TIGHT: dgpu.mbarrier_wait %[[FULL]][%c0_i32], %c0_i32
  // TIGHT: scf.for
  // TIGHT: dgpu.mbarrier_arrive %[[EMPTY]][%c0_i32]
  // TIGHT: dgpu.mbarrier_wait %[[FULL]][%c0_i32], %c1_i32
  // TIGHT: scf.for
  // TIGHT: dgpu.mbarrier_arrive %[[EMPTY]][%c0_i32]
  // TIGHT: producer {
  // TIGHT: dgpu.mbarrier_wait %[[EMPTY]][%c0_i32], %c1_i32
  // TIGHT: dgpu.tma_load {{.*}} to %[[KEPT]][%c0_i32]
  // TIGHT: scf.for
  // TIGHT: dgpu.mbarrier_wait %[[EMPTY]][%c0_i32], %c0_i32
  // TIGHT: dgpu.tma_load {{.*}} to %[[KEPT]][%c0_i32]
  // TIGHT: scf.for
  // WIDE-COUNT-2: dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x bf16
  func.func @phases(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
                    %r: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %c: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %M: i32, %N: i32,
                    %K: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %K64 = arith.extsi %K : i32 to i64
    %da = tile.make_descriptor %a, [%M, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %db = tile.make_descriptor %b, [%N, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i128 = arith.constant 128 : i32
    %dr = tile.make_descriptor %r, [%i1, %K], [%K64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<1x128xf32>
    %dc = tile.make_descriptor %c, [%M, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x128xbf16>
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %first = tile.descriptor_load %da[%i0, %i0] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
    %x = scf.for %k = %i0 to %N step %i128 iter_args(%sum = %zero) -> tensor<128x128xf32> : i32 {
      %tb = tile.descriptor_load %db[%k, %i0] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
      %tt = tile.trans %tb [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %d = tile.dot %first, %tt, %zero : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
      %e = math.exp2 %d : tensor<128x128xf32>
      %s = arith.addf %sum, %e : tensor<128x128xf32>
      scf.yield %s : tensor<128x128xf32>
    }
    %second = tile.descriptor_load %da[%i128, %i0] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
    %y = scf.for %k = %i0 to %N step %i128 iter_args(%sum = %x) -> tensor<128x128xf32> : i32 {
      %tb = tile.descriptor_load %db[%k, %i0] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
      %tt = tile.trans %tb [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %d = tile.dot %second, %tt, %zero : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
      %row = tile.descriptor_load %dr[%i0, %k] : !tile.desc<1x128xf32> -> tensor<1x128xf32>
      %rows = tile.broadcast %row : tensor<1x128xf32> -> tensor<128x128xf32>
      %e = arith.mulf %d, %rows : tensor<128x128xf32>
      %s = arith.addf %sum, %e : tensor<128x128xf32>
      scf.yield %s : tensor<128x128xf32>
    }
    %result = arith.truncf %y : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.descriptor_store %dc[%i0, %i0], %result : !tile.desc<128x128xbf16>, tensor<128x128xbf16>
    return
  }

  // Keys and values of one turn keep rings of their own: the values' dot may be delayed into the next turn, behind the dot with its keys.
  // TIGHT-LABEL: func.func @turn
  // TIGHT: dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x bf16
  // TIGHT: dgpu.buffer_alloc : !dgpu.buffer<2 x 128x64 x bf16
  // TIGHT: dgpu.buffer_alloc : !dgpu.buffer<2 x 128x64 x bf16
  // TIGHT-NOT: dgpu.buffer_alloc
  func.func @turn(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
                  %v: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %M: i32, %N: i32,
                  %K: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %K64 = arith.extsi %K : i32 to i64
    %da = tile.make_descriptor %a, [%M, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %db = tile.make_descriptor %b, [%N, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %dv = tile.make_descriptor %v, [%N, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %dc = tile.make_descriptor %c, [%M, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %i0 = arith.constant 0 : i32
    %i128 = arith.constant 128 : i32
    %none = arith.constant dense<0.0> : tensor<128x128xf32>
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %q = tile.descriptor_load %da[%i0, %i0] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
    %x = scf.for %k = %i0 to %N step %i128 iter_args(%sum = %zero) -> tensor<128x64xf32> : i32 {
      %keys = tile.descriptor_load %db[%k, %i0] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
      %turned = tile.trans %keys [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %scores = tile.dot %q, %turned, %none : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
      %powers = math.exp2 %scores : tensor<128x128xf32>
      %narrow = arith.truncf %powers : tensor<128x128xf32> to tensor<128x128xbf16>
      %values = tile.descriptor_load %dv[%k, %i0] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
      %s = tile.dot %narrow, %values, %sum : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
      scf.yield %s : tensor<128x64xf32>
    }
    %result = arith.truncf %x : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.descriptor_store %dc[%i0, %i0], %result : !tile.desc<128x64xbf16>, tensor<128x64xbf16>
    return
  }
}
