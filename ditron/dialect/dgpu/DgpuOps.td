//===- DgpuOps.td - Operations of the dgpu dialect ---------------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_DGPU_OPS_TD
#define DITRON_DIALECT_DGPU_OPS_TD

include "ditron/dialect/dgpu/DgpuTypes.td"
include "ditron/dialect/tile/TileAttrs.td"
include "ditron/dialect/tile/TileTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Dgpu_Op<string mnemonic, list<Trait> traits = []> : Op<Dgpu_Dialect, mnemonic, traits>;
def Dgpu_SharedMemory : Resource<"::ditron::dgpu::SharedMemory">;
def Dgpu_TensorMap : Type<CPred<"::llvm::isa<::ditron::dgpu::TensorMapType>($_self)">, "tensor map", "::ditron::dgpu::TensorMapType">,
                     BuildableType<"::ditron::dgpu::TensorMapType::get($_builder.getContext())">;
def Dgpu_Mbarriers : Type<CPred<"::llvm::isa<::ditron::dgpu::MbarriersType>($_self)">, "mbarriers", "::ditron::dgpu::MbarriersType">;
def Dgpu_AnyBuffer : Type<CPred<"::llvm::isa<::ditron::dgpu::BufferType>($_self)">, "shared-memory buffer", "::ditron::dgpu::BufferType">;

// Ops that need scratch memory (convert_layout through shared memory, reduce and scan across warps, scalar atomics that
// broadcast their result) and buffer_alloc carry `offset_bytes : i64` after shared-memory allocation.

def Dgpu_ConvertLayoutOp : Dgpu_Op<"convert_layout", [Pure]> {
  let summary = "the same tile in another layout";
  let description = [{
    Lowered by the plan layout::makePlan(source, result): nothing, register renaming, selects, shuffles, or a round trip
    through shared memory at `offset_bytes`.

    ```mlir
    %0 = dgpu.convert_layout %x : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #cols>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, OptionalAttr<I64Attr>:$offset_bytes);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Dgpu_BufferAllocOp : Dgpu_Op<"buffer_alloc", [MemoryEffects<[MemAlloc<Dgpu_SharedMemory>]>]> {
  let summary = "reserves a buffer in shared memory; it lives until its last use";
  let description = [{
    `slots` tiles, one after the other, in the shared layout of the type. dgpu-allocate-shared gives `offset_bytes`, and bytes are shared by
    buffers that do not live at the same time. Contents are undefined at the beginning.

    ```mlir
    %b = dgpu.buffer_alloc : !dgpu.buffer<2 x 16x64 x bf16, #b>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset_bytes);
  let results = (outs Dgpu_AnyBuffer:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def Dgpu_BufferStoreOp : Dgpu_Op<"buffer_store", [MemoryEffects<[MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "writes a tile into a slot";
  let description = [{
    With `warpgroups`, each warpgroup's part is only touched by itself: its own barriers order it.

    ```mlir
    dgpu.buffer_store %x, %b[%slot] : tensor<16x32xf16, #rows>, !dgpu.buffer<3 x 16x32 x f16, #swizzle>
    ```
  }];
  let arguments = (ins Tile_Tensor:$value, Dgpu_AnyBuffer:$buffer, I32:$slot, UnitAttr:$warpgroups);
  let assemblyFormat = "$value `,` $buffer `[` $slot `]` attr-dict `:` type($value) `,` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Dgpu_BufferLoadOp : Dgpu_Op<"buffer_load", [MemoryEffects<[MemRead<Dgpu_SharedMemory>]>]> {
  let summary = "reads a tile from a slot";
  let description = [{
    In the layout of the result: the pieces that each thread reads follow from both layouts. Needs a barrier after the write by other
    threads (dgpu-insert-barriers).

    ```mlir
    %0 = dgpu.buffer_load %b[%slot] : !dgpu.buffer<3 x 16x32 x f16, #swizzle> -> tensor<16x32xf16, #cols>
    ```
  }];
  let arguments = (ins Dgpu_AnyBuffer:$buffer, I32:$slot);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$buffer `[` $slot `]` attr-dict `:` qualified(type($buffer)) `->` type($result)";
  let hasVerifier = 1;
}

def Dgpu_AsyncCopyOp : Dgpu_Op<"async_copy",
    [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "starts copying the elements behind pointers into a slot";
  let description = [{
    Zeros are written where the mask is false. The slot may be read only after the group of the copy was waited for and a block barrier
    followed. The pointer tensor's layout decides which thread copies what; consecutive offsets must be held by one thread in
    pieces of 4, 8 or 16 bytes.

    ```mlir
    dgpu.async_copy %p to %b[%slot] : tensor<16x32x!tile.ptr<f16>, #rows>, !dgpu.buffer<3 x 16x32 x f16, #swizzle>
    ```
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Dgpu_AnyBuffer:$buffer, I32:$slot, Optional<Tile_BoolLike>:$mask);
  let assemblyFormat = "$ptr `to` $buffer `[` $slot `]` (`mask` $mask^)? attr-dict `:` type($ptr) `,` qualified(type($buffer)) (`mask` type($mask)^)?";
  let hasVerifier = 1;
}
def Dgpu_AsyncGatherOp
    : Dgpu_Op<"async_gather", [SingleBlock, MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "starts copying a tile from wherever its elements are into a slot";
  let description = [{
    Elements (row, column) to (row, column + 15 bytes) of a tile lie one after the other from the address that the region gives for (row,
    column), at a multiple of 16 bytes. Zeros are written where the mask is false. All threads of the partition copy, as by async_copy; the tile has
    no layout in registers, so it needs no memory to be rearranged. `held` are results of a gather_rows for the same buffer: the region gets those of its row.

    ```mlir
    dgpu.async_gather %buffer[%slot] held %begins#0, %begins#1 : !tile.ptr<bf16>, !tile.ptr<bf16> {
    ^bb0(%row: i32, %column: i32, %begin: !tile.ptr<bf16>):
      %from = tile.addptr %begin, %column : !tile.ptr<bf16>, i32
      dgpu.address %from mask %c : !tile.ptr<bf16>
    } : !dgpu.buffer<3 x 64x64 x bf16, #rows>
    ```
  }];
  let arguments = (ins Dgpu_AnyBuffer:$buffer, I32:$slot, Variadic<AnyType>:$held);
  let regions = (region SizedRegion<1>:$address);
  let assemblyFormat =
      "$buffer `[` $slot `]` (`held` $held^ `:` type($held))? $address attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}
def Dgpu_GatherRowsOp : Dgpu_Op<"gather_rows", [SingleBlock, MemoryEffects<[MemRead<Tile_GlobalMemory>]>]> {
  let summary = "values of the rows of which a thread will copy elements, for several async_gathers";
  let description = [{
    The region is evaluated for the row of each copy that a thread of the partition makes in an async_gather of the buffer. Each value that it ends with
    gives as many results as a thread makes copies, in their order, one value's behind the other's. So what a row's address needs of memory is loaded
    before the loop that gathers.

    ```mlir
    %begins:2 = dgpu.gather_rows %buffer {
    ^bb0(%row: i32):
      %begin = tile.addptr %p, %row : !tile.ptr<bf16>, i32
      dgpu.row_values %begin : !tile.ptr<bf16>
    } : !dgpu.buffer<3 x 64x64 x bf16, #rows> -> !tile.ptr<bf16>, !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Dgpu_AnyBuffer:$buffer);
  let results = (outs Variadic<AnyType>:$values);
  let regions = (region SizedRegion<1>:$row);
  let assemblyFormat = "$buffer $row attr-dict `:` qualified(type($buffer)) `->` type($values)";
  let hasVerifier = 1;
}
def Dgpu_RowValuesOp : Dgpu_Op<"row_values", [Pure, Terminator, HasParent<"GatherRowsOp">]> {
  let summary = "the values of a row of gather_rows";
  let description = [{
    Ends the region of a gather_rows, with what the row of each copy has.

    ```mlir
    dgpu.row_values %begin : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}
def Dgpu_AddressOp : Dgpu_Op<"address", [Pure, Terminator, HasParent<"AsyncGatherOp">]> {
  let summary = "where the elements of an async_gather are, and whether they are";
  let description = [{
    Ends the region of an async_gather: the address of the element (row, column), of the buffer's element type. Without a mask all are
    there.

    ```mlir
    dgpu.address %from mask %c : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Optional<I1>:$mask);
  let assemblyFormat = "$ptr (`mask` $mask^)? attr-dict `:` type($ptr)";
}

def Dgpu_AsyncCommitOp : Dgpu_Op<"async_commit", [MemoryEffects<[MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "closes the current group of asynchronous copies";
  let description = [{
    Groups are a thread's own and complete in order. A group may be empty: then waiting for it is nothing, which keeps the count of groups
    the same in all iterations.

    ```mlir
    dgpu.async_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}
def Dgpu_AsyncWaitOp : Dgpu_Op<"async_wait", [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "waits until at most `pending` of this thread's newest groups are incomplete";
  let description = [{
    Other threads' copies are complete only after a block barrier that follows (barrier insertion adds it).

    ```mlir
    dgpu.async_wait 1
    ```
  }];
  let arguments = (ins I32Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}
def Dgpu_BarrierOp : Dgpu_Op<"barrier", [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "block barrier put in by a pass; with `warpgroups`, each warpgroup waits for its own threads only";
  let description = [{
    What any of the threads wrote to shared memory before, all of them see behind it. Within a partition (warp_specialize) its warps only.

    ```mlir
    dgpu.barrier
    ```
  }];
  let arguments = (ins UnitAttr:$warpgroups);
  let assemblyFormat = "attr-dict";
}

def Dgpu_OrderLanesOp
    : Dgpu_Op<"order_lanes", [AttrSizedOperandSegments, MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "the lanes of each warp have all done their accesses up to here";
  let description = [{
    What the lanes of a warp accessed before is done for all of them before any of them goes on. With operands this is asked
    for only if an object that one of `later` points into is one that one of `earlier` points into. They are arguments of the
    kernel. All threads of each warp get here; warps do not wait for each other.

    ```mlir
    dgpu.order_lanes
    ```
  }];
  let arguments = (ins Variadic<Tile_Pointer>:$later, Variadic<Tile_Pointer>:$earlier);
  let assemblyFormat = "(`(` $later^ `:` type($later) `)` `after` `(` $earlier `:` type($earlier) `)`)? attr-dict";
}

def Dgpu_PerformsOp : Dgpu_Op<"performs", [Pure, ParentOneOf<["::ditron::tile::ReduceOp", "::ditron::tile::ScanOp",
                                                              "::ditron::tile::MapElementwiseOp"]>]> {
  let summary = "true in the thread that performs the side effects of this application of the region";
  let description = [{
    Several threads may compute the same application of a region on scalars, because they hold copies of the same elements. Its side
    effects happen once: dgpu-guard-effects puts them under this condition.

    ```mlir
    %y = tile.map_elementwise(%x, %p) pack 1 { ^bb0(%a: i32, %q: !tile.ptr<i32>):
      %mine = dgpu.performs
      scf.if %mine {
        tile.store %q, %a {dist.per_thread} : !tile.ptr<i32>, i32
      }
      tile.yield %a : i32
    } : (tensor<32xi32>, tensor<32x!tile.ptr<i32>>) -> tensor<32xi32>
    ```
  }];
  let results = (outs I1:$result);
  let assemblyFormat = "attr-dict";
}

def Dgpu_BufferPermuteOp : Dgpu_Op<"buffer_permute", [Pure]> {
  let summary = "the same bytes with their dimensions in another order";
  let description = [{
    Dimension d of the result is dimension order[d] of the source. Nothing moves: only the shared layout is renamed.

    ```mlir
    %t = dgpu.buffer_permute %b [1, 0] : !dgpu.buffer<2 x 16x64 x bf16, #b> -> !dgpu.buffer<2 x 64x16 x bf16, #bt>
    ```
  }];
  let arguments = (ins Dgpu_AnyBuffer:$source, DenseI32ArrayAttr:$order);
  let results = (outs Dgpu_AnyBuffer:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::llvm::ArrayRef<int32_t>":$order)>];
  let assemblyFormat = "$source $order attr-dict `:` qualified(type($source)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------------------------===//
// mbarriers: slots and parities are i32
//===------------------------------------------------------------------------------------------------------------------===//

class Dgpu_MbarrierOp<string mnemonic>
    : Dgpu_Op<mnemonic, [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>]>]>;

def Dgpu_MbarrierAllocOp : Dgpu_Op<"mbarrier_alloc", [MemoryEffects<[MemAlloc<Dgpu_SharedMemory>]>]> {
  let summary = "reserves mbarriers that complete a phase after `count` arrivals and all expected bytes";
  let description = [{
    Only at the top level of a kernel. Initialised at the kernel's entry by one thread, before any warp goes on; they live as long as the
    kernel. `cluster`: as many arrivals again come from the other block of the cluster, where there are clusters.

    ```mlir
    %full = dgpu.mbarrier_alloc {count = 1 : i32} : !dgpu.mbarriers<3>
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntPositive]>:$count, UnitAttr:$cluster, OptionalAttr<I64Attr>:$offset_bytes);
  let results = (outs Dgpu_Mbarriers:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}
def Dgpu_MbarrierExpectOp : Dgpu_MbarrierOp<"mbarrier_expect"> {
  let summary = "one lane of the executing partition expects bytes and arrives";
  let description = [{
    The bytes are those of the tensor copies that will be started for this phase; it completes when they have all arrived and the arrivals
    are complete, this one among them. The elected lane does it once for the partition.

    ```mlir
    dgpu.mbarrier_expect %full[%x], 8192 : !dgpu.mbarriers<3>
    ```
  }];
  let arguments = (ins Dgpu_Mbarriers:$bars, I32:$slot, ConfinedAttr<I64Attr, [IntPositive]>:$bytes);
  let assemblyFormat = "$bars `[` $slot `]` `,` $bytes attr-dict `:` qualified(type($bars))";
}
def Dgpu_MbarrierArriveOp : Dgpu_MbarrierOp<"mbarrier_arrive"> {
  let summary = "one lane of every executing warp arrives";
  let description = [{
    `cluster`: at the other block's mbarrier too, where there are clusters. `after_loads` (dgpu-order-arrivals): the lanes of the warp
    meet first, since each of them has read for itself what the arrival gives free.

    ```mlir
    dgpu.mbarrier_arrive %empty[%x] : !dgpu.mbarriers<3>
    ```
  }];
  let arguments = (ins Dgpu_Mbarriers:$bars, I32:$slot, Optional<I1>:$predicate, UnitAttr:$cluster,
      UnitAttr:$after_loads);
  let assemblyFormat = "$bars `[` $slot `]` (`if` $predicate^)? attr-dict `:` qualified(type($bars))";
}
def Dgpu_MbarrierArriveCopiedOp : Dgpu_MbarrierOp<"mbarrier_arrive_copied"> {
  let summary = "every thread of the executing partition arrives when its asynchronous copies are there";
  let description = [{
    Those that the thread has started before, by async_gather or async_copy; it does not wait for them. What they wrote is an ordinary write: who reads it
    by a multiply executes fence_async behind the wait for the phase.

    ```mlir
    dgpu.mbarrier_arrive_copied %full[%slot] : !dgpu.mbarriers<3>
    ```
  }];
  let arguments = (ins Dgpu_Mbarriers:$bars, I32:$slot);
  let assemblyFormat = "$bars `[` $slot `]` attr-dict `:` qualified(type($bars))";
}
def Dgpu_MbarrierWaitOp : Dgpu_MbarrierOp<"mbarrier_wait"> {
  let summary = "every thread waits until the phase of this parity is complete";
  let description = [{
    The phases of an mbarrier have parities 0, 1, 0, ...; waiting for parity 1 on a fresh one passes at once.

    ```mlir
    dgpu.mbarrier_wait %full[%x], %y : !dgpu.mbarriers<3>
    ```
  }];
  let arguments = (ins Dgpu_Mbarriers:$bars, I32:$slot, I32:$parity);
  let assemblyFormat = "$bars `[` $slot `]` `,` $parity attr-dict `:` qualified(type($bars))";
}

//===------------------------------------------------------------------------------------------------------------------===//
// Tensor copies: offsets outermost dimension first, as in the language
//===------------------------------------------------------------------------------------------------------------------===//

def Dgpu_TmaPrefetchOp
    : Dgpu_Op<"tma_prefetch", [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "one thread hints that copies by this map will follow";
  let description = [{
    Whoever copies first then finds the map in the cache. Has no other effect; it stands at the entry of a kernel.

    ```mlir
    dgpu.tma_prefetch %map
    ```
  }];
  let arguments = (ins Dgpu_TensorMap:$map);
  let assemblyFormat = "$map attr-dict";
}
def Dgpu_TmaLoadOp : Dgpu_Op<"tma_load", [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "one lane starts copying a tile of a tensor into a slot; its bytes count at an mbarrier";
  let description = [{
    The tile is that of the buffer; further offsets in front choose one element of outer dimensions. The lowering cuts it into boxes of the map: panels as wide as the swizzle along the fastest dimension,
    at most 256 rows. All bytes count, out of range or not. `evict`: how long the L2 cache shall keep what is read. `cluster`: both blocks of
    the cluster get here for the same tile; where there are clusters each fetches half of the boxes, into the same slot of both.
    `box` and `swizzle_bytes` are those of the map (dgpu-bind-tensor-maps), sizes outermost first.

    ```mlir
    dgpu.tma_load %map[%x, %y] to %buffer[%slot], %full[%slot] : !dgpu.buffer<3 x 64x64 x bf16, #rows>, !dgpu.mbarriers<3>
    ```
  }];
  let arguments = (ins Dgpu_TensorMap:$map, Variadic<I32>:$offsets, Dgpu_AnyBuffer:$buffer, I32:$slot,
      Dgpu_Mbarriers:$bars, I32:$barSlot,
      DefaultValuedAttr<Tile_EvictionPolicyAttr, "::ditron::tile::EvictionPolicy::Normal">:$evict, UnitAttr:$cluster,
      OptionalAttr<DenseI64ArrayAttr>:$box, OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$swizzle_bytes);
  // Of a map whose box is not yet known.
  let builders = [OpBuilder<(ins "::mlir::Value":$map, "::mlir::ValueRange":$offsets, "::mlir::Value":$buffer,
                                "::mlir::Value":$slot, "::mlir::Value":$bars, "::mlir::Value":$barSlot,
                                "::ditron::tile::EvictionPolicy":$evict, "bool":$cluster),
                            [{
    build($_builder, $_state, map, offsets, buffer, slot, bars, barSlot, evict, cluster, ::mlir::DenseI64ArrayAttr(), ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "$map `[` $offsets `]` `to` $buffer `[` $slot `]` `,` $bars `[` $barSlot `]` attr-dict `:` qualified(type($buffer)) `,` qualified(type($bars))";
  let hasVerifier = 1;
}
def Dgpu_TmaStoreOp : Dgpu_Op<"tma_store", [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "thread 0 of the partition starts copying a slot to a tile of a tensor";
  let description = [{
    With `warpgroups`, the first thread of warpgroup warpgroups[i] copies the i-th 64 rows instead; boxes then have 64 rows.
    `box` and `swizzle_bytes`: as of tma_load.

    ```mlir
    dgpu.tma_store %buffer[%x] to %map[%x, %y] : !dgpu.buffer<3 x 64x64 x bf16, #rows>
    ```
  }];
  let arguments = (ins Dgpu_AnyBuffer:$buffer, I32:$slot, Dgpu_TensorMap:$map, Variadic<I32>:$offsets,
      OptionalAttr<DenseI32ArrayAttr>:$warpgroups, OptionalAttr<DenseI64ArrayAttr>:$box,
      OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$swizzle_bytes);
  // Of a map whose box is not yet known.
  let builders = [OpBuilder<(ins "::mlir::Value":$buffer, "::mlir::Value":$slot, "::mlir::Value":$map,
                                "::mlir::ValueRange":$offsets, "::mlir::DenseI32ArrayAttr":$warpgroups),
                            [{
    build($_builder, $_state, buffer, slot, map, offsets, warpgroups, ::mlir::DenseI64ArrayAttr(), ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "$buffer `[` $slot `]` `to` $map `[` $offsets `]` attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}
def Dgpu_TmaStoreCommitOp
    : Dgpu_Op<"tma_store_commit", [MemoryEffects<[MemWrite<Dgpu_SharedMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "the threads that started tensor stores close their groups";
  let description = [{
    The stores since the last commit are one group of the thread that started them, for tma_store_wait to count. Groups of threads without
    stores are empty.

    ```mlir
    dgpu.tma_store_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}
def Dgpu_TmaStoreWaitOp
    : Dgpu_Op<"tma_store_wait", [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "the threads that started tensor stores wait until at most `pending` of their newest groups are incomplete";
  let description = [{
    With `read` until they have read their slots, else until their data is visible. Other threads do nothing.

    ```mlir
    dgpu.tma_store_wait 1
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$pending, UnitAttr:$read);
  let assemblyFormat = "$pending (`read` $read^)? attr-dict";
}
def Dgpu_FenceAsyncOp : Dgpu_Op<"fence_async", [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "each thread's ordinary writes to shared memory come before reads by tensor stores and warpgroup dots";
  let description = [{
    For what other threads read it takes a block barrier after it as well.

    ```mlir
    dgpu.fence_async
    ```
  }];
  let assemblyFormat = "attr-dict";
}

//===------------------------------------------------------------------------------------------------------------------===//
// Warpgroup dots
//===------------------------------------------------------------------------------------------------------------------===//

def Dgpu_WarpgroupDotOp
    : Dgpu_Op<"warpgroup_dot", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<InferTypeOpInterface>,
                                MemoryEffects<[MemRead<Dgpu_SharedMemory>]>]> {
  let summary = "starts c + a * b with operands in shared memory (a: or in registers)";
  let description = [{
    Asynchronous. The result may only be c of another warpgroup_dot, be carried through control flow, or be an operand of warpgroup_wait.
    a is M x K and b is K x N (often a permuted N x K). c has the layout layout::wgmmaAccumulator, an a in registers that of
    layout::wgmmaOperandA. Where `accumulate` is false c is not read and the result is a * b.

    fp8: the tensor cores of Hopper keep about 14 bits of a sum. With promote_elems (a multiple of 32) they add up so many elements of K from
    zero, and that is added to c in fp32; c must be complete then, and so is the result.

    ```mlir
    %e = dgpu.warpgroup_dot %ra, %short[%slot], %d : tensor<64x16xbf16, #a>, !dgpu.buffer<1 x 16x16 x bf16, #short> -> tensor<64x16xf32, #c>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Dgpu_AnyBuffer, Tile_Tensor]>:$a, Optional<I32>:$slotA, Dgpu_AnyBuffer:$b, I32:$slotB,
                       RankedTensorOf<[F32, I32]>:$c, Optional<I1>:$accumulate,
                       OptionalAttr<ConfinedAttr<I32Attr, [IntPositive]>>:$promote_elems);
  let results = (outs RankedTensorOf<[F32, I32]>:$result);
  let assemblyFormat = "$a (`[` $slotA^ `]`)? `,` $b `[` $slotB `]` `,` $c (`if` $accumulate^)? attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `->` type($c)";
  let hasVerifier = 1;
}
def Dgpu_WarpgroupWaitOp
    : Dgpu_Op<"warpgroup_wait", [DeclareOpInterfaceMethods<InferTypeOpInterface>,
                                 MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "waits until at most `pending` of the newest warpgroup dots are incomplete";
  let description = [{
    Gives the values back; those whose dot is complete may then be used like any other, the others stay in flight. A source that is no
    accumulator is an A in registers of a dot in flight, which keeps its registers until then, or, of one dimension, a value that is to be
    computed before the wait, beside the dots.

    ```mlir
    dgpu.warpgroup_wait 0
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$sources, ConfinedAttr<I32Attr, [IntNonNegative]>:$pending);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let assemblyFormat = "$pending (`,` $sources^ `:` type($sources))? attr-dict";
}

def Dgpu_ScaleOp : Dgpu_Op<"scale", [Pure, SameOperandsAndResultType]> {
  let summary = "a tile times factors that are mostly one";
  let description = [{
    What arith.mulf gives. A warp all of whose factors are one goes on with the tile as it is: that is the same, bit for bit.

    ```mlir
    %y = dgpu.scale %x, %factors : tensor<64x128xf32, #c>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32]>:$tile, RankedTensorOf<[F32]>:$factors);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "$tile `,` $factors attr-dict `:` type($result)";
}

//===------------------------------------------------------------------------------------------------------------------===//
// Warp specialisation
//===------------------------------------------------------------------------------------------------------------------===//

def Dgpu_ClusterBarrierOp
    : Dgpu_Op<"cluster_barrier", [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "all threads of the cluster that have not ended meet; nothing where there are no clusters";
  let description = [{
    At the end of a kernel with clusters: neither block may end while the other still copies into its shared memory.

    ```mlir
    dgpu.cluster_barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

class Dgpu_TurnOp<string mnemonic>
    : Dgpu_Op<mnemonic, [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let arguments = (ins UnitAttr:$first);
  let assemblyFormat = "(`first` $first^)? attr-dict";
}
def Dgpu_TakeTurnOp : Dgpu_TurnOp<"take_turn"> {
  let summary = "the warpgroup waits until the one before it, the last for the first, has passed its turn";
  let description = [{
    In a consumer of at least two warpgroups; only between pass_turn and take_turn with `first`. With `first` only the first warpgroup does.
    Orders nothing but the start of what follows.

    ```mlir
    dgpu.take_turn
    ```
  }];
}
def Dgpu_PassTurnOp : Dgpu_TurnOp<"pass_turn"> {
  let summary = "the next warpgroup has its turn; who passes it goes on";
  let description = [{
    With `first` only the last warpgroup passes one, to the first.

    ```mlir
    dgpu.pass_turn first
    ```
  }];
}

def Dgpu_WarpSpecializeOp : Dgpu_Op<"warp_specialize", [NoTerminator, SingleBlock, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "two programs side by side: the kernel's warps, and those that fetch for them";
  let description = [{
    The consumer region runs on warps 0 .. dgpu.num_warps - 1, as code outside would; its block barrier is one of these threads only. The
    producer region runs on the first `active_warps` after them; inside it a block is these. The other producer warps exit (registers are
    given to whole warpgroups). The op stands at the top level of a kernel and wraps all of it but allocations and what both need.
    With `cluster_blocks` = 2 neighbouring blocks of the grid run at the same time, and fetch together what tma_load says.

    ```mlir
    dgpu.warp_specialize consumer {
      dgpu.mbarrier_wait %full[%slot], %parity : !dgpu.mbarriers<3>
      dgpu.mbarrier_arrive %empty[%slot] : !dgpu.mbarriers<3>
    } producer {
      dgpu.mbarrier_expect %full[%slot], 8192 : !dgpu.mbarriers<3>
      dgpu.tma_load %map[%x, %y] to %buffer[%slot], %full[%slot] : !dgpu.buffer<3 x 64x64 x bf16, #rows>, !dgpu.mbarriers<3>
    }
    ```
  }];
  let arguments = (ins DefaultValuedAttr<I32Attr, "4">:$producer_warps,
      DefaultValuedAttr<I32Attr, "40">:$producer_registers, DefaultValuedAttr<I32Attr, "232">:$consumer_registers,
      DefaultValuedAttr<ConfinedAttr<I32Attr, [IntPositive]>, "1">:$cluster_blocks,
      DefaultValuedAttr<ConfinedAttr<I32Attr, [IntPositive]>, "1">:$active_warps);
  let regions = (region SizedRegion<1>:$consumer, SizedRegion<1>:$producer);
  let assemblyFormat = "`consumer` $consumer `producer` $producer attr-dict";
  let hasVerifier = 1;
}
#endif
