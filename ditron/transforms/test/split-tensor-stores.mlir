// Warpgroups that hold whole rows of 64 store them by themselves.
// RUN: ditron-opt %s --dgpu-split-tensor-stores | FileCheck %s

#accumulator = #dgpu.layout<128x64, reg = {j0 j3 j4 j5 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5 i6]>
#columns = #dgpu.layout<128x64, reg = {j0 j3 j4 i3 i6}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5 j5]>
#staging = #dgpu.shared<128x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5 i6]>

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.tma} {
  // CHECK-LABEL: func.func @rows
  // CHECK-SAME: box = [64, 64]
  // CHECK: dgpu.tma_store_wait 0 read
  // CHECK-NEXT: dgpu.barrier {warpgroups}
  // CHECK-NEXT: dgpu.buffer_store {{.*}} {warpgroups}
  // CHECK-NEXT: dgpu.fence_async
  // CHECK-NEXT: dgpu.barrier {warpgroups}
  // CHECK-NEXT: dgpu.tma_store {{.*}} {warpgroups = array<i32: 0, 1>}
  func.func @rows(%v: tensor<128x64xf16, #accumulator>, %o: i32,
                  %map: !dgpu.tensor_map {dgpu.tensor_map = {base = 0 : i64, box = [128, 64], element = f16}}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %buffer = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.tma_store_wait 0 read
    dgpu.barrier
    dgpu.buffer_store %v, %buffer[%c0] : tensor<128x64xf16, #accumulator>, !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.fence_async
    dgpu.barrier
    dgpu.tma_store %buffer[%c0] to %map[%o, %o] : !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.tma_store_commit
    return
  }

  // Each row is shared by two warpgroups here: all threads meet as before.
  // CHECK-LABEL: func.func @columns
  // CHECK-SAME: box = [128, 64]
  // CHECK-NOT: warpgroups
  // CHECK: dgpu.tma_store %
  // CHECK-NOT: warpgroups
  func.func @columns(%v: tensor<128x64xf16, #columns>, %o: i32,
                     %map: !dgpu.tensor_map {dgpu.tensor_map = {base = 0 : i64, box = [128, 64], element = f16}}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %buffer = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.buffer_store %v, %buffer[%c0] : tensor<128x64xf16, #columns>, !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.fence_async
    dgpu.barrier
    dgpu.tma_store %buffer[%c0] to %map[%o, %o] : !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.tma_store_commit
    return
  }

  // Another store of the same buffer that does not qualify keeps both as they are.
  // CHECK-LABEL: func.func @mixed
  // CHECK-NOT: warpgroups
  // CHECK: return
  func.func @mixed(%v: tensor<128x64xf16, #accumulator>, %w: tensor<128x64xf16, #columns>, %o: i32,
                   %map: !dgpu.tensor_map {dgpu.tensor_map = {base = 0 : i64, box = [128, 64], element = f16}}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %buffer = dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.buffer_store %v, %buffer[%c0] : tensor<128x64xf16, #accumulator>, !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.fence_async
    dgpu.barrier
    dgpu.tma_store %buffer[%c0] to %map[%o, %o] : !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.tma_store_commit
    dgpu.tma_store_wait 0 read
    dgpu.barrier
    dgpu.buffer_store %w, %buffer[%c0] : tensor<128x64xf16, #columns>, !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.fence_async
    dgpu.barrier
    dgpu.tma_store %buffer[%c0] to %map[%o, %o] : !dgpu.buffer<1 x 128x64 x f16, #staging>
    dgpu.tma_store_commit
    return
  }
}
