// RUN: ditron-opt %s -split-input-file -verify-diagnostics

func.func @unknown_intrinsic() {
  // expected-error @+1 {{there is no intrinsic 'warp_drive'}}
  %0 = dist.intrinsic "warp_drive"() : () -> i32
  return
}

// -----

func.func @intrinsic_types(%a: f32) {
  // expected-error @+1 {{operands must be (), found ('f32')}}
  %0 = dist.intrinsic "smid"(%a) : (f32) -> i32
  return
}

// -----

func.func @signal_width(%signal: !tile.ptr<i16>, %value: i16, %pe: i32) {
  // expected-error @+1 {{needs a pointer to signal words of type i32 or i64}}
  dist.signal_op set %signal, %value, %pe : !tile.ptr<i16>, i16
  return
}

// -----

func.func @vector_bytes(%p: !tile.ptr<f32>) {
  // expected-error @+1 {{moves 2, 4, 8 or 16 bytes, found 12}}
  %0, %1, %2 = dist.ld_vector relaxed gpu %p : !tile.ptr<f32> -> f32, f32, f32
  return
}

// -----

func.func @bitwise_floats(%p: !tile.ptr<f32>) {
  // expected-error @+1 {{bitwise reductions are for integers, found 'f32'}}
  %0 = dist.multimem_ld_reduce %p {op = #dist.multimem_reduction<xor>} : !tile.ptr<f32> -> f32
  return
}
