// RUN: ditron-opt %s --split-input-file --test-axis-info --verify-diagnostics

// The range, its multiples and sums.
func.func @ranges(%n: i32 {tile.divisibility = 16 : i64}) {
  // expected-remark@+1 {{contiguity = [64], divisibility = [1099511627776], constancy = [1]}}
  %offs = tile.arange 0, 64 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [4], divisibility = [4], constancy = [1]}}
  %four = tile.arange 4, 8 : tensor<4xi32>
  // expected-remark@+1 {{contiguity = [4], divisibility = [1], constancy = [1]}}
  %three = tile.arange 3, 7 : tensor<4xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %pid = tile.program_id 0
  // expected-remark@+1 {{contiguity = [1], divisibility = [64], constancy = [1], constant = 64}}
  %c64 = arith.constant 64 : i32
  // expected-remark@+1 {{contiguity = [1], divisibility = [64], constancy = [1]}}
  %start = arith.muli %pid, %c64 : i32
  // expected-remark@+1 {{contiguity = [1], divisibility = [64], constancy = [64]}}
  %starts = tile.splat %start : i32 -> tensor<64xi32>
  // expected-remark@+1 {{contiguity = [64], divisibility = [64], constancy = [1]}}
  %index = arith.addi %starts, %offs : tensor<64xi32>
  // A constant minus a range runs downwards, a range minus a constant upwards.
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %down = arith.subi %starts, %offs : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [64], divisibility = [64], constancy = [1]}}
  %up = arith.subi %offs, %starts : tensor<64xi32>
  // Twice a range has gaps.
  // expected-remark@+1 {{contiguity = [1], divisibility = [2], constancy = [64], constant = 2}}
  %c2 = arith.constant dense<2> : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [2], constancy = [1]}}
  %even = arith.muli %offs, %c2 : tensor<64xi32>
  return
}

// -----

// Division and remainder keep what lies in one period.
func.func @periods(%n: i32 {tile.divisibility = 16 : i64}, %m: i32) {
  // expected-remark@+1 {{contiguity = [64], divisibility = [1099511627776], constancy = [1]}}
  %offs = tile.arange 0, 64 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [8], constancy = [64], constant = 8}}
  %c8 = arith.constant dense<8> : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [8], constancy = [64], constant = 24}}
  %c24 = arith.constant dense<24> : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [8]}}
  %quotient = arith.divsi %offs, %c8 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [8], divisibility = [8], constancy = [1]}}
  %remainder = arith.remsi %offs, %c8 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [8], divisibility = [8], constancy = [1]}}
  %remainder24 = arith.remsi %offs, %c24 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [16], constancy = [64]}}
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  // expected-remark@+1 {{contiguity = [16], divisibility = [16], constancy = [1]}}
  %wrapped = arith.remsi %offs, %ns : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [64]}}
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %unknown = arith.remsi %offs, %ms : tensor<64xi32>
  // The promise of tl.max_contiguous(tl.multiple_of(offs % m, 64), 64).
  // expected-remark@+1 {{contiguity = [64], divisibility = [64], constancy = [1]}}
  %hinted = tile.hint %unknown {divisibility = array<i64: 64>, contiguity = array<i64: 64>} : tensor<64xi32>
  // The same with masks and shifts.
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [64], constant = 7}}
  %c7 = arith.constant dense<7> : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [8], divisibility = [8], constancy = [1]}}
  %low = arith.andi %offs, %c7 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [8], constancy = [64], constant = -8}}
  %cm8 = arith.constant dense<-8> : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [8], constancy = [8]}}
  %rounded = arith.andi %offs, %cm8 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [64], constant = 3}}
  %c3 = arith.constant dense<3> : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [8]}}
  %shifted = arith.shrsi %offs, %c3 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [8], constancy = [1]}}
  %scaled = arith.shli %offs, %c3 : tensor<64xi32>
  // Below zero division rounds towards zero: -8 / 8 = -1, -7 / 8 = 0.
  // expected-remark@+1 {{contiguity = [1], divisibility = [64], constancy = [64], constant = 64}}
  %c64 = arith.constant dense<64> : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [64], divisibility = [64], constancy = [1]}}
  %negative = arith.subi %offs, %c64 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %roundsUp = arith.divsi %negative, %c8 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [8]}}
  %floors = arith.floordivsi %negative, %c8 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %negativeRemainder = arith.remsi %negative, %c8 : tensor<64xi32>
  return
}

// -----

// Tiles in groups of rows, the last of which may be smaller: the divisor comes from a subtraction, and columns still run on up to a
// size that is a multiple of 16.
func.func @grouped_columns(%first: i32, %rows: i32, %pid: i32, %n: i32 {tile.divisibility = 16 : i64}) {
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %left = arith.subi %rows, %first : i32
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %column = arith.divsi %pid, %left : i32
  // expected-remark@+1 {{contiguity = [1], divisibility = [128], constancy = [1], constant = 128}}
  %c128 = arith.constant 128 : i32
  // expected-remark@+1 {{contiguity = [1], divisibility = [128], constancy = [1]}}
  %start = arith.muli %column, %c128 : i32
  // expected-remark@+1 {{contiguity = [1], divisibility = [128], constancy = [128]}}
  %starts = tile.splat %start : i32 -> tensor<128xi32>
  // expected-remark@+1 {{contiguity = [128], divisibility = [1099511627776], constancy = [1]}}
  %range = tile.arange 0, 128 : tensor<128xi32>
  // expected-remark@+1 {{contiguity = [128], divisibility = [128], constancy = [1]}}
  %offsets = arith.addi %starts, %range : tensor<128xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [16], constancy = [128]}}
  %ns = tile.splat %n : i32 -> tensor<128xi32>
  // expected-remark@+1 {{contiguity = [16], divisibility = [16], constancy = [1]}}
  %wrapped = arith.remsi %offsets, %ns : tensor<128xi32>
  return
}

// -----

// The example at the head of AxisInfo.h: 16-byte accesses of f16.
func.func @masked(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 8 : i64}, %odd: i32) {
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %pid = tile.program_id 0
  // expected-remark@+1 {{contiguity = [1], divisibility = [64], constancy = [1], constant = 64}}
  %c64 = arith.constant 64 : i32
  // expected-remark@+1 {{contiguity = [1], divisibility = [64], constancy = [1]}}
  %start = arith.muli %pid, %c64 : i32
  // expected-remark@+1 {{contiguity = [1], divisibility = [64], constancy = [64]}}
  %starts = tile.splat %start : i32 -> tensor<64xi32>
  // expected-remark@+1 {{contiguity = [64], divisibility = [1099511627776], constancy = [1]}}
  %range = tile.arange 0, 64 : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [64], divisibility = [64], constancy = [1]}}
  %offs = arith.addi %starts, %range : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [16], constancy = [64]}}
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  // expected-remark@+1 {{contiguity = [64], divisibility = [16], constancy = [1]}}
  %ptr = tile.addptr %ps, %offs : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [8], constancy = [64]}}
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [8]}}
  %mask = arith.cmpi slt, %offs, %ns : tensor<64xi32>
  // expected-remark@+2 {{pointer widths = [8]}}
  // expected-remark@+1 {{mask widths = [8]}}
  %0 = tile.load %ptr mask %mask : tensor<64x!tile.ptr<f16>> mask tensor<64xi1> -> tensor<64xf16>
  // The bound on the left; and a bound of which nothing is known.
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [8]}}
  %mirrored = arith.cmpi sgt, %ns, %offs : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %inclusive = arith.cmpi sle, %offs, %ns : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [64]}}
  %odds = tile.splat %odd : i32 -> tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %loose = arith.cmpi slt, %offs, %odds : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [8]}}
  %both = arith.andi %mask, %mirrored : tensor<64xi1>
  // offs <= 31 is offs < 32.
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [64], constant = 31}}
  %c31 = arith.constant dense<31> : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [32]}}
  %upTo31 = arith.cmpi sle, %offs, %c31 : tensor<64xi32>
  return
}

// -----

// Two dimensions: rows with a stride, columns contiguous.
func.func @matrix(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %loose: i32) {
  // expected-remark@+1 {{contiguity = [32], divisibility = [1099511627776], constancy = [1]}}
  %rows = tile.arange 0, 32 : tensor<32xi32>
  // expected-remark@+1 {{contiguity = [16], divisibility = [1099511627776], constancy = [1]}}
  %cols = tile.arange 0, 16 : tensor<16xi32>
  // expected-remark@+1 {{contiguity = [32, 1], divisibility = [1099511627776, 1], constancy = [1, 1]}}
  %rows2 = tile.expand_dims %rows axis 1 : tensor<32xi32> -> tensor<32x1xi32>
  // expected-remark@+1 {{contiguity = [1, 16], divisibility = [1, 1099511627776], constancy = [1, 1]}}
  %cols2 = tile.expand_dims %cols axis 0 : tensor<16xi32> -> tensor<1x16xi32>
  // expected-remark@+1 {{contiguity = [1, 1], divisibility = [16, 16], constancy = [32, 1]}}
  %strides = tile.splat %stride : i32 -> tensor<32x1xi32>
  // expected-remark@+1 {{contiguity = [1, 1], divisibility = [16, 16], constancy = [1, 1]}}
  %rowOffs = arith.muli %rows2, %strides : tensor<32x1xi32>
  // expected-remark@+1 {{contiguity = [1, 1], divisibility = [16, 16], constancy = [32, 1]}}
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<32x1x!tile.ptr<f32>>
  // expected-remark@+1 {{contiguity = [1, 1], divisibility = [16, 16], constancy = [1, 1]}}
  %rowPtr = tile.addptr %ps, %rowOffs : tensor<32x1x!tile.ptr<f32>>, tensor<32x1xi32>
  // expected-remark@+1 {{contiguity = [1, 1], divisibility = [16, 16], constancy = [1, 16]}}
  %rowPtrs = tile.broadcast %rowPtr : tensor<32x1x!tile.ptr<f32>> -> tensor<32x16x!tile.ptr<f32>>
  // expected-remark@+1 {{contiguity = [1, 16], divisibility = [1, 1099511627776], constancy = [32, 1]}}
  %colOffs = tile.broadcast %cols2 : tensor<1x16xi32> -> tensor<32x16xi32>
  // expected-remark@+1 {{contiguity = [1, 16], divisibility = [4, 16], constancy = [1, 1]}}
  %ptr = tile.addptr %rowPtrs, %colOffs : tensor<32x16x!tile.ptr<f32>>, tensor<32x16xi32>
  // expected-remark@+1 {{pointer widths = [1, 4]}}
  %0 = tile.load %ptr : tensor<32x16x!tile.ptr<f32>> -> tensor<32x16xf32>
  // expected-remark@+1 {{contiguity = [16, 1], divisibility = [16, 4], constancy = [1, 1]}}
  %transposed = tile.trans %ptr [1, 0] : tensor<32x16x!tile.ptr<f32>> -> tensor<16x32x!tile.ptr<f32>>
  // A stride of which nothing is known: rows are no longer aligned.
  // expected-remark@+1 {{contiguity = [1, 1], divisibility = [1, 1], constancy = [32, 16]}}
  %loosely = tile.splat %loose : i32 -> tensor<32x16xi32>
  // expected-remark@+1 {{contiguity = [1, 16], divisibility = [4, 4], constancy = [1, 1]}}
  %off = tile.addptr %ptr, %loosely : tensor<32x16x!tile.ptr<f32>>, tensor<32x16xi32>
  // expected-remark@+1 {{pointer widths = [1, 1]}}
  %1 = tile.load %off : tensor<32x16x!tile.ptr<f32>> -> tensor<32x16xf32>
  return
}

// -----

// Loop-carried pointers advance by multiples; induction variables count from a multiple in multiples.
func.func @loop(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %stride: i32 {tile.divisibility = 4 : i64}) {
  // expected-remark@+1 {{contiguity = [1], divisibility = [1099511627776], constancy = [1], constant = 0}}
  %c0 = arith.constant 0 : i32
  // expected-remark@+1 {{contiguity = [1], divisibility = [32], constancy = [1], constant = 32}}
  %c32 = arith.constant 32 : i32
  // expected-remark@+1 {{contiguity = [32], divisibility = [1099511627776], constancy = [1]}}
  %range = tile.arange 0, 32 : tensor<32xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [16], constancy = [32]}}
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<32x!tile.ptr<f16>>
  // expected-remark@+1 {{contiguity = [32], divisibility = [16], constancy = [1]}}
  %ptr = tile.addptr %ps, %range : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [32], constancy = [32], constant = 32}}
  %step = arith.constant dense<32> : tensor<32xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [4], constancy = [32]}}
  %by = tile.splat %stride : i32 -> tensor<32xi32>
  // expected-remark@+5 {{result 0: contiguity = [32], divisibility = [16], constancy = [1]}}
  // expected-remark@+4 {{result 1: contiguity = [32], divisibility = [8], constancy = [1]}}
  // expected-remark@+3 {{argument 0: contiguity = [1], divisibility = [32], constancy = [1]}}
  // expected-remark@+2 {{argument 1: contiguity = [32], divisibility = [16], constancy = [1]}}
  // expected-remark@+1 {{argument 2: contiguity = [32], divisibility = [8], constancy = [1]}}
  %last:2 = scf.for %i = %c0 to %k step %c32 iter_args(%a = %ptr, %b = %ptr)
      -> (tensor<32x!tile.ptr<f16>>, tensor<32x!tile.ptr<f16>>) : i32 {
    // expected-remark@+1 {{contiguity = [1], divisibility = [32], constancy = [32]}}
    %is = tile.splat %i : i32 -> tensor<32xi32>
    // expected-remark@+1 {{contiguity = [32], divisibility = [16], constancy = [1]}}
    %an = tile.addptr %a, %step : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
    // expected-remark@+1 {{contiguity = [32], divisibility = [8], constancy = [1]}}
    %bn = tile.addptr %b, %by : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
    scf.yield %an, %bn : tensor<32x!tile.ptr<f16>>, tensor<32x!tile.ptr<f16>>
  }
  return
}

// -----

// Selections, casts, reinterpretations.
func.func @others(%c: i1, %p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %x: tensor<32xf32>, %f: f32) {
  // expected-remark@+1 {{contiguity = [32], divisibility = [1099511627776], constancy = [1]}}
  %range = tile.arange 0, 32 : tensor<32xi32>
  // expected-remark@+1 {{contiguity = [32], divisibility = [32], constancy = [1]}}
  %later = tile.arange 32, 64 : tensor<32xi32>
  // expected-remark@+1 {{contiguity = [32], divisibility = [32], constancy = [1]}}
  %either = arith.select %c, %range, %later : tensor<32xi32>
  // expected-remark@+1 {{contiguity = [32], divisibility = [1099511627776], constancy = [1]}}
  %wide = arith.extsi %range : tensor<32xi32> to tensor<32xi64>
  // expected-remark@+1 {{contiguity = [32], divisibility = [1099511627776], constancy = [1]}}
  %unsigned = arith.extui %range : tensor<32xi32> to tensor<32xi64>
  // A run from -2 on: zero extension breaks it in the middle, except for aligned pieces.
  // expected-remark@+1 {{contiguity = [1], divisibility = [2], constancy = [32], constant = 2}}
  %c2 = arith.constant dense<2> : tensor<32xi32>
  // expected-remark@+1 {{contiguity = [32], divisibility = [2], constancy = [1]}}
  %minus2 = arith.subi %range, %c2 : tensor<32xi32>
  // expected-remark@+1 {{contiguity = [2], divisibility = [2], constancy = [1]}}
  %broken = arith.extui %minus2 : tensor<32xi32> to tensor<32xi64>
  // expected-remark@+1 {{contiguity = [32], divisibility = [1099511627776], constancy = [1]}}
  %narrow = arith.trunci %wide : tensor<32xi64> to tensor<32xi8>
  // expected-remark@+1 {{contiguity = [1, 8], divisibility = [1, 8], constancy = [1, 1]}}
  %grid = tile.reshape %range : tensor<32xi32> -> tensor<4x8xi32>
  // expected-remark@+1 {{contiguity = [1, 32, 1], divisibility = [1, 1099511627776, 1], constancy = [1, 1, 1]}}
  %squeezed = tile.reshape %range : tensor<32xi32> -> tensor<1x32x1xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [16], constancy = [32]}}
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<32x!tile.ptr<f16>>
  // expected-remark@+1 {{contiguity = [32], divisibility = [16], constancy = [1]}}
  %ptr = tile.addptr %ps, %wide : tensor<32x!tile.ptr<f16>>, tensor<32xi64>
  // expected-remark@+1 {{contiguity = [32], divisibility = [16], constancy = [1]}}
  %same = tile.ptr_cast %ptr : tensor<32x!tile.ptr<f16>> -> tensor<32x!tile.ptr<bf16>>
  // expected-remark@+1 {{contiguity = [1], divisibility = [2], constancy = [1]}}
  %bytes = tile.ptr_cast %ptr : tensor<32x!tile.ptr<f16>> -> tensor<32x!tile.ptr<i8>>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %rank = dist.rank
  // expected-remark@+1 {{contiguity = [1], divisibility = [16], constancy = [1]}}
  %peer = dist.symm_at %p, %rank : !tile.ptr<f16>
  // Masks from values: equal where both sides are.
  %fs = tile.splat %f : f32 -> tensor<32xf32>
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [32]}}
  %mask = arith.cmpf olt, %fs, %zero : tensor<32xf32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %data = arith.cmpf olt, %x, %zero : tensor<32xf32>
  return
}
