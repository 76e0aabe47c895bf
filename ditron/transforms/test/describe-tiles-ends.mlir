// Tiles with masks, or whose rows wrap around, become tiles of descriptors with the sizes that say so.
// RUN: ditron-opt %s --split-input-file --dgpu-describe-tiles --cse | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-describe-tiles --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// a[(program * 64 + i) % M, k * 64 + j] with j masked: what of rows beyond M is multiplied, no store takes. b[n, k] with masks of both. The column counts
// from 0 in each turn, the row from the program's first one; the window has nothing else to add. An empty tensor has one element, behind which tiles stand.
// REMARK-COUNT-2: the tile is described, for a producer to fetch
// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[A:.*]]: !tile.ptr<f16> {{.*}}, %[[B:.*]]: !tile.ptr<f16> {{.*}}, %{{.*}}: !tile.ptr<f32>, %[[M:.*]]: i32, %[[N:.*]]: i32, %[[K:.*]]: i32, %[[S:.*]]: i32
// CHECK-DAG: %[[KS:.*]] = arith.maxsi %[[K]], %{{.*}} : i32
// CHECK-DAG: %[[MS:.*]] = arith.maxsi %[[M]], %{{.*}} : i32
// CHECK-DAG: %[[NS:.*]] = arith.maxsi %[[N]], %{{.*}} : i32
// CHECK-DAG: tile.make_descriptor %[[A]], [%{{.*}}, %{{.*}}, %[[MS]], %[[KS]]]
// CHECK-DAG: tile.make_descriptor %[[B]], [%{{.*}}, %{{.*}}, %[[NS]], %{{.*}}]
// CHECK: scf.for
// CHECK: arith.trunci
// CHECK: arith.select
// CHECK-DAG: tile.descriptor_load %{{.*}} : !tile.desc<1x1x64x64xf16>
// CHECK-DAG: tile.descriptor_load %{{.*}} : !tile.desc<1x1x64x64xf16>
// CHECK-NOT: tile.load
// CHECK: tile.store
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @product(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>,
                     %M: i32, %N: i32, %K: i32, %stride: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x64xf16>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %program = tile.program_id 0
    %first = arith.muli %program, %i64 : i32
    %first_tile = tile.splat %first : i32 -> tensor<64xi32>
    %rows = arith.addi %first_tile, %i : tensor<64xi32>
    %M_tile = tile.splat %M : i32 -> tensor<64xi32>
    %wrapped = arith.remsi %rows, %M_tile : tensor<64xi32>
    %stride0 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %inner = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %inner_all = tile.broadcast %inner : tensor<1x64xi32> -> tensor<64x64xi32>

    %a_row = tile.expand_dims %wrapped axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %a_far = arith.muli %a_row, %stride0 : tensor<64x1xi32>
    %a0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %a1 = tile.addptr %a0, %a_far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %a2 = tile.broadcast %a1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %a3 = tile.addptr %a2, %inner_all : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>

    %b_row = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %b_far = arith.muli %b_row, %stride0 : tensor<64x1xi32>
    %b0 = tile.splat %b : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %b1 = tile.addptr %b0, %b_far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %b2 = tile.broadcast %b1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %b3 = tile.addptr %b2, %inner_all : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %N_tile = tile.splat %N : i32 -> tensor<64x1xi32>
    %b_inside = arith.cmpi slt, %b_row, %N_tile : tensor<64x1xi32>
    %b_mask0 = tile.broadcast %b_inside : tensor<64x1xi1> -> tensor<64x64xi1>

    %by = arith.constant dense<64> : tensor<64x64xi32>
    %turns = arith.ceildivsi %K, %i64 : i32
    %sum, %a_end, %b_end = scf.for %k = %i0 to %turns step %i1 iter_args(%c = %zero, %pa = %a3, %pb = %b3)
        -> (tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>, tensor<64x64x!tile.ptr<f16>>) : i32 {
      %done = arith.muli %k, %i64 : i32
      %left = arith.subi %K, %done : i32
      %left_tile = tile.splat %left : i32 -> tensor<1x64xi32>
      %inside = arith.cmpi slt, %inner, %left_tile : tensor<1x64xi32>
      %mask = tile.broadcast %inside : tensor<1x64xi1> -> tensor<64x64xi1>
      %b_mask = arith.andi %b_mask0, %mask : tensor<64x64xi1>
      %x = tile.load %pa mask %mask other %none : tensor<64x64x!tile.ptr<f16>> mask tensor<64x64xi1> other tensor<64x64xf16> -> tensor<64x64xf16>
      %y = tile.load %pb mask %b_mask : tensor<64x64x!tile.ptr<f16>> mask tensor<64x64xi1> -> tensor<64x64xf16>
      %turned = tile.trans %y [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %x, %turned, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %pa_next = tile.addptr %pa, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      %pb_next = tile.addptr %pb, %by : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %pa_next, %pb_next : tensor<64x64xf32>, tensor<64x64x!tile.ptr<f16>>, tensor<64x64x!tile.ptr<f16>>
    }
    %M_column = tile.splat %M : i32 -> tensor<64x1xi32>
    %out_row = tile.expand_dims %rows axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %out_inside = arith.cmpi slt, %out_row, %M_column : tensor<64x1xi32>
    %out_mask = tile.broadcast %out_inside : tensor<64x1xi1> -> tensor<64x64xi1>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %sum mask %out_mask : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32> mask tensor<64x64xi1>
    return
  }
}

// -----

// Rows that wrap around, and a store that takes them.
// REMARK: the tile comes through pointers: what it reads of other rows, behind the last one, may be used
// CHECK-LABEL: func.func @stored
// CHECK-NOT: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @stored(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %M: i32, %turns: i32, %ends: !tile.ptr<i32>,
                     %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %one = arith.constant dense<1.0> : tensor<64x64xf16>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %loaded = tile.load %ends : !tile.ptr<i32> -> i32
    %bound = tile.splat %M : i32 -> tensor<64x1xi32>
    %inside = arith.cmpi slt, %column, %bound : tensor<64x1xi32>
    %mask = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
    %rows = arith.remsi %column, %bound : tensor<64x1xi32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %far = arith.muli %rows, %width : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %sum = scf.for %k = %i0 to %turns step %i1 iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
      %t = tile.load %tile : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %sum : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// The same, though the store has a mask: as operand B the tile has the rows along which dots sum.
// REMARK: the tile comes through pointers: what it reads of other rows, behind the last one, may be used
// CHECK-LABEL: func.func @summed
// CHECK-NOT: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @summed(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %M: i32, %turns: i32, %ends: !tile.ptr<i32>,
                     %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %one = arith.constant dense<1.0> : tensor<64x64xf16>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %loaded = tile.load %ends : !tile.ptr<i32> -> i32
    %bound = tile.splat %M : i32 -> tensor<64x1xi32>
    %inside = arith.cmpi slt, %column, %bound : tensor<64x1xi32>
    %mask = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
    %rows = arith.remsi %column, %bound : tensor<64x1xi32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %far = arith.muli %rows, %width : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %sum = scf.for %k = %i0 to %turns step %i1 iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
      %t = tile.load %tile : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %sum mask %mask : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32> mask tensor<64x64xi1>
    return
  }
}

// -----

// Ones where the mask is false.
// REMARK: the tile comes through pointers: outside of its mask is something else than zero
// CHECK-LABEL: func.func @filled
// CHECK-NOT: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @filled(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %M: i32, %turns: i32, %ends: !tile.ptr<i32>,
                     %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %one = arith.constant dense<1.0> : tensor<64x64xf16>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %loaded = tile.load %ends : !tile.ptr<i32> -> i32
    %bound = tile.splat %M : i32 -> tensor<64x1xi32>
    %inside = arith.cmpi slt, %column, %bound : tensor<64x1xi32>
    %mask = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
    %rows = arith.remsi %column, %bound : tensor<64x1xi32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %far = arith.muli %column, %width : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %sum = scf.for %k = %i0 to %turns step %i1 iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
      %t = tile.load %tile mask %mask other %one : tensor<64x64x!tile.ptr<f16>> mask tensor<64x64xi1> other tensor<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %sum mask %mask : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32> mask tensor<64x64xi1>
    return
  }
}

// -----

// An end from memory.
// REMARK: the tile comes through pointers: where an index begins or ends is not known to be
// CHECK-LABEL: func.func @counted
// CHECK-NOT: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @counted(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %M: i32, %turns: i32, %ends: !tile.ptr<i32>,
                     %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %one = arith.constant dense<1.0> : tensor<64x64xf16>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %loaded = tile.load %ends : !tile.ptr<i32> -> i32
    %bound = tile.splat %loaded : i32 -> tensor<64x1xi32>
    %inside = arith.cmpi slt, %column, %bound : tensor<64x1xi32>
    %mask = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
    %rows = arith.remsi %column, %bound : tensor<64x1xi32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %far = arith.muli %column, %width : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %sum = scf.for %k = %i0 to %turns step %i1 iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
      %t = tile.load %tile mask %mask : tensor<64x64x!tile.ptr<f16>> mask tensor<64x64xi1> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %sum mask %mask : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32> mask tensor<64x64xi1>
    return
  }
}

// -----

// A tile that begins at an argument, which may be negative.
// REMARK: the tile comes through pointers: where an index begins or ends is not known to be
// CHECK-LABEL: func.func @given
// CHECK-NOT: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @given(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %M: i32, %turns: i32, %ends: !tile.ptr<i32>,
                     %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %one = arith.constant dense<1.0> : tensor<64x64xf16>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %loaded = tile.load %ends : !tile.ptr<i32> -> i32
    %bound = tile.splat %M : i32 -> tensor<64x1xi32>
    %begin = tile.splat %turns : i32 -> tensor<64x1xi32>
    %from = arith.addi %column, %begin : tensor<64x1xi32>
    %inside = arith.cmpi slt, %from, %bound : tensor<64x1xi32>
    %mask = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
    %rows = arith.remsi %column, %bound : tensor<64x1xi32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %far = arith.muli %from, %width : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %sum = scf.for %k = %i0 to %turns step %i1 iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
      %t = tile.load %tile mask %mask : tensor<64x64x!tile.ptr<f16>> mask tensor<64x64xi1> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %sum mask %mask : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32> mask tensor<64x64xi1>
    return
  }
}

// -----

// A barrier: another argument may be the same tensor.
// REMARK: the tile comes through pointers: a barrier before it may be for what it reads
// CHECK-LABEL: func.func @meeting
// CHECK-NOT: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @meeting(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %M: i32, %turns: i32, %ends: !tile.ptr<i32>,
                     %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %one = arith.constant dense<1.0> : tensor<64x64xf16>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %loaded = tile.load %ends : !tile.ptr<i32> -> i32
    %bound = tile.splat %M : i32 -> tensor<64x1xi32>
    %inside = arith.cmpi slt, %column, %bound : tensor<64x1xi32>
    %mask = tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
    %rows = arith.remsi %column, %bound : tensor<64x1xi32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %far = arith.muli %column, %width : tensor<64x1xi32>
    %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    dist.sync_threads
    %sum = scf.for %k = %i0 to %turns step %i1 iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
      %t = tile.load %tile mask %mask : tensor<64x64x!tile.ptr<f16>> mask tensor<64x64xi1> -> tensor<64x64xf16>
      %d = tile.dot %t, %t, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %sum mask %mask : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32> mask tensor<64x64xi1>
    return
  }
}

// -----

// Rows of one turn around, which the store of the next one takes, with a mask of its own.
// REMARK: the tile comes through pointers: what it reads of other rows, behind the last one, may be used
// CHECK-LABEL: func.func @late
// CHECK-NOT: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @late(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %M: i32, %turns: i32, %ends: !tile.ptr<i32>,
                     %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %bound = tile.splat %M : i32 -> tensor<64x1xi32>
    %bound_row = tile.splat %M : i32 -> tensor<1x64xi32>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %all = scf.for %turn = %i0 to %turns step %i1 iter_args(%before = %zero) -> (tensor<64x64xf32>) : i32 {
      %first = arith.muli %turn, %i64 : i32
      %first_tile = tile.splat %first : i32 -> tensor<64x1xi32>
      %place = arith.addi %first_tile, %column : tensor<64x1xi32>
      %rows = arith.remsi %place, %bound : tensor<64x1xi32>
      %far = arith.muli %rows, %width : tensor<64x1xi32>
      %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
      %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
      %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
      %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      %first_row = tile.splat %first : i32 -> tensor<1x64xi32>
      %place_row = arith.addi %first_row, %row : tensor<1x64xi32>
      %inside_first = arith.cmpi slt, %place, %bound : tensor<64x1xi32>
      %inside_second = arith.cmpi slt, %place_row, %bound_row : tensor<1x64xi32>
      %mask_first = tile.broadcast %inside_first : tensor<64x1xi1> -> tensor<64x64xi1>
      %mask_second = tile.broadcast %inside_second : tensor<1x64xi1> -> tensor<64x64xi1>
      %mask = arith.andi %mask_first, %mask_second : tensor<64x64xi1>
      tile.store %p, %before mask %mask : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32> mask tensor<64x64xi1>
      %sum = scf.for %k = %i0 to %turns step %i1 iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
        %t = tile.load %tile : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
        %t2 = tile.trans %t [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
        %d = tile.dot %t, %t2, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %d : tensor<64x64xf32>
      }
      scf.yield %sum : tensor<64x64xf32>
    }
    return
  }
}

// -----

// That of the same turn may.
// REMARK: the tile is described, for a producer to fetch
// CHECK-LABEL: func.func @in_time
// CHECK: tile.descriptor_load
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @in_time(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %M: i32, %turns: i32, %ends: !tile.ptr<i32>,
                     %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.arange 0, 64 : tensor<64xi32>
    %column = tile.expand_dims %i axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %row = tile.expand_dims %i axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %bound = tile.splat %M : i32 -> tensor<64x1xi32>
    %bound_row = tile.splat %M : i32 -> tensor<1x64xi32>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %all = scf.for %turn = %i0 to %turns step %i1 iter_args(%before = %zero) -> (tensor<64x64xf32>) : i32 {
      %first = arith.muli %turn, %i64 : i32
      %first_tile = tile.splat %first : i32 -> tensor<64x1xi32>
      %place = arith.addi %first_tile, %column : tensor<64x1xi32>
      %rows = arith.remsi %place, %bound : tensor<64x1xi32>
      %far = arith.muli %rows, %width : tensor<64x1xi32>
      %q0 = tile.splat %a : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
      %q1 = tile.addptr %q0, %far : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
      %q2 = tile.broadcast %q1 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
      %tile = tile.addptr %q2, %near : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      %first_row = tile.splat %first : i32 -> tensor<1x64xi32>
      %place_row = arith.addi %first_row, %row : tensor<1x64xi32>
      %inside_first = arith.cmpi slt, %place, %bound : tensor<64x1xi32>
      %inside_second = arith.cmpi slt, %place_row, %bound_row : tensor<1x64xi32>
      %mask_first = tile.broadcast %inside_first : tensor<64x1xi1> -> tensor<64x64xi1>
      %mask_second = tile.broadcast %inside_second : tensor<1x64xi1> -> tensor<64x64xi1>
      %mask = arith.andi %mask_first, %mask_second : tensor<64x64xi1>
      %sum = scf.for %k = %i0 to %turns step %i1 iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
        %t = tile.load %tile : tensor<64x64x!tile.ptr<f16>> -> tensor<64x64xf16>
        %t2 = tile.trans %t [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
        %d = tile.dot %t, %t2, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %d : tensor<64x64xf32>
      }
      tile.store %p, %sum mask %mask : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32> mask tensor<64x64xi1>
      scf.yield %zero : tensor<64x64xf32>
    }
    return
  }
}
