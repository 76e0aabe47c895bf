// Which loads are pipelined, how addresses run ahead, and what is refused why.
// RUN: ditron-opt %s --split-input-file --dgpu-assign-layouts --dgpu-remove-conversions --dgpu-pipeline-loops --dgpu-verify-layouts | FileCheck %s
// RUN: ditron-opt %s --split-input-file --dgpu-assign-layouts --dgpu-remove-conversions --dgpu-pipeline-loops --remarks-filter=dgpu-pipeline-loops --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// Addresses from the induction variable; B is loaded as N x K and transposed; A is fp32 and narrowed after the load. Two stages: the
// wait leaves nothing pending. The pointers wait for a signal (dist.consume_token): the copies stay behind the wait.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 2 : i32} {
  // CHECK-LABEL: func.func @fused_wait
  // REMARK: remark: [Passed] pipeline {{.*}} Remark="pipelined: 2 slots of 8192 bytes, copies of 16 bytes"
  // REMARK: remark: [Passed] pipeline {{.*}} Remark="pipelined: 2 slots of 4096 bytes, copies of 16 bytes"
  func.func @fused_wait(%a: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64},
                        %c: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %sig: !tile.ptr<i64>, %k: i32 {tile.divisibility = 16 : i64})
      attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %v1 = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    // CHECK: %[[TOKEN:.*]] = dist.wait
    %token = dist.wait ge gpu acquire %sig, %c1, %v1 : !tile.ptr<i64>, i64
    // CHECK: %[[READY:.*]] = dist.consume_token %{{.*}}, %[[TOKEN]]
    %ready = dist.consume_token %a, %token : !tile.ptr<f32>
    %r64 = tile.arange 0, 64 : tensor<64xi32>
    %r32 = tile.arange 0, 32 : tensor<32xi32>
    %col = tile.expand_dims %r64 axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    %ks = tile.splat %k : i32 -> tensor<64x1xi32>
    %rows = arith.muli %col, %ks : tensor<64x1xi32>
    %rowsB = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x32xi32>
    %as = tile.splat %ready : !tile.ptr<f32> -> tensor<64x32x!tile.ptr<f32>>
    %bs = tile.splat %b : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>>
    %trips = arith.ceildivsi %k, %c32 : i32
    // CHECK-DAG: %[[RA:.*]] = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x32 x f32
    // CHECK-DAG: %[[RB:.*]] = dgpu.buffer_alloc : !dgpu.buffer<2 x 64x32 x f16
    // CHECK: dgpu.async_copy %{{.*}} to %[[RA]]
    // CHECK: dgpu.async_copy %{{.*}} to %[[RB]]
    // CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}}, %[[SLOT:.*]] = %{{.*}}) -> (tensor<64x64xf32, #{{.*}}>, i32)
    // CHECK-NEXT: dgpu.async_wait 0
    // CHECK: %[[STEP:.*]] = arith.muli
    // CHECK-NEXT: %[[AHEAD:.*]] = arith.addi %[[I]], %[[STEP]]
    // CHECK: arith.cmpi slt, %[[AHEAD]]
    // CHECK: arith.muli %[[AHEAD]], %c32_i32
    // CHECK: dgpu.async_copy %{{.*}} to %[[RA]]
    // CHECK: dgpu.async_copy %{{.*}} to %[[RB]]
    // CHECK: %[[AF:.*]] = dgpu.buffer_load %[[RA]][%[[SLOT]]]
    // CHECK: %[[A:.*]] = arith.truncf %[[AF]]
    // CHECK: %[[BT:.*]] = dgpu.buffer_load %[[RB]][%[[SLOT]]]
    // CHECK: %[[B:.*]] = tile.trans %[[BT]]
    // CHECK: tile.dot %[[A]], %[[B]]
    // CHECK-NOT: tile.load
    // CHECK: dgpu.async_wait 0
    %r = scf.for %i = %c0 to %trips step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %k0 = arith.muli %i, %c32 : i32
      %k0s = tile.splat %k0 : i32 -> tensor<32xi32>
      %ki = arith.addi %k0s, %r32 : tensor<32xi32>
      %row = tile.expand_dims %ki axis 0 : tensor<32xi32> -> tensor<1x32xi32>
      %rowB = tile.broadcast %row : tensor<1x32xi32> -> tensor<64x32xi32>
      %off = arith.addi %rowsB, %rowB : tensor<64x32xi32>
      %ap = tile.addptr %as, %off : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
      %bp = tile.addptr %bs, %off : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
      %av = tile.load %ap : tensor<64x32x!tile.ptr<f32>> -> tensor<64x32xf32>
      %bv = tile.load %bp : tensor<64x32x!tile.ptr<f16>> -> tensor<64x32xf16>
      %ah = arith.truncf %av : tensor<64x32xf32> to tensor<64x32xf16>
      %bt = tile.trans %bv [1, 0] : tensor<64x32xf16> -> tensor<32x64xf16>
      %d = tile.dot %ah, %bt, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %row64 = tile.expand_dims %r64 axis 0 : tensor<64xi32> -> tensor<1x64xi32>
    %row64B = tile.broadcast %row64 : tensor<1x64xi32> -> tensor<64x64xi32>
    %rows64B = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %co = arith.addi %rows64B, %row64B : tensor<64x64xi32>
    %cs = tile.splat %c : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %cp = tile.addptr %cs, %co : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
    tile.store %cp, %r : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// A wait in the loop: nothing may overtake it. The loads go through registers.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32} {
  // CHECK-LABEL: func.func @wait_in_loop
  // CHECK-NOT: dgpu.async_copy
  // CHECK: tile.load
  // REMARK: remark: [Missed] pipeline {{.*}} Remark="the loop is not pipelined: loads may not overtake 'dist.wait'"
  func.func @wait_in_loop(%p: !tile.ptr<f16>, %q: !tile.ptr<f32>, %sig: !tile.ptr<i64>, %n: i32) attributes {tile.kernel} {
    %a = tile.splat %p : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v1 = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
      %token = dist.wait ge gpu acquire %sig, %c1, %v1 : !tile.ptr<i64>, i64
      %v = tile.load %a : tensor<32x32x!tile.ptr<f16>> -> tensor<32x32xf16>
      %d = tile.dot %v, %v, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %d : tensor<32x32xf32>
    }
    %c = tile.splat %q : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
    tile.store %c, %r : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xf32>
    return
  }
}

// -----

// Rows in pages: the numbers of the pages run ahead with the copies that need them, and are read only for iterations that there are.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 2 : i32} {
  // CHECK-LABEL: func.func @pages
  // CHECK: %[[FIRST:.*]] = arith.cmpi slt, %{{.*}}, %arg3 : i32
  // CHECK: tile.load %{{.*}} mask %[[FIRST]] : !tile.ptr<i32> mask i1 -> i32
  // CHECK: dgpu.async_copy
  // CHECK: scf.for %[[I:[a-z0-9]*]] = %
  // CHECK: %[[AHEAD:.*]] = arith.addi %[[I]], %
  // CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[AHEAD]], %arg3 : i32
  // CHECK: tile.load %{{.*}} mask %[[EXISTS]] : !tile.ptr<i32> mask i1 -> i32
  // CHECK: dgpu.async_copy
  // CHECK: tile.dot
  // REMARK: remark: [Passed] pipeline {{.*}} Remark="pipelined: 2 slots of 2048 bytes, copies of 16 bytes"
  func.func @pages(%table: !tile.ptr<i32>, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c1024 = arith.constant 1024 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %c32s = arith.constant dense<32> : tensor<32x1xi32>
    %r32 = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %r32 axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %col = tile.expand_dims %r32 axis 1 : tensor<32xi32> -> tensor<32x1xi32>
    %colS = arith.muli %col, %c32s : tensor<32x1xi32>
    %rowB = tile.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
    %colB = tile.broadcast %colS : tensor<32x1xi32> -> tensor<32x32xi32>
    %off = arith.addi %rowB, %colB : tensor<32x32xi32>
    %bs = tile.splat %b : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
    %bp = tile.addptr %bs, %off : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
      %tp = tile.addptr %table, %i : !tile.ptr<i32>, i32
      %page = tile.load %tp : !tile.ptr<i32> -> i32
      %first = arith.muli %page, %c1024 : i32
      %firstS = tile.splat %first : i32 -> tensor<32x32xi32>
      %bpi = tile.addptr %bp, %firstS : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
      %v = tile.load %bpi : tensor<32x32x!tile.ptr<f16>> -> tensor<32x32xf16>
      %d = tile.dot %v, %v, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %d : tensor<32x32xf32>
    }
    %os = tile.splat %out : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
    %op = tile.addptr %os, %off : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
    tile.store %op, %r : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xf32>
    return
  }
}

// -----

// An operand that was loaded before the loop is waited for, and brought into the layout of the dot, behind the first copies.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 2 : i32} {
  // CHECK-LABEL: func.func @operand_of_all_turns
  // CHECK: tile.load %{{.*}} -> tensor<32x32xf16
  // CHECK-NOT: dgpu.convert_layout
  // CHECK: dgpu.async_copy
  // CHECK: dgpu.async_commit
  // CHECK: %[[Q:.*]] = dgpu.convert_layout
  // CHECK: scf.for
  // CHECK: tile.dot %[[Q]],
  func.func @operand_of_all_turns(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64},
                                  %out: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c1024 = arith.constant 1024 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %c32s = arith.constant dense<32> : tensor<32x1xi32>
    %r32 = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %r32 axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %col = tile.expand_dims %r32 axis 1 : tensor<32xi32> -> tensor<32x1xi32>
    %colS = arith.muli %col, %c32s : tensor<32x1xi32>
    %rowB = tile.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
    %colB = tile.broadcast %colS : tensor<32x1xi32> -> tensor<32x32xi32>
    %off = arith.addi %rowB, %colB : tensor<32x32xi32>
    %as = tile.splat %a : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
    %ap = tile.addptr %as, %off : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
    %q = tile.load %ap : tensor<32x32x!tile.ptr<f16>> -> tensor<32x32xf16>
    %bs = tile.splat %b : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
    %bp = tile.addptr %bs, %off : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
      %first = arith.muli %i, %c1024 : i32
      %firstS = tile.splat %first : i32 -> tensor<32x32xi32>
      %bpi = tile.addptr %bp, %firstS : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
      %v = tile.load %bpi : tensor<32x32x!tile.ptr<f16>> -> tensor<32x32xf16>
      %d = tile.dot %q, %v, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %d : tensor<32x32xf32>
    }
    %os = tile.splat %out : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
    %op = tile.addptr %os, %off : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
    tile.store %op, %r : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xf32>
    return
  }
}

// -----

// Two bytes per thread are too few for an asynchronous copy; an address that comes out of a branch cannot run ahead; `other` is zero.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32} {
  // CHECK-LABEL: func.func @refused
  // CHECK-NOT: dgpu.async_copy
  // CHECK: return
  // REMARK: remark: [Missed] pipeline {{.*}} Remark="the load is not pipelined: only 2 contiguous byte(s) per thread are proved, asynchronous copies need 4"
  // REMARK: remark: [Missed] pipeline {{.*}} Remark="the load is not pipelined: its address depends on 'scf.if' of the same iteration"
  // REMARK: remark: [Missed] pipeline {{.*}} Remark="the load is not pipelined: `other` is not zero"
  func.func @refused(%a: !tile.ptr<f16>, %t: !tile.ptr<i32>, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %one = arith.constant dense<1.0> : tensor<32x32xf16>
    %c32s = arith.constant dense<32> : tensor<32x1xi32>
    %r32 = tile.arange 0, 32 : tensor<32xi32>
    %row = tile.expand_dims %r32 axis 0 : tensor<32xi32> -> tensor<1x32xi32>
    %col = tile.expand_dims %r32 axis 1 : tensor<32xi32> -> tensor<32x1xi32>
    %colS = arith.muli %col, %c32s : tensor<32x1xi32>
    %rowB = tile.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
    %colB = tile.broadcast %colS : tensor<32x1xi32> -> tensor<32x32xi32>
    %off = arith.addi %rowB, %colB : tensor<32x32xi32>
    %as = tile.splat %a : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
    %ap = tile.addptr %as, %off : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
    %bs = tile.splat %b : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
    %bp = tile.addptr %bs, %off : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
    %m = arith.cmpi slt, %off, %rowB : tensor<32x32xi32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
      %unaligned = tile.load %ap : tensor<32x32x!tile.ptr<f16>> -> tensor<32x32xf16>
      %some = arith.cmpi slt, %i, %c32 : i32
      %index = scf.if %some -> i32 {
        %first = tile.load %t : !tile.ptr<i32> -> i32
        scf.yield %first : i32
      } else {
        scf.yield %i : i32
      }
      %scaled = arith.muli %index, %c32 : i32
      %indexS = tile.splat %scaled : i32 -> tensor<32x32xi32>
      %bpi = tile.addptr %bp, %indexS : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
      %indirect = tile.load %bpi : tensor<32x32x!tile.ptr<f16>> -> tensor<32x32xf16>
      %d = tile.dot %unaligned, %indirect, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
      %ones = tile.load %bp mask %m other %one : tensor<32x32x!tile.ptr<f16>> mask tensor<32x32xi1> other tensor<32x32xf16> -> tensor<32x32xf16>
      %e = tile.dot %ones, %indirect, %d : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %e : tensor<32x32xf32>
    }
    %s = tile.reduce(%r) axis 1 {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    } : (tensor<32x32xf32>) -> tensor<32xf32>
    %h = arith.truncf %s : tensor<32xf32> to tensor<32xf16>
    %b1 = tile.splat %b : !tile.ptr<f16> -> tensor<32x!tile.ptr<f16>>
    %b1p = tile.addptr %b1, %r32 : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
    tile.store %b1p, %h : tensor<32x!tile.ptr<f16>>, tensor<32xf16>
    return
  }
}
