// RUN: ditron-opt %s | ditron-opt | FileCheck %s
// OpenSHMEM, wide accesses and intrinsics: what is printed parses again.

// CHECK-LABEL: func.func @shmem
func.func @shmem(%p: !tile.ptr<i8>, %signal: !tile.ptr<i64>, %bytes: i64, %value: i64, %pe: i32, %team: i32) {
  // CHECK: dist.put block nonblocking %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i8>, !tile.ptr<i8>
  dist.put block nonblocking %p, %p, %bytes, %pe : !tile.ptr<i8>, !tile.ptr<i8>
  // CHECK: dist.get warp %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i8>, !tile.ptr<i8>
  dist.get warp %p, %p, %bytes, %pe : !tile.ptr<i8>, !tile.ptr<i8>
  // CHECK: dist.put_signal thread add %{{.*}} : !tile.ptr<i8>, !tile.ptr<i8>, !tile.ptr<i64>, i64
  dist.put_signal thread add %p, %p, %bytes, %signal, %value, %pe : !tile.ptr<i8>, !tile.ptr<i8>, !tile.ptr<i64>, i64
  // CHECK: dist.signal_op set %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i64>, i64
  dist.signal_op set %signal, %value, %pe : !tile.ptr<i64>, i64
  // CHECK: dist.signal_wait_until ge %{{.*}}, %{{.*}} : !tile.ptr<i64>, i64
  %0 = dist.signal_wait_until ge %signal, %value : !tile.ptr<i64>, i64
  // CHECK: dist.order quiet
  dist.order quiet
  // CHECK: dist.team_barrier block sync %{{.*}}
  dist.team_barrier block sync %team
  // CHECK: dist.collective broadcast warp %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i8>, !tile.ptr<i8>
  dist.collective broadcast warp %team, %p, %p, %bytes, %pe : !tile.ptr<i8>, !tile.ptr<i8>
  // CHECK: dist.team_rank
  // CHECK: dist.team_size
  // CHECK: dist.team_translate
  %1 = dist.team_rank %team
  %2 = dist.team_size %team
  %3 = dist.team_translate %team, %pe, %team
  // CHECK: dist.multicast_ptr %{{.*}}, %{{.*}} : !tile.ptr<i8>
  %4 = dist.multicast_ptr %p, %team : !tile.ptr<i8>
  return
}

// CHECK-LABEL: func.func @threads
func.func @threads(%p: !tile.ptr<f32>, %words: !tile.ptr<i32>, %guard: i1) {
  // CHECK: dist.ld_vector acquire sys %{{.*}} : !tile.ptr<f32> -> f32, f32
  %0, %1 = dist.ld_vector acquire sys %p : !tile.ptr<f32> -> f32, f32
  // CHECK: dist.st_vector relaxed gpu %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<f32>, f32, f32
  dist.st_vector relaxed gpu %p, %0, %1 : !tile.ptr<f32>, f32, f32
  // CHECK: dist.fence acq_rel sys
  dist.fence acq_rel sys
  // CHECK: dist.shared_alloc 1024 align 128 : !tile.ptr<f32>
  %2 = dist.shared_alloc 1024 align 128 : !tile.ptr<f32>
  // CHECK: dist.intrinsic "smid"() : () -> i32
  %3 = dist.intrinsic "smid"() : () -> i32
  // CHECK: dist.multimem_st %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} : !tile.ptr<i32>, i32, i32
  dist.multimem_st %words, %3, %3 mask %guard : !tile.ptr<i32>, i32, i32
  // CHECK: dist.multimem_ld_reduce %{{.*}} mask %{{.*}} {op = #dist.multimem_reduction<max>, packed = bf16} : !tile.ptr<i32> -> i32, i32
  %4, %5 = dist.multimem_ld_reduce %words mask %guard {op = #dist.multimem_reduction<max>, packed = bf16} : !tile.ptr<i32> -> i32, i32
  return
}
