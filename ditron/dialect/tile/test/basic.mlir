// Every operation of the dialect is printed as it is parsed.
// RUN: ditron-opt %s | ditron-opt | FileCheck %s
// RUN: ditron-opt %s --mlir-print-op-generic | ditron-opt | FileCheck %s

// CHECK-LABEL: func.func @creation
func.func @creation(%x: f32, %p: !tile.ptr<bf16>) {
  // CHECK: tile.program_id 0
  %0 = tile.program_id 0
  // CHECK: tile.num_programs 2
  %1 = tile.num_programs 2
  // CHECK: tile.arange 0, 64 : tensor<64xi32>
  %2 = tile.arange 0, 64 : tensor<64xi32>
  // CHECK: tile.splat %{{.*}} : f32 -> tensor<4x8xf32>
  %3 = tile.splat %x : f32 -> tensor<4x8xf32>
  // CHECK: tile.splat %{{.*}} : !tile.ptr<bf16> -> tensor<8x!tile.ptr<bf16>>
  %4 = tile.splat %p : !tile.ptr<bf16> -> tensor<8x!tile.ptr<bf16>>
  %5 = tile.splat %x : f32 -> tensor<1x1xf32>
  // CHECK: tile.unsplat %{{.*}} : tensor<1x1xf32> -> f32
  %6 = tile.unsplat %5 : tensor<1x1xf32> -> f32
  return
}

// CHECK-LABEL: func.func @shape
func.func @shape(%x: tensor<64xi32>, %y: tensor<16x32xf16>) {
  // CHECK: tile.expand_dims %{{.*}} axis 1 : tensor<64xi32> -> tensor<64x1xi32>
  %0 = tile.expand_dims %x axis 1 : tensor<64xi32> -> tensor<64x1xi32>
  // CHECK: tile.broadcast %{{.*}} : tensor<64x1xi32> -> tensor<64x16xi32>
  %1 = tile.broadcast %0 : tensor<64x1xi32> -> tensor<64x16xi32>
  // CHECK: tile.reshape %{{.*}} : tensor<16x32xf16> -> tensor<4x4x32xf16>
  %2 = tile.reshape %y : tensor<16x32xf16> -> tensor<4x4x32xf16>
  // CHECK: tile.trans %{{.*}} [1, 0] : tensor<16x32xf16> -> tensor<32x16xf16>
  %3 = tile.trans %y [1, 0] : tensor<16x32xf16> -> tensor<32x16xf16>
  return
}

// CHECK-LABEL: func.func @pointers
// CHECK-SAME: %{{.*}}: !tile.ptr<!tile.ptr<f32>>
func.func @pointers(%pp: !tile.ptr<!tile.ptr<f32>>, %p: !tile.ptr<f32>, %i: i64, %ps: tensor<8x!tile.ptr<f32>>,
                    %is: tensor<8xi32>, %c: i1) {
  // CHECK: tile.addptr %{{.*}}, %{{.*}} : !tile.ptr<f32>, i64
  %0 = tile.addptr %p, %i : !tile.ptr<f32>, i64
  // CHECK: tile.addptr %{{.*}}, %{{.*}} : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  %1 = tile.addptr %ps, %is : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  // CHECK: tile.ptr_to_int %{{.*}} : !tile.ptr<f32> -> i64
  %2 = tile.ptr_to_int %p : !tile.ptr<f32> -> i64
  // CHECK: tile.int_to_ptr %{{.*}} : i64 -> !tile.ptr<i8>
  %3 = tile.int_to_ptr %2 : i64 -> !tile.ptr<i8>
  // CHECK: tile.ptr_cast %{{.*}} : tensor<8x!tile.ptr<f32>> -> tensor<8x!tile.ptr<i32>>
  %4 = tile.ptr_cast %ps : tensor<8x!tile.ptr<f32>> -> tensor<8x!tile.ptr<i32>>
  // CHECK: tile.hint %{{.*}} {constancy = array<i64: 1>, contiguity = array<i64: 8>, divisibility = array<i64: 16>} : tensor<8xi32>
  %5 = tile.hint %is {contiguity = array<i64: 8>, divisibility = array<i64: 16>, constancy = array<i64: 1>} : tensor<8xi32>
  // CHECK: tile.assume %{{.*}}
  tile.assume %c
  // CHECK: tile.keep_loop
  tile.keep_loop
  // CHECK: tile.load %{{.*}} : !tile.ptr<!tile.ptr<f32>> -> !tile.ptr<f32>
  %6 = tile.load %pp : !tile.ptr<!tile.ptr<f32>> -> !tile.ptr<f32>
  return
}

// CHECK-LABEL: func.func @memory
func.func @memory(%p: !tile.ptr<f32>, %ps: tensor<8x!tile.ptr<f32>>, %m: tensor<8xi1>, %o: tensor<8xf32>, %c: i1, %f: f32) {
  // CHECK: tile.load %{{.*}} : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  %0 = tile.load %ps : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  // CHECK: tile.load %{{.*}} mask %{{.*}} {cache = #tile.cache<cg>, evict = #tile.evict<evict_first>, isVolatile = true} : tensor<8x!tile.ptr<f32>> mask tensor<8xi1> -> tensor<8xf32>
  %1 = tile.load %ps mask %m {cache = #tile.cache<cg>, evict = #tile.evict<evict_first>, isVolatile = true}
    : tensor<8x!tile.ptr<f32>> mask tensor<8xi1> -> tensor<8xf32>
  // CHECK: tile.load %{{.*}} mask %{{.*}} other %{{.*}} : tensor<8x!tile.ptr<f32>> mask tensor<8xi1> other tensor<8xf32> -> tensor<8xf32>
  %2 = tile.load %ps mask %m other %o : tensor<8x!tile.ptr<f32>> mask tensor<8xi1> other tensor<8xf32> -> tensor<8xf32>
  // CHECK: tile.load %{{.*}} mask %{{.*}} : !tile.ptr<f32> mask i1 -> f32
  %3 = tile.load %p mask %c : !tile.ptr<f32> mask i1 -> f32
  // CHECK: tile.store %{{.*}}, %{{.*}} : !tile.ptr<f32>, f32
  tile.store %p, %3 : !tile.ptr<f32>, f32
  // CHECK: tile.store %{{.*}}, %{{.*}} mask %{{.*}} {cache = #tile.cache<wt>} : tensor<8x!tile.ptr<f32>>, tensor<8xf32> mask tensor<8xi1>
  tile.store %ps, %2 mask %m {cache = #tile.cache<wt>} : tensor<8x!tile.ptr<f32>>, tensor<8xf32> mask tensor<8xi1>
  // CHECK: tile.store %{{.*}}, %{{.*}} {isVolatile = true} : tensor<8x!tile.ptr<f32>>, tensor<8xf32>
  tile.store %ps, %2 {isVolatile = true} : tensor<8x!tile.ptr<f32>>, tensor<8xf32>
  // CHECK: tile.atomic_rmw fadd relaxed gpu %{{.*}}, %{{.*}} mask %{{.*}} : tensor<8x!tile.ptr<f32>>, tensor<8xf32> mask tensor<8xi1> -> tensor<8xf32>
  %4 = tile.atomic_rmw fadd relaxed gpu %ps, %2 mask %m : tensor<8x!tile.ptr<f32>>, tensor<8xf32> mask tensor<8xi1> -> tensor<8xf32>
  // CHECK: tile.atomic_rmw exch acq_rel sys %{{.*}}, %{{.*}} : !tile.ptr<f32>, f32 -> f32
  %5 = tile.atomic_rmw exch acq_rel sys %p, %f : !tile.ptr<f32>, f32 -> f32
  // CHECK: tile.atomic_cas acquire block %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<f32>, f32 -> f32
  %6 = tile.atomic_cas acquire block %p, %f, %f : !tile.ptr<f32>, f32 -> f32
  return
}

// CHECK-LABEL: func.func @contraction
func.func @contraction(%a: tensor<16x32xbf16>, %b: tensor<32x8xbf16>, %c: tensor<16x8xf32>, %a3: tensor<2x16x8xf32>,
                       %b3: tensor<2x8x16xf32>, %c3: tensor<2x16x16xf32>) {
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x32xbf16>, tensor<32x8xbf16> -> tensor<16x8xf32>
  %0 = tile.dot %a, %b, %c : tensor<16x32xbf16>, tensor<32x8xbf16> -> tensor<16x8xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} {precision = #tile.precision<ieee>} : tensor<2x16x8xf32>
  %1 = tile.dot %a3, %b3, %c3 {precision = #tile.precision<ieee>} : tensor<2x16x8xf32>, tensor<2x8x16xf32> -> tensor<2x16x16xf32>
  return
}

// CHECK-LABEL: func.func @networks
func.func @networks(%x: tensor<4x64xf32>, %b: tensor<16xi8>) {
  // CHECK: tile.bitonic %{{.*}} stages 1 to 6 descending : tensor<4x64xf32>
  %0 = tile.bitonic %x stages 1 to 6 descending : tensor<4x64xf32>
  // CHECK: tile.bitonic %{{.*}} stages 2 to 3 alternating {key = #tile.key<unsigned>} : tensor<16xi8>
  %1 = tile.bitonic %b stages 2 to 3 alternating {key = #tile.key<unsigned>} : tensor<16xi8>
  return
}

// CHECK-LABEL: func.func @reduction
func.func @reduction(%x: tensor<16x32xf32>, %i: tensor<32xi32>, %v: tensor<32xf32>) -> (f32, i32) {
  // CHECK: tile.reduce(%{{.*}}) axis 1 {
  // CHECK-NEXT: ^bb0(%[[L:.*]]: f32, %[[R:.*]]: f32):
  // CHECK-NEXT:   %[[S:.*]] = arith.addf %[[L]], %[[R]] : f32
  // CHECK-NEXT:   tile.yield %[[S]] : f32
  // CHECK-NEXT: } : (tensor<16x32xf32>) -> tensor<16xf32>
  %0 = tile.reduce(%x) axis 1 {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    tile.yield %s : f32
  } : (tensor<16x32xf32>) -> tensor<16xf32>
  // Two operands (argmax); rank 1 gives scalars.
  // CHECK: tile.reduce(%{{.*}}, %{{.*}}) axis 0 {
  // CHECK: } : (tensor<32xf32>, tensor<32xi32>) -> (f32, i32)
  %1:2 = tile.reduce(%v, %i) axis 0 {
  ^bb0(%lv: f32, %li: i32, %rv: f32, %ri: i32):
    %gt = arith.cmpf ogt, %lv, %rv : f32
    %mv = arith.select %gt, %lv, %rv : f32
    %mi = arith.select %gt, %li, %ri : i32
    tile.yield %mv, %mi : f32, i32
  } : (tensor<32xf32>, tensor<32xi32>) -> (f32, i32)
  // CHECK: tile.scan(%{{.*}}) axis 0 {
  // CHECK: } {reverse = true} : (tensor<32xi32>) -> tensor<32xi32>
  %2 = tile.scan(%i) axis 0 {
  ^bb0(%l: i32, %r: i32):
    %s = arith.addi %l, %r : i32
    tile.yield %s : i32
  } {reverse = true} : (tensor<32xi32>) -> tensor<32xi32>
  return %1#0, %1#1 : f32, i32
}
