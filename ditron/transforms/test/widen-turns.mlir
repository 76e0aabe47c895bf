// Several turns of a loop over tiles become one with longer tiles, where dots have few columns.
// RUN: ditron-opt %s --dgpu-widen-turns --split-input-file | FileCheck %s
// RUN: ditron-opt %s --dgpu-widen-turns --split-input-file --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: sed 's/, dgpu.wgmma//' %s | ditron-opt --dgpu-widen-turns --split-input-file | FileCheck %s --check-prefix=OTHER

// On other targets nothing changes.
// OTHER-NOT: tile.arange 0, 64 : tensor<64xi32>

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma} {
  // The number of turns is known: the old loop goes away.
  // REMARK: remark: [Passed] turns | Category:dgpu-widen-turns | Remark="2 turns become one: tiles of 32 become 64"
  // CHECK-LABEL: func.func @known
  // CHECK-SAME: %[[K:.*]]: tensor<64x128xf16>
  // CHECK: %[[RANGE:.*]] = tile.arange 0, 64 : tensor<64xi32>
  // CHECK: %[[PTRS:.*]] = tile.addptr %{{.*}}, %{{.*}} : tensor<128x64x!tile.ptr<f16>>, tensor<128x64xi32>
  // CHECK: %[[STEP:.*]] = arith.constant 2 : i32
  // CHECK: %[[R:.*]]:2 = scf.for %{{.*}} = %c0_i32 to %c8_i32 step %[[STEP]] iter_args(%[[SUM:.*]] = %{{.*}}, %[[P:.*]] = %[[PTRS]])
  // CHECK: %[[X:.*]] = tile.load %[[P]] : tensor<128x64x!tile.ptr<f16>> -> tensor<128x64xf16>
  // CHECK: %[[S:.*]] = tile.dot %[[K]], %[[X]], %{{.*}} : tensor<64x128xf16>, tensor<128x64xf16> -> tensor<64x64xf32>
  // CHECK: %[[H:.*]] = arith.truncf %[[S]]
  // CHECK: %[[XT:.*]] = tile.trans %[[X]] [1, 0]
  // CHECK: %[[D:.*]] = tile.dot %[[H]], %[[XT]], %[[SUM]] : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
  // CHECK: %[[BY:.*]] = arith.muli %{{.*}}, %c32_i32 : i32
  // CHECK: %[[FAR:.*]] = arith.extsi %[[BY]] : i32 to i64
  // CHECK: %[[TWICE:.*]] = arith.muli %[[FAR]], %c2_i64 : i64
  // CHECK: %[[ALL:.*]] = tile.splat %[[TWICE]] : i64 -> tensor<128x64xi64>
  // CHECK: %[[NEXT:.*]] = tile.addptr %[[P]], %[[ALL]]
  // CHECK: scf.yield %[[D]], %[[NEXT]]
  // CHECK-NOT: scf.for
  // CHECK: return %[[R]]#0
  func.func @known(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
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
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<64x128xf32>
  }

  // Turns 0, 3, 6 ... from a first one on: the longer loop ends where whole pairs do, the old one begins there with pointers moved so far, and
  // has no ring.
  // REMARK: remark: [Passed] turns | Category:dgpu-widen-turns | Remark="2 turns become one: tiles of 32 become 64"
  // CHECK-LABEL: func.func @remainder
  // CHECK-SAME: %{{[a-z0-9]+}}: i32, %[[BEGIN:[a-z0-9]+]]: i32, %[[END:[a-z0-9]+]]: i32)
  // CHECK: %[[PTRS:.*]] = tile.addptr %{{.*}}, %{{.*}} : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
  // CHECK: %[[STEP:.*]] = arith.constant 6 : i32
  // CHECK: %[[DISTANCE:.*]] = arith.subi %[[END]], %[[BEGIN]]
  // CHECK: %[[ROUNDED:.*]] = arith.addi %[[DISTANCE]], %c2_i32
  // CHECK: %[[POSITIVE:.*]] = arith.maxsi %[[ROUNDED]], %c0_i32{{.*}}
  // CHECK: %[[PAIRS:.*]] = arith.divsi %[[POSITIVE]], %[[STEP]]
  // CHECK: %[[TURNS:.*]] = arith.muli %[[PAIRS]], %c2_i32{{.*}}
  // CHECK: %[[COVERED:.*]] = arith.muli %[[PAIRS]], %[[STEP]]
  // CHECK: %[[MIDDLE:.*]] = arith.addi %[[BEGIN]], %[[COVERED]]
  // CHECK: %[[R:.*]]:2 = scf.for %{{.*}} = %[[BEGIN]] to %[[MIDDLE]] step %[[STEP]]
  // CHECK: } {tile.flatten}
  // CHECK: %[[FAR:.*]] = arith.extsi %{{.*}} : i32 to i64
  // CHECK: %[[MANY:.*]] = arith.extsi %[[TURNS]] : i32 to i64
  // CHECK: %[[MOVED:.*]] = arith.muli %[[FAR]], %[[MANY]] : i64
  // CHECK: %[[ALL:.*]] = tile.splat %[[MOVED]] : i64 -> tensor<128x32xi64>
  // CHECK: %[[LAST:.*]] = tile.addptr %[[PTRS]], %[[ALL]]
  // CHECK: %[[T:.*]]:2 = scf.for %{{.*}} = %[[MIDDLE]] to %[[END]] step %c3_i32 iter_args(%{{.*}} = %[[R]]#0, %{{.*}} = %[[LAST]])
  // CHECK: tile.load %{{.*}} : tensor<128x32x!tile.ptr<f16>>
  // CHECK: } {tile.flatten, tile.num_stages = 1 : i32}
  // CHECK: return %[[T]]#0
  func.func @remainder(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32, %begin: i32, %end: i32) -> tensor<64x128xf32> {
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
    %r:2 = scf.for %t = %begin to %end step %i3 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
      %h = arith.truncf %dotted : tensor<64x32xf32> to tensor<64x32xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x32xf16> -> tensor<32x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    } {tile.flatten}
    return %r#0 : tensor<64x128xf32>
  }

  // A place that moves with the turns and a range beside it are compared with rows. Four turns become one.
  // REMARK: remark: [Passed] turns | Category:dgpu-widen-turns | Remark="4 turns become one: tiles of 16 become 64"
  // CHECK-LABEL: func.func @masked
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[AT:.*]] = %{{.*}}, %{{.*}} = %{{.*}})
  // CHECK: %[[STARTS:.*]] = tile.splat %[[AT]] : i32 -> tensor<64xi32>
  // CHECK: %[[PLACES:.*]] = arith.addi %[[STARTS]], %{{.*}} : tensor<64xi32>
  // CHECK: %[[LIMITS:.*]] = tile.broadcast %{{.*}} : tensor<64x1xi32> -> tensor<64x64xi32>
  // CHECK: arith.cmpi sge, %{{.*}}, %[[LIMITS]] : tensor<64x64xi32>
  // CHECK: %[[BY:.*]] = arith.constant 64 : i32
  // CHECK: arith.addi %[[AT]], %[[BY]]
  // CHECK-NOT: scf.for
  func.func @masked(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32, %limit: tensor<64x1xi32>) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x16xf32>
    %range = tile.arange 0, 16 : tensor<16xi32>
    %row = tile.expand_dims %range axis 0 : tensor<16xi32> -> tensor<1x16xi32>
    %strides = tile.splat %s : i32 -> tensor<1x16xi32>
    %offsets = arith.muli %row, %strides : tensor<1x16xi32>
    %base = tile.splat %q : !tile.ptr<f16> -> tensor<1x16x!tile.ptr<f16>>
    %firsts = tile.addptr %base, %offsets : tensor<1x16x!tile.ptr<f16>>, tensor<1x16xi32>
    %wide = tile.broadcast %firsts : tensor<1x16x!tile.ptr<f16>> -> tensor<128x16x!tile.ptr<f16>>
    %depth = tile.arange 0, 128 : tensor<128xi32>
    %column = tile.expand_dims %depth axis 1 : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x16xi32>
    %ptrs = tile.addptr %wide, %columns : tensor<128x16x!tile.ptr<f16>>, tensor<128x16xi32>
    %r:3 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs, %at = %i0) -> (tensor<64x128xf32>, tensor<128x16x!tile.ptr<f16>>, i32) : i32 {
      %x = tile.load %p : tensor<128x16x!tile.ptr<f16>> -> tensor<128x16xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x16xf16> -> tensor<64x16xf32>
      %starts = tile.splat %at : i32 -> tensor<16xi32>
      %places = arith.addi %starts, %range : tensor<16xi32>
      %placeRow = tile.expand_dims %places axis 0 : tensor<16xi32> -> tensor<1x16xi32>
      %placeTile = tile.broadcast %placeRow : tensor<1x16xi32> -> tensor<64x16xi32>
      %limits = tile.broadcast %limit : tensor<64x1xi32> -> tensor<64x16xi32>
      %mask = arith.cmpi sge, %placeTile, %limits : tensor<64x16xi32>
      %masked = arith.select %mask, %dotted, %none : tensor<64x16xi1>, tensor<64x16xf32>
      %further = arith.addi %at, %i16 : i32
      %h = arith.truncf %masked : tensor<64x16xf32> to tensor<64x16xf16>
      %xt = tile.trans %x [1, 0] : tensor<128x16xf16> -> tensor<16x128xf16>
      %d = tile.dot %h, %xt, %sum : tensor<64x16xf16>, tensor<16x128xf16> -> tensor<64x128xf32>
      %by = arith.muli %s, %i16 : i32
      %bys = tile.splat %by : i32 -> tensor<128x16xi32>
      %next = tile.addptr %p, %bys : tensor<128x16x!tile.ptr<f16>>, tensor<128x16xi32>
      scf.yield %d, %next, %further : tensor<64x128xf32>, tensor<128x16x!tile.ptr<f16>>, i32
    }
    return %r#0 : tensor<64x128xf32>
  }

  // Neither side of the comparison follows the turns, their difference does.
  // REMARK: remark: [Passed] turns | Category:dgpu-widen-turns | Remark="2 turns become one: tiles of 32 become 64"
  // CHECK-LABEL: func.func @difference
  // CHECK: scf.for
  // CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<1x64xi32>
  func.func @difference(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32, %limit: i32) -> tensor<64x128xf32> {
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
      %maskRow = arith.cmpi slt, %row, %lefts : tensor<1x32xi32>
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

  // A reduction in the other dimension keeps its elements.
  // REMARK: remark: [Passed] turns | Category:dgpu-widen-turns | Remark="2 turns become one: tiles of 32 become 64"
  // CHECK-LABEL: func.func @rows
  // CHECK: tile.reduce
  // CHECK: (tensor<64x64xf32>) -> tensor<64xf32>
  func.func @rows(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
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
      %largest = tile.reduce(%dotted) axis 0 {
      ^bb0(%a: f32, %b: f32):
        %c = arith.maxnumf %a, %b : f32
        tile.yield %c : f32
      } : (tensor<64x32xf32>) -> tensor<32xf32>
      %largestRow = tile.expand_dims %largest axis 0 : tensor<32xf32> -> tensor<1x32xf32>
      %largestTile = tile.broadcast %largestRow : tensor<1x32xf32> -> tensor<64x32xf32>
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

  // A column is, too, and each row has one number of it.
  // REMARK: remark: [Passed] turns | Category:dgpu-widen-turns | Remark="2 turns become one: tiles of 32 become 64"
  // CHECK-LABEL: func.func @column
  // CHECK: tile.broadcast %{{.*}} : tensor<64x1xf32> -> tensor<64x64xf32>
  // CHECK: scf.for
  func.func @column(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32, %numbers: tensor<64x1xf32>) -> tensor<64x128xf32> {
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
    %factors = tile.broadcast %numbers : tensor<64x1xf32> -> tensor<64x32xf32>
    %r:2 = scf.for %t = %i0 to %i8 step %i1 iter_args(%sum = %zero, %p = %ptrs) -> (tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>) : i32 {
      %x = tile.load %p : tensor<128x32x!tile.ptr<f16>> -> tensor<128x32xf16>
      %dotted = tile.dot %k, %x, %none : tensor<64x128xf16>, tensor<128x32xf16> -> tensor<64x32xf32>
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

  // What is promised of 32 elements is not promised of 64.
  // REMARK: remark: [Passed] turns | Category:dgpu-widen-turns | Remark="2 turns become one: tiles of 32 become 64"
  // CHECK-LABEL: func.func @promised
  // CHECK: tile.arange 0, 64 : tensor<64xi32>
  // CHECK-NOT: tile.hint
  // CHECK: scf.for
  // CHECK-NOT: tile.hint
  // CHECK: return
  func.func @promised(%k: tensor<64x128xf16>, %q: !tile.ptr<f16>, %s: i32) -> tensor<64x128xf32> {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %range = tile.arange 0, 32 : tensor<32xi32>
    %hinted = tile.hint %range {contiguity = array<i64: 32>, divisibility = array<i64: 64>, constancy = array<i64: 1>} : tensor<32xi32>
    %row = tile.expand_dims %hinted axis 0 : tensor<32xi32> -> tensor<1x32xi32>
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
      %by = arith.muli %s, %i32 : i32
      %bys = tile.splat %by : i32 -> tensor<128x32xi32>
      %next = tile.addptr %p, %bys : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
      scf.yield %d, %next : tensor<64x128xf32>, tensor<128x32x!tile.ptr<f16>>
    }
    return %r#0 : tensor<64x128xf32>
  }
}
