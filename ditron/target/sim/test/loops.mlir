// Every loop reads whether the time limit has passed, once per turn; what leaves the loop then does not come back.
// RUN: ditron-opt %s --split-input-file --ditron-to-llvm=target=sim | FileCheck %s

module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: llvm.func internal @nested
  // CHECK: %[[SELF:.*]] = llvm.call @ditron_sim_self
  // CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[SELF]][56]
  // CHECK: %[[WORD:.*]] = llvm.load %[[FIELD]] invariant
  // CHECK: llvm.br ^[[OUTER:bb[0-9]+]]
  // CHECK: ^[[OUTER]](
  // CHECK-NEXT: %[[LATE:.*]] = llvm.load volatile %[[WORD]] {alignment = 4 : i64} : !llvm.ptr -> i32
  // CHECK: llvm.cond_br {{.*}} weights([1, 1048576]), ^[[OUT:bb[0-9]+]], ^{{bb[0-9]+}}
  // CHECK: ^[[OUT]]:
  // CHECK: llvm.call @ditron_sim_time_out(%[[SELF]],
  // CHECK-NEXT: llvm.unreachable
  // CHECK: llvm.load volatile %[[WORD]]
  // CHECK: llvm.call @ditron_sim_time_out
  // CHECK-NOT: ditron_sim_time_out
  // CHECK: llvm.return
  func.func @nested(%n: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %i = %zero to %n step %one : i32 {
      scf.while : () -> () {
        %c = arith.cmpi slt, %i, %n : i32
        scf.condition(%c)
      } do {
        tile.keep_loop
        scf.yield
      }
    }
    return
  }

  // CHECK-LABEL: llvm.func internal @straight
  // CHECK-NOT: volatile
  // CHECK-NOT: mustprogress
  // CHECK-NOT: willreturn
  func.func @straight(%n: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    return
  }
}
