// Loops whose turns stay apart, though their dots have few columns.
// RUN: ditron-opt %s --dgpu-widen-turns --split-input-file | FileCheck %s
// RUN: ditron-opt %s --dgpu-widen-turns --split-input-file --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  // Numbers without sign may pass zero when both sides are moved on.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: a tile varies by itself along the dimension in which turns follow each other"
  // CHECK-LABEL: func.func @unsigned
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @unsigned(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32, %limit: i32) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %r:3 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs, %at = %i0) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>, i32) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      %left = arith.subi %limit, %at : i32
      %lefts = tile.splat %left : i32 -> tensor<1x32xi32>
      %maskRow = arith.cmpi ult, %row, %lefts : tensor<1x32xi32>
      %mask = tile.broadcast %maskRow : tensor<1x32xi1> -> tensor<64x32xi1>
      %masked = arith.select %mask, %dotted, %none : tensor<64x32xi1>, tensor<64x32xf32>
      %further = arith.addi %at, %i32 : i32
      %h = arith.truncf %masked : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next, %further : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>, i32
    }
    return %r#0 : tensor<64x128xf32>
  }

  // A running maximum needs each turn by itself.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: it carries what is neither the sum of one dot nor moves on by a fixed amount"
  // CHECK-LABEL: func.func @maximum
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @maximum(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %lowest = arith.constant dense<0xFF800000> : tensor<64xf32>
    %r:3 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs, %m = %lowest) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>, tensor<64xf32>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      %largest = tile.reduce(%dotted) axis 1 {
      ^bb0(%a: f32, %b: f32):
        %c = arith.maxnumf %a, %b : f32
        tile.yield %c : f32
      } : (tensor<64x32xf32>) -> tensor<64xf32>
      %new = arith.maxnumf %m, %largest : tensor<64xf32>
      %h = arith.truncf %dotted : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next, %new : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>, tensor<64xf32>
    }
    return %r#0 : tensor<64x128xf32>
  }

  // One along the turns has too many elements.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: what all rows of a tile have in common changes from turn to turn"
  // CHECK-LABEL: func.func @along
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @along(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %r:2 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      %largest = tile.reduce(%dotted) axis 1 {
      ^bb0(%a: f32, %b: f32):
        %c = arith.maxnumf %a, %b : f32
        tile.yield %c : f32
      } : (tensor<64x32xf32>) -> tensor<64xf32>
      %largestColumn = tile.expand_dims %largest axis 1 : tensor<64xf32> -> tensor<64x1xf32>
      %largestTile = tile.broadcast %largestColumn : tensor<64x1xf32> -> tensor<64x32xf32>
      %less = arith.subf %dotted, %largestTile : tensor<64x32xf32>
      %h = arith.truncf %less : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<64x128xf32>
  }

  // What is stored in each turn may be read in the next one.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: it has other effects, of 'tile.store'"
  // CHECK-LABEL: func.func @stored
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @stored(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %r:2 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      tile.store %p, %x : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xf16>
      %h = arith.truncf %dotted : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<64x128xf32>
  }

  // The range is the same in each turn.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: a tile varies by itself along the dimension in which turns follow each other"
  // CHECK-LABEL: func.func @itself
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @itself(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %r:2 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      %numbers = tile.broadcast %row : tensor<1x32xi32> -> tensor<64x32xi32>
      %factors = arith.sitofp %numbers : tensor<64x32xi32> to tensor<64x32xf32>
      %scaled = arith.mulf %dotted, %factors : tensor<64x32xf32>
      %h = arith.truncf %scaled : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<64x128xf32>
  }

  // Tiles of 32 that move by 16.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: a tile does not move by its extent in each turn"
  // CHECK-LABEL: func.func @overlapping
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @overlapping(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %r:2 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      %h = arith.truncf %dotted : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i16 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<64x128xf32>
  }

  // A row of numbers from in front of the loop is the same in each turn.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: a tile that it carries, or that comes from outside, is used in the turns' dimension"
  // CHECK-LABEL: func.func @outside
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @outside(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32, %numbers: tensor<64x32xf32>) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %r:2 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      %scaled = arith.mulf %dotted, %numbers : tensor<64x32xf32>
      %h = arith.truncf %scaled : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<64x128xf32>
  }

  // Two dots of a turn add to one sum: taken together, the order of addends would be another one.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: it carries what is neither the sum of one dot nor moves on by a fixed amount"
  // CHECK-LABEL: func.func @twice
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @twice(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %r:2 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      %h = arith.truncf %dotted : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %e = tile.dot %h, %xt, %d : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %e, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<64x128xf32>
  }

  // A known number of turns that is not even.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: there are 3 of them"
  // CHECK-LABEL: func.func @odd
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @odd(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %i3 = arith.constant 3 : i32
    %r:2 = scf.for %t = %i0 to %i3 step %i1 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      %h = arith.truncf %dotted : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<64x128xf32>
  }

  // One sum of 256 registers, and 64 for the longer dot.
  // REMARK: remark: [Missed] turns | Category:dgpu-widen-turns | Remark="turns of narrow dots stay apart: its sums would take 320 registers of each thread"
  // CHECK-LABEL: func.func @registers
  // CHECK-NOT: tile.arange 0, 64
  // CHECK: scf.for
  func.func @registers(%k: tensor<128x256xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<128x256xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %none = arith.constant dense<0.0> : tensor<128x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %strides = tile.splat %s : i32 -> tensor<1x32xi32>
    %offsets = arith.muli %row, %strides : tensor<1x32xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x32x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x32x!tile.ptr<f16>>, tensor<1x32xi32>
    %wide = tile.broadcast %firsts : tensor<1x32x!tile.ptr<f16>> -> tensor<256x32x!tile.ptr<f16>>
    %depth = tile.arange 0, 256 : tensor<256xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<256xi32> -> tensor<256x1xi32>
    %columns = tile.broadcast %column : tensor<256x1xi32> -> tensor<256x32xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<256x32x!tile.ptr<f16>>, tensor<256x32xi32>
    %r:2 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<128x256xf32>, tensor<256x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<256x32x!tile.ptr<f16>> -> tensor<256x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<128x256xf16>, tensor<256x32xf16> -> tensor<128x32xf32>
      %h = arith.truncf %dotted : tensor<128x32xf32> to tensor<128x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<256x32xf16> -> tensor<32x256xf16>
      %d = tile.dot %h, %xt, %sum : tensor<128x32xf16>, tensor<32x256xf16> -> tensor<128x256xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<256x32xi32>
      %next = tile.addptr %p, %bys : tensor<256x32x!tile.ptr<f16>>, tensor<256x32xi32>
      scf.yield %d, %next : tensor<128x256xf32>, tensor<256x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<128x256xf32>
  }
}
