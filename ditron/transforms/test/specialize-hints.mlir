// What only asks a cache for something synchronises nothing: the loads behind it still go to a producer warp.
// RUN: ditron-opt %s --dgpu-specialize-warps | FileCheck %s

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  // CHECK-LABEL: func.func @hinted
  // CHECK: dgpu.warp_specialize consumer {
  // CHECK: dist.intrinsic "prefetch_l2"
  // CHECK: } producer {
  // CHECK-NOT: dist.intrinsic
  // CHECK: dgpu.tma_load
  func.func @hinted(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    dist.intrinsic "prefetch_l2"(%a) : (!tile.ptr<f16>) -> ()
    %acc = scf.for %k = %i0 to %i8 step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } {tile.warp_specialize}
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}
