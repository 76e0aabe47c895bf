// One function per message of the verifiers.
// RUN: ditron-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{cannot point at 'index'; expected i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32, f64 or a pointer}}
func.func private @pointee(!tile.ptr<index>)

// -----

func.func @axis() {
  // expected-error@+1 {{attribute 'axis' failed to satisfy constraint}}
  %0 = tile.program_id 3
  return
}

// -----

func.func @emptyRange() {
  // expected-error@+1 {{end must be greater than start, found 8 to 8}}
  %0 = tile.arange 8, 8 : tensor<1xi32>
  return
}

// -----

func.func @oddRange() {
  // expected-error@+1 {{range must have a power of two of elements, found 48}}
  %0 = tile.arange 0, 48 : tensor<48xi32>
  return
}

// -----

func.func @rangeShape() {
  // expected-error@+1 {{result must have shape [64], found 'tensor<32xi32>'}}
  %0 = tile.arange 0, 64 : tensor<32xi32>
  return
}

// -----

func.func @splat(%x: f32) {
  // expected-error@+1 {{result has element type 'f16', expected 'f32'}}
  %0 = tile.splat %x : f32 -> tensor<8xf16>
  return
}

// -----

func.func @unsplat(%x: tensor<2xf32>) {
  // expected-error@+1 {{source must have one element, found 'tensor<2xf32>'}}
  %0 = tile.unsplat %x : tensor<2xf32> -> f32
  return
}

// -----

func.func @expandAxis(%x: tensor<8xf32>) {
  // expected-error@+1 {{axis 2 is out of range for rank 2}}
  %0 = tile.expand_dims %x axis 2 : tensor<8xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @expandShape(%x: tensor<8xf32>) {
  // expected-error@+1 {{result must have shape [1, 8], found 'tensor<8x1xf32>'}}
  %0 = tile.expand_dims %x axis 0 : tensor<8xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @broadcastRank(%x: tensor<8xf32>) {
  // expected-error@+1 {{source and result must have the same rank, found 1 and 2}}
  %0 = tile.broadcast %x : tensor<8xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @broadcastSize(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{dimension 1 has size 2 and cannot become 4; only size 1 is repeated}}
  %0 = tile.broadcast %x : tensor<8x2xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @reshape(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{source and result must have the same number of elements, found 16 and 32}}
  %0 = tile.reshape %x : tensor<8x2xf32> -> tensor<32xf32>
  return
}

// -----

func.func @transOrder(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{order [1, 1] is not a permutation of the 2 dimensions of the source}}
  %0 = tile.trans %x [1, 1] : tensor<8x2xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @transShape(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{result must have shape [2, 8], found 'tensor<8x2xf32>'}}
  %0 = tile.trans %x [1, 0] : tensor<8x2xf32> -> tensor<8x2xf32>
  return
}

// -----

func.func @offsetType(%p: !tile.ptr<f32>, %i: i16) {
  // expected-error@+1 {{offset must be of type i32 or i64, found 'i16'}}
  %0 = tile.addptr %p, %i : !tile.ptr<f32>, i16
  return
}

// -----

func.func @offsetShape(%p: tensor<8x!tile.ptr<f32>>, %i: tensor<16xi32>) {
  // expected-error@+1 {{pointer and offset must have the same shape, found 'tensor<8x!tile.ptr<f32>>' and 'tensor<16xi32>'}}
  %0 = tile.addptr %p, %i : tensor<8x!tile.ptr<f32>>, tensor<16xi32>
  return
}

// -----

func.func @addressType(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{an address is an i64, found 'i32'}}
  %0 = tile.ptr_to_int %p : !tile.ptr<f32> -> i32
  return
}

// -----

func.func @addressSource(%i: i32) {
  // expected-error@+1 {{an address is an i64, found 'i32'}}
  %0 = tile.int_to_ptr %i : i32 -> !tile.ptr<f32>
  return
}

// -----

func.func @castShape(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{source and result must have the same shape, found '!tile.ptr<f32>' and 'tensor<8x!tile.ptr<f32>>'}}
  %0 = tile.ptr_cast %p : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  return
}

// -----

func.func @hintCount(%x: tensor<8x8xi32>) {
  // expected-error@+1 {{contiguity has 1 numbers, expected one per dimension of 'tensor<8x8xi32>', that is 2}}
  %0 = tile.hint %x {contiguity = array<i64: 8>} : tensor<8x8xi32>
  return
}

// -----

func.func @hintValue(%x: i32) {
  // expected-error@+1 {{divisibility must be positive, found 0}}
  %0 = tile.hint %x {divisibility = array<i64: 0>} : i32
  return
}

// -----

func.func @loadType(%p: tensor<8x!tile.ptr<f32>>) {
  // expected-error@+1 {{result has element type 'f16', expected 'f32'}}
  %0 = tile.load %p : tensor<8x!tile.ptr<f32>> -> tensor<8xf16>
  return
}

// -----

func.func @loadShape(%p: tensor<8x!tile.ptr<f32>>) {
  // expected-error@+1 {{pointer and result must have the same shape, found 'tensor<8x!tile.ptr<f32>>' and 'f32'}}
  %0 = tile.load %p : tensor<8x!tile.ptr<f32>> -> f32
  return
}

// -----

func.func @loadMask(%p: tensor<8x!tile.ptr<f32>>, %m: tensor<4xi1>) {
  // expected-error@+1 {{pointer and mask must have the same shape, found 'tensor<8x!tile.ptr<f32>>' and 'tensor<4xi1>'}}
  %0 = tile.load %p mask %m : tensor<8x!tile.ptr<f32>> mask tensor<4xi1> -> tensor<8xf32>
  return
}

// -----

func.func @loadOther(%p: !tile.ptr<f32>, %x: f32) {
  // expected-error@+1 {{`other` is what a false mask gives, but there is no mask}}
  %0 = tile.load %p other %x : !tile.ptr<f32> other f32 -> f32
  return
}

// -----

#a = #dgpu.layout<8, reg = {i0 i1 i2}, lane = [], warp = []>
#b = #dgpu.layout<8, reg = {}, lane = [i0 i1 i2], warp = []>
func.func @loadLayout(%p: tensor<8x!tile.ptr<f32>, #a>) {
  // expected-error@+1 {{pointer and result must have the same layout}}
  %0 = tile.load %p : tensor<8x!tile.ptr<f32>, #a> -> tensor<8xf32, #b>
  return
}

// -----

func.func @store(%p: !tile.ptr<i32>, %x: f32) {
  // expected-error@+1 {{value has element type 'f32', expected 'i32'}}
  tile.store %p, %x : !tile.ptr<i32>, f32
  return
}

// -----

func.func @atomicAdd(%p: !tile.ptr<f32>, %x: f32) {
  // expected-error@+1 {{atomic add works on elements of type i32 or i64, found 'f32'}}
  %0 = tile.atomic_rmw add relaxed gpu %p, %x : !tile.ptr<f32>, f32 -> f32
  return
}

// -----

func.func @atomicFAdd(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error@+1 {{atomic fadd works on elements of type f16, bf16, f32 or f64, found 'i32'}}
  %0 = tile.atomic_rmw fadd relaxed gpu %p, %x : !tile.ptr<i32>, i32 -> i32
  return
}

// -----

func.func @atomicFMax(%p: !tile.ptr<i64>, %x: i64) {
  // expected-error@+1 {{atomic fmax works on elements of type f16, bf16, f32 or f64, found 'i64'}}
  %0 = tile.atomic_rmw fmax relaxed gpu %p, %x : !tile.ptr<i64>, i64 -> i64
  return
}

// -----

func.func @atomicExchange(%p: !tile.ptr<i8>, %x: i8) {
  // expected-error@+1 {{atomic exch works on elements of type i32, i64, f32 or f64, found 'i8'}}
  %0 = tile.atomic_rmw exch relaxed gpu %p, %x : !tile.ptr<i8>, i8 -> i8
  return
}

// -----

func.func @compareSwap(%p: !tile.ptr<i8>, %x: i8) {
  // expected-error@+1 {{compare and swap works on elements of 16, 32 or 64 bits, found 'i8'}}
  %0 = tile.atomic_cas relaxed gpu %p, %x, %x : !tile.ptr<i8>, i8 -> i8
  return
}

// -----

func.func @dotRank(%a: tensor<16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{operands must all have rank 2, or 3 with a batch dimension, found 'tensor<16xf16>', 'tensor<16x16xf16>' and 'tensor<16x16xf32>'}}
  %0 = tile.dot %a, %b, %c : tensor<16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dotBatch(%a: tensor<2x16x16xf16>, %b: tensor<4x16x16xf16>, %c: tensor<2x16x16xf32>) {
  // expected-error@+1 {{batch sizes differ: 2, 4 and 2}}
  %0 = tile.dot %a, %b, %c : tensor<2x16x16xf16>, tensor<4x16x16xf16> -> tensor<2x16x16xf32>
  return
}

// -----

func.func @dotInner(%a: tensor<16x32xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{a has 32 columns, but b has 16 rows}}
  %0 = tile.dot %a, %b, %c : tensor<16x32xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dotResult(%a: tensor<16x32xf16>, %b: tensor<32x8xf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{result must be 16x8, found 'tensor<16x16xf32>'}}
  %0 = tile.dot %a, %b, %c : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dotTypes(%a: tensor<16x16xf16>, %b: tensor<16x16xbf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{a and b must have the same element type, found 'f16' and 'bf16'}}
  %0 = tile.dot %a, %b, %c : tensor<16x16xf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dotAccumulator(%a: tensor<16x16xi8>, %b: tensor<16x16xi8>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{operands of type 'i8' cannot accumulate in 'f32'}}
  %0 = tile.dot %a, %b, %c : tensor<16x16xi8>, tensor<16x16xi8> -> tensor<16x16xf32>
  return
}

// -----

func.func @reduceNothing() {
  // expected-error@+1 {{needs at least one source}}
  tile.reduce() axis 0 {
    "tile.yield"() : () -> ()
  } : () -> ()
  return
}

// -----

func.func @reduceShapes(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{first source and another source must have the same shape}}
  %0:2 = tile.reduce(%x, %y) axis 0 {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tile.yield %a, %b : f32, f32
  } : (tensor<8xf32>, tensor<4xf32>) -> (f32, f32)
  return
}

// -----

func.func @reduceAxis(%x: tensor<8xf32>) {
  // expected-error@+1 {{axis 1 is out of range for rank 1}}
  %0 = tile.reduce(%x) axis 1 {
  ^bb0(%l: f32, %r: f32):
    tile.yield %l : f32
  } : (tensor<8xf32>) -> f32
  return
}

// -----

func.func @reduceArguments(%x: tensor<8xf32>) {
  // expected-error@+1 {{combine region must take ('f32', 'f32'), found ('f32', 'i32')}}
  %0 = tile.reduce(%x) axis 0 {
  ^bb0(%l: f32, %r: i32):
    tile.yield %l : f32
  } : (tensor<8xf32>) -> f32
  return
}

// -----

func.func @reduceYield(%x: tensor<8xf32>, %i: i32) {
  %0 = tile.reduce(%x) axis 0 {
  ^bb0(%l: f32, %r: f32):
    // expected-error@+1 {{must yield ('f32'), found ('i32')}}
    tile.yield %i : i32
  } : (tensor<8xf32>) -> f32
  return
}

// -----

func.func @reduceCount(%x: tensor<8xf32>) {
  // expected-error@+1 {{has 1 sources, but 2 results}}
  %0:2 = tile.reduce(%x) axis 0 {
  ^bb0(%l: f32, %r: f32):
    tile.yield %l : f32
  } : (tensor<8xf32>) -> (f32, f32)
  return
}

// -----

func.func @reduceScalar(%x: tensor<8xf32>) {
  // expected-error@+1 {{result of a reduction along axis 0 of 'tensor<8xf32>' must be a scalar, found 'tensor<1xf32>'}}
  %0 = tile.reduce(%x) axis 0 {
  ^bb0(%l: f32, %r: f32):
    tile.yield %l : f32
  } : (tensor<8xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @reduceShape(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{result of a reduction along axis 0 of 'tensor<8x4xf32>' must be of shape [4], found 'tensor<8xf32>'}}
  %0 = tile.reduce(%x) axis 0 {
  ^bb0(%l: f32, %r: f32):
    tile.yield %l : f32
  } : (tensor<8x4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @scanShape(%x: tensor<8xf32>) {
  // expected-error@+1 {{source and result must have the same shape, found 'tensor<8xf32>' and 'tensor<4xf32>'}}
  %0 = tile.scan(%x) axis 0 {
  ^bb0(%l: f32, %r: f32):
    tile.yield %l : f32
  } : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @too_many_stages(%x: tensor<4x64xf32>) {
  // expected-error @+1 {{the last dimension of 'tensor<4x64xf32>' has stages 1 to 6, found 1 to 7}}
  %0 = tile.bitonic %x stages 1 to 7 ascending : tensor<4x64xf32>
  return
}

// -----

func.func @no_stages(%x: tensor<64xf32>) {
  // expected-error @+1 {{has stages 1 to 6, found 3 to 2}}
  %0 = tile.bitonic %x stages 3 to 2 ascending : tensor<64xf32>
  return
}
