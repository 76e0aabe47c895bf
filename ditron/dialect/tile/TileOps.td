//===- TileOps.td - Operations of the tile dialect ---------------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_TILE_OPS_TD
#define DITRON_DIALECT_TILE_OPS_TD

include "ditron/dialect/tile/TileAttrs.td"
include "ditron/dialect/tile/TileTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

//===------------------------------------------------------------------------------------------------------------------===//
// Program and creation
//===------------------------------------------------------------------------------------------------------------------===//

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "index of this program in the launch grid along an axis";
  let description = [{
    Axes 0, 1 and 2; from 0 to num_programs of the axis minus 1. The same in all threads of the block.

    ```mlir
    %0 = tile.program_id 0
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_NumProgramsOp : Tile_Op<"num_programs", [Pure]> {
  let summary = "extent of the launch grid along an axis";
  let description = [{
    What the launch gave for the axis; 1 for axes that it did not give. The same in all threads of all blocks.

    ```mlir
    %1 = tile.num_programs 2
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_ArangeOp : Tile_Op<"arange", [Pure]> {
  let summary = "consecutive integers start .. end-1";
  let description = [{
    `tile.arange 0, 64 : tensor<64xi32>`. end - start is a power of two and equals the length of the result.

    ```mlir
    %2 = tile.arange 0, 64 : tensor<64xi32>
    ```
  }];
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = "$start `,` $end attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "a tensor that holds one scalar everywhere";
  let description = [{
    Of any shape. Costs nothing: every thread makes its elements by itself, so that splats are computed again rather than moved.

    ```mlir
    %3 = tile.splat %x : f32 -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Tile_Scalar:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_UnsplatOp : Tile_Op<"unsplat", [Pure]> {
  let summary = "the only element of a one-element tensor, as a scalar";
  let description = [{
    Every thread gets the element, whichever of them held it.

    ```mlir
    %6 = tile.unsplat %5 : tensor<1x1xf32> -> f32
    ```
  }];
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Shape: pure re-indexing in row-major order
//===------------------------------------------------------------------------------------------------------------------===//

def Tile_ExpandDimsOp : Tile_Op<"expand_dims", [Pure]> {
  let summary = "inserts a dimension of size 1";
  let description = [{
    Before dimension `axis`, which may be the rank: then it is the last. No element moves.

    ```mlir
    %0 = tile.expand_dims %x axis 1 : tensor<64xi32> -> tensor<64x1xi32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, ConfinedAttr<I32Attr, [IntNonNegative]>:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "repeats dimensions of size 1; rank stays";
  let description = [{
    Result dimension d has the source's size, or the source has size 1 there. Missing dimensions are inserted by expand_dims first.

    ```mlir
    %1 = tile.broadcast %0 : tensor<64x1xi32> -> tensor<64x16xi32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_ReshapeOp : Tile_Op<"reshape", [Pure]> {
  let summary = "another shape for the same elements in row-major order";
  let description = [{
    As many elements as before; element number i in row-major order stays number i. No element moves between threads: the
    layout follows.

    ```mlir
    %2 = tile.reshape %y : tensor<16x32xf16> -> tensor<4x4x32xf16>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_TransOp : Tile_Op<"trans", [Pure]> {
  let summary = "permutes dimensions: result dimension i is source dimension order[i]";
  let description = [{
    `order` is a permutation of 0 .. rank-1. No element moves between threads: the layout is permuted with the dimensions.

    ```mlir
    %3 = tile.trans %y [1, 0] : tensor<16x32xf16> -> tensor<32x16xf16>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, DenseI32ArrayAttr:$order);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source $order attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_JoinOp : Tile_Op<"join", [Pure, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "a new minor dimension of size 2: lhs at index 0, rhs at index 1";
  let description = [{
    Two scalars give a tensor of two elements.

    ```mlir
    %1 = tile.join %s, %s : i32 -> tensor<2xi32>
    ```
  }];
  let arguments = (ins Tile_Any:$lhs, Tile_Any:$rhs);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_SplitOp : Tile_Op<"split", [Pure, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "the two halves along the last dimension, whose size is 2";
  let description = [{
    A tensor of two elements gives two scalars.

    ```mlir
    %4, %5 = tile.split %1 : tensor<2xi32> -> i32
    ```
  }];
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Any:$lhs, Tile_Any:$rhs);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($lhs)";
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [Pure]> {
  let summary = "elements chosen by indices along an axis";
  let description = [{
    result[i, j] = source[index[i, j], j] for axis 0, and so on: the result has the shape of the index, which has the source's
    rank and its sizes along all other axes. An index out of range gives an unspecified element.

    ```mlir
    %6 = tile.gather %a[%index] axis 0 : tensor<4x8xf32>, tensor<2x8xi32> -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, Tile_IntTensor:$index, ConfinedAttr<I32Attr, [IntNonNegative]>:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source `[` $index `]` `axis` $axis attr-dict `:` type($source) `,` type($index) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_BitonicOp : Tile_Op<"bitonic", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "stages of a bitonic sorting network along the last dimension";
  let description = [{
    Stage s makes sorted blocks of 2^s elements of bitonic ones (which rise and then fall, or can be rotated so): by steps of
    distance 2^(s-1), 2^(s-2) ... 1, each of which compares the elements whose positions differ in that bit. In an ascending block
    they change places if the lower one is greater, in a descending block if it is less, so that equal ones and NaNs stay.
    Block b of a stage ascends if b is even; those of the last stage do as `direction` says. Stages 1 to log2(n), the last
    ascending, sort n elements. `key` says how integers are compared; sign_magnitude takes the top bit for a sign, and both
    zeros for equal.

    One operation for many steps: where elements lie decides how a step is done, and how much code a network is. It is lowered
    to loops where the straight code would be long.

    `tile.bitonic %x stages 1 to 6 ascending : tensor<64xf32>`

    ```mlir
    %0 = tile.bitonic %x stages 1 to 6 descending : tensor<4x64xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyInteger, AnyFloat]>:$source, I32Attr:$first_stage, I32Attr:$last_stage,
                       Tile_SortDirectionAttr:$direction, DefaultValuedAttr<Tile_SortKeyAttr, "SortKey::Signed">:$key);
  let results = (outs RankedTensorOf<[AnyInteger, AnyFloat]>:$result);
  let assemblyFormat = "$source `stages` $first_stage `to` $last_stage $direction attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_HistogramOp : Tile_Op<"histogram", [Pure]> {
  let summary = "how often each of the numbers 0 .. bins-1 occurs where the mask is true";
  let description = [{
    Other numbers are not counted. The bins are the elements of the result.

    ```mlir
    %7 = tile.histogram %numbers mask %mask : tensor<16xi32> mask tensor<16xi1> -> tensor<8xi32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[I8, I16, I32, I64]>:$source, Optional<Tile_BoolLike>:$mask);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = "$source (`mask` $mask^)? attr-dict `:` type($source) (`mask` type($mask)^)? `->` type($result)";
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Pointers
//===------------------------------------------------------------------------------------------------------------------===//

def Tile_AddPtrOp : Tile_Op<"addptr", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "pointer plus a signed number of elements";
  let description = [{
    The offset has the pointer's shape; i32 offsets are sign-extended to 64 bits before scaling.

    ```mlir
    %0 = tile.addptr %p, %i : !tile.ptr<f32>, i64
    ```
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Tile_IntLike:$offset);
  let results = (outs Tile_PointerLike:$result);
  let assemblyFormat = "$ptr `,` $offset attr-dict `:` type($ptr) `,` type($offset)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_PtrToIntOp : Tile_Op<"ptr_to_int", [Pure]> {
  let summary = "address as i64";
  let description = [{
    Of each pointer; 64 bits on all targets.

    ```mlir
    %2 = tile.ptr_to_int %p : !tile.ptr<f32> -> i64
    ```
  }];
  let arguments = (ins Tile_PointerLike:$source);
  let results = (outs Tile_IntLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_IntToPtrOp : Tile_Op<"int_to_ptr", [Pure]> {
  let summary = "i64 as an address";
  let description = [{
    Nothing is known of where it points: analyses take it for an address that any other pointer may have.

    ```mlir
    %3 = tile.int_to_ptr %2 : i64 -> !tile.ptr<i8>
    ```
  }];
  let arguments = (ins Tile_IntLike:$source);
  let results = (outs Tile_PointerLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_PtrCastOp : Tile_Op<"ptr_cast", [Pure]> {
  let summary = "the same address with another pointee type";
  let description = [{
    What is loaded or stored through the result has the new type; offsets of addptr count elements of that type.

    ```mlir
    %4 = tile.ptr_cast %ps : tensor<8x!tile.ptr<f32>> -> tensor<8x!tile.ptr<i32>>
    ```
  }];
  let arguments = (ins Tile_PointerLike:$source);
  let results = (outs Tile_PointerLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_HintOp : Tile_Op<"hint", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "the same value, with promised facts about it";
  let description = [{
    Promises of `tl.multiple_of`, `tl.max_contiguous` and `tl.max_constancy`, one number per dimension (one for a scalar);
    an absent array promises nothing. `divisibility[d]`: the first element of every contiguous run along d is a multiple of it.
    Wrong promises are undefined behaviour.

    ```mlir
    %5 = tile.hint %is {contiguity = array<i64: 8>, divisibility = array<i64: 16>, constancy = array<i64: 1>} : tensor<8xi32>
    ```
  }];
  let arguments = (ins Tile_Any:$source, OptionalAttr<DenseI64ArrayAttr>:$divisibility,
                       OptionalAttr<DenseI64ArrayAttr>:$contiguity, OptionalAttr<DenseI64ArrayAttr>:$constancy);
  let results = (outs Tile_Any:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_AssumeOp : Tile_Op<"assume", [MemoryEffects<[MemWrite]>]> {
  let summary = "promises that a condition holds here";
  let description = [{
    What the condition implies may be used behind the operation, alignment among it. Undefined behaviour where it is false.

    ```mlir
    tile.assume %c
    ```
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
}
def Tile_KeepLoopOp : Tile_Op<"keep_loop", [MemoryEffects<[MemWrite]>]> {
  let summary = "keeps the loop around it, whose results may not be needed";
  let description = [{
    Stands in loops without effects that may never end. Such a loop is not dead code: what follows it must not happen when it
    does not end. Lowered to nothing.

    ```mlir
    tile.keep_loop
    ```
  }];
  let assemblyFormat = "attr-dict";
}

//===------------------------------------------------------------------------------------------------------------------===//
// Memory
//===------------------------------------------------------------------------------------------------------------------===//

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "loads the elements behind pointers";
  let description = [{
    Where the mask is false the result is `other`, or zero when there is none, and memory is not touched. A scalar load is
    performed once per thread that needs it. `volatile` accesses are never removed, merged or moved, and one of a tile loads each element
    once, whatever copies the layout holds.

    ```mlir
    %3 = tile.load %p mask %c : !tile.ptr<f32> mask i1 -> f32
    ```
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Optional<Tile_BoolLike>:$mask, Optional<Tile_Any>:$other,
                       DefaultValuedAttr<Tile_CacheModifierAttr, "CacheModifier::None">:$cache,
                       DefaultValuedAttr<Tile_EvictionPolicyAttr, "EvictionPolicy::Normal">:$evict,
                       DefaultValuedAttr<BoolAttr, "false">:$isVolatile);
  let results = (outs Tile_Any:$result);
  let assemblyFormat = [{
    $ptr (`mask` $mask^)? (`other` $other^)? attr-dict `:` type($ptr) (`mask` type($mask)^)? (`other` type($other)^)? `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$ptr, CArg<"::mlir::Value", "{}">:$mask, CArg<"::mlir::Value", "{}">:$other)>];
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "stores elements behind pointers where the mask is true";
  let description = [{
    Each element is written by exactly one thread. A scalar store is performed by one thread of the block. `volatile` ones are relaxed
    stores of system scope, element by element: others may read or write the elements at the same time, in the same way.

    ```mlir
    tile.store %p, %3 : !tile.ptr<f32>, f32
    ```
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Tile_Any:$value, Optional<Tile_BoolLike>:$mask,
                       DefaultValuedAttr<Tile_CacheModifierAttr, "CacheModifier::None">:$cache,
                       DefaultValuedAttr<Tile_EvictionPolicyAttr, "EvictionPolicy::Normal">:$evict,
                       DefaultValuedAttr<BoolAttr, "false">:$isVolatile);
  let assemblyFormat = "$ptr `,` $value (`mask` $mask^)? attr-dict `:` type($ptr) `,` type($value) (`mask` type($mask)^)?";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Tile_AtomicRmwOp : Tile_Op<"atomic_rmw", [MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "atomic read-modify-write; yields the old values";
  let description = [{
    Performed exactly once per element (and once per block for a scalar), whatever copies the layout holds; the old value
    reaches every copy. Release order covers the earlier stores of the whole block.

    ```mlir
    %5 = tile.atomic_rmw exch acq_rel sys %p, %f : !tile.ptr<f32>, f32 -> f32
    ```
  }];
  let arguments = (ins Tile_AtomicOpAttr:$op, Tile_MemoryOrderAttr:$order, Tile_MemoryScopeAttr:$scope,
                       Tile_PointerLike:$ptr, Tile_Any:$value, Optional<Tile_BoolLike>:$mask);
  let results = (outs Tile_Any:$result);
  let assemblyFormat = [{
    $op $order $scope $ptr `,` $value (`mask` $mask^)? attr-dict `:` type($ptr) `,` type($value) (`mask` type($mask)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_AtomicCasOp : Tile_Op<"atomic_cas",
    [AllTypesMatch<["compare", "value"]>, MemoryEffects<[MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "atomic compare and swap; yields the old values";
  let description = [{
    Where the old value equals `compare`, bit for bit, `value` is stored. Performed as atomic_rmw is: once per element, once per block for a
    scalar, and every copy gets the old value.

    ```mlir
    %6 = tile.atomic_cas acquire block %p, %f, %f : !tile.ptr<f32>, f32 -> f32
    ```
  }];
  let arguments = (ins Tile_MemoryOrderAttr:$order, Tile_MemoryScopeAttr:$scope, Tile_PointerLike:$ptr,
                       Tile_Any:$compare, Tile_Any:$value);
  let results = (outs Tile_Any:$result);
  let assemblyFormat = "$order $scope $ptr `,` $compare `,` $value attr-dict `:` type($ptr) `,` type($value) `->` type($result)";
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Descriptors
//===------------------------------------------------------------------------------------------------------------------===//

def Tile_MakeDescriptorOp : Tile_Op<"make_descriptor", [Pure, AttrSizedOperandSegments]> {
  let summary = "describes a tensor in global memory";
  let description = [{
    Sizes and strides count elements, outermost dimension first; the last stride is 1. A descriptor may only be read, stored and
    given to dist.consume_token.

    ```mlir
    %0 = tile.make_descriptor %p, [%n], [%one] : !tile.ptr<i32>, i32 -> !tile.desc<64xi32>
    ```
  }];
  let arguments = (ins Tile_Pointer:$base, Variadic<AnyTypeOf<[I32, I64]>>:$sizes, Variadic<I64>:$strides,
                       DefaultValuedAttr<Tile_DescriptorPaddingAttr, "DescriptorPadding::Zero">:$padding);
  let results = (outs Tile_Descriptor:$result);
  let assemblyFormat = [{
    $base `,` `[` $sizes `]` `,` `[` $strides `]` attr-dict `:` qualified(type($base)) `,` type($sizes) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_DescriptorLoadOp : Tile_Op<"descriptor_load", [MemoryEffects<[MemRead<Tile_GlobalMemory>]>]> {
  let summary = "loads the tile that begins at the offsets";
  let description = [{
    Elements outside of the tensor, at either end of any dimension, are padding: zero or NaN.

    ```mlir
    %2 = tile.descriptor_load %1[%i] : !tile.desc<64xi32> -> tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_Descriptor:$descriptor, Variadic<I32>:$offsets,
                       DefaultValuedAttr<Tile_EvictionPolicyAttr, "EvictionPolicy::Normal">:$evict);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$descriptor `[` $offsets `]` attr-dict `:` qualified(type($descriptor)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_DescriptorStoreOp : Tile_Op<"descriptor_store", [MemoryEffects<[MemWrite<Tile_GlobalMemory>]>]> {
  let summary = "stores a tile at the offsets; elements outside of the tensor are dropped";
  let description = [{
    Elements outside of the tensor, at either end of any dimension, are dropped. Later accesses of the block to the same tensor see what was
    stored.

    ```mlir
    tile.descriptor_store %0[%i], %2 : !tile.desc<64xi32>, tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_Descriptor:$descriptor, Variadic<I32>:$offsets, Tile_Tensor:$value);
  let assemblyFormat = "$descriptor `[` $offsets `]` `,` $value attr-dict `:` qualified(type($descriptor)) `,` type($value)";
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Contraction, reduction, scan
//===------------------------------------------------------------------------------------------------------------------===//

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["c", "result"]>]> {
  let summary = "result = a * b + c on tiles";
  let description = [{
    a is MxK, b is KxN, c is MxN; all three may have a leading batch dimension. fp16, bf16, fp8 and fp32 operands accumulate in
    fp32, int8 in i32. `precision` matters for fp32 operands only. `maxImpreciseAcc` is for fp8 operands: after so many
    elements of K the tensor core's sum is added to the fp32 accumulator. An addition to a dot from zero becomes its c, except with fp8
    operands, of which the addition has more bits than the tensor core.

    ```mlir
    %0 = tile.dot %a, %b, %c : tensor<16x32xbf16>, tensor<32x8xbf16> -> tensor<16x8xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[I8, F8E4M3FN, F8E5M2, F16, BF16, F32, F64]>:$a,
                       RankedTensorOf<[I8, F8E4M3FN, F8E5M2, F16, BF16, F32, F64]>:$b,
                       RankedTensorOf<[I32, F16, F32, F64]>:$c,
                       DefaultValuedAttr<Tile_DotPrecisionAttr, "DotPrecision::TF32">:$precision,
                       OptionalAttr<ConfinedAttr<I32Attr, [IntNonNegative]>>:$maxImpreciseAcc);
  let results = (outs RankedTensorOf<[I32, F16, F32, F64]>:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [SingleBlock, RecursivelySpeculatable, RecursiveMemoryEffects]> {
  let summary = "combines all elements along an axis with an associative region";
  let description = [{
    The region takes 2n scalars (n left operands, n right operands) and yields n. A rank-1 source gives scalars.

    `inner_tree`: neighbouring elements in ascending index order are combined first, the lower index on the left, so that the result
    does not depend on the layout (spec/linear_layouts.md 4.5.3) and the region need not be commutative. `unordered`, and none at
    all: what is nearest is combined first, in the order that the layout gives; one layout always gives the same result.

    ```mlir
    %1 = tile.reduce(%y) axis 1 { ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tile.yield %s : f32
    } : (tensor<4x64xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$sources, ConfinedAttr<I32Attr, [IntNonNegative]>:$axis,
                       OptionalAttr<Tile_ReductionOrderingAttr>:$ordering);
  let results = (outs Variadic<Tile_Any>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = [{
    `(` $sources `)` `axis` $axis (`ordering` $ordering^)? $combine attr-dict `:` functional-type($sources, $results)
  }];
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [SingleBlock, RecursivelySpeculatable, RecursiveMemoryEffects]> {
  let summary = "inclusive scan along an axis with an associative region; order is kept";
  let description = [{
    The region takes 2n scalars (n of the elements before, n of the next one) and yields n. Element i of the result combines elements 0 .. i
    along the axis; with `reverse` elements i .. n-1, beginning at the last. It need not be commutative.

    ```mlir
    %2 = tile.scan(%i) axis 0 { ^bb0(%a: i32, %b: i32):
      %s = arith.addi %a, %b : i32
      tile.yield %s : i32
    } : (tensor<64xi32>) -> tensor<64xi32>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$sources, ConfinedAttr<I32Attr, [IntNonNegative]>:$axis,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = "`(` $sources `)` `axis` $axis $combine attr-dict `:` functional-type($sources, $results)";
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["ReduceOp", "ScanOp", "MapElementwiseOp"]>]> {
  let summary = "results of a region on scalars";
  let description = [{
    One value for each result of the region around it: of a reduction, a scan, or a function that is applied to elements.

    ```mlir
    tile.yield %s : f32
    ```
  }];
  let arguments = (ins Variadic<Tile_Scalar>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

include "ditron/dialect/tile/TileCallOps.td"
#endif
