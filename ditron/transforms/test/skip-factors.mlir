// Sums that follow a running maximum are rescaled by warps in which it has changed.
// RUN: ditron-opt %s --dgpu-skip-factors --split-input-file | FileCheck %s
// RUN: ditron-opt %s --dgpu-skip-factors --split-input-file --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// Two factors of each thread, 16 rows of a warp; with four, 32 rows, some have mostly changed.
// RUN: sed 's/warp = \[i3 i4 i5 i6\]/warp = [i3 i4 i5]/; s/{j0 j3 j4 j5}/{j0 j3 j4 j5 i6}/; s/{}/{i6}/; s/num_warps = 16/num_warps = 8/' %s | ditron-opt --dgpu-skip-factors --split-input-file | FileCheck %s
// RUN: sed 's/warp = \[i3 i4 i5 i6\]/warp = [i3 i4]/; s/{j0 j3 j4 j5}/{j0 j3 j4 j5 i5 i6}/; s/{}/{i5 i6}/; s/num_warps = 16/num_warps = 4/' %s | ditron-opt --dgpu-skip-factors --split-input-file | FileCheck %s --check-prefix=FOUR

// FOUR: arith.mulf
// FOUR-NOT: dgpu.scale
#c = #dgpu.layout<128x64, reg = {j0 j3 j4 j5}, lane = [j1 j2 i0 i1 i2], warp = [i3 i4 i5 i6]>
#r = #dgpu.layout<128, reg = {}, lane = [* * i0 i1 i2], warp = [i3 i4 i5 i6]>
#r1 = #dgpu.layout<128x1, reg = {}, lane = [* * i0 i1 i2], warp = [i3 i4 i5 i6]>
module attributes {dgpu.num_warps = 16 : i32, dgpu.threads_per_warp = 32 : i32} {
  // REMARK: remark: [Passed] factors | Category:dgpu-skip-factors | Remark="warps whose factors are all one skip the product"
  // REMARK-NOT: factors
  // The maximum comes from one arm of a branch.
  // CHECK-LABEL: func.func @follows
  // CHECK: %[[F:.*]] = math.exp2
  // CHECK: %[[E:.*]] = tile.expand_dims %[[F]]
  // CHECK: %[[W:.*]] = tile.broadcast %[[E]]
  // CHECK: %[[S:.*]] = dgpu.warpgroup_wait 0
  // CHECK: %[[Y:.*]] = dgpu.scale %[[S]], %[[W]] : tensor<128x64xf32
  // CHECK: scf.yield %[[Y]]
  func.func @follows(%sums: tensor<128x64xf32, #c>, %rows: tensor<128xf32, #r>, %masked: i1, %turns: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    dgpu.warp_specialize consumer {
      %r:2 = scf.for %i = %c0 to %turns step %c1 iter_args(%s = %sums, %before = %rows) -> (tensor<128x64xf32, #c>, tensor<128xf32, #r>) : i32 {
        %m = scf.if %masked -> tensor<128xf32, #r> {
          %x = arith.maxnumf %before, %rows : tensor<128xf32, #r>
          scf.yield %x : tensor<128xf32, #r>
        } else {
          scf.yield %rows : tensor<128xf32, #r>
        }
        %d = arith.subf %before, %m : tensor<128xf32, #r>
        %f = math.exp2 %d : tensor<128xf32, #r>
        %e = tile.expand_dims %f axis 1 : tensor<128xf32, #r> -> tensor<128x1xf32, #r1>
        %w = tile.broadcast %e : tensor<128x1xf32, #r1> -> tensor<128x64xf32, #c>
        %k = dgpu.warpgroup_wait 0, %s : tensor<128x64xf32, #c>
        %y = arith.mulf %w, %k : tensor<128x64xf32, #c>
        scf.yield %y, %m : tensor<128x64xf32, #c>, tensor<128xf32, #r>
      }
    } producer {
    }
    return
  }

  // A factor that is rarely one, and one of all rows.
  // CHECK-LABEL: func.func @differs
  // CHECK-NOT: dgpu.scale
  // CHECK: return
  func.func @differs(%sums: tensor<128x64xf32, #c>, %rows: tensor<128xf32, #r>, %scale: f32, %turns: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    dgpu.warp_specialize consumer {
      %r = scf.for %i = %c0 to %turns step %c1 iter_args(%s = %sums) -> tensor<128x64xf32, #c> : i32 {
        %f = math.exp2 %rows : tensor<128xf32, #r>
        %e = tile.expand_dims %f axis 1 : tensor<128xf32, #r> -> tensor<128x1xf32, #r1>
        %w = tile.broadcast %e : tensor<128x1xf32, #r1> -> tensor<128x64xf32, #c>
        %all = tile.splat %scale : f32 -> tensor<128x64xf32, #c>
        %k = dgpu.warpgroup_wait 0, %s : tensor<128x64xf32, #c>
        %x = arith.mulf %k, %w : tensor<128x64xf32, #c>
        %y = arith.mulf %x, %all : tensor<128x64xf32, #c>
        scf.yield %y : tensor<128x64xf32, #c>
      }
    } producer {
    }
    return
  }
}
