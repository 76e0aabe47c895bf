// RUN: ditron-opt %s --split-input-file --dist-verify-waits --verify-diagnostics

func.func @lost(%s: !tile.ptr<i32>, %n: i32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  // expected-error@+1 {{the token of this wait is never consumed, and nothing else puts the load that follows behind the wait}}
  %token = dist.wait ge gpu acquire %s, %n, %n : !tile.ptr<i32>, i32
  // expected-note@+1 {{the load is here}}
  %x = tile.load %p : !tile.ptr<f32> -> f32
  tile.store %q, %x : !tile.ptr<f32>, f32
  return
}

// -----

func.func @dropped(%s: !tile.ptr<i32>, %n: i32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %c: i1) {
  scf.if %c {
    // expected-error@+1 {{the token of this wait is never consumed}}
    %token = dist.wait ge gpu acquire %s, %n, %n : !tile.ptr<i32>, i32
    // expected-note@+1 {{the result of this consume_token is not used}}
    %lost = dist.consume_token %p, %token : !tile.ptr<f32>
  }
  // expected-note@+1 {{the load is here}}
  %x = tile.load %p : !tile.ptr<f32> -> f32
  tile.store %q, %x : !tile.ptr<f32>, f32
  return
}

// -----

// Tokens that are consumed: directly, through a branch, through a loop.
func.func @consumed(%s: !tile.ptr<i32>, %n: i32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %token = dist.wait ge gpu acquire %s, %n, %n : !tile.ptr<i32>, i32
  %0 = dist.consume_token %p, %token : !tile.ptr<f32>
  %x = tile.load %0 : !tile.ptr<f32> -> f32
  %either = scf.if %c -> i32 {
    %a = dist.wait ge gpu acquire %s, %n, %n : !tile.ptr<i32>, i32
    scf.yield %a : i32
  } else {
    %b = dist.wait ge sys acquire %s, %n, %n : !tile.ptr<i32>, i32
    scf.yield %b : i32
  }
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%t = %either) -> i32 : i32 {
    %1 = dist.wait ge gpu acquire %s, %n, %i : !tile.ptr<i32>, i32
    scf.yield %1 : i32
  }
  %2 = dist.consume_token %p, %last : !tile.ptr<f32>
  %y = tile.load %2 : !tile.ptr<f32> -> f32
  %z = arith.addf %x, %y : f32
  tile.store %q, %z : !tile.ptr<f32>, f32
  return
}

// -----

// A barrier, nothing to load, loads of single threads, a token that nobody takes.
func.func @ordered(%s: !tile.ptr<i32>, %n: i32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %a = dist.wait ge gpu acquire %s, %n, %n : !tile.ptr<i32>, i32
  dist.sync_threads
  %x = tile.load %p : !tile.ptr<f32> -> f32
  tile.store %q, %x : !tile.ptr<f32>, f32
  %b = dist.wait ge gpu acquire %s, %n, %n {dist.token_dropped} : !tile.ptr<i32>, i32
  %y = tile.load %p : !tile.ptr<f32> -> f32
  tile.store %q, %y : !tile.ptr<f32>, f32
  %c = dist.wait ge gpu acquire %s, %n, %n : !tile.ptr<i32>, i32
  %z = dist.ld relaxed gpu %p : !tile.ptr<f32> -> f32
  tile.store %q, %z : !tile.ptr<f32>, f32
  %d = dist.wait ge gpu acquire %s, %n, %n : !tile.ptr<i32>, i32
  return
}

// -----

func.func @spin(%p: !tile.ptr<i32>, %n: i32) {
  scf.while : () -> () {
    // expected-warning@+1 {{this loop waits for memory to change, but the load may be done once for all turns}}
    %v = tile.load %p : !tile.ptr<i32> -> i32
    %wrong = arith.cmpi ne, %v, %n : i32
    scf.condition(%wrong)
  } do {
    tile.keep_loop
    scf.yield
  }
  return
}

// -----

// Volatile, ordered, over changing places, or with other effects.
func.func @spinsRight(%p: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.while : () -> () {
    %v = tile.load %p {isVolatile = true} : !tile.ptr<i32> -> i32
    %wrong = arith.cmpi ne, %v, %n : i32
    scf.condition(%wrong)
  } do {
    scf.yield
  }
  scf.while : () -> () {
    %v = dist.ld acquire sys %p : !tile.ptr<i32> -> i32
    %wrong = arith.cmpi ne, %v, %n : i32
    scf.condition(%wrong)
  } do {
    scf.yield
  }
  %end = scf.while (%i = %c0) : (i32) -> i32 {
    %at = tile.addptr %p, %i : !tile.ptr<i32>, i32
    %v = tile.load %at : !tile.ptr<i32> -> i32
    %wrong = arith.cmpi ne, %v, %n : i32
    scf.condition(%wrong) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  scf.while : () -> () {
    %v = tile.load %p : !tile.ptr<i32> -> i32
    %wrong = arith.cmpi ne, %v, %n : i32
    scf.condition(%wrong)
  } do {
    %old = tile.atomic_rmw add relaxed gpu %p, %c1 : !tile.ptr<i32>, i32 -> i32
    scf.yield
  }
  return
}
