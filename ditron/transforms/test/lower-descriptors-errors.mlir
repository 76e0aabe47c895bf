// RUN: ditron-opt %s --split-input-file --tile-lower-descriptors --verify-diagnostics

func.func @chosen(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32, %c: i1) -> tensor<64xf32> {
  %one = arith.constant 1 : i64
  %d = tile.make_descriptor %p, [%n], [%one] : !tile.ptr<f32>, i32 -> !tile.desc<64xf32>
  %e = tile.make_descriptor %q, [%n], [%one] : !tile.ptr<f32>, i32 -> !tile.desc<64xf32>
  %f = arith.select %c, %d, %e : !tile.desc<64xf32>
  // expected-error@+1 {{the descriptor of this access is chosen at run time; descriptors cannot be carried by loops and branches}}
  %t = tile.descriptor_load %f[%n] : !tile.desc<64xf32> -> tensor<64xf32>
  return %t : tensor<64xf32>
}
