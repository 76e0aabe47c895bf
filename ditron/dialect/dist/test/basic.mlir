// Every operation of the dialect is printed as it is parsed.
// RUN: ditron-opt %s | ditron-opt | FileCheck %s
// RUN: ditron-opt %s --mlir-print-op-generic | ditron-opt | FileCheck %s

// CHECK-LABEL: func.func @world
func.func @world(%p: !tile.ptr<f16>) -> !tile.ptr<f16> {
  // CHECK: %[[RANK:.*]] = dist.rank
  %0 = dist.rank
  // CHECK: dist.num_ranks
  %1 = dist.num_ranks
  // CHECK: dist.symm_at %{{.*}}, %[[RANK]] : !tile.ptr<f16>
  %2 = dist.symm_at %p, %0 : !tile.ptr<f16>
  // CHECK: dist.check_rank %[[RANK]] of %{{.*}}
  dist.check_rank %0 of %1
  return %2 : !tile.ptr<f16>
}

// CHECK-LABEL: func.func @signals
func.func @signals(%s: !tile.ptr<i32>, %w: !tile.ptr<i64>, %n: i32, %one: i64, %x: tensor<8x!tile.ptr<f32>>) {
  // CHECK: %[[TOKEN:.*]] = dist.wait ge sys acquire %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i32>, i32
  %token = dist.wait ge sys acquire %s, %n, %n : !tile.ptr<i32>, i32
  // CHECK: dist.consume_token %{{.*}}, %[[TOKEN]] : tensor<8x!tile.ptr<f32>>
  %0 = dist.consume_token %x, %token : tensor<8x!tile.ptr<f32>>
  // CHECK: dist.notify set intra_node %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i64>, i64
  dist.notify set intra_node %w, %n, %one : !tile.ptr<i64>, i64
  // CHECK: dist.notify add gpu %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i32>, i32
  dist.notify add gpu %s, %n, %n : !tile.ptr<i32>, i32
  return
}

// CHECK-LABEL: func.func @threads
func.func @threads(%p: !tile.ptr<i32>, %f: f32, %c: i1, %full: i32) {
  // CHECK: dist.thread_id 0
  %0 = dist.thread_id 0
  // CHECK: dist.lane_id
  %1 = dist.lane_id
  // CHECK: dist.sync_threads
  dist.sync_threads
  // CHECK: dist.ld acquire sys %{{.*}} : !tile.ptr<i32> -> i32
  %2 = dist.ld acquire sys %p : !tile.ptr<i32> -> i32
  // CHECK: dist.st release gpu %{{.*}}, %{{.*}} : !tile.ptr<i32>, i32
  dist.st release gpu %p, %2 : !tile.ptr<i32>, i32
  // CHECK: dist.thread_atomic_rmw add relaxed block %{{.*}}, %{{.*}} : !tile.ptr<i32>, i32 -> i32
  %3 = dist.thread_atomic_rmw add relaxed block %p, %2 : !tile.ptr<i32>, i32 -> i32
  // CHECK: dist.thread_atomic_cas acq_rel gpu %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i32>, i32 -> i32
  %4 = dist.thread_atomic_cas acq_rel gpu %p, %2, %3 : !tile.ptr<i32>, i32 -> i32
  // CHECK: dist.shuffle xor %{{.*}}, %{{.*}}, %{{.*}} : f32
  %5 = dist.shuffle xor %full, %f, %1 : f32
  // CHECK: dist.shuffle idx
  %6 = dist.shuffle idx %full, %5, %1 : f32
  // CHECK: dist.shuffle up
  %7 = dist.shuffle up %full, %6, %1 : f32
  // CHECK: dist.shuffle down
  %8 = dist.shuffle down %full, %7, %1 : f32
  // CHECK: dist.ballot %{{.*}}, %{{.*}}
  %9 = dist.ballot %full, %c
  return
}
