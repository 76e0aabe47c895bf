// What the lowering must know of each access, while analyses of tensors can be asked.
// RUN: ditron-opt %s --dgpu-annotate-accesses | FileCheck %s
// RUN: ditron-opt %s --dgpu-annotate-accesses=max-vector-bytes=8 | FileCheck %s --check-prefix=NARROW

#L = #dgpu.layout<512, reg = {i0 i1 i2 i8}, lane = [i3 i4 i5 i6 i7], warp = []>
#T = #dgpu.layout<64x2, reg = {j0 i0}, lane = [i1 i2 i3 i4 i5], warp = []>
#R = #dgpu.layout<64x1, reg = {i0}, lane = [i1 i2 i3 i4 i5], warp = []>
#C = #dgpu.layout<1x2, reg = {j0}, lane = [* * * * *], warp = []>
#Rf = #dgpu.layout<64, reg = {i0}, lane = [i1 i2 i3 i4 i5], warp = []>
#Cf = #dgpu.layout<2, reg = {i0}, lane = [* * * * *], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Eight neighbours in a thread, all of them contiguous: 16 bytes, if the target has such accesses.
  // CHECK-LABEL: func.func @wide
  // CHECK: tile.load %{{.*}} {dgpu.vector_axis = 0 : i32, dgpu.vector_elems = 8 : i32}
  // NARROW-LABEL: func.func @wide
  // NARROW: tile.load %{{.*}} {dgpu.vector_axis = 0 : i32, dgpu.vector_elems = 4 : i32}
  // The mask is known to have one value for each four elements only.
  // CHECK: tile.store %{{.*}} {dgpu.vector_axis = 0 : i32, dgpu.vector_elems = 4 : i32}
  func.func @wide(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 4 : i64}) {
    %i = tile.arange 0, 512 : tensor<512xi32, #L>
    %ns = tile.splat %n : i32 -> tensor<512xi32, #L>
    %m = arith.cmpi slt, %i, %ns : tensor<512xi32, #L>
    %b = tile.splat %p : !tile.ptr<f16> -> tensor<512x!tile.ptr<f16>, #L>
    %a = tile.addptr %b, %i : tensor<512x!tile.ptr<f16>, #L>, tensor<512xi32, #L>
    %x = tile.load %a : tensor<512x!tile.ptr<f16>, #L> -> tensor<512xf16, #L>
    tile.store %a, %x mask %m : tensor<512x!tile.ptr<f16>, #L>, tensor<512xf16, #L> mask tensor<512xi1, #L>
    return
  }

  // Column-major: neighbours in memory are those along the first dimension.
  // CHECK-LABEL: func.func @columns
  // CHECK: tile.load %{{.*}} {dgpu.vector_axis = 0 : i32, dgpu.vector_elems = 2 : i32}
  func.func @columns(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %ld: i32 {tile.divisibility = 16 : i64}, %q: tensor<64x2x!tile.ptr<f32>, #T>) {
    %i = tile.arange 0, 64 : tensor<64xi32, #Rf>
    %j = tile.arange 0, 2 : tensor<2xi32, #Cf>
    %ie = tile.expand_dims %i axis 1 : tensor<64xi32, #Rf> -> tensor<64x1xi32, #R>
    %je = tile.expand_dims %j axis 0 : tensor<2xi32, #Cf> -> tensor<1x2xi32, #C>
    %lds = tile.splat %ld : i32 -> tensor<1x2xi32, #C>
    %jl = arith.muli %je, %lds : tensor<1x2xi32, #C>
    %ib = tile.broadcast %ie : tensor<64x1xi32, #R> -> tensor<64x2xi32, #T>
    %jb = tile.broadcast %jl : tensor<1x2xi32, #C> -> tensor<64x2xi32, #T>
    %o = arith.addi %ib, %jb : tensor<64x2xi32, #T>
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<64x2x!tile.ptr<f32>, #T>
    %a = tile.addptr %b, %o : tensor<64x2x!tile.ptr<f32>, #T>, tensor<64x2xi32, #T>
    %x = tile.load %a : tensor<64x2x!tile.ptr<f32>, #T> -> tensor<64x2xf32, #T>
    // Nothing is known of these addresses.
    // CHECK: tile.store %{{.*}} {dgpu.vector_axis = 0 : i32, dgpu.vector_elems = 1 : i32}
    tile.store %q, %x : tensor<64x2x!tile.ptr<f32>, #T>, tensor<64x2xf32, #T>
    return
  }

  // A pointer into shared memory is followed through loops and selects, not through memory.
  // CHECK-LABEL: func.func @shared
  // CHECK: tile.load %{{.*}} {dgpu.generic} : !tile.ptr<!tile.ptr<f32>>
  // CHECK-NEXT: %{{.*}} = tile.load %{{[^{]*}} : !tile.ptr<f32> -> f32
  // CHECK-NEXT: tile.store %arg0, %{{[^{]*}} : !tile.ptr<f32>, f32
  func.func @shared(%p: !tile.ptr<f32>, %r: !tile.ptr<!tile.ptr<f32>>, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %own = dist.shared_alloc 1024 align 1024 {offset_bytes = 0 : i64} : !tile.ptr<!tile.ptr<f32>>
    %at = scf.for %i = %c0 to %n step %c1 iter_args(%q = %own) -> !tile.ptr<!tile.ptr<f32>> : i32 {
      %next = tile.addptr %q, %i : !tile.ptr<!tile.ptr<f32>>, i32
      scf.yield %next : !tile.ptr<!tile.ptr<f32>>
    }
    %either = arith.select %c, %at, %r : !tile.ptr<!tile.ptr<f32>>
    %loaded = tile.load %either : !tile.ptr<!tile.ptr<f32>> -> !tile.ptr<f32>
    %x = tile.load %loaded : !tile.ptr<f32> -> f32
    tile.store %p, %x : !tile.ptr<f32>, f32
    return
  }

  // A scalar store is the block's, unless threads differ in whether they get there or in where they store.
  // CHECK-LABEL: func.func @threads
  // CHECK: tile.store %arg0, %arg1 : !tile.ptr<i32>, i32
  // CHECK: tile.store %{{.*}}, %arg1 {dist.per_thread}
  // CHECK: tile.store %arg0, %arg1 {dist.per_thread}
  func.func @threads(%p: !tile.ptr<i32>, %x: i32) {
    tile.store %p, %x : !tile.ptr<i32>, i32
    %t = dist.thread_id 0
    %own = tile.addptr %p, %t : !tile.ptr<i32>, i32
    tile.store %own, %x : !tile.ptr<i32>, i32
    %first = arith.cmpi eq, %t, %x : i32
    scf.if %first {
      tile.store %p, %x : !tile.ptr<i32>, i32
    }
    return
  }

  // Only memory ends the first loop. The second one counts its turns, so that it ends by itself.
  // CHECK-LABEL: func.func @spin
  // CHECK: dist.ld acquire sys %arg0 {dist.spin}
  // CHECK: dist.ld acquire sys %arg0 :
  func.func @spin(%p: !tile.ptr<i32>, %v: i32) {
    scf.while : () -> () {
      %x = dist.ld acquire sys %p : !tile.ptr<i32> -> i32
      %wrong = arith.cmpi ne, %x, %v : i32
      scf.condition(%wrong)
    } do {
      scf.yield
    }
    %turns = scf.while (%k = %v) : (i32) -> i32 {
      %x = dist.ld acquire sys %p : !tile.ptr<i32> -> i32
      %more = arith.cmpi slt, %x, %k : i32
      scf.condition(%more) %x : i32
    } do {
    ^bb0(%y: i32):
      scf.yield %y : i32
    }
    return
  }
}
