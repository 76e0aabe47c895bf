// Copies learn the boxes of their maps; every map is prefetched once, at the entry.
// RUN: ditron-opt %s --dgpu-bind-tensor-maps | FileCheck %s

#rows = #dgpu.shared<128x128, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5 i6 j6]>
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%[[A:.*]]: !dgpu.tensor_map {{.*}}, %[[X:.*]]: i32, %[[B:.*]]: !dgpu.tensor_map
// CHECK-NEXT: dgpu.tma_prefetch %[[A]]
// CHECK-NEXT: dgpu.tma_prefetch %[[B]]
// CHECK-NOT: dgpu.tma_prefetch
func.func @kernel(%a: !dgpu.tensor_map {dgpu.tensor_map = {box = [64 : i64, 64 : i64], swizzle = 128 : i64}}, %x: i32,
                  %b: !dgpu.tensor_map {dgpu.tensor_map = {box = [128 : i64, 32 : i64], swizzle = 64 : i64}},
                  %buffer: !dgpu.buffer<1 x 128x128 x bf16, #rows>, %full: !dgpu.mbarriers<1>) {
  // CHECK: dgpu.tma_load %[[A]]{{.*}} {box = array<i64: 64, 64>, swizzle_bytes = 128 : i64}
  dgpu.tma_load %a[%x, %x] to %buffer[%x], %full[%x] : !dgpu.buffer<1 x 128x128 x bf16, #rows>, !dgpu.mbarriers<1>
  // CHECK: dgpu.tma_store {{.*}} to %[[B]]{{.*}} {box = array<i64: 128, 32>, swizzle_bytes = 64 : i64}
  dgpu.tma_store %buffer[%x] to %b[%x, %x] : !dgpu.buffer<1 x 128x128 x bf16, #rows>
  return
}

// CHECK-LABEL: func.func @without
// CHECK-NEXT: return
func.func @without(%x: i32) {
  return
}
