// The dot that consumes another one's result runs beside the next turn of its loop.
// RUN: ditron-opt %s --dgpu-delay-dots --canonicalize | FileCheck %s
// RUN: ditron-opt %s --dgpu-delay-dots --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#q = #dgpu.shared<128x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5 i6]>
#k = #dgpu.shared<64x64, bits = 16, offset = [i0 i1 i2 i3 i4 i5 i3^j0 i4^j1 i5^j2 j3 j4 j5]>
#v = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  // The first turn stands before the loop without its last dot, the last turn's dot behind it. In the loop the dot of the turn before,
  // with its own slot, starts behind the turn's first one, which alone is waited for until the row is computed; what scales the result
  // comes last. The dot in flight keeps its A.
  // REMARK: remark: [Passed] delay | Category:dgpu-delay-dots | Remark="the last dot of a turn runs beside the next turn"
  // CHECK-LABEL: func.func @chain
  // CHECK: %[[FK:.*]] = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<3>
  // CHECK: %[[EK:.*]] = dgpu.mbarrier_alloc {count = 8 : i32} : !dgpu.mbarriers<3>
  // CHECK: %[[FV:.*]] = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<2>
  // CHECK: %[[EV:.*]] = dgpu.mbarrier_alloc {count = 8 : i32} : !dgpu.mbarriers<2>
  // CHECK: %[[HAS:.*]] = arith.cmpi slt, %[[LOWER:arg[0-9]+]], %[[UPPER:arg[0-9]+]] : i32
  // CHECK: scf.if %[[HAS]]
  // CHECK: dgpu.mbarrier_wait %[[FK]]
  // CHECK-NEXT: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.warpgroup_wait 0
  // CHECK-NEXT: dgpu.mbarrier_arrive %[[EK]]
  // CHECK-NOT: %[[FV]]
  // CHECK: %[[REST:.*]] = arith.subi %[[UPPER]], %[[LOWER]]
  // CHECK: %[[STEP:.*]] = arith.minui %{{.*}}, %[[REST]]
  // CHECK: %[[SECOND:.*]] = arith.addi %[[LOWER]], %[[STEP]]
  // CHECK: scf.for %{{.*}} = %[[SECOND]] to %[[UPPER]] step %{{.*}} iter_args(%[[ROW:[a-z0-9]+]] = %{{.*}}, %[[SLOT:[a-z0-9]+]] = %{{.*}}, %[[PARITY:[a-z0-9]+]] = %{{.*}}, %[[SLOTB:[a-z0-9]+]] = %{{.*}}, %[[PARITYB:[a-z0-9]+]] = %{{.*}}, %[[P:[a-z0-9]+]] = %{{.*}}, %[[C:[a-z0-9]+]] = %{{.*}})
  // CHECK-NEXT: dgpu.mbarrier_wait %[[FK]][%[[SLOT]]], %[[PARITY]]
  // CHECK-NEXT: %[[S:.*]] = dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.mbarrier_wait %[[FV]][%[[SLOTB]]], %[[PARITYB]]
  // CHECK-NEXT: %[[O:.*]] = dgpu.warpgroup_dot %[[P]], %{{.*}}[%[[SLOTB]]], %[[C]]
  // CHECK-NEXT: dgpu.warpgroup_wait 1, %[[S]]
  // CHECK-NEXT: dgpu.mbarrier_arrive %[[EK]][%[[SLOT]]]
  // CHECK: %[[E:.*]] = math.exp2
  // CHECK: %[[SUM:.*]] = arith.addf %[[ROW]]
  // CHECK: %[[NEXT:.*]] = arith.truncf %[[E]]
  // CHECK: %[[W:.*]]:3 = dgpu.warpgroup_wait 0, %[[O]], %[[P]], %[[SUM]]
  // CHECK-NEXT: dgpu.mbarrier_arrive %[[EV]][%[[SLOTB]]]
  // CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[W]]#0, %[[E]]
  // CHECK-NEXT: scf.yield %[[SUM]], %{{.*}}, %{{.*}}, %[[SLOT]], %[[PARITY]], %[[NEXT]], %[[SCALED]]
  // CHECK: dgpu.mbarrier_wait %[[FV]]
  // CHECK-NEXT: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.warpgroup_wait 0
  // CHECK-NEXT: dgpu.mbarrier_arrive %[[EV]]
  // CHECK-NEXT: scf.yield
  // CHECK-NEXT: } else {
  // CHECK-NEXT: scf.yield
  // The producer fetches in the order in which the tiles are asked for.
  // CHECK: } producer {
  // CHECK: scf.if
  // CHECK: dgpu.mbarrier_wait %[[EK]]
  // CHECK-NEXT: dgpu.mbarrier_expect %[[FK]]
  // CHECK-NEXT: dgpu.tma_load
  // CHECK-NOT: %[[FV]]
  // CHECK: scf.for %[[I:[a-z0-9]+]] = %{{.*}} iter_args(%[[PS:[a-z0-9]+]] = %{{.*}}, %[[PP:[a-z0-9]+]] = %{{.*}}, %[[BEFORE:[a-z0-9]+]] = %{{.*}}, %[[BP:[a-z0-9]+]] = %{{.*}}, %[[BI:[a-z0-9]+]] = %{{.*}})
  // CHECK: dgpu.mbarrier_wait %[[EK]][%[[PS]]], %[[PP]]
  // CHECK-NEXT: dgpu.mbarrier_expect %[[FK]][%[[PS]]]
  // CHECK-NEXT: dgpu.tma_load %{{.*}}[%[[I]], %{{.*}}]
  // CHECK: dgpu.mbarrier_wait %[[EV]][%[[BEFORE]]], %[[BP]]
  // CHECK-NEXT: dgpu.mbarrier_expect %[[FV]][%[[BEFORE]]]
  // CHECK-NEXT: dgpu.tma_load %{{.*}}[%[[BI]], %{{.*}}]
  // CHECK-NEXT: scf.yield
  // CHECK: dgpu.mbarrier_expect %[[FV]]
  // CHECK-NEXT: dgpu.tma_load
  func.func @chain(%map: !dgpu.tensor_map, %lower: i32, %n: i32, %step: i32, %out: !tile.ptr<f32>) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %none = arith.constant dense<0.0> : tensor<128xf32>
    %q = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #q>
    %kt = dgpu.buffer_alloc : !dgpu.buffer<3 x 64x64 x f16, #v>
    %k = dgpu.buffer_permute %kt [1, 0] : !dgpu.buffer<3 x 64x64 x f16, #v> -> !dgpu.buffer<3 x 64x64 x f16, #k>
    %fk = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<3>
    %ek = dgpu.mbarrier_alloc {count = 8 : i32} : !dgpu.mbarriers<3>
    %v = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #v>
    %fv = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<2>
    %ev = dgpu.mbarrier_alloc {count = 8 : i32} : !dgpu.mbarriers<2>
    dgpu.warp_specialize consumer {
      %r:4 = scf.for %i = %lower to %n step %step iter_args(%acc = %zero, %row = %none, %slot = %i0, %parity = %i0) -> (tensor<128x64xf32>, tensor<128xf32>, i32, i32) : i32 {
        dgpu.mbarrier_wait %fk[%slot], %parity : !dgpu.mbarriers<3>
        %s0 = dgpu.warpgroup_dot %q[%i0], %k[%slot], %zero : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<3 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x64xf32>
        dgpu.mbarrier_arrive %ek[%slot] : !dgpu.mbarriers<3>
        %e = math.exp2 %s : tensor<128x64xf32>
        %part = tile.reduce(%e) axis 1 {
        ^bb0(%x: f32, %y: f32):
          %z = arith.addf %x, %y : f32
          tile.yield %z : f32
        } : (tensor<128x64xf32>) -> tensor<128xf32>
        %sum = arith.addf %row, %part : tensor<128xf32>
        %scaled = arith.mulf %acc, %e : tensor<128x64xf32>
        %p = arith.truncf %e : tensor<128x64xf32> to tensor<128x64xf16>
        dgpu.mbarrier_wait %fv[%slot], %parity : !dgpu.mbarriers<2>
        %o0 = dgpu.warpgroup_dot %p, %v[%slot], %scaled : tensor<128x64xf16>, !dgpu.buffer<2 x 64x64 x f16, #v> -> tensor<128x64xf32>
        %o = dgpu.warpgroup_wait 0, %o0 : tensor<128x64xf32>
        dgpu.mbarrier_arrive %ev[%slot] : !dgpu.mbarriers<2>
        %next = arith.xori %slot, %i1 : i32
        %flipped = arith.xori %parity, %slot : i32
        scf.yield %o, %sum, %next, %flipped : tensor<128x64xf32>, tensor<128xf32>, i32, i32
      }
      %to = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>>
      tile.store %to, %r#0 : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xf32>
    } producer {
      %r:2 = scf.for %i = %lower to %n step %step iter_args(%slot = %i0, %parity = %i0) -> (i32, i32) : i32 {
        dgpu.mbarrier_wait %ek[%slot], %parity : !dgpu.mbarriers<3>
        dgpu.mbarrier_expect %fk[%slot], 8192 : !dgpu.mbarriers<3>
        dgpu.tma_load %map[%i, %i0] to %kt[%slot], %fk[%slot] : !dgpu.buffer<3 x 64x64 x f16, #v>, !dgpu.mbarriers<3>
        dgpu.mbarrier_wait %ev[%slot], %parity : !dgpu.mbarriers<2>
        dgpu.mbarrier_expect %fv[%slot], 8192 : !dgpu.mbarriers<2>
        dgpu.tma_load %map[%i, %i0] to %v[%slot], %fv[%slot] : !dgpu.buffer<2 x 64x64 x f16, #v>, !dgpu.mbarriers<2>
        %next = arith.xori %slot, %i1 : i32
        %flipped = arith.xori %parity, %slot : i32
        scf.yield %next, %flipped : i32, i32
      }
    }
    return
  }

  // A producer that may be ahead by no turn would wait for the release that comes a turn later.
  // REMARK: remark: [Missed] delay | Category:dgpu-delay-dots | Remark="no dot is delayed: a ring of the last dot has one slot only"
  // CHECK-LABEL: func.func @one_slot
  // CHECK-NOT: scf.if
  // CHECK: dgpu.warpgroup_wait 0
  // CHECK: dgpu.warpgroup_wait 0
  func.func @one_slot(%n: i32) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %q = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #q>
    %v = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x f16, #v>
    %fv = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<1>
    %ev = dgpu.mbarrier_alloc {count = 8 : i32} : !dgpu.mbarriers<1>
    dgpu.warp_specialize consumer {
      %r = scf.for %i = %i0 to %n step %i1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
        %s0 = dgpu.warpgroup_dot %q[%i0], %v[%i0], %zero : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<1 x 64x64 x f16, #v> -> tensor<128x64xf32>
        %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x64xf32>
        %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
        dgpu.mbarrier_wait %fv[%i0], %i0 : !dgpu.mbarriers<1>
        %o0 = dgpu.warpgroup_dot %p, %v[%i0], %acc : tensor<128x64xf16>, !dgpu.buffer<1 x 64x64 x f16, #v> -> tensor<128x64xf32>
        %o = dgpu.warpgroup_wait 0, %o0 : tensor<128x64xf32>
        dgpu.mbarrier_arrive %ev[%i0] : !dgpu.mbarriers<1>
        scf.yield %o : tensor<128x64xf32>
      }
    } producer {
    }
    return
  }

  // The first dot takes what the last one made: nothing can run beside it.
  // REMARK: remark: [Missed] delay | Category:dgpu-delay-dots | Remark="no dot is delayed: more than the last dot depends on its result"
  // CHECK-LABEL: func.func @recurrence
  // CHECK-NOT: scf.if
  func.func @recurrence(%n: i32) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %q = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #q>
    %v = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #v>
    %ev = dgpu.mbarrier_alloc {count = 8 : i32} : !dgpu.mbarriers<2>
    dgpu.warp_specialize consumer {
      %r = scf.for %i = %i0 to %n step %i1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
        %s0 = dgpu.warpgroup_dot %q[%i0], %v[%i0], %acc : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #v> -> tensor<128x64xf32>
        %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x64xf32>
        %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
        %o0 = dgpu.warpgroup_dot %p, %v[%i0], %zero : tensor<128x64xf16>, !dgpu.buffer<2 x 64x64 x f16, #v> -> tensor<128x64xf32>
        %o = dgpu.warpgroup_wait 0, %o0 : tensor<128x64xf32>
        dgpu.mbarrier_arrive %ev[%i0] : !dgpu.mbarriers<2>
        scf.yield %o : tensor<128x64xf32>
      }
    } producer {
    }
    return
  }

  // Whoever is told that the turn is over may write what its tiles are fetched from.
  // REMARK: remark: [Missed] delay | Category:dgpu-delay-dots | Remark="no dot is delayed: the loop has other effects, of 'tile.store'"
  // CHECK-LABEL: func.func @told
  // CHECK-NOT: scf.if
  // CHECK: return
  func.func @told(%n: i32, %flag: !tile.ptr<i32>) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %q = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #q>
    %v = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #v>
    %ev = dgpu.mbarrier_alloc {count = 8 : i32} : !dgpu.mbarriers<2>
    dgpu.warp_specialize consumer {
      %r = scf.for %i = %i0 to %n step %i1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
        %s0 = dgpu.warpgroup_dot %q[%i0], %v[%i0], %zero : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #v> -> tensor<128x64xf32>
        %s = dgpu.warpgroup_wait 0, %s0 : tensor<128x64xf32>
        %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
        %o0 = dgpu.warpgroup_dot %p, %v[%i0], %acc : tensor<128x64xf16>, !dgpu.buffer<2 x 64x64 x f16, #v> -> tensor<128x64xf32>
        %o = dgpu.warpgroup_wait 0, %o0 : tensor<128x64xf32>
        dgpu.mbarrier_arrive %ev[%i0] : !dgpu.mbarriers<2>
        tile.store %flag, %i : !tile.ptr<i32>, i32
        scf.yield %o : tensor<128x64xf32>
      }
    } producer {
    }
    return
  }
}
