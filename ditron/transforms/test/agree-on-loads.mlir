// Words that others change while a block looks at them.
// RUN: ditron-opt %s --tile-agree-on-loads | FileCheck %s

// CHECK-LABEL: func.func @of_the_block
// CHECK: %[[P:.*]] = tile.splat %arg0 : !tile.ptr<i32> -> tensor<1x!tile.ptr<i32>>
// CHECK: %[[T:.*]] = tile.load %[[P]] {isVolatile = true} : tensor<1x!tile.ptr<i32>> -> tensor<1xi32>
// CHECK: %[[X:.*]] = tile.unsplat %[[T]] : tensor<1xi32> -> i32
// CHECK: return %[[X]]
func.func @of_the_block(%p: !tile.ptr<i32>) -> i32 {
  %x = tile.load %p {isVolatile = true} : !tile.ptr<i32> -> i32
  return %x : i32
}

// CHECK-LABEL: func.func @masked
// CHECK: tile.load %{{.*}} mask %{{.*}} other %{{.*}} {cache = #tile.cache<cv>, isVolatile = true} : tensor<1x!tile.ptr<f32>>
func.func @masked(%p: !tile.ptr<f32>, %m: i1, %o: f32) -> f32 {
  %x = tile.load %p mask %m other %o {cache = #tile.cache<cv>, isVolatile = true} : !tile.ptr<f32> mask i1 other f32 -> f32
  return %x : f32
}

// A loop that does nothing but look; what single threads load; what nobody changes.
// CHECK-LABEL: func.func @others
// CHECK-NOT: tensor<
func.func @others(%p: !tile.ptr<i32>, %n: i32) -> i32 {
  scf.while : () -> () {
    %x = tile.load %p {isVolatile = true} : !tile.ptr<i32> -> i32
    %c = arith.cmpi ne, %x, %n : i32
    scf.condition(%c)
  } do {
    scf.yield
  }
  %t = dist.thread_id 0
  %c = arith.cmpi slt, %t, %n : i32
  scf.if %c {
    %y = tile.load %p {isVolatile = true} : !tile.ptr<i32> -> i32
    tile.store %p, %y : !tile.ptr<i32>, i32
  }
  %q = tile.addptr %p, %t : !tile.ptr<i32>, i32
  %z = tile.load %q {isVolatile = true} : !tile.ptr<i32> -> i32
  tile.store %q, %z : !tile.ptr<i32>, i32
  %plain = tile.load %p : !tile.ptr<i32> -> i32
  return %plain : i32
}
