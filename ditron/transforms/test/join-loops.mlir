// Two loops over tiles alike become one, with a branch for what differs.
// RUN: ditron-opt %s --dgpu-join-loops --split-input-file | FileCheck %s
// RUN: ditron-opt %s --dgpu-join-loops --split-input-file --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  // The product of the first body stays with its difference, and both are in the branch; the row that is computed on the way, too, and the powers,
  // which are computed from the difference alone. The place is the second loop's own in its first turn.
  // REMARK: remark: [Passed] join | Category:dgpu-join-loops | Remark="joined with the loop before, and a branch for what differs"
  // CHECK-LABEL: func.func @masked
  // CHECK-SAME: %[[MIDDLE:[a-z0-9]+]]: i32, %[[END:[a-z0-9]+]]: i32, %[[SCALE:[a-z0-9]+]]: f32
  // CHECK: %[[Q:.*]] = tile.descriptor_load %{{.*}}[%{{.*}}, %{{.*}}] : !tile.desc<128x64xf16>
  // CHECK: %[[FIRST:.*]] = arith.divsi
  // CHECK: arith.divsi
  // CHECK: %[[TURNS:.*]] = arith.addi %[[FIRST]], %{{.*}} : i32
  // CHECK: %[[R:.*]]:3 = scf.for %[[T:[a-z0-9]+]] = %{{.*}} to %[[TURNS]] step %{{.*}} iter_args(%[[ACC:[a-z0-9]+]] = %{{.*}}, %[[M:[a-z0-9]+]] = %{{.*}}, %[[AT:[a-z0-9]+]] = %{{.*}})
  // CHECK: %[[SECOND:.*]] = arith.cmpi sge, %[[T]], %[[FIRST]]
  // CHECK: %[[COUNTER:.*]] = arith.select %[[SECOND]]
  // CHECK: %[[TURN0:.*]] = arith.cmpi eq, %[[T]], %[[FIRST]]
  // CHECK: %[[PLACE:.*]] = arith.select %[[TURN0]], %{{.*}}, %[[AT]]
  // CHECK: %[[K:.*]] = tile.descriptor_load %{{.*}}[%[[PLACE]], %{{.*}}]
  // CHECK: %[[S:.*]] = tile.dot %[[Q]], %{{.*}}, %{{.*}}
  // CHECK: %[[B:.*]]:2 = scf.if %[[SECOND]] -> (tensor<128x64xf16>, tensor<128xf32>)
  // CHECK: arith.select
  // CHECK: tile.reduce
  // CHECK: arith.subf
  // CHECK: math.exp2
  // CHECK: arith.truncf
  // CHECK: } else {
  // CHECK-NOT: arith.select
  // CHECK: tile.reduce
  // CHECK: arith.maxnumf %[[M]]
  // CHECK: arith.subf
  // CHECK: math.exp2
  // CHECK: arith.truncf
  // CHECK: }
  // CHECK-NOT: math.exp2
  // CHECK: %[[D:.*]] = tile.dot %[[B]]#0, %{{.*}}, %[[ACC]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[PLACE]]
  // CHECK: scf.yield %[[D]], %[[B]]#1, %[[NEXT]]
  // CHECK: } {tile.warp_specialize}
  // CHECK-NOT: scf.for
  // CHECK: tile.store %{{.*}}, %[[R]]#0
  func.func @masked(%q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>,
                    %middle: i32, %end: i32, %scale: f32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i64 = arith.constant 64 : i32
    %none = arith.constant dense<-1.0e6> : tensor<128x64xf32>
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %row = arith.constant dense<0xFF800000> : tensor<128xf32>
    %columns = tile.arange 0, 64 : tensor<64xi32>
    %dq = tile.make_descriptor %q, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<128x64xf16>
    %dk = tile.make_descriptor %k, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %tq = tile.descriptor_load %dq[%i0, %i0] : !tile.desc<128x64xf16> -> tensor<128x64xf16>
    %a:3 = scf.for %i = %i0 to %middle step %i64 iter_args(%acc = %zero, %m = %row, %at = %i0) -> (tensor<128x64xf32>, tensor<128xf32>, i32) : i32 {
      %tk = tile.descriptor_load %dk[%at, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %kt = tile.trans %tk [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %tq, %kt, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %largest = tile.reduce(%s) axis 1 {
      ^bb0(%x: f32, %y: f32):
        %z = arith.maxnumf %x, %y : f32
        tile.yield %z : f32
      } : (tensor<128x64xf32>) -> tensor<128xf32>
      %factors = tile.splat %scale : f32 -> tensor<128xf32>
      %scaled = arith.mulf %largest, %factors : tensor<128xf32>
      %new = arith.maxnumf %m, %scaled : tensor<128xf32>
      %factor = tile.splat %scale : f32 -> tensor<128x64xf32>
      %scores = arith.mulf %s, %factor : tensor<128x64xf32>
      %column = tile.expand_dims %new axis 1 : tensor<128xf32> -> tensor<128x1xf32>
      %wide = tile.broadcast %column : tensor<128x1xf32> -> tensor<128x64xf32>
      %less = arith.subf %scores, %wide : tensor<128x64xf32>
      %e = math.exp2 %less : tensor<128x64xf32>
      %p = arith.truncf %e : tensor<128x64xf32> to tensor<128x64xf16>
      %d = tile.dot %p, %tk, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %next = arith.addi %at, %i64 : i32
      scf.yield %d, %new, %next : tensor<128x64xf32>, tensor<128xf32>, i32
    } {tile.warp_specialize}
    %start = arith.addi %middle, %i64 : i32
    %b:3 = scf.for %i = %middle to %end step %i64 iter_args(%acc = %a#0, %m = %a#1, %at = %start) -> (tensor<128x64xf32>, tensor<128xf32>, i32) : i32 {
      %tk = tile.descriptor_load %dk[%at, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %kt = tile.trans %tk [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %tq, %kt, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %first = tile.splat %i : i32 -> tensor<64xi32>
      %keys = arith.addi %first, %columns : tensor<64xi32>
      %limit = tile.splat %end : i32 -> tensor<64xi32>
      %inside = arith.cmpi slt, %keys, %limit : tensor<64xi32>
      %mask = tile.expand_dims %inside axis 0 : tensor<64xi1> -> tensor<1x64xi1>
      %seen = tile.broadcast %mask : tensor<1x64xi1> -> tensor<128x64xi1>
      %factor = tile.splat %scale : f32 -> tensor<128x64xf32>
      %scores = arith.mulf %s, %factor : tensor<128x64xf32>
      %masked = arith.select %seen, %scores, %none : tensor<128x64xi1>, tensor<128x64xf32>
      %largest = tile.reduce(%masked) axis 1 {
      ^bb0(%x: f32, %y: f32):
        %z = arith.maxnumf %x, %y : f32
        tile.yield %z : f32
      } : (tensor<128x64xf32>) -> tensor<128xf32>
      %new = arith.maxnumf %m, %largest : tensor<128xf32>
      %column = tile.expand_dims %new axis 1 : tensor<128xf32> -> tensor<128x1xf32>
      %wide = tile.broadcast %column : tensor<128x1xf32> -> tensor<128x64xf32>
      %less = arith.subf %masked, %wide : tensor<128x64xf32>
      %e = math.exp2 %less : tensor<128x64xf32>
      %p = arith.truncf %e : tensor<128x64xf32> to tensor<128x64xf16>
      %d = tile.dot %p, %tk, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %next = arith.addi %at, %i64 : i32
      scf.yield %d, %new, %next : tensor<128x64xf32>, tensor<128xf32>, i32
    } {tile.warp_specialize}
    %place = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>>
    tile.store %place, %b#0 : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xf32>
    return
  }
}

// -----

// Each of these has something that keeps its loops apart.
module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  // REMARK: remark: [Missed] join | Category:dgpu-join-loops | Remark="the loop is not joined with the one before: something happens between them"
  // CHECK-LABEL: func.func @store
  // CHECK-COUNT-2: scf.for
  func.func @store(%q: tensor<128x64xf16>, %k: !tile.ptr<f16>, %out: !tile.ptr<f32>, %middle: i32, %end: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %i64 = arith.constant 64 : i32
    %one = arith.constant 1.0 : f32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %dk = tile.make_descriptor %k, [%end, %end], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %a = scf.for %i = %i0 to %middle step %i64 iter_args(%acc = %zero) -> tensor<128x64xf32> : i32 {
      %tk = tile.descriptor_load %dk[%i, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %q, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
      %d = tile.dot %p, %tk, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      scf.yield %d : tensor<128x64xf32>
    }
    tile.store %out, %one : !tile.ptr<f32>, f32
    %b = scf.for %i = %middle to %end step %i64 iter_args(%acc = %a) -> tensor<128x64xf32> : i32 {
      %tk = tile.descriptor_load %dk[%i, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %q, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
      %d = tile.dot %p, %tk, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      scf.yield %d : tensor<128x64xf32>
    }
    %place = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>>
    tile.store %place, %b : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xf32>
    return
  }

  // Nobody would see the second loop's store.
  // What a scalar begins with in the second loop is all that it ever is if that has no turn.
  // REMARK: remark: [Missed] join | Category:dgpu-join-loops | Remark="the loop is not joined with the one before: something uses a scalar that the second one has carried"
  // CHECK-LABEL: func.func @place
  // CHECK-COUNT-2: scf.for
  func.func @place(%q: tensor<128x64xf16>, %k: !tile.ptr<f16>, %out: !tile.ptr<f32>, %places: !tile.ptr<i32>, %middle: i32, %end: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %dk = tile.make_descriptor %k, [%end, %end], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %a:2 = scf.for %i = %i0 to %middle step %i64 iter_args(%acc = %zero, %at = %i0) -> (tensor<128x64xf32>, i32) : i32 {
      %tk = tile.descriptor_load %dk[%at, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %q, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
      %d = tile.dot %p, %tk, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %next = arith.addi %at, %i64 : i32
      scf.yield %d, %next : tensor<128x64xf32>, i32
    }
    %start = arith.addi %middle, %i64 : i32
    %b:2 = scf.for %i = %middle to %end step %i64 iter_args(%acc = %a#0, %at = %start) -> (tensor<128x64xf32>, i32) : i32 {
      %tk = tile.descriptor_load %dk[%at, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %q, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
      %d = tile.dot %p, %tk, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %next = arith.addi %at, %i64 : i32
      scf.yield %d, %next : tensor<128x64xf32>, i32
    }
    tile.store %places, %b#1 : !tile.ptr<i32>, i32
    %place = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>>
    tile.store %place, %b#0 : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xf32>
    return
  }

  // REMARK: remark: [Missed] join | Category:dgpu-join-loops | Remark="the loop is not joined with the one before: they have other effects, of 'tile.store'"
  // CHECK-LABEL: func.func @store_inside
  // CHECK-COUNT-2: scf.for
  func.func @store_inside(%q: tensor<128x64xf16>, %k: !tile.ptr<f16>, %out: !tile.ptr<f32>, %middle: i32, %end: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %i64 = arith.constant 64 : i32
    %one = arith.constant 1.0 : f32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %dk = tile.make_descriptor %k, [%end, %end], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %a = scf.for %i = %i0 to %middle step %i64 iter_args(%acc = %zero) -> tensor<128x64xf32> : i32 {
      %tk = tile.descriptor_load %dk[%i, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %q, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
      %d = tile.dot %p, %tk, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      scf.yield %d : tensor<128x64xf32>
    }
    %b = scf.for %i = %middle to %end step %i64 iter_args(%acc = %a) -> tensor<128x64xf32> : i32 {
      %tk = tile.descriptor_load %dk[%i, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %q, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
      %d = tile.dot %p, %tk, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      tile.store %out, %one : !tile.ptr<f32>, f32
      scf.yield %d : tensor<128x64xf32>
    }
    %place = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>>
    tile.store %place, %b : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xf32>
    return
  }

  // The second loop's first dot takes what its first body scales.
  // REMARK: a load or dot differs, or depends on what differs
  // CHECK-LABEL: func.func @dots
  // CHECK-COUNT-2: scf.for
  func.func @dots(%q: tensor<128x64xf16>, %k: !tile.ptr<f16>, %out: !tile.ptr<f32>, %middle: i32, %end: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %dk = tile.make_descriptor %k, [%end, %end], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %a = scf.for %i = %i0 to %middle step %i64 iter_args(%acc = %zero) -> tensor<128x64xf32> : i32 {
      %tk = tile.descriptor_load %dk[%i, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %q, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
      %d = tile.dot %p, %tk, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      scf.yield %d : tensor<128x64xf32>
    }
    %b = scf.for %i = %middle to %end step %i64 iter_args(%acc = %a) -> tensor<128x64xf32> : i32 {
      %tk = tile.descriptor_load %dk[%i, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %q, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %e = math.exp2 %s : tensor<128x64xf32>
      %p = arith.truncf %e : tensor<128x64xf32> to tensor<128x64xf16>
      %f = tile.dot %p, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %d = arith.addf %acc, %f : tensor<128x64xf32>
      scf.yield %d : tensor<128x64xf32>
    }
    %place = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>>
    tile.store %place, %b : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xf32>
    return
  }
}
