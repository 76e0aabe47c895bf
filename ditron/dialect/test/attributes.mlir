// A slip in an attribute that an operation of another dialect carries is an error, not a fact that is not there.
// RUN: ditron-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{there is no attribute 'dgpu.num_warp'; known are dgpu.num_warps, dgpu.threads_per_warp}}
module attributes {dgpu.num_warp = 4 : i32} {}

// -----

// expected-error @below {{'dgpu.target' takes a string, not unit}}
module attributes {dgpu.target} {}

// -----

func.func @loop(%n: index) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{'tile.flatten' takes no value, not 1 : i32}}
  scf.for %i = %c1 to %n step %c1 {
  } {tile.flatten = 1 : i32}
  return
}

// -----

func.func @carrier(%p: !tile.ptr<i32>) {
  // expected-error @below {{'tile.num_stages' is an attribute of loops, not of 'tile.load'}}
  %x = tile.load %p {tile.num_stages = 3 : i32} : !tile.ptr<i32> -> i32
  return
}

// -----

// expected-error @below {{there is no attribute 'tile.divisible'; known are tile.divisibility}}
func.func @argument(%p: !tile.ptr<i32> {tile.divisible = 16 : i64}) {
  return
}

// -----

func.func @dist(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error @below {{'dist.spin' is an attribute of dist.ld and tile.load, not of 'tile.store'}}
  tile.store %p, %x {dist.spin} : !tile.ptr<i32>, i32
  return
}
