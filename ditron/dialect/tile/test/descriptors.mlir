// Descriptors are printed as they are parsed.
// RUN: ditron-opt %s | ditron-opt | FileCheck %s
// RUN: ditron-opt %s --mlir-print-op-generic | ditron-opt | FileCheck %s
// RUN: ditron-opt %s --cse | FileCheck %s --check-prefix=CSE

// CHECK-LABEL: func.func @copy
func.func @copy(%p: !tile.ptr<bf16>, %q: !tile.ptr<bf16>, %m: i32, %n: i64, %stride: i64, %i: i32, %j: i32) {
  %one = arith.constant 1 : i64
  // CHECK: tile.make_descriptor %{{.*}}, [%{{.*}}, %{{.*}}], [%{{.*}}, %{{.*}}] : !tile.ptr<bf16>, i32, i64 -> !tile.desc<128x64xbf16>
  %0 = tile.make_descriptor %p, [%m, %n], [%stride, %one] : !tile.ptr<bf16>, i32, i64 -> !tile.desc<128x64xbf16>
  // CHECK: tile.make_descriptor %{{.*}}, [%{{.*}}, %{{.*}}], [%{{.*}}, %{{.*}}] {padding = #tile.padding<nan>} : !tile.ptr<bf16>, i32, i64 -> !tile.desc<128x64xbf16>
  %1 = tile.make_descriptor %q, [%m, %n], [%stride, %one] {padding = #tile.padding<nan>} : !tile.ptr<bf16>, i32, i64 -> !tile.desc<128x64xbf16>
  // CHECK: tile.descriptor_load %{{.*}}[%{{.*}}, %{{.*}}] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
  %2 = tile.descriptor_load %0[%i, %j] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
  // CHECK: tile.descriptor_store %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} : !tile.desc<128x64xbf16>, tensor<128x64xbf16>
  tile.descriptor_store %1[%i, %j], %2 : !tile.desc<128x64xbf16>, tensor<128x64xbf16>
  return
}

// CHECK-LABEL: func.func @vector
func.func @vector(%p: !tile.ptr<i32>, %n: i32, %i: i32, %token: i32) -> tensor<64xi32> {
  %one = arith.constant 1 : i64
  // CHECK: tile.make_descriptor %{{.*}}, [%{{.*}}], [%{{.*}}] : !tile.ptr<i32>, i32 -> !tile.desc<64xi32>
  %0 = tile.make_descriptor %p, [%n], [%one] : !tile.ptr<i32>, i32 -> !tile.desc<64xi32>
  // CHECK: dist.consume_token %{{.*}}, %{{.*}} : !tile.desc<64xi32>
  %1 = dist.consume_token %0, %token : !tile.desc<64xi32>
  %2 = tile.descriptor_load %1[%i] : !tile.desc<64xi32> -> tensor<64xi32>
  return %2 : tensor<64xi32>
}

// A load may be merged with another one, but not over a store.
// CSE-LABEL: func.func @effects
func.func @effects(%p: !tile.ptr<i32>, %n: i32, %i: i32) -> (tensor<64xi32>, tensor<64xi32>, tensor<64xi32>) {
  %one = arith.constant 1 : i64
  // CSE: %[[D:.*]] = tile.make_descriptor
  // CSE-NOT: tile.make_descriptor
  %0 = tile.make_descriptor %p, [%n], [%one] : !tile.ptr<i32>, i32 -> !tile.desc<64xi32>
  %same = tile.make_descriptor %p, [%n], [%one] : !tile.ptr<i32>, i32 -> !tile.desc<64xi32>
  // CSE: %[[FIRST:.*]] = tile.descriptor_load %[[D]]
  %1 = tile.descriptor_load %0[%i] : !tile.desc<64xi32> -> tensor<64xi32>
  // CSE-NEXT: tile.descriptor_store %[[D]]
  %2 = tile.descriptor_load %same[%i] : !tile.desc<64xi32> -> tensor<64xi32>
  tile.descriptor_store %0[%i], %2 : !tile.desc<64xi32>, tensor<64xi32>
  // CSE-NEXT: %[[SECOND:.*]] = tile.descriptor_load %[[D]]
  %3 = tile.descriptor_load %0[%i] : !tile.desc<64xi32> -> tensor<64xi32>
  // CSE-NEXT: return %[[FIRST]], %[[FIRST]], %[[SECOND]]
  return %1, %2, %3 : tensor<64xi32>, tensor<64xi32>, tensor<64xi32>
}
