// Blocks stay and run one program after the other.
// RUN: ditron-opt %s --dgpu-loop-over-programs --canonicalize --split-input-file | FileCheck %s
// RUN: ditron-opt %s --dgpu-loop-over-programs --split-input-file --remarks-filter='dgpu-.*' --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  // In the order of the launch: x first. The grid comes behind the parameters, the descriptor stays in front.
  // REMARK: remark: [Passed] programs | Category:dgpu-loop-over-programs | Remark="blocks stay and run one program after the other"
  // CHECK-LABEL: func.func @product
  // CHECK-SAME: %[[X:[a-z0-9]+]]: i32 {dgpu.num_programs = 0 : i32}, %[[Y:[a-z0-9]+]]: i32 {dgpu.num_programs = 1 : i32}, %[[Z:[a-z0-9]+]]: i32 {dgpu.num_programs = 2 : i32}, %{{[a-z0-9]+}}: !tile.ptr<i64>)
  // CHECK-DAG: %[[BLOCK:.*]] = tile.program_id 0
  // CHECK-DAG: %[[BLOCKS:.*]] = tile.num_programs 0
  // CHECK: %[[XY:.*]] = arith.muli %[[X]], %[[Y]]
  // CHECK: %[[ALL:.*]] = arith.muli %[[XY]], %[[Z]]
  // CHECK: tile.make_descriptor
  // CHECK: scf.for %[[ITEM:[a-z0-9]+]] = %[[BLOCK]] to %[[ALL]] step %[[BLOCKS]]
  // CHECK: %[[ROW:.*]] = arith.divsi %[[ITEM]], %[[X]]
  // CHECK: %[[WHOLE:.*]] = arith.muli %[[ROW]], %[[X]]
  // CHECK: %[[PX:.*]] = arith.subi %[[ITEM]], %[[WHOLE]]
  // CHECK: %[[LAYER:.*]] = arith.divsi %[[ROW]], %[[Y]]
  // CHECK: %[[ROWS:.*]] = arith.muli %[[LAYER]], %[[Y]]
  // CHECK: %[[PY:.*]] = arith.subi %[[ROW]], %[[ROWS]]
  // CHECK-NOT: tile.program_id
  // CHECK: %[[AT:.*]] = arith.addi %[[PX]], %[[PY]]
  // CHECK: scf.for
  // CHECK: tile.descriptor_load %{{.*}}[%[[AT]], %{{.*}}]
  // CHECK: tile.store
  func.func @product(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %x = tile.program_id 0
    %y = tile.program_id 1
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %at = arith.addi %x, %y : i32
    %acc = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%at, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  // Programs with high ids along y have the most turns: (y + 1) * 64 - 0, while the second loop has one turn everywhere. Blocks take two ids at
  // a time, from both ends; x and z follow.
  // REMARK: blocks stay and run one program after the other; ids along y come from both ends, for work grows along it
  // CHECK-LABEL: func.func @growing
  // CHECK-SAME: %[[X:[a-z0-9]+]]: i32 {dgpu.num_programs = 0 : i32}, %[[Y:[a-z0-9]+]]: i32 {dgpu.num_programs = 1 : i32}
  // CHECK: %[[BLOCK:.*]] = tile.program_id 0
  // CHECK: %[[BLOCKS:.*]] = tile.num_programs 0
  // CHECK: %[[ALL:.*]] = arith.muli
  // CHECK: %[[ALL2:.*]] = arith.muli
  // CHECK: %[[TWO:.*]] = arith.cmpi sgt, %[[ALL2]], %[[BLOCKS]]
  // CHECK: %[[BITS:.*]] = arith.extui %[[TWO]]
  // CHECK: %[[PLUS:.*]] = arith.addi %[[ALL2]], %[[BITS]]
  // CHECK: %[[PAIRS:.*]] = arith.shrui %[[PLUS]], %[[BITS]]
  // CHECK: arith.shli %{{.*}}, %[[BITS]]
  // CHECK: %[[LAST:.*]] = arith.remsi
  // CHECK: %[[ISLAST:.*]] = arith.cmpi eq, %[[LAST]], %[[BLOCK]]
  // CHECK: %[[LACKING:.*]] = arith.select %[[ISLAST]]
  // CHECK: %[[STEPS:.*]] = arith.subi %{{.*}}, %[[LACKING]]
  // CHECK: scf.for %[[STEP:.*]] = %{{.*}} to %[[STEPS]]
  // CHECK: %[[GROUP:.*]] = arith.shrui %[[STEP]], %[[BITS]]
  // CHECK: %[[ODD:.*]] = arith.andi %[[STEP]], %[[BITS]]
  // CHECK: %[[ITEM:.*]] = arith.addi %{{.*}}, %[[ODD]]
  // CHECK: %[[REST:.*]] = arith.divsi %[[ITEM]], %[[Y]]
  // CHECK: arith.divsi %[[REST]], %[[X]]
  // CHECK: %[[HALF:.*]] = arith.shrui
  // CHECK: %[[FROMEND:.*]] = arith.subi %{{.*}}, %[[HALF]]
  // CHECK: %[[ISODD:.*]] = arith.cmpi ne
  // CHECK: %[[PY:.*]] = arith.select %[[ISODD]], %[[HALF]], %[[FROMEND]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[PY]]
  // CHECK: %[[BOUND:.*]] = arith.muli %[[NEXT]]
  // CHECK: scf.for %{{.*}} to %[[BOUND]]
  func.func @growing(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %x = tile.program_id 0
    %y = tile.program_id 1
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %x64 = arith.muli %x, %i64 : i32
    %next = arith.addi %y, %i1 : i32
    %middle = arith.muli %next, %i64 : i32
    %acc = scf.for %k = %i0 to %middle step %i64 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %x64] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %end = arith.addi %middle, %i64 : i32
    %more = scf.for %k = %middle to %end step %i64 iter_args(%sum = %acc) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %more : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}

// -----

// Kernels that stay as they are.
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  // REMARK: remark: [Missed] programs | Category:dgpu-loop-over-programs | Remark="each program has a block of its own: it asks for the size of the launch"
  // CHECK-LABEL: func.func @shared_out
  // CHECK-NOT: dgpu.num_programs
  // CHECK: tile.num_programs 0
  func.func @shared_out(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %x = tile.program_id 0
    %n = tile.num_programs 0
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %acc = scf.for %k = %x to %turns step %n iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }

  // A counter of programs that are done: the last one may wait for it.
  // REMARK: each program has a block of its own: programs may see each other through 'tile.atomic_rmw'
  // CHECK-LABEL: func.func @counts
  // CHECK-NOT: dgpu.num_programs
  // CHECK: tile.atomic_rmw
  func.func @counts(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %count: !tile.ptr<i32>, %turns: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %acc = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    %before = tile.atomic_rmw add relaxed gpu %count, %i1 : !tile.ptr<i32>, i32 -> i32
    return
  }

  // The hardware balances turns that are loaded.
  // REMARK: each program has a block of its own: how much each has to do cannot be told
  // CHECK-LABEL: func.func @ragged
  // CHECK-NOT: dgpu.num_programs
  func.func @ragged(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %lengths: !tile.ptr<i32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %x = tile.program_id 0
    %own = tile.addptr %lengths, %x : !tile.ptr<i32>, i32
    %turns = tile.load %own : !tile.ptr<i32> -> i32
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %acc = scf.for %k = %i0 to %turns step %i1 iter_args(%sum = %zero) -> tensor<64x64xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }

  // No loop: nothing is fetched ahead.
  // CHECK-LABEL: func.func @once
  // CHECK-NOT: dgpu.num_programs
  func.func @once(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %x = tile.program_id 0
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %ta = tile.descriptor_load %da[%x, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
    %d = tile.dot %ta, %ta, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    tile.store %p, %d : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
    return
  }
}
