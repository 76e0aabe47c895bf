// One level per axis bit; only distinct other operands are fetched.
// RUN: ditron-opt %s -split-input-file -ditron-to-llvm=target=sim | FileCheck %s

#L = #dgpu.layout<128, reg = {i0 i6}, lane = [i1 i2 i3 i4 i5], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Bit 0: two register pairs. Bits 1..5: of the two low registers only the upper one of each half is fetched, two values in
  // one word. Bit 6: the total of the lower half, from the last lane, for the two upper registers.
  // CHECK-LABEL: llvm.func internal @cumsum
  // CHECK-COUNT-2: llvm.add %{{.*}}, %{{.*}} : i16
  // CHECK-COUNT-5: llvm.call @ditron_sim_shuffle
  // CHECK-COUNT-4: llvm.select %{{.*}} : i1, i16
  // CHECK: llvm.call @ditron_sim_shuffle
  // CHECK-NOT: ditron_sim_shuffle
  // CHECK-COUNT-2: llvm.add %{{.*}}, %{{.*}} : i16
  // CHECK-NOT: llvm.select
  // CHECK: llvm.return
  func.func @cumsum(%x: tensor<128xi16, #L>, %q: tensor<128x!tile.ptr<i16>, #L>, %world: !tile.ptr<i64>) {
    %s = tile.scan (%x) axis 0 { ^bb0(%a: i16, %b: i16):
      %c = arith.addi %a, %b : i16
      tile.yield %c : i16
    } : (tensor<128xi16, #L>) -> tensor<128xi16, #L>
    tile.store %q, %s : tensor<128x!tile.ptr<i16>, #L>, tensor<128xi16, #L>
    return
  }
}
