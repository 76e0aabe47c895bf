// The world view: a hidden last argument, read once at the top.
// RUN: ditron-opt %s --dist-lower-world | FileCheck %s

// CHECK-LABEL: func.func @asks
// CHECK-SAME: (%[[P:.*]]: !tile.ptr<f32>, %[[W:.*]]: !tile.ptr<i64>)
func.func @asks(%p: !tile.ptr<f32>) attributes {tile.kernel} {
  // CHECK: %[[A0:.*]] = tile.addptr %[[W]], %c0_i32
  // CHECK: %[[R64:.*]] = tile.load %[[A0]] : !tile.ptr<i64> -> i64
  // CHECK: %[[RANK:.*]] = arith.trunci %[[R64]] : i64 to i32
  // CHECK: %[[A1:.*]] = tile.addptr %[[W]], %c1_i32
  // CHECK: %[[N64:.*]] = tile.load %[[A1]]
  // CHECK: %[[NUM:.*]] = arith.trunci %[[N64]] : i64 to i32
  // CHECK: %[[OWN:.*]] = tile.hint %{{.*}} {divisibility = array<i64: 256>} : i64
  // CHECK-NOT: dist.
  // CHECK: %[[PEER:.*]] = arith.remsi
  // CHECK: dist.check_rank %[[PEER]] of %[[NUM]]
  // CHECK: %[[INDEX:.*]] = arith.addi %[[PEER]], %c2_i32
  // CHECK: %[[WORD:.*]] = tile.addptr %[[W]], %[[INDEX]]
  // CHECK: %[[BASE:.*]] = tile.load %[[WORD]]
  // CHECK: %[[ALIGNED:.*]] = tile.hint %[[BASE]] {divisibility = array<i64: 256>} : i64
  // CHECK: %[[DISTANCE:.*]] = arith.subi %[[ALIGNED]], %[[OWN]]
  // CHECK: %[[THERE:.*]] = arith.addi %{{.*}}, %[[DISTANCE]]
  // CHECK: tile.int_to_ptr %[[THERE]] : i64 -> !tile.ptr<f32>
  %rank = dist.rank
  %c1 = arith.constant 1 : i32
  %n = dist.num_ranks
  %next = arith.addi %rank, %c1 : i32
  %peer = arith.remsi %next, %n : i32
  %q = dist.symm_at %p, %peer : !tile.ptr<f32>
  %x = arith.constant 1.0 : f32
  tile.store %q, %x : !tile.ptr<f32>, f32
  %again = dist.rank
  %y = arith.sitofp %again : i32 to f32
  tile.store %p, %y : !tile.ptr<f32>, f32
  return
}

// The argument comes always, the reads only when asked for.
// CHECK-LABEL: func.func @does_not_ask
// CHECK-SAME: (%{{.*}}: i32, %{{.*}}: !tile.ptr<i64>)
// CHECK-NEXT: return
func.func @does_not_ask(%n: i32) attributes {tile.kernel} {
  return
}

// CHECK-LABEL: func.func @not_a_kernel()
func.func @not_a_kernel() {
  return
}
