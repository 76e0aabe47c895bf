// One function per message of the verifiers.
// RUN: ditron-opt %s --split-input-file --verify-diagnostics

func.func @waitWord(%s: !tile.ptr<i8>, %n: i32, %v: i8) {
  // expected-error@+1 {{needs a pointer to signal words of type i32 or i64, found '!tile.ptr<i8>'}}
  %0 = dist.wait eq gpu acquire %s, %n, %v : !tile.ptr<i8>, i8
  return
}

// -----

func.func @waitValue(%s: !tile.ptr<i64>, %n: i32) {
  // expected-error@+1 {{value has type 'i32', but the signal word has type 'i64'}}
  %0 = dist.wait eq gpu acquire %s, %n, %n : !tile.ptr<i64>, i32
  return
}

// -----

func.func @waitOrder(%s: !tile.ptr<i32>, %n: i32) {
  // expected-error@+1 {{a wait reads: its order is relaxed or acquire, found release}}
  %0 = dist.wait eq gpu release %s, %n, %n : !tile.ptr<i32>, i32
  return
}

// -----

func.func @notifyWord(%s: !tile.ptr<f32>, %n: i32) {
  // expected-error@+1 {{needs a pointer to signal words of type i32 or i64, found '!tile.ptr<f32>'}}
  dist.notify set gpu %s, %n, %n : !tile.ptr<f32>, i32
  return
}

// -----

func.func @ldOrder(%p: !tile.ptr<i32>) {
  // expected-error@+1 {{a load has order relaxed or acquire, found release}}
  %0 = dist.ld release gpu %p : !tile.ptr<i32> -> i32
  return
}

// -----

func.func @ldType(%p: !tile.ptr<i32>) {
  // expected-error@+1 {{result has type 'f32', but the pointer is '!tile.ptr<i32>'}}
  %0 = dist.ld relaxed gpu %p : !tile.ptr<i32> -> f32
  return
}

// -----

func.func @stOrder(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error@+1 {{a store has order relaxed or release, found acquire}}
  dist.st acquire gpu %p, %x : !tile.ptr<i32>, i32
  return
}

// -----

func.func @stType(%p: !tile.ptr<i64>, %x: i32) {
  // expected-error@+1 {{value has type 'i32', but the pointer is '!tile.ptr<i64>'}}
  dist.st relaxed gpu %p, %x : !tile.ptr<i64>, i32
  return
}

// -----

func.func @atomicValue(%p: !tile.ptr<i64>, %x: i32) {
  // expected-error@+1 {{value has type 'i32', but the pointer is '!tile.ptr<i64>'}}
  %0 = dist.thread_atomic_rmw add relaxed gpu %p, %x : !tile.ptr<i64>, i32 -> i64
  return
}

// -----

func.func @atomicOp(%p: !tile.ptr<f32>, %x: f32) {
  // expected-error@+1 {{atomic xor works on elements of type i32 or i64, found 'f32'}}
  %0 = dist.thread_atomic_rmw xor relaxed gpu %p, %x : !tile.ptr<f32>, f32 -> f32
  return
}

// -----

func.func @compareSwap(%p: !tile.ptr<i8>, %x: i8) {
  // expected-error@+1 {{compare and swap works on elements of 16, 32 or 64 bits, found 'i8'}}
  %0 = dist.thread_atomic_cas relaxed gpu %p, %x, %x : !tile.ptr<i8>, i8 -> i8
  return
}

// -----

func.func @threadAxis() {
  // expected-error@+1 {{attribute 'axis' failed to satisfy constraint}}
  %0 = dist.thread_id 3
  return
}
