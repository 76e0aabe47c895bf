// Every operation of the dialect is printed as it is parsed; layouts become aliases.
// RUN: ditron-opt %s | ditron-opt | FileCheck %s
// RUN: ditron-opt %s --mlir-print-op-generic | ditron-opt | FileCheck %s

// CHECK-DAG: #[[ROWS:L[0-9]*]] = #dgpu.layout<16x32, reg = {j0 j1}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]>
// CHECK-DAG: #[[COLS:L[0-9]*]] = #dgpu.layout<16x32, reg = {i0 i1}, lane = [i2 i3 j0 j1 j2], warp = [j3 j4]>
// CHECK-DAG: #[[COPIES:L[0-9]*]] = #dgpu.layout<16, reg = {}, lane = [* * * i0 i1], warp = [i2 i3]>
// CHECK-DAG: #[[SWIZZLE:S[0-9]*]] = #dgpu.shared<16x32, bits = 16, offset = [j0 j1 j2 j3 j4 i0 i1^j3 i2^j4 i3]>
#rows = #dgpu.layout<16x32, reg = {j0 j1}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]>
#cols = #dgpu.layout<16x32, reg = {i0 i1}, lane = [i2 i3 j0 j1 j2], warp = [j3 j4]>
#c = #dgpu.layout<64x128, reg = {j0 j3 j4 j5 j6 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#copies = #dgpu.layout<16, reg = {}, lane = [* * * i0 i1], warp = [i2 i3]>
#swizzle = #dgpu.shared<16x32, bits = 16, offset = [j0 j1 j2 j3 j4 i0 i1^j3 i2^j4 i3]>

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @convert
  // CHECK-SAME: tensor<16x32xf16, #[[ROWS]]>
  // CHECK-SAME: tensor<16xf32, #[[COPIES]]>
  func.func @convert(%x: tensor<16x32xf16, #rows>, %y: tensor<16xf32, #copies>) -> tensor<16x32xf16, #cols> {
    // CHECK: dgpu.convert_layout %{{.*}} : tensor<16x32xf16, #[[ROWS]]> -> tensor<16x32xf16, #[[COLS]]>
    %0 = dgpu.convert_layout %x : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #cols>
    // CHECK: dgpu.convert_layout %{{.*}} {offset_bytes = 256 : i64} : tensor<16x32xf16, #[[COLS]]> -> tensor<16x32xf16, #[[ROWS]]>
    %1 = dgpu.convert_layout %0 {offset_bytes = 256 : i64} : tensor<16x32xf16, #cols> -> tensor<16x32xf16, #rows>
    return %0 : tensor<16x32xf16, #cols>
  }

  // CHECK-LABEL: func.func @scale
  func.func @scale(%x: tensor<64x128xf32, #c>, %factors: tensor<64x128xf32, #c>) -> tensor<64x128xf32, #c> {
    // CHECK: dgpu.scale %{{.*}}, %{{.*}} : tensor<64x128xf32, #{{.*}}>
    %y = dgpu.scale %x, %factors : tensor<64x128xf32, #c>
    return %y : tensor<64x128xf32, #c>
  }

  // CHECK-LABEL: func.func @buffers
  func.func @buffers(%x: tensor<16x32xf16, #rows>, %p: tensor<16x32x!tile.ptr<f16>, #rows>, %m: tensor<16x32xi1, #rows>, %slot: i32) {
    // CHECK: dgpu.buffer_alloc : !dgpu.buffer<3 x 16x32 x f16, #[[SWIZZLE]]>
    %b = dgpu.buffer_alloc : !dgpu.buffer<3 x 16x32 x f16, #swizzle>
    // CHECK: dgpu.buffer_store %{{.*}}, %{{.*}}[%{{.*}}] : tensor<16x32xf16, #[[ROWS]]>, !dgpu.buffer<3 x 16x32 x f16, #[[SWIZZLE]]>
    dgpu.buffer_store %x, %b[%slot] : tensor<16x32xf16, #rows>, !dgpu.buffer<3 x 16x32 x f16, #swizzle>
    // CHECK: dgpu.buffer_load %{{.*}}[%{{.*}}] : !dgpu.buffer<3 x 16x32 x f16, #[[SWIZZLE]]> -> tensor<16x32xf16, #[[COLS]]>
    %0 = dgpu.buffer_load %b[%slot] : !dgpu.buffer<3 x 16x32 x f16, #swizzle> -> tensor<16x32xf16, #cols>
    // CHECK: dgpu.async_copy %{{.*}} to %{{.*}}[%{{.*}}] : tensor<16x32x!tile.ptr<f16>, #[[ROWS]]>, !dgpu.buffer<3 x 16x32 x f16, #[[SWIZZLE]]>
    dgpu.async_copy %p to %b[%slot] : tensor<16x32x!tile.ptr<f16>, #rows>, !dgpu.buffer<3 x 16x32 x f16, #swizzle>
    // CHECK: dgpu.async_copy %{{.*}} to %{{.*}}[%{{.*}}] mask %{{.*}} mask tensor<16x32xi1, #[[ROWS]]>
    dgpu.async_copy %p to %b[%slot] mask %m : tensor<16x32x!tile.ptr<f16>, #rows>, !dgpu.buffer<3 x 16x32 x f16, #swizzle> mask tensor<16x32xi1, #rows>
    // CHECK: dgpu.async_commit
    dgpu.async_commit
    // CHECK: dgpu.async_wait 1
    dgpu.async_wait 1
    // CHECK: dgpu.barrier
    dgpu.barrier
    return
  }
}
