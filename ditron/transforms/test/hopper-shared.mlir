// Shared memory, lifetimes and barriers of mbarriers, rings of tensor copies and warpgroup dots.
// RUN: ditron-opt %s --dgpu-allocate-shared=limit-bytes=232448 --dgpu-insert-barriers --dgpu-verify-allocation | FileCheck %s

#x = #dgpu.layout<64x64, reg = {j0 j3 j4 j5 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#y = #dgpu.layout<64x64, reg = {j0 j1 i4 i5 i3}, lane = [j2 j3 j4 j5 i0], warp = [i1 i2]>
#s = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Partitions run side by side: neither the buffers nor the mbarriers share bytes with scratch memory in there. The producer needs no
  // barriers, and what is ordered by mbarriers needs none either.
  // CHECK-LABEL: func.func @partitions
  func.func @partitions(%map: !dgpu.tensor_map, %v: tensor<64x64xf32, #x>) {
    %c0 = arith.constant 0 : i32
    // CHECK: dgpu.buffer_alloc {offset_bytes = [[RING:[0-9]+]] : i64} : !dgpu.buffer<2 x
    %ring = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x bf16, #s>
    // CHECK: dgpu.mbarrier_alloc {count = 1 : i32, offset_bytes = [[BARS:[0-9]+]] : i64}
    %full = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<2>
    // CHECK-NOT: dgpu.barrier
    // CHECK: dgpu.convert_layout %{{.*}} {offset_bytes = 16384 : i64}
    // CHECK-NOT: dgpu.barrier
    // CHECK: } producer {
    // CHECK-NOT: dgpu.barrier
    // CHECK: return
    dgpu.warp_specialize consumer {
      dgpu.mbarrier_wait %full[%c0], %c0 : !dgpu.mbarriers<2>
      %r = dgpu.warpgroup_dot %ring[%c0], %ring[%c0], %v : !dgpu.buffer<2 x 64x64 x bf16, #s>, !dgpu.buffer<2 x 64x64 x bf16, #s> -> tensor<64x64xf32, #x>
      %w = dgpu.warpgroup_wait 0, %r : tensor<64x64xf32, #x>
      %y = dgpu.convert_layout %w : tensor<64x64xf32, #x> -> tensor<64x64xf32, #y>
    } producer {
      dgpu.mbarrier_expect %full[%c0], 8192 : !dgpu.mbarriers<2>
      dgpu.tma_load %map[%c0, %c0] to %ring[%c0], %full[%c0] : !dgpu.buffer<2 x 64x64 x bf16, #s>, !dgpu.mbarriers<2>
    }
    return
  }

  // A dot in flight keeps its operands' bytes to its wait; those of the dot before are free. A barrier separates the stores from
  // the reads of other warps, and these from the next stores.
  // CHECK-LABEL: func.func @stores
  func.func @stores(%v: tensor<64x64xf32, #x>, %a: tensor<64x64xbf16, #x>) {
    %c0 = arith.constant 0 : i32
    // CHECK: dgpu.buffer_alloc {offset_bytes = 0 : i64}
    // CHECK-NEXT: dgpu.buffer_store
    // CHECK-NEXT: dgpu.fence_async
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.warpgroup_dot
    // CHECK-NEXT: dgpu.buffer_alloc {offset_bytes = 8192 : i64}
    // CHECK-NEXT: dgpu.buffer_store
    // CHECK-NEXT: dgpu.fence_async
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.warpgroup_dot
    // CHECK-NEXT: dgpu.warpgroup_wait 0
    // CHECK-NEXT: dgpu.buffer_alloc {offset_bytes = 0 : i64}
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.buffer_store
    %one = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.buffer_store %a, %one[%c0] : tensor<64x64xbf16, #x>, !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.fence_async
    %d = dgpu.warpgroup_dot %one[%c0], %one[%c0], %v : !dgpu.buffer<1 x 64x64 x bf16, #s>, !dgpu.buffer<1 x 64x64 x bf16, #s> -> tensor<64x64xf32, #x>
    %two = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.buffer_store %a, %two[%c0] : tensor<64x64xbf16, #x>, !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.fence_async
    %e = dgpu.warpgroup_dot %two[%c0], %two[%c0], %d : !dgpu.buffer<1 x 64x64 x bf16, #s>, !dgpu.buffer<1 x 64x64 x bf16, #s> -> tensor<64x64xf32, #x>
    %w = dgpu.warpgroup_wait 0, %e : tensor<64x64xf32, #x>
    %three = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.buffer_store %a, %three[%c0] : tensor<64x64xbf16, #x>, !dgpu.buffer<1 x 64x64 x bf16, #s>
    %r = dgpu.buffer_load %three[%c0] : !dgpu.buffer<1 x 64x64 x bf16, #s> -> tensor<64x64xbf16, #x>
    return
  }

  // What a tensor store reads stays to the end of the kernel.
  // CHECK-LABEL: func.func @tensor_store
  // CHECK: dgpu.buffer_alloc {offset_bytes = [[STAGING:[0-9]+]] : i64}
  // CHECK: dgpu.convert_layout %{{.*}} {offset_bytes = {{0|8192}} : i64}
  func.func @tensor_store(%map: !dgpu.tensor_map, %v: tensor<64x64xbf16, #x>, %w: tensor<64x64xf32, #x>) {
    %c0 = arith.constant 0 : i32
    %b = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.buffer_store %v, %b[%c0] : tensor<64x64xbf16, #x>, !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.fence_async
    dgpu.barrier
    dgpu.tma_store %b[%c0] to %map[%c0, %c0] : !dgpu.buffer<1 x 64x64 x bf16, #s>
    %y = dgpu.convert_layout %w : tensor<64x64xf32, #x> -> tensor<64x64xf32, #y>
    return
  }

  // What the first loop leaves in flight is waited for behind it; the second one waits for its dots by itself, so that the bytes are free behind it.
  // CHECK-LABEL: func.func @later_reader
  func.func @later_reader(%v: tensor<64x64xf32, #x>, %a: tensor<64x64xbf16, #x>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: dgpu.buffer_alloc {offset_bytes = 0 : i64}
    // CHECK: dgpu.buffer_alloc {offset_bytes = 0 : i64}
    %one = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.buffer_store %a, %one[%c0] : tensor<64x64xbf16, #x>, !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.fence_async
    %f = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %v) -> tensor<64x64xf32, #x> : i32 {
      %d = dgpu.warpgroup_dot %one[%c0], %one[%c0], %sum : !dgpu.buffer<1 x 64x64 x bf16, #s>, !dgpu.buffer<1 x 64x64 x bf16, #s> -> tensor<64x64xf32, #x>
      scf.yield %d : tensor<64x64xf32, #x>
    }
    %w = dgpu.warpgroup_wait 0, %f : tensor<64x64xf32, #x>
    %g = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %w) -> tensor<64x64xf32, #x> : i32 {
      %d = dgpu.warpgroup_dot %one[%c0], %one[%c0], %sum : !dgpu.buffer<1 x 64x64 x bf16, #s>, !dgpu.buffer<1 x 64x64 x bf16, #s> -> tensor<64x64xf32, #x>
      %e = dgpu.warpgroup_wait 0, %d : tensor<64x64xf32, #x>
      scf.yield %e : tensor<64x64xf32, #x>
    }
    %two = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.buffer_store %a, %two[%c0] : tensor<64x64xbf16, #x>, !dgpu.buffer<1 x 64x64 x bf16, #s>
    dgpu.fence_async
    %h = dgpu.warpgroup_dot %two[%c0], %two[%c0], %g : !dgpu.buffer<1 x 64x64 x bf16, #s>, !dgpu.buffer<1 x 64x64 x bf16, #s> -> tensor<64x64xf32, #x>
    %u = dgpu.warpgroup_wait 0, %h : tensor<64x64xf32, #x>
    return
  }
}
