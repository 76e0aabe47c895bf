// Passes behind layout assignment refuse tensors without layouts.
// RUN: not ditron-opt %s --dgpu-remove-conversions 2>&1 | FileCheck %s -DPASS=dgpu-remove-conversions
// RUN: not ditron-opt %s --dgpu-pipeline-loops 2>&1 | FileCheck %s -DPASS=dgpu-pipeline-loops
// RUN: not ditron-opt %s --dgpu-verify-registers 2>&1 | FileCheck %s -DPASS=dgpu-verify-registers
// RUN: not ditron-opt %s --dgpu-allocate-shared 2>&1 | FileCheck %s -DPASS=dgpu-allocate-shared
// RUN: not ditron-opt %s --dgpu-insert-barriers 2>&1 | FileCheck %s -DPASS=dgpu-insert-barriers
// RUN: not ditron-opt %s --dgpu-order-lanes 2>&1 | FileCheck %s -DPASS=dgpu-order-lanes

// CHECK: no-layouts.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: a tensor has no layout: dgpu-assign-layouts comes before [[PASS]]
func.func @sum(%x: !tile.ptr<f32>) {
  %i = tile.arange 0, 64 : tensor<64xi32>
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  return
}
