//===- DistThreadOps.td - Wide accesses, fences, shared memory and hardware leaves of the thread level ------*- tablegen -*-===//
#ifndef DITRON_DIALECT_DIST_THREAD_OPS_TD
#define DITRON_DIALECT_DIST_THREAD_OPS_TD

include "ditron/dialect/dist/DistAttrs.td"
include "ditron/dialect/tile/TileAttrs.td"
include "ditron/dialect/tile/TileTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_LdVectorOp : Dist_Op<"ld_vector", [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "one access of 2, 4, 8 or 16 bytes by each thread: consecutive elements";
  let description = [{
    The address is a multiple of the size of the access.

    ```mlir
    %0, %1 = dist.ld_vector acquire sys %p : !tile.ptr<f32> -> f32, f32
    ```
  }];
  let arguments = (ins Tile_MemoryOrderAttr:$order, Tile_MemoryScopeAttr:$scope, Tile_Pointer:$ptr);
  let results = (outs Variadic<Tile_Scalar>:$results);
  let assemblyFormat = "$order $scope $ptr attr-dict `:` qualified(type($ptr)) `->` type($results)";
  let hasVerifier = 1;
}
def Dist_StVectorOp : Dist_Op<"st_vector", [MemoryEffects<[MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "one store of 2, 4, 8 or 16 bytes by each thread: consecutive elements";
  let description = [{
    The address is a multiple of the size of the access. Order and scope are those of the access as a whole.

    ```mlir
    dist.st_vector relaxed gpu %p, %0, %1 : !tile.ptr<f32>, f32, f32
    ```
  }];
  let arguments = (ins Tile_MemoryOrderAttr:$order, Tile_MemoryScopeAttr:$scope, Tile_Pointer:$ptr, Variadic<Tile_Scalar>:$values);
  let assemblyFormat = "$order $scope $ptr `,` $values attr-dict `:` qualified(type($ptr)) `,` type($values)";
  let hasVerifier = 1;
}
def Dist_FenceOp : Dist_Op<"fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "memory fence of each thread";
  let description = [{
    Orders this thread's earlier accesses before its later ones for observers within the scope.

    ```mlir
    dist.fence acq_rel sys
    ```
  }];
  let arguments = (ins Tile_MemoryOrderAttr:$order, Tile_MemoryScopeAttr:$scope);
  let assemblyFormat = "$order $scope attr-dict";
}
def Dist_SharedAllocOp : Dist_Op<"shared_alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "shared memory of the block, for the whole kernel";
  let description = [{
    The pointer is an ordinary one (a generic address), the same in all threads of the block. Blocks do not see each other's.
    Contents are undefined at the beginning.

    ```mlir
    %2 = dist.shared_alloc 1024 align 128 : !tile.ptr<f32>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$bytes, ConfinedAttr<I64Attr, [IntPositive]>:$alignment);
  let results = (outs Tile_Pointer:$result);
  let assemblyFormat = "$bytes `align` $alignment attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}
def Dist_IntrinsicOp : Dist_Op<"intrinsic", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "something that the hardware does, by name";
  let description = [{
    Names with their operands and results are in Intrinsics.def. Each thread that reaches it performs it.

    ```mlir
    %3 = dist.intrinsic "smid"() : () -> i32
    ```
  }];
  let arguments = (ins StrAttr:$name, Variadic<AnyType>:$args, OptionalAttr<DictionaryAttr>:$options);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$name `(` $args `)` attr-dict `:` functional-type($args, $results)";
  let hasVerifier = 1;
}
#endif
