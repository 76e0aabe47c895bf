// Two tiles with a loop over others between them do not come together, though one dot takes both: the consumer needs the first for that loop.
// RUN: ditron-opt %s --dgpu-specialize-warps --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s

// CHECK-COUNT-3: a producer warp loads 1 tile(s)
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @around_a_loop(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %acc = scf.for %s = %i0 to %turns step %i1 iter_args(%all = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%s, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %sums = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %all) -> tensor<64x64xf32> : i32 {
        %tb = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
        %d = tile.dot %ta, %tb, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %d : tensor<64x64xf32>
      }
      %tc = tile.descriptor_load %da[%s, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %e = tile.dot %ta, %tc, %sums : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}
