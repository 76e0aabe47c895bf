// A row softmax, all passes: no conversion, and no barrier but those inside the reductions, whose scratch memory differs.
// RUN: ditron-opt %s --dgpu-assign-layouts --dgpu-remove-conversions --dgpu-pipeline-loops --canonicalize --cse \
// RUN:   --dgpu-allocate-shared --dgpu-insert-barriers --dgpu-verify-layouts --dgpu-verify-allocation | FileCheck %s

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 3 : i32} {
  // CHECK-LABEL: func.func @softmax
  // CHECK-NOT: dgpu.convert_layout
  func.func @softmax(%x: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %y: !tile.ptr<f16> {tile.divisibility = 16 : i64},
                     %stride: i32 {tile.divisibility = 16 : i64}, %n: i32) attributes {tile.kernel} {
    %lowest = arith.constant dense<0xFC00> : tensor<1024xf16>
    %pid = tile.program_id 0
    %start = arith.muli %pid, %stride : i32
    %range = tile.arange 0, 1024 : tensor<1024xi32>
    %ns = tile.splat %n : i32 -> tensor<1024xi32>
    %mask = arith.cmpi slt, %range, %ns : tensor<1024xi32>
    %xr = tile.addptr %x, %start : !tile.ptr<f16>, i32
    %xs = tile.splat %xr : !tile.ptr<f16> -> tensor<1024x!tile.ptr<f16>>
    %xp = tile.addptr %xs, %range : tensor<1024x!tile.ptr<f16>>, tensor<1024xi32>
    %h = tile.load %xp mask %mask other %lowest : tensor<1024x!tile.ptr<f16>> mask tensor<1024xi1> other tensor<1024xf16> -> tensor<1024xf16>
    %v = arith.extf %h : tensor<1024xf16> to tensor<1024xf32>
    // CHECK: tile.reduce
    // CHECK: {offset_bytes = 0 : i64}
    // CHECK-NOT: dgpu.barrier
    %max = tile.reduce(%v) axis 0 {
    ^bb0(%a: f32, %b: f32):
      %m = arith.maximumf %a, %b : f32
      tile.yield %m : f32
    } : (tensor<1024xf32>) -> f32
    // CHECK: math.exp
    %maxs = tile.splat %max : f32 -> tensor<1024xf32>
    %d = arith.subf %v, %maxs : tensor<1024xf32>
    %e = math.exp %d : tensor<1024xf32>
    // CHECK-NOT: dgpu.barrier
    // CHECK: tile.reduce
    // CHECK: {offset_bytes = 16 : i64}
    %sum = tile.reduce(%e) axis 0 {
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tile.yield %m : f32
    } : (tensor<1024xf32>) -> f32
    %sums = tile.splat %sum : f32 -> tensor<1024xf32>
    %q = arith.divf %e, %sums : tensor<1024xf32>
    %t = arith.truncf %q : tensor<1024xf32> to tensor<1024xf16>
    %yr = tile.addptr %y, %start : !tile.ptr<f16>, i32
    %ys = tile.splat %yr : !tile.ptr<f16> -> tensor<1024x!tile.ptr<f16>>
    %yp = tile.addptr %ys, %range : tensor<1024x!tile.ptr<f16>>, tensor<1024xi32>
    // CHECK-NOT: dgpu.barrier
    tile.store %yp, %t mask %mask : tensor<1024x!tile.ptr<f16>>, tensor<1024xf16> mask tensor<1024xi1>
    return
  }
}
