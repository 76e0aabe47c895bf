// RUN: ditron-opt %s --split-input-file --dist-verify-uniformity --verify-diagnostics

func.func @barrier(%n: i32) {
  // expected-note@+1 {{it depends on tid}}
  %tid = dist.thread_id 0
  // expected-note@+1 {{because this condition differs between threads}}
  %some = arith.cmpi slt, %tid, %n : i32
  scf.if %some {
    // expected-error@+1 {{all threads of the block perform __syncthreads together, but only some of them arrive here}}
    dist.sync_threads
  }
  return
}

// -----

// The usual way to send one signal from a block is right: notify stands outside.
func.func @notifyOutside(%s: !tile.ptr<i32>, %n: i32) {
  %tid = dist.thread_id 0
  %some = arith.cmpi slt, %tid, %n : i32
  scf.if %some {
    dist.st release gpu %s, %n : !tile.ptr<i32>, i32
  }
  dist.notify add gpu %s, %n, %n : !tile.ptr<i32>, i32
  return
}

// -----

func.func @notify(%s: !tile.ptr<i32>, %n: i32) {
  // expected-note@+1 {{it depends on laneid}}
  %lane = dist.lane_id
  // expected-note@+1 {{because this condition differs between threads}}
  %some = arith.cmpi eq, %lane, %n : i32
  scf.if %some {
    // expected-error@+1 {{all threads of the block perform dl.notify together, but only some of them arrive here}}
    dist.notify add gpu %s, %n, %n : !tile.ptr<i32>, i32
  }
  return
}

// -----

// The trip count differs; the loop bound itself is the thread-level operation.
func.func @dot(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>, %p: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-note@+1 {{because this condition differs between threads}}
  %n = dist.ld relaxed gpu %p : !tile.ptr<i32> -> i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    // expected-error@+1 {{all threads of the block perform tl.dot together}}
    %0 = tile.dot %a, %b, %c : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  }
  return
}

// -----

// A nested branch: the outermost varying condition is the cause.
func.func @nested(%x: tensor<32xi32>, %n: i32, %p: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %uniform = arith.cmpi slt, %n, %c0 : i32
  // expected-note@+1 {{it depends on tid}}
  %tid = dist.thread_id 0
  // expected-note@+1 {{because this condition differs between threads}}
  %first = arith.cmpi eq, %tid, %c0 : i32
  scf.if %first {
    scf.if %uniform {
      // expected-error@+1 {{all threads of the block perform a reduction together}}
      %sum = tile.reduce(%x) axis 0 {
      ^bb0(%l: i32, %r: i32):
        %s = arith.addi %l, %r : i32
        tile.yield %s : i32
      } : (tensor<32xi32>) -> i32
      // the same condition again: one message is enough
      %old = tile.atomic_rmw add relaxed gpu %p, %n : !tile.ptr<i32>, i32 -> i32
    }
  }
  return
}

// -----

// A block is stored by all threads together; one element may be stored by one thread.
func.func @stores(%p: tensor<32x!tile.ptr<i32>>, %x: tensor<32xi32>, %q: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  // expected-note@+1 {{it depends on tid}}
  %tid = dist.thread_id 0
  // expected-note@+1 {{because this condition differs between threads}}
  %first = arith.cmpi eq, %tid, %c0 : i32
  scf.if %first {
    tile.store %q, %n : !tile.ptr<i32>, i32
    // expected-error@+1 {{all threads of the block perform tl.store of a block together}}
    tile.store %p, %x : tensor<32x!tile.ptr<i32>>, tensor<32xi32>
  }
  return
}

// -----

// A tile belongs to the whole block: a branch of some threads cannot make it another one.
func.func @changedTile(%x: tensor<32xi32>, %n: i32) -> tensor<32xi32> {
  // expected-note@+1 {{it depends on laneid}}
  %lane = dist.lane_id
  // expected-note@+1 {{because this condition differs between threads}}
  %some = arith.cmpi eq, %lane, %n : i32
  // expected-error@+1 {{only some threads of the block come through here, but a tile gets another value: a tile belongs to the whole block}}
  %y = scf.if %some -> tensor<32xi32> {
    %z = arith.addi %x, %x : tensor<32xi32>
    scf.yield %z : tensor<32xi32>
  } else {
    scf.yield %x : tensor<32xi32>
  }
  return %y : tensor<32xi32>
}

// -----

// Loops that only hand a tile on are right, and scalars may differ.
func.func @handedOn(%x: tensor<32xi32>, %n: i32) -> tensor<32xi32> {
  %c1 = arith.constant 1 : i32
  %tid = dist.thread_id 0
  %y:2 = scf.for %i = %tid to %n step %c1 iter_args(%t = %x, %s = %n) -> (tensor<32xi32>, i32) : i32 {
    %u = arith.addi %s, %i : i32
    scf.yield %t, %u : tensor<32xi32>, i32
  }
  %z = scf.while (%t = %y#0) : (tensor<32xi32>) -> tensor<32xi32> {
    %more = arith.cmpi slt, %tid, %n : i32
    scf.condition(%more) %t : tensor<32xi32>
  } do {
  ^bb0(%t: tensor<32xi32>):
    scf.yield %t : tensor<32xi32>
  }
  return %z : tensor<32xi32>
}

// -----

// Puts of the block need the block; those of a warp or thread do not.
func.func @puts(%p: !tile.ptr<f32>, %b: i64, %pe: i32) {
  %c0 = arith.constant 0 : i32
  // expected-note@+1 {{it depends on elect_one_sync}}
  %one = dist.intrinsic "elect_one_sync"() : () -> i1
  %word = arith.extui %one : i1 to i32
  // expected-note@+1 {{because this condition differs between threads}}
  %some = arith.cmpi ne, %word, %c0 : i32
  scf.if %some {
    dist.put thread %p, %p, %b, %pe : !tile.ptr<f32>, !tile.ptr<f32>
    dist.put warp %p, %p, %b, %pe : !tile.ptr<f32>, !tile.ptr<f32>
    // expected-error@+1 {{all threads of the block perform a put of the block together, but only some of them arrive here}}
    dist.put block %p, %p, %b, %pe : !tile.ptr<f32>, !tile.ptr<f32>
  }
  return
}
