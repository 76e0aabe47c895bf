// The pass brings the dialect of the barrier that it makes: this file has no operation of it (found by tests/hostile/fuzz).
// RUN: ditron-opt %s --tile-lower-descriptors | FileCheck %s

// CHECK-LABEL: func.func @read_back
// CHECK: tile.store
// CHECK-NEXT: dist.sync_threads
// CHECK: tile.load
func.func @read_back(%p: !tile.ptr<f32>, %n: i32, %t: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %one = arith.constant 1 : i64
  %stride = arith.constant 64 : i64
  %c0 = arith.constant 0 : i32
  %d = tile.make_descriptor %p, [%n, %n], [%stride, %one] : !tile.ptr<f32>, i32, i32 -> !tile.desc<8x8xf32>
  tile.descriptor_store %d[%c0, %c0], %t : !tile.desc<8x8xf32>, tensor<8x8xf32>
  %after = tile.descriptor_load %d[%c0, %c0] : !tile.desc<8x8xf32> -> tensor<8x8xf32>
  return %after : tensor<8x8xf32>
}
