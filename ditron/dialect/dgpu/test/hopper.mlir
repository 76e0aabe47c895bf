// Operations of targets with tensor copies, mbarriers and warpgroup dots are printed as they are parsed.
// RUN: ditron-opt %s | ditron-opt | FileCheck %s
// RUN: ditron-opt %s --mlir-print-op-generic | ditron-opt | FileCheck %s

#c = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#a = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>
#b = #dgpu.shared<16x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3]>
#bt = #dgpu.shared<64x16, bits = 16, offset = [i0 i1 i2 i3 i4 i5 j0^i3 j1^i4 j2^i5 j3]>
#short = #dgpu.shared<16x16, bits = 16, offset = [j0 j1 j2 j3 i0 i1 i2^j3 i3]>

// CHECK-LABEL: func.func @ring
// CHECK-SAME: (%[[MAP:.*]]: !dgpu.tensor_map, %[[X:.*]]: i32, %[[Y:.*]]: i32, %[[P:.*]]: i1)
func.func @ring(%map: !dgpu.tensor_map, %x: i32, %y: i32, %p: i1) {
  // CHECK: %[[FULL:.*]] = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<3>
  %full = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<3>
  // CHECK: dgpu.mbarrier_alloc {count = 4 : i32, offset_bytes = 24 : i64} : !dgpu.mbarriers<3>
  %empty = dgpu.mbarrier_alloc {count = 4 : i32, offset_bytes = 24 : i64} : !dgpu.mbarriers<3>
  %buffer = dgpu.buffer_alloc : !dgpu.buffer<3 x 64x64 x bf16, #rows>
  // CHECK: dgpu.mbarrier_expect %[[FULL]][%[[X]]], 8192 : !dgpu.mbarriers<3>
  dgpu.mbarrier_expect %full[%x], 8192 : !dgpu.mbarriers<3>
  // CHECK: dgpu.mbarrier_arrive %{{.*}}[%[[X]]] : !dgpu.mbarriers<3>
  dgpu.mbarrier_arrive %empty[%x] : !dgpu.mbarriers<3>
  // CHECK: dgpu.mbarrier_arrive %{{.*}}[%[[X]]] if %[[P]] : !dgpu.mbarriers<3>
  dgpu.mbarrier_arrive %empty[%x] if %p : !dgpu.mbarriers<3>
  // CHECK: dgpu.mbarrier_wait %[[FULL]][%[[X]]], %[[Y]] : !dgpu.mbarriers<3>
  dgpu.mbarrier_wait %full[%x], %y : !dgpu.mbarriers<3>
  // CHECK: dgpu.tma_load %[[MAP]][%[[X]], %[[Y]]] to %[[BUFFER:.*]][%[[X]]], %[[FULL]][%[[Y]]] : !dgpu.buffer<3 x 64x64 x bf16, #{{.*}}>, !dgpu.mbarriers<3>
  dgpu.tma_load %map[%x, %y] to %buffer[%x], %full[%y] : !dgpu.buffer<3 x 64x64 x bf16, #rows>, !dgpu.mbarriers<3>
  // CHECK: dgpu.fence_async
  dgpu.fence_async
  // CHECK: dgpu.tma_store %[[BUFFER]][%[[X]]] to %[[MAP]][%[[X]], %[[Y]]] : !dgpu.buffer<3 x 64x64 x bf16, #{{.*}}>
  dgpu.tma_store %buffer[%x] to %map[%x, %y] : !dgpu.buffer<3 x 64x64 x bf16, #rows>
  // CHECK: dgpu.tma_store_commit
  dgpu.tma_store_commit
  // CHECK: dgpu.tma_store_wait 1{{$}}
  dgpu.tma_store_wait 1
  // CHECK: dgpu.tma_store_wait 0 read
  dgpu.tma_store_wait 0 read
  return
}

// CHECK-LABEL: func.func @dots
func.func @dots(%c: tensor<64x16xf32, #c>, %ra: tensor<64x16xbf16, #a>, %slot: i32, %p: i1) -> tensor<64x16xf32, #c> {
  %a = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x64 x bf16, #rows>
  %b = dgpu.buffer_alloc : !dgpu.buffer<2 x 16x64 x bf16, #b>
  %short = dgpu.buffer_alloc : !dgpu.buffer<1 x 16x16 x bf16, #short>
  // CHECK: %[[T:.*]] = dgpu.buffer_permute %{{.*}} [1, 0] : !dgpu.buffer<2 x 16x64 x bf16, #{{.*}}> -> !dgpu.buffer<2 x 64x16 x bf16, #{{.*}}>
  %t = dgpu.buffer_permute %b [1, 0] : !dgpu.buffer<2 x 16x64 x bf16, #b> -> !dgpu.buffer<2 x 64x16 x bf16, #bt>
  // CHECK: %[[D:.*]] = dgpu.warpgroup_dot %{{.*}}[%{{.*}}], %[[T]][%{{.*}}], %{{.*}} : !dgpu.buffer<2 x 64x64 x bf16, #{{.*}}>, !dgpu.buffer<2 x 64x16 x bf16, #{{.*}}> -> tensor<64x16xf32, #{{.*}}>
  %d = dgpu.warpgroup_dot %a[%slot], %t[%slot], %c : !dgpu.buffer<2 x 64x64 x bf16, #rows>, !dgpu.buffer<2 x 64x16 x bf16, #bt> -> tensor<64x16xf32, #c>
  // CHECK: %[[E:.*]] = dgpu.warpgroup_dot %{{.*}}, %{{.*}}[%{{.*}}], %[[D]] : tensor<64x16xbf16, #{{.*}}>, !dgpu.buffer<1 x 16x16 x bf16, #{{.*}}> -> tensor<64x16xf32, #{{.*}}>
  %e = dgpu.warpgroup_dot %ra, %short[%slot], %d : tensor<64x16xbf16, #a>, !dgpu.buffer<1 x 16x16 x bf16, #short> -> tensor<64x16xf32, #c>
  // CHECK: %[[F:.*]] = dgpu.warpgroup_dot %{{.*}}, %{{.*}}[%{{.*}}], %[[E]] if %{{.*}} : tensor<64x16xbf16
  %f = dgpu.warpgroup_dot %ra, %short[%slot], %e if %p : tensor<64x16xbf16, #a>, !dgpu.buffer<1 x 16x16 x bf16, #short> -> tensor<64x16xf32, #c>
  // CHECK: %[[R:.*]] = dgpu.warpgroup_wait 1, %[[F]] : tensor<64x16xf32, #{{.*}}>
  %r = dgpu.warpgroup_wait 1, %f : tensor<64x16xf32, #c>
  // CHECK: dgpu.warpgroup_wait 0{{$}}
  dgpu.warpgroup_wait 0
  // CHECK: return %[[R]]
  return %r : tensor<64x16xf32, #c>
}

// CHECK-LABEL: func.func @partitions
func.func @partitions() {
  // CHECK: dgpu.warp_specialize consumer {
  // CHECK-NEXT: dgpu.barrier
  // CHECK-NEXT: } producer {
  // CHECK-NEXT: dgpu.fence_async
  // CHECK-NEXT: }{{$}}
  dgpu.warp_specialize consumer {
    dgpu.barrier
  } producer {
    dgpu.fence_async
  }
  // CHECK: {consumer_registers = 240 : i32, producer_registers = 24 : i32}
  dgpu.warp_specialize consumer {
  } producer {
  } {producer_registers = 24 : i32, consumer_registers = 240 : i32}
  return
}
