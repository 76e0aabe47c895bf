// RUN: ditron-opt %s --split-input-file --dist-verify-signals --verify-diagnostics

// Through arithmetic, a select, a loop.
func.func @scopes(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %r: i32, %n: i32, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-note@+1 {{the pointer comes from here}}
  %peer = dist.symm_at %p, %r : !tile.ptr<i32>
  %next = tile.addptr %peer, %n : !tile.ptr<i32>, i32
  // expected-error@+1 {{this store releases at scope 'gpu' through a pointer to another rank; another GPU is only reached at scope 'sys'}}
  dist.st release gpu %next, %n : !tile.ptr<i32>, i32
  %either = arith.select %c, %next, %q : !tile.ptr<i32>
  // expected-error@+1 {{this load acquires at scope 'cta' through a pointer to another rank}}
  %0 = dist.ld acquire block %either : !tile.ptr<i32> -> i32
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%at = %q) -> !tile.ptr<i32> : i32 {
    // expected-error@+1 {{this atomic operation works at scope 'gpu' through a pointer to another rank}}
    %1 = dist.thread_atomic_rmw add relaxed gpu %at, %n : !tile.ptr<i32>, i32 -> i32
    scf.yield %peer : !tile.ptr<i32>
  }
  // expected-error@+1 {{this wait acquires at scope 'gpu' through a pointer to another rank}}
  %token = dist.wait eq gpu acquire %end, %c1, %n : !tile.ptr<i32>, i32
  return
}

// -----

// A file that is written for Triton-distributed gets a warning.
module attributes {dist.peer_source} {
  func.func @scopesOfPeer(%p: !tile.ptr<i32>, %r: i32, %n: i32) {
    %c1 = arith.constant 1 : i32
    // expected-note@+1 {{the pointer comes from here}}
    %peer = dist.symm_at %p, %r : !tile.ptr<i32>
    // expected-warning@+1 {{this wait acquires at scope 'gpu' through a pointer to another rank; another GPU is only reached at scope 'sys': what the signal stands for may not be visible yet}}
    %token = dist.wait eq gpu acquire %peer, %c1, %n : !tile.ptr<i32>, i32
    return
  }
}

// -----

// System scope, plain data, the own rank, and pointers that were read from another rank's memory are right.
func.func @scopesRight(%p: !tile.ptr<i32>, %pp: !tile.ptr<!tile.ptr<i32>>, %r: i32, %n: i32) {
  %peer = dist.symm_at %p, %r : !tile.ptr<i32>
  dist.st release sys %peer, %n : !tile.ptr<i32>, i32
  dist.st relaxed gpu %peer, %n : !tile.ptr<i32>, i32
  %0 = dist.ld relaxed gpu %peer : !tile.ptr<i32> -> i32
  %me = dist.rank
  %own = dist.symm_at %p, %me : !tile.ptr<i32>
  %1 = dist.thread_atomic_rmw add acq_rel gpu %own, %n : !tile.ptr<i32>, i32 -> i32
  %table = dist.symm_at %pp, %r : !tile.ptr<!tile.ptr<i32>>
  %local = tile.load %table : !tile.ptr<!tile.ptr<i32>> -> !tile.ptr<i32>
  dist.st release gpu %local, %n : !tile.ptr<i32>, i32
  return
}

// -----

// Every block sets the word.
func.func @everyBlock(%p: !tile.ptr<i32>, %x: !tile.ptr<f32>, %v: f32, %r: i32) {
  %c1 = arith.constant 1 : i32
  // expected-note@+1 {{the grid has several blocks, which differ by this program id}}
  %pid = tile.program_id 0
  %mine = tile.addptr %x, %pid : !tile.ptr<f32>, i32
  tile.store %mine, %v : !tile.ptr<f32>, f32
  // expected-error@+1 {{every block of the grid sets this signal word}}
  dist.notify set inter_node %p, %r, %c1 : !tile.ptr<i32>, i32
  %tid = dist.thread_id 0
  %first = arith.cmpi slt, %tid, %c1 : i32
  scf.if %first {
    // expected-error@+1 {{every block of the grid sets this signal word}}
    dist.st release sys %p, %c1 : !tile.ptr<i32>, i32
  }
  return
}

// -----

// One block, a word for each block, additions, relaxed stores, and blocks that have met before.
func.func @oneOwner(%p: !tile.ptr<i32>, %r: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %pid = tile.program_id 0
  %first = arith.cmpi eq, %pid, %c0 : i32
  scf.if %first {
    dist.notify set inter_node %p, %r, %c1 : !tile.ptr<i32>, i32
  }
  %mine = tile.addptr %p, %pid : !tile.ptr<i32>, i32
  dist.notify set inter_node %mine, %r, %c1 : !tile.ptr<i32>, i32
  dist.notify add inter_node %p, %r, %c1 : !tile.ptr<i32>, i32
  dist.st relaxed sys %p, %c1 : !tile.ptr<i32>, i32
  %rank = arith.addi %pid, %r : i32
  dist.notify set inter_node %p, %rank, %c1 : !tile.ptr<i32>, i32
  // The last block to count itself: which one that is, memory says.
  %done = tile.atomic_rmw add acq_rel gpu %p, %c1 : !tile.ptr<i32>, i32 -> i32
  %last = arith.cmpi eq, %done, %n : i32
  scf.if %last {
    dist.notify set inter_node %p, %r, %c1 : !tile.ptr<i32>, i32
  }
  dist.notify set inter_node %p, %r, %c1 : !tile.ptr<i32>, i32
  return
}

// -----

// A kernel of one block: nothing says that there are more.
func.func @oneBlock(%p: !tile.ptr<i32>, %r: i32) {
  %c1 = arith.constant 1 : i32
  dist.notify set inter_node %p, %r, %c1 : !tile.ptr<i32>, i32
  return
}

// -----

// Two blocks, the same word.
func.func @twoOwners(%p: !tile.ptr<i32>, %r: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %pid = tile.program_id 0
  %isZero = arith.cmpi eq, %pid, %c0 : i32
  scf.if %isZero {
    %word = tile.addptr %p, %c2 : !tile.ptr<i32>, i32
    // expected-note@+1 {{here}}
    dist.notify set inter_node %word, %r, %c1 : !tile.ptr<i32>, i32
  } else {
    %isOne = arith.cmpi eq, %pid, %c1 : i32
    scf.if %isOne {
      %a = tile.addptr %p, %c1 : !tile.ptr<i32>, i32
      %word = tile.addptr %a, %c1 : !tile.ptr<i32>, i32
      // expected-error@+1 {{a signal word that is set has one owner, but another block sets this one too}}
      dist.notify set inter_node %word, %r, %c2 : !tile.ptr<i32>, i32
      dist.notify set inter_node %a, %r, %c2 : !tile.ptr<i32>, i32
    }
  }
  return
}

// -----

module attributes {dgpu.target = "cuda:sm_80"} {
  func.func @instructions() {
    %0 = dist.intrinsic "smid"() : () -> i32
    // expected-error@+1 {{target cuda:sm_80 has no 'fence_proxy_async': it came with compute capability 9.0}}
    dist.intrinsic "fence_proxy_async"() : () -> ()
    return
  }
}

// -----

module attributes {dgpu.target = "cuda:sm_90a", dgpu.tma} {
  func.func @instructionsThere() {
    dist.intrinsic "fence_proxy_async"() : () -> ()
    return
  }
}
