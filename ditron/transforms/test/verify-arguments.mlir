// Arguments without layouts are found at the operation that uses them, which the pass meets first.
// RUN: not ditron-opt %s --dgpu-verify-layouts 2>&1 | FileCheck %s

func.func @stores(%p: tensor<32x!tile.ptr<i32>>, %x: tensor<32xi32>) {
  // CHECK: verify-arguments.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: compiler bug: a tensor has no layout after layout assignment
  tile.store %p, %x : tensor<32x!tile.ptr<i32>>, tensor<32xi32>
  return
}
