// Where lanes of a warp must have done their accesses, and only there.
// RUN: ditron-opt %s --dgpu-order-lanes | FileCheck %s

#x = #dgpu.layout<128, reg = {i5 i6}, lane = [i0 i1 i2 i3 i4], warp = []>
#copies = #dgpu.layout<16, reg = {}, lane = [i0 i1 i2 i3 *], warp = []>
!ptrs = tensor<128x!tile.ptr<i32>, #x>
!ints = tensor<128xi32, #x>

module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // A store to what has been read; of one object always. The next load reads what has been stored.
  // CHECK-LABEL: func.func @one_object
  func.func @one_object(%x: !tile.ptr<i32>, %i: !ints, %j: !ints) -> !ints {
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %base, %i : !ptrs, !ints
    %q = tile.addptr %base, %j : !ptrs, !ints
    // CHECK: tile.load
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.load
    // CHECK-NEXT: tile.load
    // CHECK-NEXT: return
    %v = tile.load %p : !ptrs -> !ints
    tile.store %q, %v : !ptrs, !ints
    tile.store %p, %i : !ptrs, !ints
    %w = tile.load %p : !ptrs -> !ints
    %u = tile.load %q : !ptrs -> !ints
    return %u : !ints
  }

  // Two arguments: the launch decides. What is settled needs no second one; a new load does.
  // CHECK-LABEL: func.func @two_objects
  // CHECK-SAME: %[[X:.*]]: !tile.ptr<i32>, %[[Y:.*]]: !tile.ptr<i32>, %[[Z:.*]]: !tile.ptr<i32>,
  func.func @two_objects(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %z: !tile.ptr<i32>, %i: !ints) {
    %xs = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %ys = tile.splat %y : !tile.ptr<i32> -> !ptrs
    %zs = tile.splat %z : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %xs, %i : !ptrs, !ints
    %q = tile.addptr %ys, %i : !ptrs, !ints
    %r = tile.addptr %zs, %i : !ptrs, !ints
    // CHECK: tile.load
    // CHECK-NEXT: tile.load
    // CHECK-NEXT: dgpu.order_lanes(%[[Z]] : !tile.ptr<i32>) after(%[[X]], %[[Y]] : !tile.ptr<i32>, !tile.ptr<i32>)
    // CHECK-NEXT: tile.store
    %v = tile.load %p : !ptrs -> !ints
    %w = tile.load %q : !ptrs -> !ints
    tile.store %r, %v : !ptrs, !ints
    // CHECK-NEXT: dgpu.order_lanes(%[[X]] : !tile.ptr<i32>) after(%[[Z]] : !tile.ptr<i32>)
    // CHECK-NEXT: tile.load
    %u = tile.load %p : !ptrs -> !ints
    return
  }

  // Elements that follow each other in memory, each in one lane: what a lane reads only itself overwrites. In the next turn the
  // pointers are others.
  // CHECK-LABEL: func.func @in_place
  func.func @in_place(%x: !tile.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.arange 0, 128 : !ints
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %base, %i : !ptrs, !ints
    // CHECK: tile.load
    // CHECK-NEXT: tile.store
    %v = tile.load %p : !ptrs -> !ints
    tile.store %p, %v : !ptrs, !ints
    // CHECK-NEXT: scf.for
    // CHECK: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.load
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: }
    scf.for %k = %c0 to %n step %c1 : i32 {
      %ks = tile.splat %k : i32 -> !ints
      %q = tile.addptr %p, %ks : !ptrs, !ints
      %w = tile.load %q : !ptrs -> !ints
      tile.store %q, %w : !ptrs, !ints
    }
    return
  }

  // Tile after tile: the turns of a loop do not meet each other, by the loop's variable or by pointers that move on. Steps that are too
  // small do.
  // CHECK-LABEL: func.func @sweep
  func.func @sweep(%x: !tile.ptr<i32>, %n: i32, %row: i32, %v: !ints) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %i = tile.arange 0, 128 : !ints
    %step = arith.constant dense<128> : !ints
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %first = tile.addptr %base, %i : !ptrs, !ints
    // CHECK: scf.for
    // CHECK-NOT: dgpu.order_lanes
    // CHECK: scf.yield
    %last = scf.for %k = %c0 to %n step %c128 iter_args(%p = %first) -> (!ptrs) : i32 {
      %w = tile.load %p : !ptrs -> !ints
      tile.store %p, %w : !ptrs, !ints
      %next = tile.addptr %p, %step : !ptrs, !ints
      scf.yield %next : !ptrs
    }
    // CHECK: dist.sync_threads
    // CHECK-NEXT: scf.for
    // CHECK-NOT: dgpu.order_lanes
    // CHECK: scf.for
    // CHECK: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.store
    scf.for %r = %c0 to %n step %c64 : i32 {
      dist.sync_threads
      scf.for %k = %c0 to %n step %c128 : i32 {
        %s = arith.addi %k, %r : i32
        %ss = tile.splat %s : i32 -> !ints
        %o = arith.addi %ss, %i : !ints
        %p = tile.addptr %base, %o : !ptrs, !ints
        tile.store %p, %v : !ptrs, !ints
      }
    }
    scf.for %k = %c0 to %n step %c64 : i32 {
      %ss = tile.splat %k : i32 -> !ints
      %o = arith.addi %ss, %i : !ints
      %p = tile.addptr %base, %o : !ptrs, !ints
      tile.store %p, %v : !ptrs, !ints
    }
    return
  }

  // The same pointers, but two lanes hold each element: one of them stores before the other has read.
  // CHECK-LABEL: func.func @copies
  func.func @copies(%x: !tile.ptr<i32>) {
    %i = tile.arange 0, 16 : tensor<16xi32, #copies>
    %base = tile.splat %x : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>, #copies>
    %p = tile.addptr %base, %i : tensor<16x!tile.ptr<i32>, #copies>, tensor<16xi32, #copies>
    // CHECK: tile.load
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.store
    %v = tile.load %p : tensor<16x!tile.ptr<i32>, #copies> -> tensor<16xi32, #copies>
    tile.store %p, %v : tensor<16x!tile.ptr<i32>, #copies>, tensor<16xi32, #copies>
    return
  }

  // Over the back edge: what the turn stores last is in the way of what the next one reads first.
  // CHECK-LABEL: func.func @loop
  func.func @loop(%x: !tile.ptr<i32>, %i: !ints, %j: !ints, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %base, %i : !ptrs, !ints
    %q = tile.addptr %base, %j : !ptrs, !ints
    // CHECK: scf.for
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.load
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: }
    scf.for %k = %c0 to %n step %c1 : i32 {
      %v = tile.load %p : !ptrs -> !ints
      tile.store %q, %v : !ptrs, !ints
    }
    return
  }

  // Pointers that change places in a loop are both arguments'.
  // CHECK-LABEL: func.func @change_places
  func.func @change_places(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %i: !ints, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: scf.for
    // CHECK: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.load
    // CHECK: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.store
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (!tile.ptr<i32>, !tile.ptr<i32>) : i32 {
      %as = tile.splat %a : !tile.ptr<i32> -> !ptrs
      %bs = tile.splat %b : !tile.ptr<i32> -> !ptrs
      %p = tile.addptr %as, %i : !ptrs, !ints
      %q = tile.addptr %bs, %i : !ptrs, !ints
      %v = tile.load %p : !ptrs -> !ints
      tile.store %q, %v : !ptrs, !ints
      scf.yield %b, %a : !tile.ptr<i32>, !tile.ptr<i32>
    }
    return
  }

  // A uniform branch: inside, and behind it for what one side has done.
  // CHECK-LABEL: func.func @branch
  func.func @branch(%x: !tile.ptr<i32>, %i: !ints, %j: !ints, %c: i1) -> !ints {
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %base, %i : !ptrs, !ints
    %q = tile.addptr %base, %j : !ptrs, !ints
    %v = tile.load %p : !ptrs -> !ints
    // CHECK: scf.if
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: }
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.load
    scf.if %c {
      tile.store %q, %v : !ptrs, !ints
    }
    %w = tile.load %p : !ptrs -> !ints
    return %w : !ints
  }

  // A branch of single threads is one access; none inside. Threads among themselves have no order.
  // CHECK-LABEL: func.func @threads
  func.func @threads(%x: !tile.ptr<i32>, %i: !ints, %v: !ints) -> !ints {
    %c7 = arith.constant 7 : i32
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %base, %i : !ptrs, !ints
    %thread = dist.thread_id 0
    %own = tile.addptr %x, %thread : !tile.ptr<i32>, i32
    %isLow = arith.cmpi slt, %thread, %c7 : i32
    // CHECK: tile.store
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: scf.if
    // CHECK-NEXT: dist.ld
    // CHECK-NEXT: dist.st
    // CHECK-NEXT: }
    // CHECK-NEXT: dist.st
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.load
    tile.store %p, %v : !ptrs, !ints
    scf.if %isLow {
      %w = dist.ld relaxed gpu %own : !tile.ptr<i32> -> i32
      dist.st relaxed gpu %x, %w : !tile.ptr<i32>, i32
    }
    dist.st relaxed gpu %own, %c7 : !tile.ptr<i32>, i32
    %u = tile.load %p : !ptrs -> !ints
    return %u : !ints
  }

  // Scalars: every thread reads, the first one writes.
  // CHECK-LABEL: func.func @scalars
  func.func @scalars(%x: !tile.ptr<i32>, %k: i32) {
    %q = tile.addptr %x, %k : !tile.ptr<i32>, i32
    // CHECK: tile.load
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: return
    %v = tile.load %x : !tile.ptr<i32> -> i32
    tile.store %q, %v : !tile.ptr<i32>, i32
    tile.store %x, %k : !tile.ptr<i32>, i32
    return
  }

  // Barriers, and exchanges between lanes, have made the lanes meet; atomics that acquire end with a barrier.
  // CHECK-LABEL: func.func @met
  func.func @met(%x: !tile.ptr<i32>, %i: !ints, %j: !ints) -> i32 {
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %base, %i : !ptrs, !ints
    %q = tile.addptr %base, %j : !ptrs, !ints
    // CHECK-NOT: dgpu.order_lanes
    // CHECK: return
    %v = tile.load %p : !ptrs -> !ints
    dist.sync_threads
    tile.store %q, %v : !ptrs, !ints
    %old = tile.atomic_rmw add acq_rel gpu %p, %v : !ptrs, !ints -> !ints
    %w = tile.load %q : !ptrs -> !ints
    %s = tile.reduce(%w) axis 0 {
    ^bb0(%a: i32, %b: i32):
      %sum = arith.addi %a, %b : i32
      tile.yield %sum : i32
    } : (!ints) -> i32
    tile.store %q, %v : !ptrs, !ints
    return %s : i32
  }

  // Relaxed ones read and write.
  // CHECK-LABEL: func.func @atomics
  func.func @atomics(%x: !tile.ptr<i32>, %i: !ints, %j: !ints) {
    %base = tile.splat %x : !tile.ptr<i32> -> !ptrs
    %p = tile.addptr %base, %i : !ptrs, !ints
    %q = tile.addptr %base, %j : !ptrs, !ints
    // CHECK: tile.atomic_rmw
    // CHECK-NEXT: dgpu.order_lanes{{$}}
    // CHECK-NEXT: tile.atomic_rmw
    %a = tile.atomic_rmw add relaxed gpu %p, %i : !ptrs, !ints -> !ints
    %b = tile.atomic_rmw add relaxed gpu %q, %i : !ptrs, !ints -> !ints
    return
  }
}
