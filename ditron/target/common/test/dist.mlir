// Signals are spread over the block's threads; thread-level operations are one call each.
// RUN: ditron-opt %s -split-input-file -dgpu-annotate-accesses -ditron-to-llvm=target=sim | FileCheck %s

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Thread i watches words i, i + threads, ...; then the block meets.
  // CHECK-LABEL: llvm.func internal @wait
  // CHECK: llvm.br ^[[HEAD:bb[0-9]+]](%{{.*}} : i32)
  // CHECK: ^[[HEAD]](%[[I:.*]]: i32):
  // CHECK: llvm.icmp "slt" %[[I]], %arg1 : i32
  // CHECK: llvm.call @ditron_sim_wait_until
  // CHECK: llvm.add %[[I]], %{{.*}} : i32
  // CHECK: llvm.br ^[[HEAD]]
  // CHECK: llvm.call @ditron_sim_barrier
  func.func @wait(%p: !tile.ptr<i64>, %n: i32, %v: i64, %world: !tile.ptr<i64>) {
    %t = dist.wait ge sys acquire %p, %n, %v : !tile.ptr<i64>, i64
    %q = dist.consume_token %p, %t : !tile.ptr<i64>
    tile.store %q, %v : !tile.ptr<i64>, i64
    return
  }
}

// -----

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // The block meets, then thread 0 fences and raises the peer's word: ptr + bases[rank] - bases[own].
  // CHECK-LABEL: llvm.func internal @notify
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK: llvm.cond_br
  // CHECK: llvm.call @ditron_sim_fence
  // CHECK: %[[OWN:.*]] = llvm.load %arg3
  // CHECK: %[[DISTANCE:.*]] = llvm.sub
  // CHECK: %[[PEER:.*]] = llvm.getelementptr %arg0[%[[DISTANCE]]]
  // CHECK: llvm.call @ditron_sim_shmem_raise(%{{.*}}, %[[PEER]],
  func.func @notify(%p: !tile.ptr<i64>, %rank: i32, %v: i64, %world: !tile.ptr<i64>) {
    dist.notify add intra_node %p, %rank, %v : !tile.ptr<i64>, i64
    return
  }
}

// -----

module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: llvm.func internal @reaches
  // CHECK: %[[WORD:.*]] = llvm.call @ditron_sim_reaches(%{{.*}}, %arg1, %arg0,
  // CHECK: llvm.icmp "ne" %[[WORD]],
  func.func @reaches(%rank: i32, %world: !tile.ptr<i64>) -> i1 {
    %yes = dist.reaches %rank
    return %yes : i1
  }
}

// -----

module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // A loop that only tests memory spins (last argument before the place is 1); one that counts does not.
  // CHECK-LABEL: llvm.func internal @spin
  // CHECK: llvm.mlir.constant(2 : i32)
  // CHECK-NEXT: %[[YES:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK-NEXT: llvm.mlir.addressof
  // CHECK-NEXT: llvm.call @ditron_sim_ld(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[YES]],
  // CHECK: llvm.mlir.constant(2 : i32)
  // CHECK-NEXT: %[[NO:.*]] = llvm.mlir.constant(0 : i32)
  // CHECK-NEXT: llvm.mlir.addressof
  // CHECK-NEXT: llvm.call @ditron_sim_ld(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[NO]],
  func.func @spin(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %v: i32, %world: !tile.ptr<i64>) {
    scf.while : () -> () {
      %x = dist.ld acquire sys %p : !tile.ptr<i32> -> i32
      %go = arith.cmpi ne, %x, %v : i32
      scf.condition(%go)
    } do {
      scf.yield
    }
    %c1 = arith.constant 1 : i32
    %turns = scf.while (%k = %v) : (i32) -> i32 {
      %x = dist.ld acquire sys %p : !tile.ptr<i32> -> i32
      %go = arith.cmpi ne, %x, %k : i32
      scf.condition(%go) %k : i32
    } do {
    ^bb0(%k: i32):
      %next = arith.addi %k, %c1 : i32
      scf.yield %next : i32
    }
    dist.st release gpu %q, %turns : !tile.ptr<i32>, i32
    return
  }
}
