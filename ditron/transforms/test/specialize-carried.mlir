// Sums that go through two loops one after the other, the second one nested, as a product has them whose depth comes in parts: the consumer's
// alone. In the producer no loop carries them, and no dot adds to them.
// RUN: ditron-opt %s --dgpu-specialize-warps --canonicalize | FileCheck %s

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  // CHECK-LABEL: func.func @parts
  // CHECK: dgpu.warp_specialize consumer {
  // CHECK: dgpu.warpgroup_dot
  // CHECK: dgpu.warpgroup_dot
  // CHECK: } producer {
  // CHECK-NOT: tensor<
  // CHECK-NOT: tile.dot
  // CHECK: dgpu.tma_load
  // CHECK-NOT: tensor<
  // CHECK-NOT: tile.dot
  // CHECK: dist.wait
  // CHECK-NOT: tensor<
  // CHECK-NOT: tile.dot
  // CHECK: dgpu.tma_load
  // CHECK-NOT: tensor<
  // CHECK: return
  func.func @parts(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
                   %c: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %signals: !tile.ptr<i64>, %M: i32, %N: i32,
                   %K: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %K64 = arith.extsi %K : i32 to i64
    %da = tile.make_descriptor %a, [%M, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %db = tile.make_descriptor %b, [%N, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %dc = tile.make_descriptor %c, [%M, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x128xbf16>
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %i128 = arith.constant 128 : i32
    %i4 = arith.constant 4 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %pid = tile.program_id 0
    %programs = tile.num_programs 0
    %kt = arith.divsi %K, %i64 : i32
    %tiles = arith.divsi %M, %i128 : i32
    scf.for %t = %pid to %tiles step %programs : i32 {
      %om = arith.muli %t, %i128 : i32
      %own = scf.for %k = %i0 to %kt step %i1 iter_args(%sum = %zero) -> tensor<128x128xf32> : i32 {
        %ok = arith.muli %k, %i64 : i32
        %ta = tile.descriptor_load %da[%om, %ok] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
        %tb = tile.descriptor_load %db[%i0, %ok] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
        %tt = tile.trans %tb [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
        %d = tile.dot %ta, %tt, %sum : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
        scf.yield %d : tensor<128x128xf32>
      }
      %all = scf.for %s = %i1 to %i4 step %i1 iter_args(%before = %own) -> tensor<128x128xf32> : i32 {
        %token = dist.wait ge sys acquire %signals, %s, %c1 : !tile.ptr<i64>, i64
        %ready = dist.consume_token %da, %token : !tile.desc<128x64xbf16>
        %part = scf.for %k = %i0 to %kt step %i1 iter_args(%sum = %before) -> tensor<128x128xf32> : i32 {
          %ok = arith.muli %k, %i64 : i32
          %ta = tile.descriptor_load %ready[%om, %ok] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
          %tb = tile.descriptor_load %db[%i0, %ok] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
          %tt = tile.trans %tb [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
          %d = tile.dot %ta, %tt, %sum : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
          scf.yield %d : tensor<128x128xf32>
        }
        scf.yield %part : tensor<128x128xf32>
      }
      %result = arith.truncf %all : tensor<128x128xf32> to tensor<128x128xbf16>
      tile.descriptor_store %dc[%om, %i0], %result : !tile.desc<128x128xbf16>, tensor<128x128xbf16>
    }
    return
  }
}
