// Width of accesses by alignment, contiguity and mask; representatives; scalars; predication without branches.
// RUN: ditron-opt %s -split-input-file -dgpu-annotate-accesses -ditron-to-llvm=target=sim | FileCheck %s

#L = #dgpu.layout<512, reg = {i0 i1 i2 i8}, lane = [i3 i4 i5 i6 i7], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Eight f16 in a row and 16 bytes of alignment: accesses of 8, two of them.
  // CHECK-LABEL: llvm.func internal @wide
  // CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<8xf16>
  // CHECK-COUNT-2: llvm.store %{{.*}}, %{{.*}} {alignment = 2 : i64} : vector<8xf16>, !llvm.ptr
  func.func @wide(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 512 : tensor<512xi32, #L>
    %b = tile.splat %p : !tile.ptr<f16> -> tensor<512x!tile.ptr<f16>, #L>
    %a = tile.addptr %b, %i : tensor<512x!tile.ptr<f16>, #L>, tensor<512xi32, #L>
    %x = tile.load %a : tensor<512x!tile.ptr<f16>, #L> -> tensor<512xf16, #L>
    tile.store %a, %x : tensor<512x!tile.ptr<f16>, #L>, tensor<512xf16, #L>
    return
  }
}

// -----

#L = #dgpu.layout<512, reg = {i0 i1 i2 i8}, lane = [i3 i4 i5 i6 i7], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // The mask is constant over 4 elements only, because n is a multiple of 4.
  // CHECK-LABEL: llvm.func internal @masked
  // CHECK: %[[P:.*]] = llvm.zext %[[MASK:.*]] : i1 to i32
  // CHECK: llvm.call @ditron_sim_access(%{{.*}}, %[[PTR:[0-9]+]], %{{.*}}, %[[P]],
  // CHECK: %[[ZEROS:.*]] = llvm.mlir.addressof @ditron_kernel_zeros
  // CHECK: %[[FROM:.*]] = llvm.select %[[MASK]], %[[PTR]], %[[ZEROS]] : i1, !llvm.ptr
  // CHECK: llvm.load %[[FROM]] {alignment = 2 : i64} : !llvm.ptr -> vector<4xf16>
  // CHECK: %[[SINK:.*]] = llvm.mlir.addressof @ditron_kernel_sink
  // CHECK: %[[TO:.*]] = llvm.select %[[MASK]], %[[PTR]], %[[SINK]] : i1, !llvm.ptr
  // CHECK: llvm.store %{{.*}}, %[[TO]] {alignment = 2 : i64} : vector<4xf16>, !llvm.ptr
  func.func @masked(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 4 : i64}, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 512 : tensor<512xi32, #L>
    %ns = tile.splat %n : i32 -> tensor<512xi32, #L>
    %m = arith.cmpi slt, %i, %ns : tensor<512xi32, #L>
    %b = tile.splat %p : !tile.ptr<f16> -> tensor<512x!tile.ptr<f16>, #L>
    %a = tile.addptr %b, %i : tensor<512x!tile.ptr<f16>, #L>, tensor<512xi32, #L>
    %x = tile.load %a mask %m : tensor<512x!tile.ptr<f16>, #L> mask tensor<512xi1, #L> -> tensor<512xf16, #L>
    tile.store %a, %x mask %m : tensor<512x!tile.ptr<f16>, #L>, tensor<512xf16, #L> mask tensor<512xi1, #L>
    return
  }
}

// -----

// The second dimension is strided, the first contiguous: registers 0 and 2 are neighbours in memory, 1 and 3 likewise.
#L = #dgpu.layout<64x2, reg = {j0 i0}, lane = [i1 i2 i3 i4 i5], warp = []>
#R = #dgpu.layout<64x1, reg = {i0}, lane = [i1 i2 i3 i4 i5], warp = []>
#C = #dgpu.layout<1x2, reg = {j0}, lane = [* * * * *], warp = []>
#Rf = #dgpu.layout<64, reg = {i0}, lane = [i1 i2 i3 i4 i5], warp = []>
#Cf = #dgpu.layout<2, reg = {i0}, lane = [* * * * *], warp = []>
module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: llvm.func internal @column_major
  // CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<2xf32>
  // CHECK-COUNT-4: llvm.fadd
  func.func @column_major(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %ld: i32 {tile.divisibility = 16 : i64}, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 64 : tensor<64xi32, #Rf>
    %j = tile.arange 0, 2 : tensor<2xi32, #Cf>
    %ie = tile.expand_dims %i axis 1 : tensor<64xi32, #Rf> -> tensor<64x1xi32, #R>
    %je = tile.expand_dims %j axis 0 : tensor<2xi32, #Cf> -> tensor<1x2xi32, #C>
    %lds = tile.splat %ld : i32 -> tensor<1x2xi32, #C>
    %jl = arith.muli %je, %lds : tensor<1x2xi32, #C>
    %ib = tile.broadcast %ie : tensor<64x1xi32, #R> -> tensor<64x2xi32, #L>
    %jb = tile.broadcast %jl : tensor<1x2xi32, #C> -> tensor<64x2xi32, #L>
    %o = arith.addi %ib, %jb : tensor<64x2xi32, #L>
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<64x2x!tile.ptr<f32>, #L>
    %a = tile.addptr %b, %o : tensor<64x2x!tile.ptr<f32>, #L>, tensor<64x2xi32, #L>
    %x = tile.load %a : tensor<64x2x!tile.ptr<f32>, #L> -> tensor<64x2xf32, #L>
    %s = arith.addf %x, %x : tensor<64x2xf32, #L>
    tile.store %a, %s : tensor<64x2x!tile.ptr<f32>, #L>, tensor<64x2xf32, #L>
    return
  }
}

// -----

#L = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 * i3], warp = [i4 *]>
module attributes {dgpu.num_warps = 4 : i32, dgpu.threads_per_warp = 32 : i32} {
  // Only lanes without bit 3 and warps without bit 1 store; a scalar is stored by thread 0.
  // CHECK-LABEL: llvm.func internal @copies
  // CHECK-DAG: %[[SELF:.*]] = llvm.call @ditron_sim_self()
  // CHECK: %[[LANEBIT:.*]] = llvm.mlir.constant(8 : i32)
  // CHECK: %[[L:.*]] = llvm.and %{{.*}}, %[[LANEBIT]]
  // CHECK: %[[L0:.*]] = llvm.icmp "eq" %[[L]]
  // CHECK: %[[WARPBIT:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK: %[[W:.*]] = llvm.and %{{.*}}, %[[WARPBIT]]
  // CHECK: %[[W0:.*]] = llvm.icmp "eq" %[[W]]
  // CHECK: %[[REP:.*]] = llvm.and %[[L0]], %[[W0]] : i1
  // CHECK: llvm.zext %[[REP]] : i1 to i32
  // CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i32
  // CHECK: llvm.zext %[[FIRST]] : i1 to i32
  func.func @copies(%p: !tile.ptr<i32>, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 32 : tensor<32xi32, #L>
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>, #L>
    %a = tile.addptr %b, %i : tensor<32x!tile.ptr<i32>, #L>, tensor<32xi32, #L>
    tile.store %a, %i : tensor<32x!tile.ptr<i32>, #L>, tensor<32xi32, #L>
    %c1 = arith.constant 1 : i32
    tile.store %p, %c1 : !tile.ptr<i32>, i32
    return
  }
}

// -----

module attributes {dgpu.num_warps = 1 : i32, dgpu.threads_per_warp = 32 : i32} {
  // bool is one byte in memory; a volatile scalar load is an ordered one, and so are stores, which store nothing where the mask is off.
  // CHECK-LABEL: llvm.func internal @scalars
  // CHECK: %[[BYTE:.*]] = llvm.load %arg0 {alignment = 1 : i64} : !llvm.ptr -> i8
  // CHECK: llvm.icmp "ne" %[[BYTE]]
  // CHECK: llvm.call @ditron_sim_ld
  func.func @scalars(%p: !tile.ptr<i1>, %q: !tile.ptr<i32>, %world: !tile.ptr<i64>) {
    %b = tile.load %p : !tile.ptr<i1> -> i1
    %v = tile.load %q {isVolatile = true} : !tile.ptr<i32> -> i32
    %c0 = arith.constant 0 : i32
    %s = arith.select %b, %v, %c0 : i32
    tile.store %q, %s : !tile.ptr<i32>, i32
    // CHECK: llvm.select %{{.*}}, %arg1, %{{.*}} : i1, !llvm.ptr
    // CHECK: %[[BYTES:.*]] = llvm.select %{{.*}}, %{{.*}}, %{{.*}} : i1, i32
    // CHECK: llvm.call @ditron_sim_st(%{{.*}}, %arg1, %{{.*}}, %[[BYTES]],
    tile.store %q, %s {isVolatile = true} : !tile.ptr<i32>, i32
    return
  }
}

// -----

#Copies = #dgpu.layout<32, reg = {}, lane = [i0 i1 i2 i3 i4], warp = [*]>
module attributes {dgpu.num_warps = 2 : i32, dgpu.threads_per_warp = 32 : i32} {
  // What others may change is loaded once: the second warp has what the first one has loaded, through shared memory.
  // CHECK-LABEL: llvm.func internal @volatile_copies
  // CHECK: %[[WORD:.*]] = llvm.call @ditron_sim_ld
  // CHECK: llvm.store
  // CHECK: llvm.call @ditron_sim_barrier
  // CHECK: %[[GIVEN:.*]] = llvm.load
  // CHECK: llvm.add %[[GIVEN]]
  func.func @volatile_copies(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %world: !tile.ptr<i64>) {
    %i = tile.arange 0, 32 : tensor<32xi32, #Copies>
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>, #Copies>
    %a = tile.addptr %b, %i : tensor<32x!tile.ptr<i32>, #Copies>, tensor<32xi32, #Copies>
    %v = tile.load %a {isVolatile = true, offset_bytes = 0 : i64} : tensor<32x!tile.ptr<i32>, #Copies> -> tensor<32xi32, #Copies>
    %s = arith.addi %v, %i : tensor<32xi32, #Copies>
    tile.store %a, %s : tensor<32x!tile.ptr<i32>, #Copies>, tensor<32xi32, #Copies>
    return
  }
}
