// RUN: ditron-opt %s --split-input-file --tile-sums-to-dots --canonicalize | FileCheck %s
// Sums over a product of two broadcasts, as dots.

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // sum(a[:, :, None] * b[None, :, :], 1)
  // CHECK-LABEL: func.func @inner
  // CHECK-SAME: (%[[A:.*]]: tensor<128x32xf32>, %[[B:.*]]: tensor<32x32xf32>)
  func.func @inner(%a: tensor<128x32xf32>, %b: tensor<32x32xf32>) -> tensor<128x32xf32> {
    %0 = tile.expand_dims %a axis 2 : tensor<128x32xf32> -> tensor<128x32x1xf32>
    %1 = tile.expand_dims %b axis 0 : tensor<32x32xf32> -> tensor<1x32x32xf32>
    %2 = tile.broadcast %0 : tensor<128x32x1xf32> -> tensor<128x32x32xf32>
    %3 = tile.broadcast %1 : tensor<1x32x32xf32> -> tensor<128x32x32xf32>
    %4 = arith.mulf %2, %3 : tensor<128x32x32xf32>
    // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x32xf32>
    // CHECK-NEXT: %[[D:.*]] = tile.dot %[[A]], %[[B]], %[[ZERO]] {precision = #tile.precision<ieee>} : tensor<128x32xf32>, tensor<32x32xf32> -> tensor<128x32xf32>
    // CHECK-NEXT: return %[[D]]
    %5 = tile.reduce(%4) axis 1 {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tile.yield %s : f32
    } : (tensor<128x32x32xf32>) -> tensor<128x32xf32>
    return %5 : tensor<128x32xf32>
  }

  // sum(a[:, None, :] * b[None, :, :], 2): the right factor is transposed. The left one comes from anywhere.
  // CHECK-LABEL: func.func @transposed
  // CHECK-SAME: (%[[A:.*]]: tensor<64x1x32xf32>, %[[B:.*]]: tensor<32x32xf32>)
  func.func @transposed(%a: tensor<64x1x32xf32>, %b: tensor<32x32xf32>) -> tensor<64x32xf32> {
    %1 = tile.expand_dims %b axis 0 : tensor<32x32xf32> -> tensor<1x32x32xf32>
    %2 = tile.broadcast %a : tensor<64x1x32xf32> -> tensor<64x32x32xf32>
    %3 = tile.broadcast %1 : tensor<1x32x32xf32> -> tensor<64x32x32xf32>
    %4 = arith.mulf %2, %3 : tensor<64x32x32xf32>
    // CHECK-DAG: %[[L:.*]] = tile.reshape %[[A]] : tensor<64x1x32xf32> -> tensor<64x32xf32>
    // CHECK-DAG: %[[R:.*]] = tile.trans %[[B]] [1, 0]
    // CHECK: tile.dot %[[L]], %[[R]]
    %5 = tile.reduce(%4) axis 2 {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %y, %x : f32
      tile.yield %s : f32
    } : (tensor<64x32x32xf32>) -> tensor<64x32xf32>
    return %5 : tensor<64x32xf32>
  }

  // Rows behind columns, and a batch.
  // CHECK-LABEL: func.func @batch
  func.func @batch(%a: tensor<1x32x4x32xf32>, %b: tensor<32x32x4x1xf32>) -> tensor<32x4x32xf32> {
    %2 = tile.broadcast %a : tensor<1x32x4x32xf32> -> tensor<32x32x4x32xf32>
    %3 = tile.broadcast %b : tensor<32x32x4x1xf32> -> tensor<32x32x4x32xf32>
    %4 = arith.mulf %2, %3 : tensor<32x32x4x32xf32>
    // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x32x32xf32>, tensor<4x32x32xf32> -> tensor<4x32x32xf32>
    // CHECK: tile.trans %{{.*}} [2, 0, 1]
    %5 = tile.reduce(%4) axis 1 {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tile.yield %s : f32
    } : (tensor<32x32x4x32xf32>) -> tensor<32x4x32xf32>
    return %5 : tensor<32x4x32xf32>
  }

  // 2 sums of 8 products per thread are no more than the words that a dot would fetch.
  // CHECK-LABEL: func.func @small
  // CHECK-NOT: tile.dot
  func.func @small(%a: tensor<16x8x1xf32>, %b: tensor<1x8x16xf32>) -> tensor<16x16xf32> {
    %2 = tile.broadcast %a : tensor<16x8x1xf32> -> tensor<16x8x16xf32>
    %3 = tile.broadcast %b : tensor<1x8x16xf32> -> tensor<16x8x16xf32>
    %4 = arith.mulf %2, %3 : tensor<16x8x16xf32>
    %5 = tile.reduce(%4) axis 1 {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tile.yield %s : f32
    } : (tensor<16x8x16xf32>) -> tensor<16x16xf32>
    return %5 : tensor<16x16xf32>
  }

  // No sum, no second dimension, narrow numbers.
  // CHECK-LABEL: func.func @others
  // CHECK-NOT: tile.dot
  func.func @others(%a: tensor<128x32x1xf32>, %b: tensor<1x32x32xf32>, %c: tensor<128x32x32xf32>, %d: tensor<128x32x1xbf16>,
                    %e: tensor<1x32x32xbf16>) -> (tensor<128x32xf32>, tensor<128x32xf32>, tensor<128x32xbf16>) {
    %2 = tile.broadcast %a : tensor<128x32x1xf32> -> tensor<128x32x32xf32>
    %3 = tile.broadcast %b : tensor<1x32x32xf32> -> tensor<128x32x32xf32>
    %4 = arith.mulf %2, %3 : tensor<128x32x32xf32>
    %5 = tile.reduce(%4) axis 1 {
    ^bb0(%x: f32, %y: f32):
      %s = arith.maxnumf %x, %y : f32
      tile.yield %s : f32
    } : (tensor<128x32x32xf32>) -> tensor<128x32xf32>
    %6 = arith.mulf %2, %c : tensor<128x32x32xf32>
    %7 = tile.reduce(%6) axis 1 {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tile.yield %s : f32
    } : (tensor<128x32x32xf32>) -> tensor<128x32xf32>
    %8 = tile.broadcast %d : tensor<128x32x1xbf16> -> tensor<128x32x32xbf16>
    %9 = tile.broadcast %e : tensor<1x32x32xbf16> -> tensor<128x32x32xbf16>
    %10 = arith.mulf %8, %9 : tensor<128x32x32xbf16>
    %11 = tile.reduce(%10) axis 1 {
    ^bb0(%x: bf16, %y: bf16):
      %s = arith.addf %x, %y : bf16
      tile.yield %s : bf16
    } : (tensor<128x32x32xbf16>) -> tensor<128x32xbf16>
    return %5, %7, %11 : tensor<128x32xf32>, tensor<128x32xf32>, tensor<128x32xbf16>
  }

  // A dot adds in an order of its own.
  // CHECK-LABEL: func.func @ordered
  // CHECK-NOT: tile.dot
  func.func @ordered(%a: tensor<128x32x1xf32>, %b: tensor<1x32x32xf32>) -> tensor<128x32xf32> {
    %2 = tile.broadcast %a : tensor<128x32x1xf32> -> tensor<128x32x32xf32>
    %3 = tile.broadcast %b : tensor<1x32x32xf32> -> tensor<128x32x32xf32>
    %4 = arith.mulf %2, %3 : tensor<128x32x32xf32>
    %5 = tile.reduce(%4) axis 1 ordering inner_tree {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tile.yield %s : f32
    } : (tensor<128x32x32xf32>) -> tensor<128x32xf32>
    return %5 : tensor<128x32xf32>
  }
}
