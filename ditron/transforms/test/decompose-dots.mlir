// RUN: ditron-opt %s --split-input-file --tile-decompose-dots | FileCheck %s
// Dots that no instruction does as they stand.

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Two pieces of each operand; the product of the small ones is left out. NaN of the small products counts as zero.
  // CHECK-LABEL: func.func @pieces
  // CHECK-SAME: (%[[A:.*]]: tensor<32x32xf32>, %[[B:.*]]: tensor<32x32xf32>, %[[C:.*]]: tensor<32x32xf32>)
  func.func @pieces(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
    // CHECK: %[[A0:.*]] = arith.truncf %[[A]]
    // CHECK: %[[A1:.*]] = arith.truncf
    // CHECK: %[[B0:.*]] = arith.truncf %[[B]]
    // CHECK: %[[B1:.*]] = arith.truncf
    // CHECK: %[[S:.*]] = tile.dot %[[A1]], %[[B0]], %{{.*}} : tensor<32x32xbf16>
    // CHECK: %[[T:.*]] = tile.dot %[[A0]], %[[B1]], %[[S]] : tensor<32x32xbf16>
    // CHECK: %[[N:.*]] = arith.cmpf ord, %[[T]], %[[T]]
    // CHECK: %[[U:.*]] = arith.select %[[N]], %[[T]]
    // CHECK: %[[V:.*]] = tile.dot %[[A0]], %[[B0]], %[[U]]
    // CHECK: arith.addf %[[V]], %[[C]]
    %d = tile.dot %a, %b, %c {precision = #tile.precision<bf16x3>} : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
    return %d : tensor<32x32xf32>
  }

  // CHECK-LABEL: func.func @tf32
  // CHECK-COUNT-3: tile.dot %{{.*}} : tensor<32x32xf32>
  // CHECK-NOT: tile.dot
  func.func @tf32(%a: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %d = tile.dot %a, %a, %c {precision = #tile.precision<tf32x3>} : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
    return %d : tensor<32x32xf32>
  }

  // CHECK-LABEL: func.func @six
  // CHECK-COUNT-6: tile.dot %{{.*}} : tensor<32x32xbf16>
  // CHECK-NOT: tile.dot
  func.func @six(%a: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %d = tile.dot %a, %a, %c {precision = #tile.precision<bf16x6>} : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
    return %d : tensor<32x32xf32>
  }

  // Too small for tensor cores: multiplied in fp32.
  // CHECK-LABEL: func.func @small
  // CHECK: tile.dot {{.*}} {precision = #tile.precision<ieee>}
  // CHECK-NOT: tile.dot
  func.func @small(%a: tensor<4x32xf32>, %b: tensor<32x32xf32>, %c: tensor<4x32xf32>) -> tensor<4x32xf32> {
    %d = tile.dot %a, %b, %c {precision = #tile.precision<tf32x3>} : tensor<4x32xf32>, tensor<32x32xf32> -> tensor<4x32xf32>
    return %d : tensor<4x32xf32>
  }

  // CHECK-LABEL: func.func @batch_of_one
  // CHECK: tile.dot {{.*}} : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
  // CHECK: tile.reshape {{.*}} : tensor<32x32xf32> -> tensor<1x32x32xf32>
  func.func @batch_of_one(%a: tensor<1x32x16xf16>, %b: tensor<1x16x32xf16>, %c: tensor<1x32x32xf32>) -> tensor<1x32x32xf32> {
    %d = tile.dot %a, %b, %c : tensor<1x32x16xf16>, tensor<1x16x32xf16> -> tensor<1x32x32xf32>
    return %d : tensor<1x32x32xf32>
  }

  // A thread would hold 1024 numbers of each operand.
  // CHECK-LABEL: func.func @deep
  // CHECK: tile.split %{{.*}} : tensor<128x64x2xf32> -> tensor<128x64xf32>
  // CHECK-COUNT-8: tile.dot {{.*}} {precision = #tile.precision<ieee>} : tensor<128x16xf32>, tensor<16x128xf32>
  // CHECK-NOT: tile.dot
  func.func @deep(%a: tensor<128x128xf32>, %c: tensor<128x128xf32>) -> tensor<128x128xf32> {
    %d = tile.dot %a, %a, %c {precision = #tile.precision<ieee>} : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
    return %d : tensor<128x128xf32>
  }
}
