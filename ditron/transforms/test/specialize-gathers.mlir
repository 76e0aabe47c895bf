// Rows that are listed one by one are gathered by a producer of four warps, element by element, beside tensor copies of the other operand.
// RUN: ditron-opt %s --dgpu-specialize-warps --canonicalize --cse --split-input-file | FileCheck %s

module attributes {dgpu.num_warps = 8 : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = 4 : i32, dgpu.wgmma, dgpu.tma} {
  // CHECK-LABEL: func.func @rows
  // CHECK: %[[B:.*]] = dgpu.buffer_alloc : !dgpu.buffer<4 x 128x64 x bf16
  // One arrival of the tensor copies, one of each thread of the four warps.
  // CHECK: %[[FULL:.*]] = dgpu.mbarrier_alloc {count = 129 : i32}
  // CHECK: %[[EMPTY:.*]] = dgpu.mbarrier_alloc {count = 8 : i32}
  // CHECK: %[[A:.*]] = dgpu.buffer_alloc : !dgpu.buffer<4 x 128x64 x bf16
  // CHECK: dgpu.warp_specialize consumer {
  // CHECK-NOT: tile.load
  // CHECK: dgpu.mbarrier_wait %[[FULL]]
  // CHECK-NEXT: dgpu.fence_async
  // CHECK: dgpu.warpgroup_dot %[[A]]
  // CHECK: } producer {
  // CHECK-NOT: tensor<
  // CHECK: scf.for
  // A thread copies eight times in a turn: the rows are looked up before the turns.
  // CHECK: %[[BEGINS:.*]]:8 = dgpu.gather_rows %[[A]] {
  // CHECK-NEXT: ^bb0(%[[ROW:.*]]: i32):
  // CHECK: %[[PLACE:.*]] = tile.addptr %{{.*}}, %[[ROW]]
  // CHECK: %[[INDEX:.*]] = tile.load %[[PLACE]] mask %{{.*}} : !tile.ptr<i32> mask i1
  // CHECK: arith.extsi %[[INDEX]]
  // CHECK: dgpu.row_values %{{.*}} : !tile.ptr<bf16>
  // CHECK: scf.for %{{.*}} iter_args(%[[SLOT:[^ ]*]] = %{{[^,]*}}, %[[PARITY:[^ ]*]] = %{{[^,]*}}) -> (i32, i32)
  // CHECK: dgpu.mbarrier_wait %[[EMPTY]][%[[SLOT]]]
  // CHECK-NEXT: dgpu.mbarrier_expect %[[FULL]][%[[SLOT]]], 16384
  // CHECK-NEXT: dgpu.tma_load %{{.*}} to %[[B]][%[[SLOT]]]
  // CHECK-NEXT: dgpu.async_gather %[[A]][%[[SLOT]]] held %[[BEGINS]]#0, {{.*}}, %[[BEGINS]]#7 : {{.*}} {
  // CHECK-NEXT: ^bb0(%{{.*}}: i32, %[[COLUMN:.*]]: i32, %[[BEGIN:.*]]: !tile.ptr<bf16>):
  // CHECK: arith.addi %{{.*}}, %[[COLUMN]]
  // CHECK: tile.addptr %[[BEGIN]]
  // CHECK-NOT: tile.load
  // CHECK: dgpu.address %{{.*}} mask %{{.*}} : !tile.ptr<bf16>
  // CHECK: dgpu.mbarrier_arrive_copied %[[FULL]][%[[SLOT]]]
  // CHECK: scf.yield
  // CHECK-NOT: dgpu.async_wait
  // CHECK: active_warps = 4
  func.func @rows(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f32>,
                  %rows: !tile.ptr<i32>, %M: i32, %K: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i64
    %K64 = arith.extsi %K : i32 to i64
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i64 = arith.constant 64 : i32
    %i128 = arith.constant 128 : i32
    %db = tile.make_descriptor %b, [%i128, %K], [%K64, %c1] : !tile.ptr<bf16>, i32, i32 -> !tile.desc<128x64xbf16>
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %zeros = arith.constant dense<0> : tensor<128xi32>
    %pid = tile.program_id 0
    %kt = arith.divsi %K, %i64 : i32
    %number = tile.arange 0, 128 : tensor<128xi32>
    %Ms = tile.splat %M : i32 -> tensor<128xi32>
    %isrow = arith.cmpi slt, %number, %Ms : tensor<128xi32>
    %list = tile.splat %rows : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
    %places = tile.addptr %list, %number : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
    scf.for %t = %pid to %M step %i1 : i32 {
      %sources = tile.load %places mask %isrow other %zeros : tensor<128x!tile.ptr<i32>> mask tensor<128xi1> other tensor<128xi32> -> tensor<128xi32>
      %wide = arith.extsi %sources : tensor<128xi32> to tensor<128xi64>
      %stride = tile.splat %K64 : i64 -> tensor<128xi64>
      %starts = arith.muli %wide, %stride : tensor<128xi64>
      %column = tile.expand_dims %starts axis 1 : tensor<128xi64> -> tensor<128x1xi64>
      %as = tile.splat %a : !tile.ptr<bf16> -> tensor<128x1x!tile.ptr<bf16>>
      %begins = tile.addptr %as, %column : tensor<128x1x!tile.ptr<bf16>>, tensor<128x1xi64>
      %maskcolumn = tile.expand_dims %isrow axis 1 : tensor<128xi1> -> tensor<128x1xi1>
      %mask = tile.broadcast %maskcolumn : tensor<128x1xi1> -> tensor<128x64xi1>
      %acc = scf.for %k = %i0 to %kt step %i1 iter_args(%sum = %zero) -> tensor<128x128xf32> : i32 {
        %ok = arith.muli %k, %i64 : i32
        %depth = tile.arange 0, 64 : tensor<64xi32>
        %oks = tile.splat %ok : i32 -> tensor<64xi32>
        %depths = arith.addi %oks, %depth : tensor<64xi32>
        %row = tile.expand_dims %depths axis 0 : tensor<64xi32> -> tensor<1x64xi32>
        %all = tile.broadcast %row : tensor<1x64xi32> -> tensor<128x64xi32>
        %beginsall = tile.broadcast %begins : tensor<128x1x!tile.ptr<bf16>> -> tensor<128x64x!tile.ptr<bf16>>
        %ptrs = tile.addptr %beginsall, %all : tensor<128x64x!tile.ptr<bf16>>, tensor<128x64xi32>
        %ta = tile.load %ptrs mask %mask : tensor<128x64x!tile.ptr<bf16>> mask tensor<128x64xi1> -> tensor<128x64xbf16>
        %tb = tile.descriptor_load %db[%i0, %ok] : !tile.desc<128x64xbf16> -> tensor<128x64xbf16>
        %tt = tile.trans %tb [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
        %d = tile.dot %ta, %tt, %sum : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
        scf.yield %d : tensor<128x128xf32>
      }
      %cs = tile.splat %c : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>>
      tile.store %cs, %acc : tensor<128x128x!tile.ptr<f32>>, tensor<128x128xf32>
    } {tile.warp_specialize}
    return
  }
}
