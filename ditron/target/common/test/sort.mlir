// A sorting network: pairs of registers, butterflies between lanes, rounds through shared memory between warps. Stages that turn
// round by a thread's bits are one loop when straight code would be long; many elements of a thread are an array.
// RUN: ditron-opt %s -split-input-file -ditron-to-llvm=target=sim | FileCheck %s

#L = #dgpu.layout<4x2, reg = {j0}, lane = [i0 i1 * * *], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Both registers hold a row: one comparison, and no other thread.
  // CHECK-LABEL: llvm.func internal @rows
  // CHECK-SAME: (%[[A:.*]]: f32, %[[B:.*]]: f32,
  // CHECK-NOT: shuffle
  // CHECK: %[[LESS:.*]] = llvm.fcmp "ogt" %[[B]], %[[A]]
  // CHECK: llvm.select %[[LESS]], %[[B]], %[[A]]
  // CHECK: llvm.select %[[LESS]], %[[A]], %[[B]]
  // CHECK-NOT: llvm.fcmp
  // CHECK: llvm.return
  func.func @rows(%x: tensor<4x2xf32, #L>, %q: tensor<4x2x!tile.ptr<f32>, #L>, %world: !tile.ptr<i64>) {
    %r = tile.bitonic %x stages 1 to 1 descending : tensor<4x2xf32, #L>
    tile.store %q, %r : tensor<4x2x!tile.ptr<f32>, #L>, tensor<4x2xf32, #L>
    return
  }
}

// -----

#N = #dgpu.layout<64, reg = {i0}, lane = [i1 i2 i3 i4 i5], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Six stages have 1 + 2 + ... + 5 steps between lanes; two registers of 32 bits travel as one word of 64.
  // CHECK-LABEL: llvm.func internal @short
  // CHECK-COUNT-15: llvm.call @ditron_sim_shuffle
  // CHECK-NOT: llvm.call @ditron_sim_shuffle
  // CHECK-NOT: llvm.cond_br
  // CHECK: llvm.return
  func.func @short(%x: tensor<64xi32, #N>, %q: tensor<64x!tile.ptr<i32>, #N>, %world: !tile.ptr<i64>) {
    %r = tile.bitonic %x stages 1 to 6 ascending : tensor<64xi32, #N>
    tile.store %q, %r : tensor<64x!tile.ptr<i32>, #N>, tensor<64xi32, #N>
    return
  }
  // Without signs, and with zeros that are equal.
  // CHECK-LABEL: llvm.func internal @keys
  // CHECK: llvm.icmp "ugt"
  // CHECK-NOT: llvm.icmp "sgt"
  // CHECK: llvm.sub
  // CHECK: llvm.icmp "sgt"
  func.func @keys(%x: tensor<64xi32, #N>, %q: tensor<64x!tile.ptr<i32>, #N>, %world: !tile.ptr<i64>) {
    %r = tile.bitonic %x stages 1 to 1 ascending {key = #tile.key<unsigned>} : tensor<64xi32, #N>
    %s = tile.bitonic %r stages 1 to 1 ascending {key = #tile.key<sign_magnitude>} : tensor<64xi32, #N>
    tile.store %q, %s : tensor<64x!tile.ptr<i32>, #N>, tensor<64xi32, #N>
    return
  }
}

// -----

#W = #dgpu.layout<2048, reg = {i0 i1 i2 i3}, lane = [i4 i5 i6 i7 i8], warp = [i9 i10]>
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.shared_bytes = 8192 : i64} {
  // Eleven stages, of which those within registers are straight. In the loop each of the five lane bits has its eight words once,
  // and each of the two warp bits its two barriers.
  // CHECK-LABEL: llvm.func internal @long
  // CHECK: llvm.cond_br
  // CHECK: ditron_sim_barrier
  // CHECK: ditron_sim_barrier
  // CHECK: ditron_sim_barrier
  // CHECK: ditron_sim_barrier
  // CHECK-NOT: ditron_sim_barrier
  // CHECK-COUNT-40: llvm.call @ditron_sim_shuffle
  // CHECK-NOT: llvm.call @ditron_sim_shuffle
  // CHECK: llvm.return
  func.func @long(%x: tensor<2048xf32, #W>, %q: tensor<2048x!tile.ptr<f32>, #W>, %world: !tile.ptr<i64>) {
    %r = tile.bitonic %x stages 1 to 11 ascending {offset_bytes = 0 : i64} : tensor<2048xf32, #W>
    tile.store %q, %r : tensor<2048x!tile.ptr<f32>, #W>, tensor<2048xf32, #W>
    return
  }
}
