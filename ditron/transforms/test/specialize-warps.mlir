// A producer warp takes over the loads of descriptors that feed warpgroup dots.
// RUN: ditron-opt %s --dgpu-specialize-warps --canonicalize | FileCheck %s


module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 4 : i32, dgpu.wgmma, dgpu.tma} {
  // The maps are arguments before the world view. Three of four stages fit beside the staging buffer of the store.
  // CHECK-LABEL: func.func @persistent
  // CHECK-SAME: %[[MAPA:arg[0-9]+]]: !dgpu.tensor_map {dgpu.tensor_map = {base = 0 : i64, box = [128, 64], element = bf16, padding = "zero", sizes = [{arg = 3 : i64}, {arg = 5 : i64}], strides = [{arg = 5 : i64}, {value = 1 : i64}], swizzle = 128 : i64}}
  // CHECK-SAME: %[[MAPB:arg[0-9]+]]: !dgpu.tensor_map {dgpu.tensor_map = {base = 1 : i64, box = [256, 64]
  // CHECK-SAME: !tile.ptr<i64>) attributes
  func.func @persistent(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
                        %c: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %M: i32, %N: i32, %K: i32 {tile.divisibility = 16 : i64},
                        %world: !tile.ptr<i64>) attributes {tile.kernel} {
    // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
    // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
    // CHECK-DAG: %[[A:.*]] = dgpu.buffer_alloc : !dgpu.buffer<3 x 128x64 x bf16
    // CHECK-DAG: %[[B:.*]] = dgpu.buffer_alloc : !dgpu.buffer<3 x 256x64 x bf16
    // CHECK-DAG: %[[FULL:.*]] = dgpu.mbarrier_alloc {count = 1 : i32}
    // CHECK-DAG: %[[EMPTY:.*]] = dgpu.mbarrier_alloc {count = 8 : i32}
    // CHECK: %[[BT:.*]] = dgpu.buffer_permute %[[B]] [1, 0]
    // CHECK: dgpu.warp_specialize consumer {
    // CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %[[ZERO]], %[[P:.*]] = %[[ZERO]]) -> (i32, i32)
    // CHECK: %[[LOOP:.*]]:3 = scf.for %[[K:.*]] = %[[ZERO]] to %{{.*}} step %[[ONE]] iter_args(%[[SUM:.*]] = %{{.*}}, %[[SLOT:.*]] = %[[S]], %[[PARITY:.*]] = %[[P]])
    // CHECK-NEXT: dgpu.mbarrier_wait %[[FULL]][%[[SLOT]]], %[[PARITY]]
    // The zeros of the first iteration are not read.
    // CHECK-NEXT: %[[LATER:.*]] = arith.cmpi ne, %[[K]], %[[ZERO]]
    // CHECK-NEXT: %[[D:.*]] = dgpu.warpgroup_dot %[[A]][%[[SLOT]]], %[[BT]][%[[SLOT]]], %[[SUM]] if %[[LATER]]
    // CHECK-NEXT: %[[W:.*]] = dgpu.warpgroup_wait 1, %[[D]]
    // CHECK-NEXT: %[[LATER2:.*]] = arith.cmpi ne, %[[K]], %[[ZERO]]
    // CHECK: dgpu.mbarrier_arrive %[[EMPTY]][%{{.*}}] if %[[LATER2]]
    // CHECK: scf.yield %[[W]], %{{.*}}, %{{.*}}
    // CHECK: %[[ACC:.*]] = dgpu.warpgroup_wait 0, %[[LOOP]]#0
    // CHECK: %[[RAN:.*]] = arith.cmpi sgt
    // CHECK: dgpu.mbarrier_arrive %[[EMPTY]][%{{.*}}] if %[[RAN]]
    // CHECK: arith.truncf %[[ACC]]
    // CHECK: tile.descriptor_store
    // CHECK: scf.yield %[[LOOP]]#1, %[[LOOP]]#2
    // CHECK: } producer {
    // CHECK-NOT: tensor<
    // CHECK: scf.for
    // CHECK: scf.for %{{.*}} iter_args(%[[SLOT:.*]] = %{{.*}}, %[[PARITY:.*]] = %{{.*}}) -> (i32, i32)
    // CHECK: %[[BEFORE:.*]] = arith.xori %[[PARITY]], %[[ONE]]
    // CHECK-NEXT: dgpu.mbarrier_wait %[[EMPTY]][%[[SLOT]]], %[[BEFORE]]
    // CHECK-NEXT: dgpu.mbarrier_expect %[[FULL]][%[[SLOT]]], 49152
    // CHECK-NEXT: dgpu.tma_load %[[MAPA]][%{{.*}}, %{{.*}}] to %[[A]][%[[SLOT]]], %[[FULL]][%[[SLOT]]]
    // CHECK-NEXT: dgpu.tma_load %[[MAPB]][%{{.*}}, %{{.*}}] to %[[B]][%[[SLOT]]], %[[FULL]][%[[SLOT]]]
    // CHECK-NOT: tile.descriptor_store
    // CHECK: return
    %c1 = arith.constant 1 : i64
    %K64 = arith.extsi %K : i32 to i64
    %da = tile.make_descriptor %a, [%M, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %db = tile.make_descriptor %b, [%N, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<256x64xbf16>
    %dc = tile.make_descriptor %c, [%M, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x256xbf16>
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %i128 = arith.constant 128 : i32
    %i256 = arith.constant 256 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %pid = tile.program_id 0
    %programs = tile.num_programs 0
    %kt = arith.divsi %K, %i64 : i32
    %nt = arith.divsi %N, %i256 : i32
    %mt = arith.divsi %M, %i128 : i32
    %tiles = arith.muli %mt, %nt : i32
    scf.for %t = %pid to %tiles step %programs : i32 {
      %m = arith.divsi %t, %nt : i32
      %n = arith.remsi %t, %nt : i32
      %om = arith.muli %m, %i128 : i32
      %on = arith.muli %n, %i256 : i32
      %acc = scf.for %k = %i0 to %kt step %i1 iter_args(%sum = %zero) -> tensor<128x256xf32> : i32 {
        %ok = arith.muli %k, %i64 : i32
        %ta = tile.descriptor_load %da[%om, %ok] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
        %tb = tile.descriptor_load %db[%on, %ok] : !tile.desc<256x64xbf16> -> tensor<256x64xbf16>
        %tt = tile.trans %tb [1, 0] : tensor<256x64xbf16> -> tensor<64x256xbf16>
        %d = tile.dot %ta, %tt, %sum : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
        scf.yield %d : tensor<128x256xf32>
      }
      %r = arith.truncf %acc : tensor<128x256xf32> to tensor<128x256xbf16>
      tile.descriptor_store %dc[%om, %on], %r : !tile.desc<128x256xbf16>, tensor<128x256xbf16>
    } {tile.warp_specialize}
    return
  }

  // The wait goes where its token is used: only the producer reads what it announces. The one without token stays in both.
  // CHECK-LABEL: func.func @waits
  // CHECK: consumer {
  // CHECK-COUNT-1: dist.wait ge
  // CHECK: dgpu.mbarrier_wait
  // CHECK: } producer {
  // CHECK: dist.wait ge
  // CHECK: dist.wait eq
  // CHECK: dgpu.tma_load
  func.func @waits(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %signal: !tile.ptr<i32>, %out: !tile.ptr<f32>,
                   %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i32 = arith.constant 32 : i32
    %i128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<128x64xf16>
    %unused = dist.wait ge gpu acquire %signal, %i1, %i1 : !tile.ptr<i32>, i32
    %acc = scf.for %k = %i0 to %i32 step %i1 iter_args(%sum = %zero) -> tensor<128x128xf32> : i32 {
      %token = dist.wait eq gpu acquire %signal, %i1, %k : !tile.ptr<i32>, i32
      %ready = dist.consume_token %da, %token : !tile.desc<128x64xf16>
      %ok = arith.muli %k, %i128 : i32
      %ta = tile.descriptor_load %ready[%ok, %i0] : !tile.desc<128x64xf16> -> tensor<128x64xf16>
      %tt = tile.trans %ta [1, 0] : tensor<128x64xf16> -> tensor<64x128xf16>
      %d = tile.dot %ta, %tt, %sum : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<128x128x!tile.ptr<f32>>, tensor<128x128xf32>
    return
  }

  // Results that the loop uses are waited for at once, and the slots released at once; the tile from outside is released after the
  // loop. Keys and values have rings of their own; the second dot takes its first operand from registers.
  // CHECK-LABEL: func.func @attention
  // CHECK-DAG: %[[FQ:.*]] = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<1>
  // CHECK-DAG: %[[EQ:.*]] = dgpu.mbarrier_alloc {count = 8 : i32} : !dgpu.mbarriers<1>
  // CHECK: consumer {
  // CHECK: dgpu.mbarrier_wait %[[FQ]]
  // CHECK: scf.for
  // CHECK: dgpu.mbarrier_wait %[[FK:[0-9]+]]
  // CHECK: %[[S:.*]] = dgpu.warpgroup_dot
  // CHECK-NEXT: %[[SW:.*]] = dgpu.warpgroup_wait 0, %[[S]]
  // CHECK-NEXT: dgpu.mbarrier_arrive %[[EK:[0-9]+]][%{{.*}}] : !dgpu.mbarriers<4>
  // CHECK: %[[P:.*]] = arith.truncf %{{.*}} : tensor<128x64xf32> to tensor<128x64xf16>
  // CHECK: dgpu.mbarrier_wait %[[FV:[0-9]+]]
  // CHECK: %[[O:.*]] = dgpu.warpgroup_dot %[[P]], %{{.*}}[%{{.*}}], %{{.*}} : tensor<128x64xf16>
  // CHECK-NEXT: dgpu.warpgroup_wait 0, %[[O]]
  // CHECK-NEXT: dgpu.mbarrier_arrive %[[EV:[0-9]+]][%{{.*}}] : !dgpu.mbarriers<4>
  // CHECK: scf.yield
  // CHECK: dgpu.mbarrier_arrive %[[EQ]]
  // CHECK: } producer {
  // CHECK: dgpu.tma_load {{.*}}, %[[FQ]]
  // CHECK: scf.for
  // CHECK: dgpu.mbarrier_wait %[[EK]]
  // CHECK: dgpu.tma_load {{.*}}, %[[FK]]
  // CHECK: dgpu.mbarrier_wait %[[EV]]
  // CHECK: dgpu.tma_load {{.*}}, %[[FV]]
  func.func @attention(%q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %kv: !tile.ptr<f16> {tile.divisibility = 16 : i64},
                       %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i16 = arith.constant 16 : i32
    %i64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %dq = tile.make_descriptor %q, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<128x64xf16>
    %dk = tile.make_descriptor %kv, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %tq = tile.descriptor_load %dq[%i0, %i0] : !tile.desc<128x64xf16> -> tensor<128x64xf16>
    %acc = scf.for %n = %i0 to %i16 step %i1 iter_args(%sum = %zero) -> tensor<128x64xf32> : i32 {
      %o = arith.muli %n, %i64 : i32
      %tk = tile.descriptor_load %dk[%o, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %tt = tile.trans %tk [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %tq, %tt, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %e = math.exp2 %s : tensor<128x64xf32>
      %h = arith.truncf %e : tensor<128x64xf32> to tensor<128x64xf16>
      %tv = tile.descriptor_load %dk[%o, %i64] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %scaled = arith.mulf %sum, %e : tensor<128x64xf32>
      %d = tile.dot %h, %tv, %scaled : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      scf.yield %d : tensor<128x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xf32>
    return
  }

  // The state of a ring inside a branch leaves it either way. A barrier does not keep the producer from running ahead.
  // CHECK-LABEL: func.func @branch
  // CHECK: consumer {
  // CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}})
  // CHECK: %[[R:.*]]:2 = scf.if
  // CHECK: %[[LOOP:.*]]:3 = scf.for
  // CHECK: scf.yield %[[LOOP]]#1, %[[LOOP]]#2
  // CHECK: } else {
  // CHECK: scf.yield %[[S]], %[[P]]
  // CHECK: scf.yield %[[R]]#0, %[[R]]#1
  // CHECK: } producer {
  // CHECK: scf.if
  // CHECK: dgpu.tma_load
  func.func @branch(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32>, %n: i32,
                    %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<128x64xf16>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>>
    scf.for %t = %i0 to %n step %i1 : i32 {
      %odd = arith.andi %t, %i1 : i32
      %c = arith.cmpi eq, %odd, %i1 : i32
      scf.if %c {
        %acc = scf.for %k = %i0 to %i32 step %i1 iter_args(%sum = %zero) -> tensor<128x128xf32> : i32 {
          %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<128x64xf16> -> tensor<128x64xf16>
          %tt = tile.trans %ta [1, 0] : tensor<128x64xf16> -> tensor<64x128xf16>
          %d = tile.dot %ta, %tt, %sum : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
          scf.yield %d : tensor<128x128xf32>
        }
        tile.store %p, %acc : tensor<128x128x!tile.ptr<f32>>, tensor<128x128xf32>
        dist.sync_threads
      }
    }
    return
  }

  // Offsets may be read from memory that the kernel does not write.
  // CHECK-LABEL: func.func @table
  // CHECK: } producer {
  // CHECK: tile.load
  // CHECK: dgpu.tma_load
  func.func @table(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %rows: !tile.ptr<i32>, %out: !tile.ptr<f32>,
                   %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<128x64xf16>
    %acc = scf.for %k = %i0 to %i32 step %i1 iter_args(%sum = %zero) -> tensor<128x128xf32> : i32 {
      %address = tile.addptr %rows, %k : !tile.ptr<i32>, i32
      %row = tile.load %address : !tile.ptr<i32> -> i32
      %ta = tile.descriptor_load %da[%row, %i0] : !tile.desc<128x64xf16> -> tensor<128x64xf16>
      %tt = tile.trans %ta [1, 0] : tensor<128x64xf16> -> tensor<64x128xf16>
      %d = tile.dot %ta, %tt, %sum : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<128x128x!tile.ptr<f32>>, tensor<128x128xf32>
    return
  }

  // Outer dimensions of one element stay with the map and the offsets: a slot is a matrix. What serves an inner loop has a second slot, for
  // the next turn of its own loop; the products start from zeros, which they do not read.
  // CHECK-LABEL: func.func @heads
  // CHECK-SAME: box = [1, 128, 64], element = f16
  // CHECK-SAME: box = [1, 64, 64], element = f16
  // CHECK-DAG: %[[NEVER:.*]] = arith.constant false
  // CHECK-DAG: %[[Q:.*]] = dgpu.buffer_alloc : !dgpu.buffer<2 x 128x64 x f16
  // CHECK-DAG: %[[K:.*]] = dgpu.buffer_alloc : !dgpu.buffer<4 x 64x64 x f16
  // CHECK: %[[KT:.*]] = dgpu.buffer_permute %[[K]] [1, 0]
  // CHECK: dgpu.warpgroup_dot %[[Q]][%{{.*}}], %[[KT]][%{{.*}}], %{{.*}} if %[[NEVER]]
  // CHECK: } producer {
  // CHECK: scf.for %[[H:arg[0-9]+]] = %
  // CHECK: dgpu.tma_load %{{.*}}[%[[H]], %{{.*}}, %{{.*}}] to %[[Q]]
  // CHECK: scf.for %[[N:arg[0-9]+]] = %
  // CHECK: dgpu.tma_load %{{.*}}[%[[H]], %[[N]], %{{.*}}] to %[[K]]
  func.func @heads(%q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %kv: !tile.ptr<f16> {tile.divisibility = 16 : i64},
                   %out: !tile.ptr<f32>, %heads: i32, %rows: i32, %stride: i64 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 64 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %dq = tile.make_descriptor %q, [%heads, %rows, %size], [%stride, %c64, %c1] : !tile.ptr<f16>, i32, i32, i32 -> !tile.desc<1x128x64xf16>
    %dk = tile.make_descriptor %kv, [%heads, %rows, %size], [%stride, %c64, %c1] : !tile.ptr<f16>, i32, i32, i32 -> !tile.desc<1x64x64xf16>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>>
    scf.for %head = %i0 to %heads step %i1 : i32 {
      %tq = tile.descriptor_load %dq[%head, %i0, %i0] : !tile.desc<1x128x64xf16> -> tensor<1x128x64xf16>
      %mq = tile.reshape %tq : tensor<1x128x64xf16> -> tensor<128x64xf16>
      %acc = scf.for %n = %i0 to %rows step %size iter_args(%sum = %zero) -> tensor<128x64xf32> : i32 {
        %tk = tile.descriptor_load %dk[%head, %n, %i0] : !tile.desc<1x64x64xf16> -> tensor<1x64x64xf16>
        %mk = tile.reshape %tk : tensor<1x64x64xf16> -> tensor<64x64xf16>
        %tt = tile.trans %mk [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
        %s = tile.dot %mq, %tt, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
        %more = arith.maximumf %sum, %s : tensor<128x64xf32>
        scf.yield %more : tensor<128x64xf32>
      }
      tile.store %p, %acc : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xf32>
    }
    return
  }

  // A loop over further tiles of the same kind goes on in the ring of the one before, at the slot where that one stopped.
  // CHECK-LABEL: func.func @two_loops
  // CHECK: dgpu.buffer_alloc : !dgpu.buffer<1 x 128x64 x f16
  // CHECK: %[[K:.*]] = dgpu.buffer_alloc : !dgpu.buffer<4 x 64x64 x f16
  // CHECK-NOT: dgpu.buffer_alloc
  // CHECK: consumer {
  // CHECK: %[[A:.*]]:3 = scf.for
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[A]]#0, %{{.*}} = %[[A]]#1, %{{.*}} = %[[A]]#2)
  // CHECK: } producer {
  // CHECK: %[[B:.*]]:2 = scf.for
  // CHECK: dgpu.tma_load {{.*}} to %[[K]]
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[B]]#0, %{{.*}} = %[[B]]#1)
  // CHECK: dgpu.tma_load {{.*}} to %[[K]]
  func.func @two_loops(%q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %kv: !tile.ptr<f16> {tile.divisibility = 16 : i64},
                       %out: !tile.ptr<f32>, %middle: i32, %end: i32, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %step = arith.constant 64 : i32
    %i0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %dq = tile.make_descriptor %q, [%step, %step], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<128x64xf16>
    %dk = tile.make_descriptor %kv, [%end, %step], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x64xf16>
    %tq = tile.descriptor_load %dq[%i0, %i0] : !tile.desc<128x64xf16> -> tensor<128x64xf16>
    %whole = scf.for %n = %i0 to %middle step %step iter_args(%sum = %zero) -> tensor<128x64xf32> : i32 {
      %tk = tile.descriptor_load %dk[%n, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %tq, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %more = arith.maximumf %sum, %s : tensor<128x64xf32>
      scf.yield %more : tensor<128x64xf32>
    }
    %masked = scf.for %n = %middle to %end step %step iter_args(%sum = %whole) -> tensor<128x64xf32> : i32 {
      %tk = tile.descriptor_load %dk[%n, %i0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %tq, %tk, %zero : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      %less = arith.minimumf %sum, %s : tensor<128x64xf32>
      scf.yield %less : tensor<128x64xf32>
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>>
    tile.store %p, %masked : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xf32>
    return
  }

  // Bulk copies of the kernel's own to other memory, and words of shared memory, keep no producer from reading ahead.
  // CHECK-LABEL: func.func @copies_elsewhere
  // CHECK: dgpu.warp_specialize consumer {
  // CHECK: dist.intrinsic "bulk_store"
  // CHECK: } producer {
  // CHECK-NOT: dist.intrinsic
  // CHECK: dgpu.tma_load
  func.func @copies_elsewhere(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16>, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %stage = dist.shared_alloc 1024 align 128 : !tile.ptr<f16>
    %word = dist.shared_alloc 8 align 16 : !tile.ptr<i32>
    dist.st relaxed gpu %word, %i1 : !tile.ptr<i32>, i32
    dist.intrinsic "bulk_store"(%b, %stage, %size) : (!tile.ptr<f16>, !tile.ptr<f16>, i32) -> ()
    dist.intrinsic "bulk_commit_group"() : () -> ()
    dist.intrinsic "bulk_wait_group"() {pending = 0 : i32, read = false} : () -> ()
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<128x128xf16>
    %acc = scf.for %k = %i0 to %i8 step %i1 iter_args(%sum = %zero) -> tensor<128x128xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<128x128xf16> -> tensor<128x128xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<128x128xf16>, tensor<128x128xf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    } {tile.warp_specialize}
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<128x128x!tile.ptr<f32>>, tensor<128x128xf32>
    return
  }

  // Nor does a loop behind the reads that waits for somebody.
  // CHECK-LABEL: func.func @polls_behind
  // CHECK: dgpu.warp_specialize consumer {
  // CHECK: } producer {
  // CHECK: dgpu.tma_load
  func.func @polls_behind(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %flag: !tile.ptr<i32>, %out: !tile.ptr<f32>, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %size = arith.constant 4096 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %da = tile.make_descriptor %a, [%size, %size], [%c64, %c1] : !tile.ptr<f16>, i32, i32 -> !tile.desc<128x128xf16>
    %acc = scf.for %k = %i0 to %i8 step %i1 iter_args(%sum = %zero) -> tensor<128x128xf32> : i32 {
      %ta = tile.descriptor_load %da[%k, %i0] : !tile.desc<128x128xf16> -> tensor<128x128xf16>
      %d = tile.dot %ta, %ta, %sum : tensor<128x128xf16>, tensor<128x128xf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    } {tile.warp_specialize}
    scf.while : () -> () {
      %seen = dist.ld relaxed sys %flag : !tile.ptr<i32> -> i32
      %again = arith.cmpi eq, %seen, %i0 : i32
      scf.condition(%again)
    } do {
      scf.yield
    }
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>>
    tile.store %p, %acc : tensor<128x128x!tile.ptr<f32>>, tensor<128x128xf32>
    return
  }
}
