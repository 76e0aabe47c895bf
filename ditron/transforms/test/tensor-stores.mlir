// Descriptor stores go through a buffer in shared memory.
// RUN: ditron-opt %s --dgpu-tensor-stores --canonicalize | FileCheck %s

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.tma} {
  // In a loop the buffer is waited for just before it is written again. Both stores share it.
  // CHECK-LABEL: func.func @loop
  // CHECK-SAME: %[[MAP:arg[0-9]+]]: !dgpu.tensor_map {dgpu.tensor_map = {base = 0 : i64, box = [64, 64], element = f16
  func.func @loop(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %v: tensor<64x128xf16>, %n: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %step = arith.constant 64 : i32
    // CHECK: %[[BUFFER:.*]] = dgpu.buffer_alloc : !dgpu.buffer<1 x 64x128 x f16
    // CHECK-NOT: dgpu.buffer_alloc
    // CHECK: scf.for %[[T:.*]] =
    // CHECK-NEXT: dgpu.tma_store_wait 0 read
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.buffer_store %{{.*}}, %[[BUFFER]]
    // CHECK-NEXT: dgpu.fence_async
    // CHECK-NEXT: dgpu.barrier
    // CHECK-NEXT: dgpu.tma_store %[[BUFFER]][%{{.*}}] to %[[MAP]][%[[T]], %{{.*}}]
    // CHECK-NEXT: dgpu.tma_store_commit
    // CHECK-NEXT: dgpu.tma_store_wait 0 read
    // CHECK: dgpu.tma_store %[[BUFFER]]
    // CHECK: }
    // CHECK-NEXT: dgpu.tma_store_wait 0 read
    // CHECK-NEXT: return
    %d = tile.make_descriptor %c, [%n, %n], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x128xf16>
    scf.for %t = %i0 to %n step %step : i32 {
      tile.descriptor_store %d[%t, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
      tile.descriptor_store %d[%i0, %t], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    }
    return
  }

  // An outer dimension of one element is the map's alone: the tile is staged as the matrix that its author had.
  // CHECK-LABEL: func.func @head
  // CHECK-SAME: %[[TILE:arg[0-9]+]]: tensor<64x128xf16>
  // CHECK-SAME: box = [1, 64, 64], element = f16
  // CHECK: dgpu.buffer_store %[[TILE]], %[[BUFFER:.*]][
  // CHECK: dgpu.tma_store %[[BUFFER]][%{{.*}}] to %{{.*}}[%[[H:.*]], %{{.*}}, %{{.*}}]
  func.func @head(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %v: tensor<64x128xf16>, %n: i32 {tile.divisibility = 16 : i64},
                  %stride: i64 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c128 = arith.constant 128 : i64
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %d = tile.make_descriptor %c, [%n, %n, %n], [%stride, %c128, %c1] : !tile.ptr<f16>, i32, i32, i32 -> !tile.desc<1x64x128xf16>
    scf.for %h = %i0 to %n step %i1 : i32 {
      %t = tile.reshape %v : tensor<64x128xf16> -> tensor<1x64x128xf16>
      tile.descriptor_store %d[%h, %i0, %i0], %t : !tile.desc<1x64x128xf16>, tensor<1x64x128xf16>
    }
    return
  }

  // What threads have stored in the same object, in this turn or an earlier one, comes before the copy: they go different ways to memory.
  // CHECK-LABEL: func.func @overwrites
  // CHECK: tile.store
  // CHECK: dist.intrinsic "fence_proxy_async"
  // CHECK: dgpu.buffer_store
  // CHECK-NEXT: dgpu.fence_async
  // CHECK-NEXT: dgpu.barrier
  // CHECK-NEXT: dgpu.tma_store
  func.func @overwrites(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %v: tensor<64x128xf16>, %x: f16, %n: i32 {tile.divisibility = 16 : i64},
                        %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %d = tile.make_descriptor %c, [%n, %n], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x128xf16>
    tile.store %c, %x : !tile.ptr<f16>, f16
    tile.descriptor_store %d[%i0, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    return
  }

  // Stores to other objects, and stores behind the copy, need no fence.
  // CHECK-LABEL: func.func @elsewhere
  // CHECK-NOT: fence_proxy_async
  // CHECK: return
  func.func @elsewhere(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %other: !tile.ptr<f16>, %v: tensor<64x128xf16>, %x: f16,
                       %n: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %d = tile.make_descriptor %c, [%n, %n], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x128xf16>
    tile.store %other, %x : !tile.ptr<f16>, f16
    tile.descriptor_store %d[%i0, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    tile.store %c, %x : !tile.ptr<f16>, f16
    return
  }

  // Data is complete before a signal says so, for which one wait does for several; also when only some threads give it.
  // CHECK-LABEL: func.func @signals
  // CHECK-NOT: dgpu.tma_store_wait
  // CHECK: dgpu.tma_store_commit
  // CHECK: dgpu.tma_store_wait 0{{$}}
  // CHECK-NEXT: dgpu.barrier
  // CHECK-NEXT: dist.notify
  // CHECK-NEXT: dist.notify
  // CHECK: dgpu.tma_store_commit
  // CHECK: dgpu.tma_store_wait 0{{$}}
  // CHECK-NEXT: dgpu.barrier
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: dist.st
  func.func @signals(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %v: tensor<64x128xf16>, %n: i32 {tile.divisibility = 16 : i64}, %signal: !tile.ptr<i32>,
                     %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %d = tile.make_descriptor %c, [%n, %n], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x128xf16>
    tile.descriptor_store %d[%i0, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    dist.notify set gpu %signal, %i0, %n : !tile.ptr<i32>, i32
    dist.notify set gpu %signal, %i0, %n : !tile.ptr<i32>, i32
    tile.descriptor_store %d[%i0, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    %thread = dist.thread_id 0
    %first = arith.cmpi eq, %thread, %i0 : i32
    scf.if %first {
      dist.st release gpu %signal, %n : !tile.ptr<i32>, i32
    }
    return
  }

  // A branch that all threads take alike waits itself, before the first that tells others only; who does not take it does not wait.
  // CHECK-LABEL: func.func @signals_sometimes
  // CHECK: scf.for
  // CHECK: dgpu.tma_store_commit
  // CHECK-NEXT: arith.cmpi
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: dgpu.tma_store_wait 0{{$}}
  // CHECK-NEXT: dgpu.barrier
  // CHECK-NEXT: tile.atomic_rmw
  // CHECK-NEXT: arith.addi
  // CHECK-NEXT: tile.atomic_rmw
  // CHECK-NEXT: }
  // CHECK-NEXT: }
  func.func @signals_sometimes(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %v: tensor<64x128xf16>, %n: i32 {tile.divisibility = 16 : i64},
                               %signal: !tile.ptr<i32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %step = arith.constant 64 : i32
    %d = tile.make_descriptor %c, [%n, %n], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x128xf16>
    scf.for %t = %i0 to %n step %step : i32 {
      tile.descriptor_store %d[%t, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
      %last = arith.cmpi eq, %t, %step : i32
      scf.if %last {
        %old = tile.atomic_rmw add acq_rel gpu %signal, %n : !tile.ptr<i32>, i32 -> i32
        %new = arith.addi %old, %n : i32
        %two = tile.atomic_rmw add acq_rel gpu %signal, %new : !tile.ptr<i32>, i32 -> i32
      }
    }
    return
  }

  // The kernel's own reads of the object come after it, those of others need not.
  // CHECK-LABEL: func.func @reads
  // CHECK: dgpu.tma_store_commit
  // CHECK-NEXT: tile.load %{{.*}} : !tile.ptr<f32>
  // CHECK-NEXT: dgpu.tma_store_wait 0{{$}}
  // CHECK-NEXT: dgpu.barrier
  // CHECK-NEXT: tile.load %{{.*}} : !tile.ptr<f16>
  func.func @reads(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %other: !tile.ptr<f32>, %v: tensor<64x128xf16>, %n: i32 {tile.divisibility = 16 : i64},
                   %world: !tile.ptr<i64>) -> (f32, f16) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %d = tile.make_descriptor %c, [%n, %n], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x128xf16>
    tile.descriptor_store %d[%i0, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    %x = tile.load %other : !tile.ptr<f32> -> f32
    %y = tile.load %c : !tile.ptr<f16> -> f16
    return %x, %y : f32, f16
  }

  // The hardware takes no column that is not a multiple of 16 bytes, no row that ends elsewhere, and no negative offset.
  // CHECK-LABEL: func.func @offsets
  // CHECK-NOT: dgpu.tma_store
  // CHECK-COUNT-3: tile.descriptor_store
  func.func @offsets(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %v: tensor<64x128xf16>, %n: i32 {tile.divisibility = 16 : i64},
                     %odd: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %program = tile.program_id 0
    %column = arith.muli %program, %odd : i32
    %d = tile.make_descriptor %c, [%n, %n], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x128xf16>
    %e = tile.make_descriptor %c, [%n, %odd], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x128xf16>
    tile.descriptor_store %d[%i0, %column], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    tile.descriptor_store %d[%n, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    tile.descriptor_store %e[%i0, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    return
  }

  // CHECK-LABEL: func.func @unaligned
  // CHECK: tile.descriptor_store
  func.func @unaligned(%c: !tile.ptr<f16>, %v: tensor<64x128xf16>, %n: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %i0 = arith.constant 0 : i32
    %d = tile.make_descriptor %c, [%n, %n], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x128xf16>
    tile.descriptor_store %d[%i0, %i0], %v : !tile.desc<64x128xf16>, tensor<64x128xf16>
    return
  }

  // Fewer rows than a swizzle's pattern: the second panel would begin in the middle of it. No swizzle, and boxes of whole rows, at
  // most 256 elements wide.
  // CHECK-LABEL: func.func @few_rows
  // CHECK-SAME: box = [4, 64], element = f32, {{.*}}swizzle = 0 : i64{{.*}}box = [2, 256], element = i8, {{.*}}swizzle = 0 : i64
  // CHECK: dgpu.tma_store
  // CHECK: dgpu.tma_store
  func.func @few_rows(%c: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %v: tensor<4x64xf32>, %b: !tile.ptr<i8> {tile.divisibility = 16 : i64},
                      %w: tensor<2x512xi8>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c512 = arith.constant 512 : i64
    %i0 = arith.constant 0 : i32
    %i512 = arith.constant 512 : i32
    %d = tile.make_descriptor %c, [%i512, %i512], [%c512, %c1] : !tile.ptr<f32>, i32, i32 -> !tile.desc<4x64xf32>
    %e = tile.make_descriptor %b, [%i512, %i512], [%c512, %c1] : !tile.ptr<i8>, i32, i32 -> !tile.desc<2x512xi8>
    tile.descriptor_store %d[%i0, %i0], %v : !tile.desc<4x64xf32>, tensor<4x64xf32>
    tile.descriptor_store %e[%i0, %i0], %w : !tile.desc<2x512xi8>, tensor<2x512xi8>
    return
  }
}
