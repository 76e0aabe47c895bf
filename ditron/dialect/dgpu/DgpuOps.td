//===- DgpuOps.td - Operations of the dgpu dialect ---------------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_DGPU_OPS_TD
#define DITRON_DIALECT_DGPU_OPS_TD

include "ditron/dialect/dgpu/DgpuTypes.td"
include "ditron/dialect/tile/TileTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Dgpu_Op<string mnemonic, list<Trait> traits = []> : Op<Dgpu_Dialect, mnemonic, traits>;
def Dgpu_SharedMemory : Resource<"::ditron::dgpu::SharedMemory">;
def Dgpu_AnyBuffer : Type<CPred<"::llvm::isa<::ditron::dgpu::BufferType>($_self)">, "shared-memory buffer", "::ditron::dgpu::BufferType">;

// Ops that need scratch memory (convert_layout through shared memory, reduce and scan across warps, scalar atomics that
// broadcast their result) and buffer_alloc carry `offset_bytes : i64` after shared-memory allocation.

def Dgpu_ConvertLayoutOp : Dgpu_Op<"convert_layout", [Pure]> {
  let summary = "the same tile in another layout";
  let description = [{
    Lowered by the plan layout::makePlan(source, result): nothing, register renaming, selects, shuffles, or a round trip
    through shared memory at `offset_bytes`.
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
  let arguments = (ins OptionalAttr<I64Attr>:$offset_bytes);
  let results = (outs Dgpu_AnyBuffer:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def Dgpu_BufferStoreOp : Dgpu_Op<"buffer_store", [MemoryEffects<[MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "writes a tile into a slot";
  let arguments = (ins Tile_Tensor:$value, Dgpu_AnyBuffer:$buffer, I32:$slot);
  let assemblyFormat = "$value `,` $buffer `[` $slot `]` attr-dict `:` type($value) `,` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Dgpu_BufferLoadOp : Dgpu_Op<"buffer_load", [MemoryEffects<[MemRead<Dgpu_SharedMemory>]>]> {
  let summary = "reads a tile from a slot";
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
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Dgpu_AnyBuffer:$buffer, I32:$slot, Optional<Tile_BoolLike>:$mask);
  let assemblyFormat = "$ptr `to` $buffer `[` $slot `]` (`mask` $mask^)? attr-dict `:` type($ptr) `,` qualified(type($buffer)) (`mask` type($mask)^)?";
  let hasVerifier = 1;
}
def Dgpu_AsyncCommitOp : Dgpu_Op<"async_commit", [MemoryEffects<[MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "closes the current group of asynchronous copies";
  let assemblyFormat = "attr-dict";
}
def Dgpu_AsyncWaitOp : Dgpu_Op<"async_wait", [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "waits until at most `pending` of this thread's newest groups are incomplete";
  let description = [{Other threads' copies are complete only after a block barrier that follows (barrier insertion adds it).}];
  let arguments = (ins I32Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}
def Dgpu_BarrierOp : Dgpu_Op<"barrier", [MemoryEffects<[MemRead<Dgpu_SharedMemory>, MemWrite<Dgpu_SharedMemory>]>]> {
  let summary = "block barrier put in by barrier insertion";
  let assemblyFormat = "attr-dict";
}
#endif
