// Buffers and scratch memory: who lives together gets different bytes, who does not may share them.
// RUN: ditron-opt %s --dgpu-allocate-shared --dgpu-verify-allocation | FileCheck %s
// RUN: ditron-opt %s --dgpu-allocate-shared --remarks-filter=.* --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

#x = #dgpu.layout<32x32, reg = {j0 j1 i4}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]>
#y = #dgpu.layout<32x32, reg = {j4 i0 i1}, lane = [i2 i3 i4 j0 j1], warp = [j2 j3]>
#v = #dgpu.layout<256, reg = {i7}, lane = [i0 i1 i2 i3 i4], warp = [i5 i6]>
#copies = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [* *]>
#big = #dgpu.layout<128x64, reg = {j0 j1 i3 i4 i5 i6}, lane = [j2 j3 j4 j5 i0], warp = [i1 i2]>
#bigT = #dgpu.layout<128x64, reg = {j2 j3 j4 j5 i0 i1}, lane = [i2 i3 i4 i5 i6], warp = [j0 j1]>
#s = #dgpu.shared<32x32, bits = 32, offset = [j0 j1 j2 j3 j4 i0 i1 i2 i3 i4]>

// CHECK: dgpu.shared_bytes = 32768 : i64
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @reuse
  func.func @reuse(%p: tensor<32x32x!tile.ptr<f32>, #x>, %v: tensor<32x32xf32, #x>, %n: i32) -> tensor<32x32xf32, #y> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: dgpu.buffer_alloc {offset_bytes = 0 : i64}
    %b = dgpu.buffer_alloc : !dgpu.buffer<2 x 32x32 x f32, #s>
    dgpu.async_copy %p to %b[%c0] : tensor<32x32x!tile.ptr<f32>, #x>, !dgpu.buffer<2 x 32x32 x f32, #s>
    dgpu.async_commit
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %v) -> (tensor<32x32xf32, #x>) : i32 {
      // Used in the loop, so alive in all of it.
      %l = dgpu.buffer_load %b[%c0] : !dgpu.buffer<2 x 32x32 x f32, #s> -> tensor<32x32xf32, #x>
      // CHECK: dgpu.convert_layout {{.*}} {offset_bytes = 8192 : i64}
      // REMARK: remark: [Missed] convert_layout {{.*}} Remark="layout conversion, shared: 4096 bytes
      %y = dgpu.convert_layout %l : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
      %z = arith.negf %y : tensor<32x32xf32, #y>
      // Other bytes in the same block, though the first conversion is over: no barrier is needed between the two.
      // CHECK: dgpu.convert_layout {{.*}} {offset_bytes = 12288 : i64}
      %x = dgpu.convert_layout %z : tensor<32x32xf32, #y> -> tensor<32x32xf32, #x>
      %s = arith.addf %acc, %x : tensor<32x32xf32, #x>
      scf.yield %s : tensor<32x32xf32, #x>
    }
    // Copies in flight keep the buffer alive until they are waited for.
    // CHECK: dgpu.convert_layout {{.*}} {offset_bytes = 8192 : i64}
    %before = dgpu.convert_layout %r : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    dgpu.async_wait 0
    // CHECK: dgpu.convert_layout {{.*}} {offset_bytes = 0 : i64}
    %neg = arith.negf %r : tensor<32x32xf32, #x>
    %after = dgpu.convert_layout %neg : tensor<32x32xf32, #x> -> tensor<32x32xf32, #y>
    %sum = arith.addf %before, %after : tensor<32x32xf32, #y>
    return %sum : tensor<32x32xf32, #y>
  }

  // Reductions across warps, and atomics whose result is used by threads that did not perform them.
  // CHECK-LABEL: func.func @scratch
  func.func @scratch(%v: tensor<256xf32, #v>, %p: !tile.ptr<f32>, %pw: tensor<32x!tile.ptr<f32>, #copies>, %w: tensor<32xf32, #copies>)
      -> (f32, f32, tensor<32xf32, #copies>) {
    // One value for each of the four warps.
    // CHECK: tile.reduce
    // CHECK: {offset_bytes = 512 : i64}
    %s = tile.reduce(%v) axis 0 {
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tile.yield %m : f32
    } : (tensor<256xf32, #v>) -> f32
    // CHECK: tile.atomic_rmw fadd {{.*}} {offset_bytes = 528 : i64} : !tile.ptr<f32>
    %old = tile.atomic_rmw fadd relaxed gpu %p, %s : !tile.ptr<f32>, f32 -> f32
    // CHECK: tile.atomic_rmw fadd
    // CHECK-NOT: offset_bytes
    %unused = tile.atomic_rmw fadd relaxed gpu %p, %s : !tile.ptr<f32>, f32 -> f32
    // CHECK: tile.atomic_rmw fadd {{.*}} {offset_bytes = 0 : i64} : tensor<32x!tile.ptr<f32>
    %olds = tile.atomic_rmw fadd relaxed gpu %pw, %w : tensor<32x!tile.ptr<f32>, #copies>, tensor<32xf32, #copies> -> tensor<32xf32, #copies>
    return %s, %old, %olds : f32, f32, tensor<32xf32, #copies>
  }

  // Beyond 32 KiB bytes are worth more than barriers.
  // CHECK-LABEL: func.func @tight
  func.func @tight(%w: tensor<128x64xf16, #big>, %u: tensor<128x64xf32, #big>)
      -> (tensor<128x64xf16, #bigT>, tensor<128x64xf32, #bigT>) {
    // CHECK: dgpu.convert_layout {{.*}} {offset_bytes = 0 : i64} : tensor<128x64xf16
    %a = dgpu.convert_layout %w : tensor<128x64xf16, #big> -> tensor<128x64xf16, #bigT>
    // CHECK: dgpu.convert_layout {{.*}} {offset_bytes = 0 : i64} : tensor<128x64xf32
    %b = dgpu.convert_layout %u : tensor<128x64xf32, #big> -> tensor<128x64xf32, #bigT>
    return %a, %b : tensor<128x64xf16, #bigT>, tensor<128x64xf32, #bigT>
  }
}
