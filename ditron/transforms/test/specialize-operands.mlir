// What a producer warp does with operands of 8 and 32 bits, and with cache hints.
// RUN: ditron-opt %s --dgpu-specialize-warps --canonicalize | FileCheck %s

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  // Copies round fp32 to tf32. Hints go along. Half of 65536 registers less 128 * 40 are left for 128 threads.
  // CHECK-LABEL: func.func @tf32
  // CHECK-SAME: base = 0 : i64, box = [64, 32], element = tf32
  // CHECK-SAME: base = 1 : i64, box = [64, 32], element = tf32
  // CHECK: dgpu.warpgroup_dot
  // CHECK: dgpu.tma_load {{.*}} {evict = #tile.evict<evict_last>}
  // CHECK: dgpu.tma_load
  // CHECK-NOT: evict
  func.func @tf32(%a: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f32> {tile.divisibility = 16 : i64},
                  %c: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %K: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>)
      attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %K64 = arith.extsi %K : i32 to i64
    %da = tile.make_descriptor %a, [%K, %K], [%K64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<64x32xf32>
    %db = tile.make_descriptor %b, [%K, %K], [%K64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<64x32xf32>
    %dc = tile.make_descriptor %c, [%K, %K], [%K64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<64x64xf32>
    %i0 = arith.constant 0 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %k = %i0 to %K step %i32 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %x = tile.descriptor_load %da[%i0, %k] {evict = #tile.evict<evict_last>} : !tile.desc<64x32xf32> -> tensor<64x32xf32>
      %y = tile.descriptor_load %db[%i0, %k] : !tile.desc<64x32xf32> -> tensor<64x32xf32>
      %t = tile.trans %y [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
      %d = tile.dot %x, %t, %acc : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    tile.descriptor_store %dc[%i0, %i0], %r : !tile.desc<64x64xf32>, tensor<64x64xf32>
    return
  }

  // Sums of fp8 that are promoted are read at once; 100 elements are three steps of 32.
  // CHECK-LABEL: func.func @promoted
  // CHECK: %[[D:.*]] = dgpu.warpgroup_dot {{.*}} {promote_elems = 96 : i32}
  // CHECK-NEXT: dgpu.warpgroup_wait 0, %[[D]]
  func.func @promoted(%a: !tile.ptr<f8E4M3FN> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f8E4M3FN> {tile.divisibility = 16 : i64},
                      %c: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %K: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>)
      attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %K64 = arith.extsi %K : i32 to i64
    %da = tile.make_descriptor %a, [%K, %K], [%K64, %c1] : !tile.ptr<f8E4M3FN>, i32, i32 -> !tile.desc<64x128xf8E4M3FN>
    %db = tile.make_descriptor %b, [%K, %K], [%K64, %c1] : !tile.ptr<f8E4M3FN>, i32, i32 -> !tile.desc<64x128xf8E4M3FN>
    %dc = tile.make_descriptor %c, [%K, %K], [%K64, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<64x64xf32>
    %i0 = arith.constant 0 : i32
    %i128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %k = %i0 to %K step %i128 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
      %x = tile.descriptor_load %da[%i0, %k] : !tile.desc<64x128xf8E4M3FN> -> tensor<64x128xf8E4M3FN>
      %y = tile.descriptor_load %db[%i0, %k] : !tile.desc<64x128xf8E4M3FN> -> tensor<64x128xf8E4M3FN>
      %t = tile.trans %y [1, 0] : tensor<64x128xf8E4M3FN> -> tensor<128x64xf8E4M3FN>
      %d = tile.dot %x, %t, %acc {maxImpreciseAcc = 100 : i32} : tensor<64x128xf8E4M3FN>, tensor<128x64xf8E4M3FN> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    tile.descriptor_store %dc[%i0, %i0], %r : !tile.desc<64x64xf32>, tensor<64x64xf32>
    return
  }
}
