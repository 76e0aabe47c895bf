// What the other tests lack of what descriptions show (dialect/test/documented.test).
// RUN: ditron-opt %s | ditron-opt | FileCheck %s

// CHECK-LABEL: func.func @reaches
func.func @reaches(%rank: i32) -> i1 {
  // CHECK: dist.reaches %arg0
  %0 = dist.reaches %rank
  return %0 : i1
}
