// Warpgroups of a consumer multiply and compute by turns, where they compute between dots.
// RUN: ditron-opt %s --dgpu-take-turns | FileCheck %s
// RUN: sed 's/num_warps = 8/num_warps = 4/' %s | ditron-opt --dgpu-take-turns | FileCheck %s --check-prefix=ALONE

#q = #dgpu.shared<128x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5 i6]>
#k = #dgpu.shared<64x64, bits = 16, offset = [i0 i1 i2 i3 i4 i5 i3^j0 i4^j1 i5^j2 j3 j4 j5]>

// One warpgroup has nobody to take turns with.
// ALONE-NOT: {{take|pass}}_turn
module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  // Both dots are started in one turn; the first one's result is computed with, and that is the others' turn.
  // CHECK-LABEL: func.func @computes
  // CHECK: consumer {
  // CHECK-NEXT: dgpu.pass_turn first
  // CHECK: scf.for
  // CHECK-NEXT: dgpu.take_turn{{$}}
  // CHECK-NEXT: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.warpgroup_dot
  // CHECK-NEXT: dgpu.pass_turn{{$}}
  // CHECK-NEXT: dgpu.warpgroup_wait 1
  // CHECK: }
  // CHECK-NEXT: dgpu.take_turn first
  // CHECK-NEXT: } producer {
  func.func @computes(%n: i32) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %none = arith.constant dense<0.0> : tensor<128x64xf16>
    %q = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #q>
    %k = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #k>
    dgpu.warp_specialize consumer {
      %r:2 = scf.for %i = %i0 to %n step %i1 iter_args(%c = %zero, %p = %none) -> (tensor<128x64xf32>, tensor<128x64xf16>) : i32 {
        %s0 = dgpu.warpgroup_dot %q[%i0], %k[%i0], %zero : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %o0 = dgpu.warpgroup_dot %p, %k[%i1], %c : tensor<128x64xf16>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %s = dgpu.warpgroup_wait 1, %s0 : tensor<128x64xf32>
        %e = math.exp2 %s : tensor<128x64xf32>
        %next = arith.truncf %e : tensor<128x64xf32> to tensor<128x64xf16>
        %o = dgpu.warpgroup_wait 0, %o0 : tensor<128x64xf32>
        scf.yield %o, %next : tensor<128x64xf32>, tensor<128x64xf16>
      }
    } producer {
    }
    return
  }

  // Dots that only accumulate queue up at the tensor core by themselves.
  // CHECK-LABEL: func.func @accumulates
  // CHECK-NOT: {{take|pass}}_turn
  // CHECK: return
  func.func @accumulates(%n: i32) {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %q = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #q>
    %k = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x f16, #k>
    dgpu.warp_specialize consumer {
      %r:2 = scf.for %i = %i0 to %n step %i1 iter_args(%c = %zero, %d = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>) : i32 {
        %s0 = dgpu.warpgroup_dot %q[%i0], %k[%i0], %c : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %o0 = dgpu.warpgroup_dot %q[%i0], %k[%i1], %d : !dgpu.buffer<1 x 128x64 x f16, #q>, !dgpu.buffer<2 x 64x64 x f16, #k> -> tensor<128x64xf32>
        %w:2 = dgpu.warpgroup_wait 2, %s0, %o0 : tensor<128x64xf32>, tensor<128x64xf32>
        scf.yield %w#0, %w#1 : tensor<128x64xf32>, tensor<128x64xf32>
      }
    } producer {
    }
    return
  }
}
