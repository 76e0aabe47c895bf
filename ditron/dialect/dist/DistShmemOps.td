//===- DistShmemOps.td - The operations of OpenSHMEM ---------------------------------------------------------*- tablegen -*-===//
//
// What these promise is in docs/openshmem.md, with the sections of the standard. A symmetric address is this rank's address of
// an object in the symmetric heap; a PE is a rank of the world. Sizes count bytes. Teams are numbers: 0 the world, 1 shared, 2
// the node, 3 the ranks of all nodes with this rank's place in the node.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_DIST_SHMEM_OPS_TD
#define DITRON_DIALECT_DIST_SHMEM_OPS_TD

include "ditron/dialect/dist/DistAttrs.td"
include "ditron/dialect/tile/TileAttrs.td"
include "ditron/dialect/tile/TileTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Dist_CommunicationOp<string mnemonic, list<Trait> traits = []>
    : Dist_Op<mnemonic, traits # [MemoryEffects<[MemRead, MemWrite]>]>;

def Dist_PutOp : Dist_CommunicationOp<"put"> {
  let summary = "copies bytes into the symmetric object `dest` of a PE";
  let description = [{
    All threads of `exec` call it together with the same operands. Blocking: the source may be written again afterwards. Non-blocking: only
    after a quiet. In neither case does the target see the bytes before a fence or quiet orders them.

    ```mlir
    dist.put block nonblocking %p, %p, %bytes, %pe : !tile.ptr<i8>, !tile.ptr<i8>
    ```
  }];
  let arguments = (ins Dist_ExecScopeAttr:$exec, UnitAttr:$nonblocking, Tile_Pointer:$dest, Tile_Pointer:$source, I64:$bytes, I32:$pe);
  let assemblyFormat = [{
    $exec (`nonblocking` $nonblocking^)? $dest `,` $source `,` $bytes `,` $pe attr-dict `:` qualified(type($dest)) `,` qualified(type($source))
  }];
}
def Dist_GetOp : Dist_CommunicationOp<"get"> {
  let summary = "copies bytes of the symmetric object `source` of a PE to `dest`";
  let description = [{
    Blocking: the bytes are there afterwards. Non-blocking: after a quiet.

    ```mlir
    dist.get warp %p, %p, %bytes, %pe : !tile.ptr<i8>, !tile.ptr<i8>
    ```
  }];
  let arguments = (ins Dist_ExecScopeAttr:$exec, UnitAttr:$nonblocking, Tile_Pointer:$dest, Tile_Pointer:$source, I64:$bytes, I32:$pe);
  let assemblyFormat = [{
    $exec (`nonblocking` $nonblocking^)? $dest `,` $source `,` $bytes `,` $pe attr-dict `:` qualified(type($dest)) `,` qualified(type($source))
  }];
}
def Dist_PutSignalOp : Dist_CommunicationOp<"put_signal"> {
  let summary = "a put, and after its bytes have arrived a signal at the same PE";
  let description = [{
    As put, and non-blocking likewise. The signal word is set to `value` or it is added to it; whoever has seen it with an acquire sees the
    bytes.

    ```mlir
    dist.put_signal thread add %p, %p, %bytes, %signal, %value, %pe : !tile.ptr<i8>, !tile.ptr<i8>, !tile.ptr<i64>, i64
    ```
  }];
  let arguments = (ins Dist_ExecScopeAttr:$exec, Dist_SignalOpAttr:$op, UnitAttr:$nonblocking, Tile_Pointer:$dest, Tile_Pointer:$source,
                       I64:$bytes, Tile_Pointer:$signal, Tile_Int:$value, I32:$pe);
  let assemblyFormat = [{
    $exec $op (`nonblocking` $nonblocking^)? $dest `,` $source `,` $bytes `,` $signal `,` $value `,` $pe attr-dict `:` qualified(type($dest)) `,`
    qualified(type($source)) `,` qualified(type($signal)) `,` type($value)
  }];
  let hasVerifier = 1;
}
def Dist_SignalOpOp : Dist_CommunicationOp<"signal_op"> {
  let summary = "sets or adds to a signal word of a PE, by each thread; orders nothing";
  let description = [{
    What was put before may arrive later: order it with dist.order, or use put_signal.

    ```mlir
    dist.signal_op set %signal, %value, %pe : !tile.ptr<i64>, i64
    ```
  }];
  let arguments = (ins Dist_SignalOpAttr:$op, Tile_Pointer:$signal, Tile_Int:$value, I32:$pe);
  let assemblyFormat = "$op $signal `,` $value `,` $pe attr-dict `:` qualified(type($signal)) `,` type($value)";
  let hasVerifier = 1;
}
def Dist_SignalWaitUntilOp : Dist_CommunicationOp<"signal_wait_until", [AllTypesMatch<["value", "result"]>]> {
  let summary = "each thread waits until a signal word of this rank satisfies a comparison; yields the word";
  let description = [{
    An acquire at system scope.

    ```mlir
    %0 = dist.signal_wait_until ge %signal, %value : !tile.ptr<i64>, i64
    ```
  }];
  let arguments = (ins Dist_CompareAttr:$compare, Tile_Pointer:$signal, Tile_Int:$value);
  let results = (outs Tile_Int:$result);
  let assemblyFormat = "$compare $signal `,` $value attr-dict `:` qualified(type($signal)) `,` type($value)";
  let hasVerifier = 1;
}
def Dist_OrderOp : Dist_CommunicationOp<"order"> {
  let summary = "fence: earlier puts to each PE before later ones; quiet: all earlier ones have arrived";
  let description = [{
    Of the puts and signals of this thread. After a quiet their sources may be written again, and each PE sees them; a fence promises
    nothing about when.

    ```mlir
    dist.order quiet
    ```
  }];
  let arguments = (ins Dist_OrderKindAttr:$kind);
  let assemblyFormat = "$kind attr-dict";
}
def Dist_TeamBarrierOp : Dist_CommunicationOp<"team_barrier"> {
  let summary = "the PEs of a team meet; unless `sync` a quiet comes first";
  let description = [{
    All threads of `exec` on every PE of the team call it together. Without `sync` all puts of the calling threads have arrived when it is
    left.

    ```mlir
    dist.team_barrier block sync %team
    ```
  }];
  let arguments = (ins Dist_ExecScopeAttr:$exec, UnitAttr:$sync, I32:$team);
  let assemblyFormat = "$exec (`sync` $sync^)? $team attr-dict";
}
def Dist_CollectiveOp : Dist_CommunicationOp<"collective"> {
  let summary = "broadcast: root's bytes to all; collect: every PE's bytes to all, in PE order";
  let description = [{
    All threads of `exec` on every PE of the team call it together with the same operands; `root` is a number within the team and only
    matters to a broadcast. `dest` and `source` are symmetric and do not overlap. `bytes` is what each PE gives.

    ```mlir
    dist.collective broadcast warp %team, %p, %p, %bytes, %pe : !tile.ptr<i8>, !tile.ptr<i8>
    ```
  }];
  let arguments = (ins Dist_CollectiveKindAttr:$kind, Dist_ExecScopeAttr:$exec, I32:$team, Tile_Pointer:$dest, Tile_Pointer:$source,
                       I64:$bytes, I32:$root);
  let assemblyFormat = [{
    $kind $exec $team `,` $dest `,` $source `,` $bytes `,` $root attr-dict `:` qualified(type($dest)) `,` qualified(type($source))
  }];
}
def Dist_TeamRankOp : Dist_Op<"team_rank", [Pure]> {
  let summary = "this rank's number within a team";
  let description = [{
    -1 if this rank is not in the team.

    ```mlir
    %1 = dist.team_rank %team
    ```
  }];
  let arguments = (ins I32:$team);
  let results = (outs I32:$result);
  let assemblyFormat = "$team attr-dict";
}
def Dist_TeamSizeOp : Dist_Op<"team_size", [Pure]> {
  let summary = "number of PEs of a team";
  let description = [{
    0 for teams that do not exist.

    ```mlir
    %2 = dist.team_size %team
    ```
  }];
  let arguments = (ins I32:$team);
  let results = (outs I32:$result);
  let assemblyFormat = "$team attr-dict";
}
def Dist_TeamTranslateOp : Dist_Op<"team_translate", [Pure]> {
  let summary = "a PE's number in another team; -1 if it is not in it";
  let description = [{
    `pe` counts within `sourceTeam`, the result within `destTeam`.

    ```mlir
    %3 = dist.team_translate %team, %pe, %team
    ```
  }];
  let arguments = (ins I32:$sourceTeam, I32:$pe, I32:$destTeam);
  let results = (outs I32:$result);
  let assemblyFormat = "$sourceTeam `,` $pe `,` $destTeam attr-dict";
}
def Dist_MulticastPtrOp : Dist_Op<"multicast_ptr", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "the multicast address of a symmetric object, null where there is none";
  let description = [{
    What multimem_st and multimem_ld_reduce take. Null too for teams that are not the PEs of a node.

    ```mlir
    %4 = dist.multicast_ptr %p, %team : !tile.ptr<i8>
    ```
  }];
  let arguments = (ins Tile_Pointer:$ptr, I32:$team);
  let results = (outs Tile_Pointer:$result);
  let assemblyFormat = "$ptr `,` $team attr-dict `:` qualified(type($ptr))";
}
#endif
