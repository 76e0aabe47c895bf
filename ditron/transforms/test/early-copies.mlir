// The first copies of a loop start with those of the loop in front of it.
// RUN: ditron-opt %s --dgpu-early-copies --dgpu-verify-layouts | FileCheck %s
// RUN: ditron-opt %s --dgpu-early-copies=limit-bytes=49152 | FileCheck %s --check-prefix=SMALL
// RUN: ditron-opt %s --dgpu-early-copies=limit-bytes=49152 --remarks-filter=dgpu-early-copies --remark-format=emitRemark -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

#row = #dgpu.layout<64x64, reg = {j0 j1 i4 i5}, lane = [j2 j3 j4 j5 i0], warp = [i1 i2 i3]>
#s = #dgpu.shared<64x64, bits = 32, offset = [j0 j1 j2 j3 j4 j5 i0 i1 i2 i3 i4 i5]>
#sums = #dgpu.layout<256x128, reg = {j0 j1 i3 i4 i5 i6 i7}, lane = [j2 j3 j4 j5 j6], warp = [i0 i1 i2]>
!ring = !dgpu.buffer<2 x 64x64 x f32, #s>

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32} {
  // The second loop's ring is filled in the last group that the first one begins with; the wait behind the first loop is one for both.
  // CHECK-LABEL: func.func @two_loops
  // CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<64x64x!tile.ptr<f32>
  // CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<64x64x!tile.ptr<f32>
  // CHECK: %[[FIRST:.*]] = dgpu.buffer_alloc
  // CHECK-NEXT: dgpu.async_copy %[[P]] to %[[FIRST]]
  // CHECK-NEXT: %[[NEXT:.*]] = tile.addptr %[[Q]]
  // CHECK-NEXT: %[[SECOND:.*]] = dgpu.buffer_alloc
  // CHECK-NEXT: dgpu.async_copy %[[NEXT]] to %[[SECOND]]
  // CHECK-NEXT: dgpu.async_commit
  // CHECK-NEXT: scf.for
  // CHECK: }
  // CHECK-NEXT: dgpu.async_wait 0
  // CHECK-NEXT: scf.for
  // Both rings, 64 KiB, would not fit; the sums leave registers for one block only.
  // SMALL-LABEL: func.func @two_loops
  // SMALL: scf.for
  // SMALL: }
  // SMALL-NEXT: dgpu.async_wait 0
  // SMALL-NEXT: dgpu.buffer_alloc
  // SMALL: dgpu.async_copy
  // SMALL-NEXT: dgpu.async_commit
  // SMALL-NEXT: scf.for
  // REMARK: remark: [Missed] copies {{.*}} Remark="the first copies start behind the loop before: both rings would need 65536 bytes"
  func.func @two_loops(%p: tensor<64x64x!tile.ptr<f32>, #row>, %q: tensor<64x64x!tile.ptr<f32>, #row>, %by: tensor<64x64xi32, #row>, %n: i32, %sums: tensor<256x128xf32, #sums>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %first = dgpu.buffer_alloc : !ring
    dgpu.async_copy %p to %first[%c0] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
    dgpu.async_commit
    scf.for %i = %c0 to %n step %c1 : i32 {
      dgpu.async_wait 0
      dgpu.async_copy %p to %first[%c1] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
      dgpu.async_commit
      %more = arith.addf %sums, %sums : tensor<256x128xf32, #sums>
    }
    dgpu.async_wait 0
    %second = dgpu.buffer_alloc : !ring
    %next = tile.addptr %q, %by : tensor<64x64x!tile.ptr<f32>, #row>, tensor<64x64xi32, #row>
    dgpu.async_copy %next to %second[%c0] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
    dgpu.async_commit
    scf.for %i = %c0 to %n step %c1 : i32 {
      dgpu.async_wait 0
      dgpu.async_copy %next to %second[%c1] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
      dgpu.async_commit
      %more = arith.addf %sums, %sums : tensor<256x128xf32, #sums>
    }
    dgpu.async_wait 0
    return
  }

  // The first loop's results say where the second one begins.
  // CHECK-LABEL: func.func @follows
  // CHECK: scf.for
  // CHECK: }
  // CHECK-NEXT: dgpu.async_wait 0
  // CHECK-NEXT: dgpu.buffer_alloc
  // CHECK-NEXT: dgpu.async_copy
  // CHECK-NEXT: dgpu.async_commit
  // CHECK-NEXT: scf.for
  func.func @follows(%p: tensor<64x64x!tile.ptr<f32>, #row>, %by: tensor<64x64xi32, #row>, %n: i32, %sums: tensor<256x128xf32, #sums>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %first = dgpu.buffer_alloc : !ring
    dgpu.async_copy %p to %first[%c0] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
    dgpu.async_commit
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%at = %p) -> (tensor<64x64x!tile.ptr<f32>, #row>) : i32 {
      dgpu.async_wait 0
      %next = tile.addptr %at, %by : tensor<64x64x!tile.ptr<f32>, #row>, tensor<64x64xi32, #row>
      dgpu.async_copy %next to %first[%c1] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
      dgpu.async_commit
      %more = arith.addf %sums, %sums : tensor<256x128xf32, #sums>
      scf.yield %next : tensor<64x64x!tile.ptr<f32>, #row>
    }
    dgpu.async_wait 0
    %second = dgpu.buffer_alloc : !ring
    dgpu.async_copy %last to %second[%c0] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
    dgpu.async_commit
    scf.for %i = %c0 to %n step %c1 : i32 {
      dgpu.async_wait 0
      dgpu.async_copy %p to %second[%c1] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
      dgpu.async_commit
      %more = arith.addf %sums, %sums : tensor<256x128xf32, #sums>
    }
    dgpu.async_wait 0
    return
  }

  // What is stored in between may be what the second loop copies.
  // CHECK-LABEL: func.func @stores
  // CHECK: scf.for
  // CHECK: tile.store
  // CHECK-NEXT: dgpu.buffer_alloc
  // CHECK-NEXT: dgpu.async_copy
  // CHECK-NEXT: dgpu.async_commit
  // CHECK-NEXT: scf.for
  func.func @stores(%p: tensor<64x64x!tile.ptr<f32>, #row>, %v: tensor<64x64xf32, #row>, %n: i32, %sums: tensor<256x128xf32, #sums>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %first = dgpu.buffer_alloc : !ring
    dgpu.async_copy %p to %first[%c0] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
    dgpu.async_commit
    scf.for %i = %c0 to %n step %c1 : i32 {
      dgpu.async_wait 0
      dgpu.async_copy %p to %first[%c1] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
      dgpu.async_commit
      %more = arith.addf %sums, %sums : tensor<256x128xf32, #sums>
    }
    dgpu.async_wait 0
    tile.store %p, %v : tensor<64x64x!tile.ptr<f32>, #row>, tensor<64x64xf32, #row>
    %second = dgpu.buffer_alloc : !ring
    dgpu.async_copy %p to %second[%c0] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
    dgpu.async_commit
    scf.for %i = %c0 to %n step %c1 : i32 {
      dgpu.async_wait 0
      dgpu.async_copy %p to %second[%c1] : tensor<64x64x!tile.ptr<f32>, #row>, !ring
      dgpu.async_commit
      %more = arith.addf %sums, %sums : tensor<256x128xf32, #sums>
    }
    dgpu.async_wait 0
    return
  }
}
