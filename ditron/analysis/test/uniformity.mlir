// RUN: ditron-opt %s --test-uniformity --verify-diagnostics

func.func @sources(%p: !tile.ptr<i32>, %x: tensor<32xi32>, %n: i32) {
  // expected-remark@+1 {{uniform}}
  %pid = tile.program_id 0
  // expected-remark@+1 {{uniform}}
  %rank = dist.rank
  // expected-remark@+1 {{varying}}
  %tid = dist.thread_id 0
  // expected-remark@+1 {{uniform}}
  %zero = dist.thread_id 1
  // expected-remark@+1 {{varying}}
  %lane = dist.lane_id
  // expected-remark@+1 {{varying}}
  %ld = dist.ld relaxed gpu %p : !tile.ptr<i32> -> i32
  // expected-remark@+1 {{varying}}
  %old = dist.thread_atomic_rmw add relaxed gpu %p, %n : !tile.ptr<i32>, i32 -> i32
  // expected-remark@+1 {{uniform}}
  %full = arith.constant -1 : i32
  // expected-remark@+1 {{varying}}
  %other = dist.shuffle xor %full, %n, %n : i32
  // expected-remark@+1 {{uniform}}
  %block = tile.atomic_rmw add relaxed gpu %p, %n : !tile.ptr<i32>, i32 -> i32
  // expected-remark@+1 {{uniform}}
  %load = tile.load %p : !tile.ptr<i32> -> i32
  // expected-remark@+1 {{uniform}}
  %token = dist.wait eq gpu acquire %p, %n, %n : !tile.ptr<i32>, i32
  // expected-remark@+1 {{varying}}
  %sum = arith.addi %tid, %n : i32
  // expected-remark@+1 {{uniform}}
  %even = arith.addi %pid, %n : i32
  // expected-remark@+1 {{varying}}
  %own = tile.addptr %p, %tid : !tile.ptr<i32>, i32
  // expected-remark@+1 {{varying}}
  %mine = tile.load %own : !tile.ptr<i32> -> i32
  // expected-remark@+1 {{uniform}}
  %total = tile.reduce(%x) axis 0 {
  ^bb0(%l: i32, %r: i32):
    // expected-remark@+1 {{uniform}}
    %s = arith.addi %l, %r : i32
    tile.yield %s : i32
  } : (tensor<32xi32>) -> i32
  return
}

func.func @branches(%n: i32, %a: i32) {
  // expected-remark@+1 {{varying}}
  %tid = dist.thread_id 0
  // expected-remark@+1 {{varying}}
  %some = arith.cmpi slt, %tid, %n : i32
  // expected-remark@+1 {{uniform}}
  %all = arith.cmpi slt, %a, %n : i32
  // The branches yield uniform values, but threads take different ones.
  // expected-remark@+1 {{varying}}
  %0 = scf.if %some -> i32 {
    // expected-remark@+2 {{uniform}}
    // expected-remark@+1 {{reached by some threads}}
    %inner = arith.addi %a, %n {test.reached} : i32
    scf.yield %a : i32
  } else {
    scf.yield %n : i32
  }
  // expected-remark@+2 {{result 0: uniform}}
  // expected-remark@+1 {{result 1: varying}}
  %1:2 = scf.if %all -> (i32, i32) {
    scf.yield %a, %a : i32, i32
  } else {
    // expected-remark@+1 {{uniform}}
    %else = arith.addi %a, %n {test.reached} : i32
    scf.yield %n, %tid : i32, i32
  }
  return
}

func.func @loops(%n: i32, %a: i32) {
  // expected-remark@+1 {{uniform}}
  %c0 = arith.constant 0 : i32
  // expected-remark@+1 {{uniform}}
  %c1 = arith.constant 1 : i32
  // expected-remark@+1 {{varying}}
  %tid = dist.thread_id 0
  // Varying only after the first turn, through two loop-carried values.
  // expected-remark@+2 {{result 0: varying}}
  // expected-remark@+1 {{result 1: varying}}
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %a) -> (i32, i32) : i32 {
    // expected-remark@+1 {{varying}}
    %z = arith.addi %x, %y : i32
    // expected-remark@+1 {{uniform}}
    %reached = arith.addi %i, %i {test.reached} : i32
    scf.yield %y, %tid : i32, i32
  }
  // Threads leave after different numbers of turns.
  // expected-remark@+1 {{result 0: varying}}
  %1 = scf.for %i = %tid to %n step %c1 iter_args(%x = %a) -> i32 : i32 {
    // expected-remark@+2 {{varying}}
    // expected-remark@+1 {{reached by some threads}}
    %reached = arith.addi %x, %i {test.reached} : i32
    scf.yield %a : i32
  }
  // expected-remark@+1 {{result 0: uniform}}
  %2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> i32 : i32 {
    // expected-remark@+1 {{uniform}}
    %y = arith.addi %x, %i : i32
    scf.yield %y : i32
  }
  return
}

func.func @spin(%p: !tile.ptr<i32>, %n: i32) {
  // Each thread polls by itself.
  scf.while : () -> () {
    // expected-remark@+2 {{varying}}
    // expected-remark@+1 {{reached by some threads}}
    %v = dist.ld acquire sys %p {test.reached} : !tile.ptr<i32> -> i32
    // expected-remark@+1 {{varying}}
    %wrong = arith.cmpi ne, %v, %n : i32
    scf.condition(%wrong)
  } do {
    scf.yield
  }
  // The block counts together.
  // expected-remark@+1 {{uniform}}
  %c1 = arith.constant 1 : i32
  // expected-remark@+1 {{result 0: uniform}}
  %0 = scf.while (%x = %n) : (i32) -> i32 {
    // expected-remark@+1 {{uniform}}
    %more = arith.cmpi sgt, %x, %c1 {test.reached} : i32
    scf.condition(%more) %x : i32
  } do {
  ^bb0(%x: i32):
    // expected-remark@+1 {{uniform}}
    %y = arith.divsi %x, %c1 : i32
    scf.yield %y : i32
  }
  return
}
