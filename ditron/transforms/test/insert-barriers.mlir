// Barriers where threads would race, and only there. Offsets are given, as allocation would have.
// RUN: ditron-opt %s --dgpu-insert-barriers | FileCheck %s

#x = #dgpu.layout<32x32, reg = {j0 j1 i4}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]>
#y = #dgpu.layout<32x32, reg = {j4 i0 i1}, lane = [i2 i3 i4 j0 j1], warp = [j2 j3]>
#s = #dgpu.shared<32x32, bits = 32, offset = [j0 j1 j2 j3 j4 i0 i1 i2 i3 i4]>
!ring = !dgpu.buffer<2 x 32x32 x f32, #s>

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.shared_bytes = 16384 : i64} {
  // A read after a write, a write after a read; slots that are constants are different bytes.
  // CHECK-LABEL: func.func @store_load
  func.func @store_load(%v: tensor<32x32xf32, #x>) -> (tensor<32x32xf32, #y>, tensor<32x32xf32, #y>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = dgpu.buffer_alloc {offset_bytes = 0 : i64} : !ring
    // CHECK: dgpu.buffer_store
    // CHECK-NEXT: dgpu.buffer_store
    dgpu.buffer_store %v, %b[%c0] : tensor<32x32xf32, #x>, !ring
    dgpu.buffer_store %v, %b[%c1] : tensor<32x32xf32, #x>, !ring
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.buffer_load
    // CHECK-NEXT: dgpu.buffer_load
    %l0 = dgpu.buffer_load %b[%c0] : !ring -> tensor<32x32xf32, #y>
    %l1 = dgpu.buffer_load %b[%c1] : !ring -> tensor<32x32xf32, #y>
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.buffer_store
    dgpu.buffer_store %v, %b[%c0] : tensor<32x32xf32, #x>, !ring
    return %l0, %l1 : tensor<32x32xf32, #y>, tensor<32x32xf32, #y>
  }

  // A conversion writes, has a barrier inside, and reads. The next one at the same place needs one barrier before it, at another
  // place none.
  // CHECK-LABEL: func.func @conversions
  func.func @conversions(%v: tensor<32x32xf32, #x>, %w: tensor<32x32xf32, #y>)
      -> (tensor<32x32xf32, #y>, tensor<32x32xf32, #x>, tensor<32x32xf32, #y>) {
    // CHECK-NEXT: dgpu.convert_layout
    // CHECK-NEXT: dgpu.convert_layout
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: arith.negf
    %y = dgpu.convert_layout %v {offset_bytes = 0 : i64} : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    %x = dgpu.convert_layout %w {offset_bytes = 4096 : i64} : tensor<32x32xf32, #y> -> tensor<32x32xf32, #x>
    dgpu.barrier
    %n = arith.negf %v : tensor<32x32xf32, #x>
    // CHECK-NEXT: dgpu.convert_layout
    %z = dgpu.convert_layout %n {offset_bytes = 0 : i64} : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    return %y, %x, %z : tensor<32x32xf32, #y>, tensor<32x32xf32, #x>, tensor<32x32xf32, #y>
  }

  // What a loop reads last is in the way of what it writes first in the next iteration.
  // CHECK-LABEL: func.func @loop
  func.func @loop(%v: tensor<32x32xf32, #x>, %n: i32, %zero: tensor<32x32xf32, #y>) -> tensor<32x32xf32, #y> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: scf.for
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.convert_layout
    // CHECK-NOT: dgpu.barrier
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32, #y>) : i32 {
      %y = dgpu.convert_layout %v {offset_bytes = 0 : i64} : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
      %s = arith.addf %acc, %y : tensor<32x32xf32, #y>
      scf.yield %s : tensor<32x32xf32, #y>
    }
    return %r : tensor<32x32xf32, #y>
  }

  // One branch writes: the read after the branch needs the barrier.
  // CHECK-LABEL: func.func @branch
  func.func @branch(%v: tensor<32x32xf32, #x>, %c: i1) -> tensor<32x32xf32, #y> {
    %c0 = arith.constant 0 : i32
    %b = dgpu.buffer_alloc {offset_bytes = 0 : i64} : !ring
    // CHECK: scf.if
    scf.if %c {
      dgpu.buffer_store %v, %b[%c0] : tensor<32x32xf32, #x>, !ring
    }
    // CHECK: }
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.buffer_load
    %l = dgpu.buffer_load %b[%c0] : !ring -> tensor<32x32xf32, #y>
    return %l : tensor<32x32xf32, #y>
  }

  // The user's own barrier counts.
  // CHECK-LABEL: func.func @sync_threads
  func.func @sync_threads(%v: tensor<32x32xf32, #x>) -> tensor<32x32xf32, #y> {
    %c0 = arith.constant 0 : i32
    %b = dgpu.buffer_alloc {offset_bytes = 0 : i64} : !ring
    dgpu.buffer_store %v, %b[%c0] : tensor<32x32xf32, #x>, !ring
    // CHECK-NOT: dgpu.barrier
    // CHECK: dist.sync_threads
    // CHECK-NEXT: dgpu.buffer_load
    dist.sync_threads
    %l = dgpu.buffer_load %b[%c0] : !ring -> tensor<32x32xf32, #y>
    return %l : tensor<32x32xf32, #y>
  }

  // Asynchronous copies become visible to the others by wait and barrier. Copies in flight go to other slots than the reads.
  // CHECK-LABEL: func.func @async
  func.func @async(%p: tensor<32x32x!tile.ptr<f32>, #x>, %slot: i32) -> tensor<32x32xf32, #y> {
    %c0 = arith.constant 0 : i32
    %b = dgpu.buffer_alloc {offset_bytes = 0 : i64} : !ring
    dgpu.async_copy %p to %b[%c0] : tensor<32x32x!tile.ptr<f32>, #x>, !ring
    dgpu.async_commit
    // CHECK: dgpu.async_wait 0
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.async_copy
    dgpu.async_wait 0
    dgpu.async_copy %p to %b[%slot] : tensor<32x32x!tile.ptr<f32>, #x>, !ring
    // CHECK-NEXT: dgpu.async_commit
    // CHECK-NEXT: dgpu.buffer_load
    dgpu.async_commit
    %l = dgpu.buffer_load %b[%c0] : !ring -> tensor<32x32xf32, #y>
    dgpu.async_wait 0
    return %l : tensor<32x32xf32, #y>
  }
}
