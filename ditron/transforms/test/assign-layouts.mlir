// Anchors and how layouts spread from them, one idea per kernel.
// RUN: ditron-opt %s --split-input-file --dgpu-assign-layouts --dgpu-verify-layouts | FileCheck %s

// 16-byte vectors where alignment and contiguity are proved.
// CHECK: #[[$V:L[0-9]*]] = #dgpu.layout<1024, reg = {i0 i1 i9}, lane = [i2 i3 i4 i5 i6], warp = [i7 i8]>
// CHECK-LABEL: func.func @vector_add
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @vector_add(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i64},
                        %z: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) attributes {tile.kernel} {
    %c1024 = arith.constant 1024 : i32
    %pid = tile.program_id 0
    %start = arith.muli %pid, %c1024 : i32
    %range = tile.arange 0, 1024 : tensor<1024xi32>
    %starts = tile.splat %start : i32 -> tensor<1024xi32>
    %offs = arith.addi %starts, %range : tensor<1024xi32>
    %ns = tile.splat %n : i32 -> tensor<1024xi32>
    %mask = arith.cmpi slt, %offs, %ns : tensor<1024xi32>
    %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %offs : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // CHECK: tile.load {{.*}} -> tensor<1024xf32, #[[$V]]>
    %xv = tile.load %xp mask %mask : tensor<1024x!tile.ptr<f32>> mask tensor<1024xi1> -> tensor<1024xf32>
    %ys = tile.splat %y : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %offs : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %yv = tile.load %yp mask %mask : tensor<1024x!tile.ptr<f32>> mask tensor<1024xi1> -> tensor<1024xf32>
    %sum = arith.addf %xv, %yv : tensor<1024xf32>
    %zs = tile.splat %z : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %zp = tile.addptr %zs, %offs : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // CHECK-NOT: dgpu.convert_layout
    // CHECK: tile.store {{.*}} tensor<1024xf32, #[[$V]]>
    tile.store %zp, %sum mask %mask : tensor<1024x!tile.ptr<f32>>, tensor<1024xf32> mask tensor<1024xi1>
    return
  }
}

// -----

// Without facts about the pointer each thread takes one element per instruction; neighbours in the warp are still adjacent.
// CHECK: #[[$ONE:L[0-9]*]] = #dgpu.layout<256, reg = {i7}, lane = [i0 i1 i2 i3 i4], warp = [i5 i6]>
// CHECK-LABEL: func.func @unaligned
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @unaligned(%x: !tile.ptr<f32>) attributes {tile.kernel} {
    %range = tile.arange 0, 256 : tensor<256xi32>
    %xs = tile.splat %x : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %range : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
    // CHECK: tile.load {{.*}} -> tensor<256xf32, #[[$ONE]]>
    %xv = tile.load %xp : tensor<256x!tile.ptr<f32>> -> tensor<256xf32>
    tile.store %xp, %xv : tensor<256x!tile.ptr<f32>>, tensor<256xf32>
    return
  }
}

// -----

// A tile that is contiguous along its first dimension puts that one first; loading rows and storing columns needs one conversion.
// CHECK-DAG: #[[$ROWS:L[0-9]*]] = #dgpu.layout<32x32, reg = {j0 j1 i4}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]>
// CHECK-DAG: #[[$COLS:L[0-9]*]] = #dgpu.layout<32x32, reg = {j4 i0 i1}, lane = [i2 i3 i4 j0 j1], warp = [j2 j3]>
// CHECK-LABEL: func.func @transposed_store
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @transposed_store(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i64},
                              %s: i32 {tile.divisibility = 16 : i64}) attributes {tile.kernel} {
    %range = tile.arange 0, 32 : tensor<32xi32>
    %col = tile.expand_dims %range axis 1 : tensor<32xi32> -> tensor<32x1xi32>
    %row = tile.expand_dims %range axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %sc = tile.splat %s : i32 -> tensor<32x1xi32>
    %sr = tile.splat %s : i32 -> tensor<1x32xi32>
    %colS = arith.muli %col, %sc : tensor<32x1xi32>
    %rowS = arith.muli %row, %sr : tensor<1x32xi32>
    %colSB = tile.broadcast %colS : tensor<32x1xi32> -> tensor<32x32xi32>
    %rowB = tile.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
    %colB = tile.broadcast %col : tensor<32x1xi32> -> tensor<32x32xi32>
    %rowSB = tile.broadcast %rowS : tensor<1x32xi32> -> tensor<32x32xi32>
    %in = arith.addi %colSB, %rowB : tensor<32x32xi32>
    %out = arith.addi %colB, %rowSB : tensor<32x32xi32>
    %xs = tile.splat %x : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %in : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
    // CHECK: tile.load {{.*}} -> tensor<32x32xf32, #[[$ROWS]]>
    %v = tile.load %xp : tensor<32x32x!tile.ptr<f32>> -> tensor<32x32xf32>
    %ys = tile.splat %y : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %out : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
    // CHECK: dgpu.convert_layout {{.*}} : tensor<32x32xf32, #[[$ROWS]]> -> tensor<32x32xf32, #[[$COLS]]>
    // CHECK: tile.store {{.*}} tensor<32x32xf32, #[[$COLS]]>
    tile.store %yp, %v : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xf32>
    return
  }
}

// -----

// A reduction drops its axis; expanded and broadcast again it is what it came from: no conversion. The store of one value per row
// follows its value.
// CHECK-DAG: #[[$X:L[0-9]*]] = #dgpu.layout<16x64, reg = {j0 j1 i3}, lane = [j2 j3 j4 j5 i0], warp = [i1 i2]>
// CHECK-DAG: #[[$M:L[0-9]*]] = #dgpu.layout<16, reg = {i3}, lane = [* * * * i0], warp = [i1 i2]>
// CHECK-LABEL: func.func @reduce_broadcast
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @reduce_broadcast(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
    %c64 = arith.constant dense<64> : tensor<16x1xi32>
    %r16 = tile.arange 0, 16 : tensor<16xi32>
    %r64 = tile.arange 0, 64 : tensor<64xi32>
    %col = tile.expand_dims %r16 axis 1 : tensor<16xi32> -> tensor<16x1xi32>
    %row = tile.expand_dims %r64 axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %colS = arith.muli %col, %c64 : tensor<16x1xi32>
    %colB = tile.broadcast %colS : tensor<16x1xi32> -> tensor<16x64xi32>
    %rowB = tile.broadcast %row : tensor<1x64xi32> -> tensor<16x64xi32>
    %offs = arith.addi %colB, %rowB : tensor<16x64xi32>
    %xs = tile.splat %x : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %offs : tensor<16x64x!tile.ptr<f32>>, tensor<16x64xi32>
    // CHECK: tile.load {{.*}} -> tensor<16x64xf32, #[[$X]]>
    %v = tile.load %xp : tensor<16x64x!tile.ptr<f32>> -> tensor<16x64xf32>
    // CHECK: tile.reduce
    // CHECK: (tensor<16x64xf32, #[[$X]]>) -> tensor<16xf32, #[[$M]]>
    // CHECK-NOT: dgpu.convert_layout
    %max = tile.reduce(%v) axis 1 {
    ^bb0(%a: f32, %b: f32):
      %m = arith.maximumf %a, %b : f32
      tile.yield %m : f32
    } : (tensor<16x64xf32>) -> tensor<16xf32>
    %maxE = tile.expand_dims %max axis 1 : tensor<16xf32> -> tensor<16x1xf32>
    %maxB = tile.broadcast %maxE : tensor<16x1xf32> -> tensor<16x64xf32>
    // CHECK: arith.subf {{.*}} : tensor<16x64xf32, #[[$X]]>
    %d = arith.subf %v, %maxB : tensor<16x64xf32>
    tile.store %xp, %d : tensor<16x64x!tile.ptr<f32>>, tensor<16x64xf32>
    %ys = tile.splat %y : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %r16 : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
    // CHECK: tile.store {{.*}} tensor<16xf32, #[[$M]]>
    tile.store %yp, %max : tensor<16x!tile.ptr<f32>>, tensor<16xf32>
    return
  }
}

// -----

// What loops and branches carry has one layout; the one of the load, here. Nothing is decided for %flag: a scalar.
// CHECK: #[[$Q:L[0-9]*]] = #dgpu.layout<512, reg = {i0 i1}, lane = [i2 i3 i4 i5 i6], warp = [i7 i8]>
// CHECK-LABEL: func.func @control_flow
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @control_flow(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32, %flag: i1) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c512 = arith.constant dense<512> : tensor<512xi32>
    %zero = arith.constant dense<0.0> : tensor<512xf32>
    %one = arith.constant dense<1.0> : tensor<512xf32>
    %range = tile.arange 0, 512 : tensor<512xi32>
    %xs = tile.splat %x : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %range : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
    // CHECK: scf.for {{.*}} -> (tensor<512xf32, #[[$Q]]>, tensor<512x!tile.ptr<f32>, #[[$Q]]>)
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %xp) -> (tensor<512xf32>, tensor<512x!tile.ptr<f32>>) : i32 {
      %v = tile.load %p : tensor<512x!tile.ptr<f32>> -> tensor<512xf32>
      %s = arith.addf %acc, %v : tensor<512xf32>
      %pn = tile.addptr %p, %c512 : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
      scf.yield %s, %pn : tensor<512xf32>, tensor<512x!tile.ptr<f32>>
    }
    // CHECK: scf.if {{.*}} -> (tensor<512xf32, #[[$Q]]>)
    %t = scf.if %flag -> tensor<512xf32> {
      scf.yield %r#0 : tensor<512xf32>
    } else {
      scf.yield %one : tensor<512xf32>
    }
    // CHECK: scf.while {{.*}} : (i32, tensor<512xf32, #[[$Q]]>) -> (i32, tensor<512xf32, #[[$Q]]>)
    %w:2 = scf.while (%i = %c0, %a = %t) : (i32, tensor<512xf32>) -> (i32, tensor<512xf32>) {
      %more = arith.cmpi slt, %i, %n : i32
      scf.condition(%more) %i, %a : i32, tensor<512xf32>
    } do {
    ^bb0(%i: i32, %a: tensor<512xf32>):
      %in = arith.addi %i, %c1 : i32
      %an = arith.mulf %a, %a : tensor<512xf32>
      scf.yield %in, %an : i32, tensor<512xf32>
    }
    // CHECK-NOT: dgpu.convert_layout
    tile.store %xp, %w#1 : tensor<512x!tile.ptr<f32>>, tensor<512xf32>
    return
  }
}

// -----

// Dots: fp32 with ieee precision and tiles smaller than an instruction are multiply-adds; fp8 is extended to fp16.
// CHECK-DAG: #[[$FA:L[0-9]*]] = #dgpu.layout<64x64, reg = {{{j[0-9 ij]*}}}, lane = [{{.*}}], warp = [{{.*}}]>
// CHECK-LABEL: func.func @dots
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @dots(%p: !tile.ptr<f32>, %x: f32, %y: f8E4M3FN) attributes {tile.kernel} {
    %a = tile.splat %x : f32 -> tensor<64x64xf32>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %z16 = arith.constant dense<0.0> : tensor<16x16xf32>
    // CHECK: tile.dot {{.*}} {precision = #tile.precision<ieee>}
    %d = tile.dot %a, %a, %z {precision = #tile.precision<ieee>} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %b = tile.splat %y : f8E4M3FN -> tensor<16x16xf8E4M3FN>
    // CHECK: arith.extf {{.*}} to tensor<16x16xf16
    // CHECK: arith.extf {{.*}} to tensor<16x16xf16
    // CHECK: tile.dot {{.*}} : tensor<16x16xf16, #{{.*}}>, tensor<16x16xf16, #{{.*}}> -> tensor<16x16xf32
    %e = tile.dot %b, %b, %z16 : tensor<16x16xf8E4M3FN>, tensor<16x16xf8E4M3FN> -> tensor<16x16xf32>
    %r16 = tile.arange 0, 16 : tensor<16xi32>
    %row = tile.expand_dims %r16 axis 0 : tensor<16xi32> -> tensor<1x16xi32>
    %rowB = tile.broadcast %row : tensor<1x16xi32> -> tensor<16x16xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x16x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %rowB : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xi32>
    tile.store %pp, %e : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xf32>
    %s = tile.reduce(%d) axis 1 {
    ^bb0(%l: f32, %r: f32):
      %m = arith.addf %l, %r : f32
      tile.yield %m : f32
    } : (tensor<64x64xf32>) -> tensor<64xf32>
    %s0 = tile.reduce(%s) axis 0 {
    ^bb0(%l: f32, %r: f32):
      %m = arith.addf %l, %r : f32
      tile.yield %m : f32
    } : (tensor<64xf32>) -> f32
    tile.store %p, %s0 : !tile.ptr<f32>, f32
    return
  }
}

// -----

// The source of a scan was decided by its other user, its result by the store: a conversion, and one layout for the scan.
// CHECK-DAG: #[[$ROWS:L[0-9]*]] = #dgpu.layout<16x16, reg = {j0 j1 i3}
// CHECK-DAG: #[[$COLS:L[0-9]*]] = #dgpu.layout<16x16, reg = {j3 i0 i1}
// CHECK-LABEL: func.func @scan
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @scan(%x: !tile.ptr<i32> {tile.divisibility = 16 : i64}) attributes {tile.kernel} {
    %r = tile.arange 0, 16 : tensor<16xi32>
    %c16 = arith.constant dense<16> : tensor<16x1xi32>
    %r16 = arith.constant dense<16> : tensor<1x16xi32>
    %col = tile.expand_dims %r axis 1 : tensor<16xi32> -> tensor<16x1xi32>
    %row = tile.expand_dims %r axis 0 : tensor<16xi32> -> tensor<1x16xi32>
    %colS = arith.muli %col, %c16 : tensor<16x1xi32>
    %rowS = arith.muli %row, %r16 : tensor<1x16xi32>
    %colSB = tile.broadcast %colS : tensor<16x1xi32> -> tensor<16x16xi32>
    %rowB = tile.broadcast %row : tensor<1x16xi32> -> tensor<16x16xi32>
    %colB = tile.broadcast %col : tensor<16x1xi32> -> tensor<16x16xi32>
    %rowSB = tile.broadcast %rowS : tensor<1x16xi32> -> tensor<16x16xi32>
    %byRows = arith.addi %colSB, %rowB : tensor<16x16xi32>
    %byCols = arith.addi %colB, %rowSB : tensor<16x16xi32>
    %xs = tile.splat %x : !tile.ptr<i32> -> tensor<16x16x!tile.ptr<i32>>
    %xr = tile.addptr %xs, %byRows : tensor<16x16x!tile.ptr<i32>>, tensor<16x16xi32>
    %xc = tile.addptr %xs, %byCols : tensor<16x16x!tile.ptr<i32>>, tensor<16x16xi32>
    tile.store %xr, %byRows : tensor<16x16x!tile.ptr<i32>>, tensor<16x16xi32>
    // CHECK: dgpu.convert_layout {{.*}} -> tensor<16x16xi32, #[[$COLS]]>
    // CHECK: tile.scan
    // CHECK: (tensor<16x16xi32, #[[$COLS]]>) -> tensor<16x16xi32, #[[$COLS]]>
    %s = tile.scan(%byRows) axis 1 {
    ^bb0(%a: i32, %b: i32):
      %m = arith.addi %a, %b : i32
      tile.yield %m : i32
    } : (tensor<16x16xi32>) -> tensor<16x16xi32>
    tile.store %xc, %s : tensor<16x16x!tile.ptr<i32>>, tensor<16x16xi32>
    return
  }
}
