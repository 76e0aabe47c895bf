// A dot is waited for where its result is used, where another one is started in between.
// RUN: ditron-opt %s --dgpu-late-waits | FileCheck %s
// RUN: ditron-opt %s --dgpu-late-waits --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#q = #dgpu.shared<128x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5 i6]>
#row = #dgpu.shared<1x64, bits = 32, offset = [j0 j1 j2 j3 j4 j5]>
#k = #dgpu.shared<64x64, bits = 16, offset = [i0 i1 i2 i3 i4 i5 i3^j0 i4^j1 i5^j2 j3 j4 j5]>

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  // The second dot starts behind the first; the release of the first one's tile goes with its wait.
  // CHECK-LABEL: func.func @together
  // CHECK: %[[S0:.*]] = dgpu.warpgroup_dot %{{.*}}[%{{.*}}], %{{.*}}
  // CHECK-NEXT: %[[D0:.*]] = dgpu.warpgroup_dot
  // CHECK-NEXT: %[[S:.*]] = dgpu.warpgroup_wait 1, %[[S0]]
  // CHECK-NEXT: dgpu.mbarrier_arrive
  // CHECK-NEXT: %[[E:.*]] = math.exp2 %[[S]]
  // CHECK-NEXT: %[[D:.*]] = dgpu.warpgroup_wait 0, %[[D0]]
  // CHECK-NEXT: arith.mulf %[[E]], %[[D]]
  // REMARK: remark: [Passed] late | Category:dgpu-late-waits | Remark="the next dot starts before this one is complete"
  func.func @together(%n: i32, %bars: !dgpu.mbarriers<2>) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %q = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #q>
    %k = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #k>
    dgpu.warp_specialize consumer {
      %r = scf.for %i = %i0 to %n step %i1 iter_args(%c = %zero) -> (tensor<128x64xf32>) : i32 {
        %s0 = dgpu.warpgroup_dot %q[%i0], %k[%i0], %zero : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x64xf32>
        dgpu.mbarrier_arrive %bars[%i0] : !dgpu.mbarriers<2>
        %d0 = dgpu.warpgroup_dot %q[%i0], %k[%i1], %zero : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %d = dgpu.warpgroup_wait 0, %d0 : tensor<128x64xf32>
        %e = math.exp2 %s : tensor<128x64xf32>
        %m = arith.mulf %e, %d : tensor<128x64xf32>
        scf.yield %m : tensor<128x64xf32>
      }
    } producer {
    }
    return
  }

  // A in registers keeps them until the wait.
  // CHECK-LABEL: func.func @keeps_a
  // CHECK: %[[S0:.*]] = dgpu.warpgroup_dot %[[A:[a-z0-9]+]], %{{.*}}
  // CHECK-NEXT: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.warpgroup_wait 1, %[[S0]], %[[A]]
  // CHECK-NEXT: math.exp2
  // CHECK-NEXT: dgpu.warpgroup_wait 0
  func.func @keeps_a(%n: i32, %a: tensor<128x64xf16>) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %k = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #k>
    dgpu.warp_specialize consumer {
      %r = scf.for %i = %i0 to %n step %i1 iter_args(%c = %zero) -> (tensor<128x64xf32>) : i32 {
        %s0 = dgpu.warpgroup_dot %a, %k[%i0], %zero : tensor<128x64xf16>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x64xf32>
        %d0 = dgpu.warpgroup_dot %a, %k[%i1], %zero : tensor<128x64xf16>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %d = dgpu.warpgroup_wait 0, %d0 : tensor<128x64xf32>
        %e = math.exp2 %s : tensor<128x64xf32>
        %m = arith.mulf %e, %d : tensor<128x64xf32>
        scf.yield %m : tensor<128x64xf32>
      }
    } producer {
    }
    return
  }

  // What the second dot needs is waited for before it.
  // CHECK-LABEL: func.func @needs
  // CHECK: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.warpgroup_wait 0
  // CHECK-NEXT: arith.truncf
  // CHECK-NEXT: dgpu.warpgroup_dot
  func.func @needs(%n: i32) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %q = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #q>
    %k = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #k>
    dgpu.warp_specialize consumer {
      %r = scf.for %i = %i0 to %n step %i1 iter_args(%c = %zero) -> (tensor<128x64xf32>) : i32 {
        %s0 = dgpu.warpgroup_dot %q[%i0], %k[%i0], %zero : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x64xf32>
        %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
        %d0 = dgpu.warpgroup_dot %p, %k[%i1], %c : tensor<128x64xf16>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %d = dgpu.warpgroup_wait 0, %d0 : tensor<128x64xf32>
        scf.yield %d : tensor<128x64xf32>
      }
    } producer {
    }
    return
  }

  // What is between a wait and the release of its dot's tile may be passed, as the read of a row that came with the tile; the release may not stay.
  // CHECK-LABEL: func.func @reads_a_row
  // CHECK: %[[S0:.*]] = dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.buffer_load
  // CHECK-NEXT: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.warpgroup_wait 1, %[[S0]]
  // CHECK-NEXT: dgpu.mbarrier_arrive
  // CHECK-NEXT: math.exp2
  func.func @reads_a_row(%n: i32, %slot: i32, %bars: !dgpu.mbarriers<2>) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %q = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #q>
    %k = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #k>
    %rows = dgpu.buffer_alloc : !dgpu.buffer<2 x 1x64 x f32, #row>
    dgpu.warp_specialize consumer {
      %r = scf.for %i = %i0 to %n step %i1 iter_args(%c = %zero) -> (tensor<128x64xf32>) : i32 {
        %s0 = dgpu.warpgroup_dot %q[%i0], %k[%slot], %zero : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x64xf32>
        %row = dgpu.buffer_load %rows[%slot] : !dgpu.buffer<2 x 1x64 x f32, #row> -> tensor<1x64xf32>
        dgpu.mbarrier_arrive %bars[%slot] : !dgpu.mbarriers<2>
        %d0 = dgpu.warpgroup_dot %q[%i0], %k[%i1], %zero : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %d = dgpu.warpgroup_wait 0, %d0 : tensor<128x64xf32>
        %e = math.exp2 %s : tensor<128x64xf32>
        %f = tile.broadcast %row : tensor<1x64xf32> -> tensor<128x64xf32>
        %g = arith.mulf %f, %d : tensor<128x64xf32>
        %m = arith.mulf %e, %g : tensor<128x64xf32>
        scf.yield %m : tensor<128x64xf32>
      }
    } producer {
    }
    return
  }
}
