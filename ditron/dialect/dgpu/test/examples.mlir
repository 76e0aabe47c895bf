// What the other tests lack of what descriptions show (dialect/test/documented.test).
// RUN: ditron-opt %s | ditron-opt | FileCheck %s

#rows = #dgpu.shared<64x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5 i3 i4 i5]>

// CHECK-LABEL: func.func @performs
func.func @performs(%x: tensor<32xi32>, %p: tensor<32x!tile.ptr<i32>>) {
  // CHECK: %[[MINE:.*]] = dgpu.performs
  // CHECK-NEXT: scf.if %[[MINE]]
  %y = tile.map_elementwise(%x, %p) pack 1 { ^bb0(%a: i32, %q: !tile.ptr<i32>):
    %mine = dgpu.performs
    scf.if %mine {
      tile.store %q, %a {dist.per_thread} : !tile.ptr<i32>, i32
    }
    tile.yield %a : i32
  } : (tensor<32xi32>, tensor<32x!tile.ptr<i32>>) -> tensor<32xi32>
  return
}

// CHECK-LABEL: func.func @order
// CHECK: dgpu.order_lanes
// CHECK: dgpu.order_lanes(%arg0 : !tile.ptr<f32>) after(%arg1 : !tile.ptr<i32>)
func.func @order(%p: !tile.ptr<f32>, %q: !tile.ptr<i32>) {
  dgpu.order_lanes
  dgpu.order_lanes(%p : !tile.ptr<f32>) after(%q : !tile.ptr<i32>)
  return
}

// CHECK-LABEL: func.func @gather
func.func @gather(%buffer: !dgpu.buffer<3 x 64x64 x bf16, #rows>, %slot: i32, %p: !tile.ptr<bf16>, %c: i1) {
  // CHECK: dgpu.async_gather %arg0[%arg1] {
  // CHECK: dgpu.address %{{.*}} mask %arg3 : !tile.ptr<bf16>
  dgpu.async_gather %buffer[%slot] {
  ^bb0(%row: i32, %column: i32):
    %begin = tile.addptr %p, %row : !tile.ptr<bf16>, i32
    %from = tile.addptr %begin, %column : !tile.ptr<bf16>, i32
    dgpu.address %from mask %c : !tile.ptr<bf16>
  } : !dgpu.buffer<3 x 64x64 x bf16, #rows>
  // CHECK: %[[BEGINS:.*]]:2 = dgpu.gather_rows %arg0 {
  // CHECK: dgpu.row_values %{{.*}} : !tile.ptr<bf16>
  %begins:2 = dgpu.gather_rows %buffer {
  ^bb0(%row: i32):
    %begin = tile.addptr %p, %row : !tile.ptr<bf16>, i32
    dgpu.row_values %begin : !tile.ptr<bf16>
  } : !dgpu.buffer<3 x 64x64 x bf16, #rows> -> !tile.ptr<bf16>, !tile.ptr<bf16>
  // CHECK: dgpu.async_gather %arg0[%arg1] held %[[BEGINS]]#0, %[[BEGINS]]#1 : !tile.ptr<bf16>, !tile.ptr<bf16> {
  dgpu.async_gather %buffer[%slot] held %begins#0, %begins#1 : !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%row: i32, %column: i32, %begin: !tile.ptr<bf16>):
    %from = tile.addptr %begin, %column : !tile.ptr<bf16>, i32
    dgpu.address %from mask %c : !tile.ptr<bf16>
  } : !dgpu.buffer<3 x 64x64 x bf16, #rows>
  return
}

// CHECK-LABEL: func.func @turns
func.func @turns() {
  // CHECK: dgpu.pass_turn first
  dgpu.pass_turn first
  // CHECK-NEXT: dgpu.take_turn
  dgpu.take_turn
  return
}

// CHECK-LABEL: func.func @specialize
func.func @specialize(%map: !dgpu.tensor_map, %x: i32, %y: i32, %slot: i32, %parity: i32, %buffer: !dgpu.buffer<3 x 64x64 x bf16, #rows>,
                      %full: !dgpu.mbarriers<3>, %empty: !dgpu.mbarriers<3>) {
  // CHECK: dgpu.tma_prefetch %arg0
  dgpu.tma_prefetch %map
  // CHECK: dgpu.warp_specialize
  dgpu.warp_specialize consumer {
    dgpu.mbarrier_wait %full[%slot], %parity : !dgpu.mbarriers<3>
    dgpu.mbarrier_arrive %empty[%slot] : !dgpu.mbarriers<3>
  } producer {
    // CHECK: dgpu.mbarrier_arrive_copied %arg6[%arg3] : !dgpu.mbarriers<3>
    dgpu.mbarrier_arrive_copied %full[%slot] : !dgpu.mbarriers<3>
    dgpu.mbarrier_expect %full[%slot], 8192 : !dgpu.mbarriers<3>
    dgpu.tma_load %map[%x, %y] to %buffer[%slot], %full[%slot] : !dgpu.buffer<3 x 64x64 x bf16, #rows>, !dgpu.mbarriers<3>
  }
  // CHECK: dgpu.cluster_barrier
  dgpu.cluster_barrier
  // The attributes of later passes.
  // CHECK: dgpu.mbarrier_arrive {{.*}} {after_loads}
  dgpu.mbarrier_arrive %empty[%slot] {after_loads} : !dgpu.mbarriers<3>
  // CHECK: dgpu.tma_store {{.*}} {box = array<i64: 64, 64>, swizzle_bytes = 128 : i64}
  dgpu.tma_store %buffer[%slot] to %map[%x, %y] {box = array<i64: 64, 64>, swizzle_bytes = 128 : i64} : !dgpu.buffer<3 x 64x64 x bf16, #rows>
  return
}
