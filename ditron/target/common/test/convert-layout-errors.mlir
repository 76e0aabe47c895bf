// RUN: ditron-opt %s -verify-diagnostics -ditron-to-llvm=target=sim

#A = #dgpu.layout<64, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [i5]>
#B = #dgpu.layout<64, reg = {}, lane = [i5 i1 i2 i3 i4], warp = [i0]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  func.func @no_allocation(%x: tensor<64xi32, #A>, %world: !tile.ptr<i64>) {
    // expected-error @+2 {{has no shared memory: attribute 'offset_bytes' is missing; run dgpu-allocate-shared first}}
    // expected-error @+1 {{failed to legalize operation 'dgpu.convert_layout'}}
    %y = dgpu.convert_layout %x : tensor<64xi32, #A> -> tensor<64xi32, #B>
    return
  }
}
