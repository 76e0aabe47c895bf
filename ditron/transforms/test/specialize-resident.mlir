// A consumer of one warpgroup that computes between its dots: two blocks share a multiprocessor, and one multiplies while the other computes.
// RUN: ditron-opt %s --split-input-file --dgpu-specialize-warps | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-specialize-warps --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// Two warpgroups take turns in one block.
// RUN: sed 's/num_warps = 4/num_warps = 8/; s/64x64/128x128/g' %s | ditron-opt --split-input-file --dgpu-specialize-warps --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=EIGHT
// Three slots, the stored tile and what is kept take 41984 bytes, two slots 33792; of 70000 each of two blocks has 34488, of 65536 32256.
// RUN: ditron-opt %s --split-input-file --dgpu-specialize-warps=limit-bytes=70000 --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=FEWER
// RUN: ditron-opt %s --split-input-file --dgpu-specialize-warps=limit-bytes=65536 --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=ONE

// EIGHT-NOT: on each multiprocessor
// EIGHT: a ring of 3 slots of 32768 bytes

// REMARK: Passed{{.*}}two blocks on each multiprocessor: the one warpgroup of each computes between its dots
// REMARK: a ring of 3 slots of 8192 bytes
// FEWER: two blocks on each multiprocessor
// FEWER: a ring of 2 slots of 8192 bytes; num_stages would not fit shared memory
// ONE: Missed{{.*}}one block on each multiprocessor: rings of two slots do not fit half of shared memory
// CHECK: module attributes {{.*}}dgpu.resident_blocks = 2 : i32
// CHECK-LABEL: func.func @computes
// CHECK: } {producer_registers = 24 : i32}
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @computes(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %x: i32 {dgpu.num_programs = 0 : i32}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %acc = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %e = math.exp2 %d : tensor<64x64xf32>
      %s = arith.addf %sum, %e : tensor<64x64xf32>
      scf.yield %s : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// Sums alone stay in flight: the tensor core has work. So has a block that the launch brings for each program: registers are not divided.
// CHECK: module attributes
// CHECK-NOT: resident_blocks
// CHECK-LABEL: func.func @accumulates
// REMARK-NOT: on each multiprocessor
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.resident_blocks = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @accumulates(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %x: i32 {dgpu.num_programs = 0 : i32}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %acc = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}
