// Who has read a slot by loads knows of his own loads only, and a producer's lane of its own copies.
// RUN: ditron-opt %s --dgpu-order-arrivals | FileCheck %s

#L = #dgpu.layout<64x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5]>
#tile = #dgpu.shared<64x16, bits = 32, offset = [j0 j1 j2 j3 i0 i1 i2 i3 i4 i5]>
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @loads
  // CHECK: dgpu.mbarrier_arrive %{{.*}} {after_loads}
  // CHECK: producer
  // CHECK: dgpu.mbarrier_arrive %{{.*}} {after_loads}
  func.func @loads(%empty: !dgpu.mbarriers<1>, %buffer: !dgpu.buffer<1 x 64x16 x f32, #tile>, %c: i1, %s: i32) {
    dgpu.warp_specialize consumer {
      scf.if %c {
        %x = dgpu.buffer_load %buffer[%s] : !dgpu.buffer<1 x 64x16 x f32, #tile> -> tensor<64x16xf32, #L>
      }
      dgpu.mbarrier_arrive %empty[%s] : !dgpu.mbarriers<1>
    } producer {
      dgpu.mbarrier_arrive %empty[%s] : !dgpu.mbarriers<1>
    }
    return
  }

  // CHECK-LABEL: func.func @dots
  // CHECK-NOT: after_loads
  func.func @dots(%empty: !dgpu.mbarriers<1>, %s: i32) {
    dgpu.warp_specialize consumer {
      dgpu.warpgroup_wait 0
      dgpu.mbarrier_arrive %empty[%s] : !dgpu.mbarriers<1>
    } producer {
    }
    return
  }
}
