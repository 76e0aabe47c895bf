//===- DistOps.td - Operations of the dist dialect ---------------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_DIST_OPS_TD
#define DITRON_DIALECT_DIST_OPS_TD

include "ditron/dialect/dist/DistAttrs.td"
include "ditron/dialect/tile/TileAttrs.td"
include "ditron/dialect/tile/TileTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;
//===------------------------------------------------------------------------------------------------------------------===//
// World
//===------------------------------------------------------------------------------------------------------------------===//

def Dist_RankOp : Dist_Op<"rank", [Pure]> {
  let summary = "this rank, 0 .. num_ranks-1";
  let description = [{
    dist-lower-world reads it from the world view, which the launcher fills. The same in all blocks of a launch.

    ```mlir
    %0 = dist.rank
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}
def Dist_NumRanksOp : Dist_Op<"num_ranks", [Pure]> {
  let summary = "number of ranks in the world";
  let description = [{
    dist-lower-world reads it from the world view. The same on all ranks.

    ```mlir
    %1 = dist.num_ranks
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}
def Dist_SymmAtOp : Dist_Op<"symm_at", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "address of the same symmetric object on another rank";
  let description = [{
    The pointer must lie in the symmetric heap of this rank: result = ptr - base[rank()] + base[rank].

    ```mlir
    %2 = dist.symm_at %p, %0 : !tile.ptr<f16>
    ```
  }];
  let arguments = (ins Tile_Pointer:$ptr, I32:$rank);
  let results = (outs Tile_Pointer:$result);
  let assemblyFormat = "$ptr `,` $rank attr-dict `:` qualified(type($ptr))";
  let hasFolder = 1;
}
def Dist_ReachesOp : Dist_Op<"reaches", [MemoryEffects<[MemRead]>]> {
  let summary = "whether loads and stores reach a rank: true on the own node";
  let description = [{
    Ranks of other nodes are reached by put and get only. dist.symm_at of a rank that is not reached gives no usable address.

    ```mlir
    %0 = dist.reaches %rank
    ```
  }];
  let arguments = (ins I32:$rank);
  let results = (outs I1:$result);
  let assemblyFormat = "$rank attr-dict";
}
def Dist_CheckRankOp : Dist_Op<"check_rank", [MemoryEffects<[MemWrite]>]> {
  let summary = "reports a rank that does not exist, on targets that check";
  let description = [{
    Made from symm_at when that becomes address arithmetic, in which a wrong rank would go unnoticed.

    ```mlir
    dist.check_rank %0 of %1
    ```
  }];
  let arguments = (ins I32:$rank, I32:$numRanks);
  let assemblyFormat = "$rank `of` $numRanks attr-dict";
}

//===------------------------------------------------------------------------------------------------------------------===//
// Signals (block level: every thread of the block takes part)
//===------------------------------------------------------------------------------------------------------------------===//

def Dist_WaitOp : Dist_Op<"wait", [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "waits until `count` consecutive signal words satisfy a comparison with `value`";
  let description = [{
    Block-level: returns for every thread after all words satisfied the comparison; then an acquire at `scope` for the
    whole block. count may be any number >= 0. The token is consumed by dist.consume_token.

    ```mlir
    %token = dist.wait ge sys acquire %s, %n, %n : !tile.ptr<i32>, i32
    ```
  }];
  let arguments = (ins Tile_Pointer:$ptr, I32:$count, Tile_Int:$value, Tile_MemoryScopeAttr:$scope,
                       Tile_MemoryOrderAttr:$order, Dist_CompareAttr:$compare);
  let results = (outs I32:$token);
  let assemblyFormat = "$compare $scope $order $ptr `,` $count `,` $value attr-dict `:` qualified(type($ptr)) `,` type($value)";
  let hasVerifier = 1;
}

def Dist_ConsumeTokenOp : Dist_Op<"consume_token", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "the same value, available only after a wait";
  let description = [{
    What is computed from the result, and above all what is loaded through it, happens after the wait that gave the token. The value is not
    changed; descriptors may be consumed too.

    ```mlir
    %0 = dist.consume_token %x, %token : tensor<8x!tile.ptr<f32>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_Any, Tile_Descriptor]>:$source, I32:$token);
  let results = (outs AnyTypeOf<[Tile_Any, Tile_Descriptor]>:$result);
  let assemblyFormat = "$source `,` $token attr-dict `:` type($source)";
}

def Dist_NotifyOp : Dist_Op<"notify", [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "raises a signal word on a rank, after everything the block stored before";
  let description = [{
    Block-level: implies a block barrier, a release fence at the receiver's scope, then one thread sets or adds `value` to the
    word that `ptr` names on `rank` (`ptr` is this rank's address of it).

    ```mlir
    dist.notify add gpu %s, %n, %n : !tile.ptr<i32>, i32
    ```
  }];
  let arguments = (ins Tile_Pointer:$ptr, I32:$rank, Tile_Int:$value, Dist_SignalOpAttr:$op, Dist_CommScopeAttr:$scope);
  let assemblyFormat = "$op $scope $ptr `,` $rank `,` $value attr-dict `:` qualified(type($ptr)) `,` type($value)";
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Thread level
//===------------------------------------------------------------------------------------------------------------------===//

def Dist_ThreadIdOp : Dist_Op<"thread_id", [Pure]> {
  let summary = "index of this thread in its block along an axis (0 for axes 1 and 2)";
  let description = [{
    Blocks are one-dimensional, so that axis 0 counts all threads, from 0. In the producer of a warp-specialised kernel it counts the
    producer's.

    ```mlir
    %0 = dist.thread_id 0
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
  let hasFolder = 1;
}
def Dist_LaneIdOp : Dist_Op<"lane_id", [Pure]> {
  let summary = "index of this thread in its warp";
  let description = [{
    From 0 to the number of threads of a warp minus 1.

    ```mlir
    %1 = dist.lane_id
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}
def Dist_SyncThreadsOp : Dist_Op<"sync_threads", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "block barrier; all threads of the block must reach it";
  let description = [{
    What any thread of the block wrote before, to shared or global memory, all threads of the block see behind it.

    ```mlir
    dist.sync_threads
    ```
  }];
  let assemblyFormat = "attr-dict";
}
def Dist_LdOp : Dist_Op<"ld", [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "load by each thread with memory order and scope";
  let description = [{
    One access by each thread that reaches it, never removed, merged or moved across others. An acquire orders later accesses of this thread
    after it, for what a release within the scope has published.

    ```mlir
    %2 = dist.ld acquire sys %p : !tile.ptr<i32> -> i32
    ```
  }];
  let arguments = (ins Tile_MemoryOrderAttr:$order, Tile_MemoryScopeAttr:$scope, Tile_Pointer:$ptr);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$order $scope $ptr attr-dict `:` qualified(type($ptr)) `->` type($result)";
  let hasVerifier = 1;
}
def Dist_StOp : Dist_Op<"st", [MemoryEffects<[MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "store by each thread with memory order and scope";
  let description = [{
    One access by each thread that reaches it. A release comes after all earlier accesses of this thread, and what it acquired, for
    observers within the scope.

    ```mlir
    dist.st release gpu %p, %2 : !tile.ptr<i32>, i32
    ```
  }];
  let arguments = (ins Tile_MemoryOrderAttr:$order, Tile_MemoryScopeAttr:$scope, Tile_Pointer:$ptr, Tile_Scalar:$value);
  let assemblyFormat = "$order $scope $ptr `,` $value attr-dict `:` qualified(type($ptr)) `,` type($value)";
  let hasVerifier = 1;
}
def Dist_MultimemStOp : Dist_Op<"multimem_st", [AttrSizedOperandSegments, MemoryEffects<[MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "relaxed store by each thread to the same place on all ranks";
  let description = [{
    One, two or four consecutive words, where the mask is true. `ptr` is a multicast address; on targets without multicast memory, the
    simulator among them, it is this rank's address in the symmetric heap, and the store goes to each rank in turn.

    ```mlir
    dist.multimem_st %words, %3, %3 mask %guard : !tile.ptr<i32>, i32, i32
    ```
  }];
  let arguments = (ins Tile_Pointer:$ptr, Variadic<Tile_Scalar>:$values, Optional<I1>:$mask);
  let assemblyFormat = "$ptr `,` $values (`mask` $mask^)? attr-dict `:` qualified(type($ptr)) `,` type($values)";
  let builders = [OpBuilder<(ins "::mlir::Value":$ptr, "::mlir::ValueRange":$values), [{
    build($_builder, $_state, ptr, values, ::mlir::Value());
  }]>];
  let hasVerifier = 1;
}
def Dist_MultimemLdReduceOp
    : Dist_Op<"multimem_ld_reduce", [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "the words at the same place of all ranks combined, by each thread";
  let description = [{
    Consecutive words; `ptr` as for multimem_st. A 32-bit word may hold two fp16 or bf16: then `packed` is their type, and the words are
    integers. Where `mask` is false nothing is read and the result is zero. Without multicast memory ranks are combined in
    ascending order.

    ```mlir
    %4, %5 = dist.multimem_ld_reduce %words mask %guard {op = #dist.multimem_reduction<max>, packed = bf16} : !tile.ptr<i32> -> i32, i32
    ```
  }];
  let arguments = (ins Tile_Pointer:$ptr, Optional<I1>:$mask,
                       DefaultValuedAttr<Dist_MultimemReductionAttr, "MultimemReduction::Add">:$op, OptionalAttr<TypeAttr>:$packed);
  let results = (outs Variadic<AnyTypeOf<[F32, F64, I32, I64]>>:$results);
  let assemblyFormat = "$ptr (`mask` $mask^)? attr-dict `:` qualified(type($ptr)) `->` type($results)";
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::Value":$ptr), [{
    build($_builder, $_state, results, ptr, ::mlir::Value(), MultimemReduction::Add, ::mlir::TypeAttr());
  }]>];
  let hasVerifier = 1;
}
def Dist_ThreadAtomicRmwOp
    : Dist_Op<"thread_atomic_rmw", [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "atomic read-modify-write by each thread that reaches it; yields its old value";
  let description = [{
    The word is read and written in one step for all threads within the scope. Not merged, unlike tile.atomic_rmw: as many threads as get
    there perform it.

    ```mlir
    %3 = dist.thread_atomic_rmw add relaxed block %p, %2 : !tile.ptr<i32>, i32 -> i32
    ```
  }];
  let arguments = (ins Tile_AtomicOpAttr:$op, Tile_MemoryOrderAttr:$order, Tile_MemoryScopeAttr:$scope, Tile_Pointer:$ptr,
                       Tile_Scalar:$value);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$op $order $scope $ptr `,` $value attr-dict `:` qualified(type($ptr)) `,` type($value) `->` type($result)";
  let hasVerifier = 1;
}
def Dist_ThreadAtomicCasOp
    : Dist_Op<"thread_atomic_cas",
              [AllTypesMatch<["compare", "value"]>, MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "compare and swap by each thread that reaches it; yields its old value";
  let description = [{
    The word becomes `value` if it equals `compare`, in one step for all threads within the scope. The old value tells whether it did.

    ```mlir
    %4 = dist.thread_atomic_cas acq_rel gpu %p, %2, %3 : !tile.ptr<i32>, i32 -> i32
    ```
  }];
  let arguments = (ins Tile_MemoryOrderAttr:$order, Tile_MemoryScopeAttr:$scope, Tile_Pointer:$ptr, Tile_Scalar:$compare,
                       Tile_Scalar:$value);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$order $scope $ptr `,` $compare `,` $value attr-dict `:` qualified(type($ptr)) `,` type($value) `->` type($result)";
  let hasVerifier = 1;
}
// Shuffles and ballots depend on which threads reach them together: never move or duplicate them.
def Dist_ShuffleOp : Dist_Op<"shuffle", [MemoryEffects<[MemWrite]>, AllTypesMatch<["value", "result"]>]> {
  let summary = "value of another lane of the warp";
  let description = [{
    All lanes in `mask` get here together, and the lane that is read is one of them. `idx`: lane number `operand`; `up`, `down`: that many
    lanes below or above; `xor`: own number xor operand. A lane whose partner would be outside of the warp gets its own value.

    ```mlir
    %7 = dist.shuffle up %full, %6, %1 : f32
    ```
  }];
  let arguments = (ins Dist_ShuffleKindAttr:$kind, I32:$mask, Tile_Scalar:$value, I32:$operand);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$kind $mask `,` $value `,` $operand attr-dict `:` type($value)";
}
def Dist_BallotOp : Dist_Op<"ballot", [MemoryEffects<[MemWrite]>]> {
  let summary = "bit i: the predicate of lane i";
  let description = [{
    All lanes in `mask` get here together, and get the same word. Bits of lanes that are not in it are 0.

    ```mlir
    %9 = dist.ballot %full, %c
    ```
  }];
  let arguments = (ins I32:$mask, I1:$predicate);
  let results = (outs I32:$result);
  let assemblyFormat = "$mask `,` $predicate attr-dict";
}

include "ditron/dialect/dist/DistThreadOps.td"
include "ditron/dialect/dist/DistShmemOps.td"
#endif
