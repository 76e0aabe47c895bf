// The registers that a block has are divided between the consumer's warps and the producer's: more cannot be asked for. Of 640 threads each
// begins with 96.
// RUN: ditron-opt %s --dgpu-specialize-warps | FileCheck %s
// RUN: sed 's/num_warps = 16/num_warps = 8/' %s | ditron-opt --dgpu-specialize-warps | FileCheck %s --check-prefix=EIGHT
// RUN: sed 's/num_warps = 16/num_warps = 32/' %s | ditron-opt --dgpu-specialize-warps --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=FULL

// CHECK: } {consumer_registers = 112 : i32, producer_registers = 32 : i32}
// 232 and 40.
// EIGHT: dgpu.warp_specialize consumer
// EIGHT-NOT: _registers
// FULL: no producer warp loads this tile: 32 warps leave no room for a producer's 4 in a block of 32
module attributes {dgpu.num_warps = 16 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 2 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @product(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<512x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<512x64xf16>
    %db = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %acc = scf.for %k = %i0 to %i8 step %i1 iter_args(%sum = %zero) -> tensor<512x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<512x64xf16> -> tensor<512x64xf16>
      %tb = tile.descriptor_load %db[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %tb, %sum : tensor<512x64xf16>, tensor<64x64xf16> -> tensor<512x64xf32>
      scf.yield %d : tensor<512x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<512x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<512x64x!tile.ptr<f32>>, tensor<512x64xf32>
    return
  }
}
