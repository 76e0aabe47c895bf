//===- TileTypes.td - Pointer type and tensor constraints --------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_TILE_TYPES_TD
#define DITRON_DIALECT_TILE_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "ditron/dialect/tile/TileDialect.td"

def Tile_PointerType : TypeDef<Tile_Dialect, "Pointer"> {
  let mnemonic = "ptr";
  let summary = "Address of an element in global memory";
  let description = [{
    `!tile.ptr<f32>` points at a 32-bit float. Arithmetic on pointers counts elements (`tile.addptr`). `i1` pointees occupy
    one byte each. Pointers to pointers are allowed.
  }];
  let parameters = (ins "::mlir::Type":$pointee);
  let assemblyFormat = "`<` $pointee `>`";
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$pointee), [{
    return $_get(pointee.getContext(), pointee);
  }]>];
  let extraClassDeclaration = [{
    /// Bytes between consecutive elements behind this pointer (1 for i1).
    unsigned getElementBytes() const;
  }];
  let genVerifyDecl = 1;
}

def Tile_DescriptorType : TypeDef<Tile_Dialect, "Descriptor"> {
  let mnemonic = "desc";
  let summary = "A tensor in global memory, seen as tiles of one shape";
  let description = [{
    `!tile.desc<128x64xbf16>` describes where a tensor of 1 to 5 dimensions lies, how large it is and how its elements are
    spaced; loads and stores through it move tiles of 128x64 elements at any offsets. What lies outside of the tensor reads as
    padding and is not written.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType), [{
    return $_get(elementType.getContext(), shape, elementType);
  }]>];
  let extraClassDeclaration = [{
    /// The tile that a load gives.
    ::mlir::RankedTensorType getTileType() const;
    int64_t getRank() const { return getShape().size(); }
  }];
  let genVerifyDecl = 1;
}

// Global memory, named so that accesses of different memories do not order each other.
def Tile_GlobalMemory : Resource<"::ditron::tile::GlobalMemory">;

def Tile_Int : AnyTypeOf<[I1, I8, I16, I32, I64], "integer">;
def Tile_Float : AnyTypeOf<[F8E4M3FN, F8E5M2, F16, BF16, F32, F64], "floating point">;
def Tile_Pointer : Type<CPred<"::llvm::isa<::ditron::tile::PointerType>($_self)">, "pointer", "::ditron::tile::PointerType">;
def Tile_Descriptor : Type<CPred<"::llvm::isa<::ditron::tile::DescriptorType>($_self)">, "descriptor", "::ditron::tile::DescriptorType">;
def Tile_Scalar : AnyTypeOf<[Tile_Int, Tile_Float, Tile_Pointer], "scalar">;
def Tile_Tensor : RankedTensorOf<[Tile_Int, Tile_Float, Tile_Pointer], [], "tensor">;
def Tile_IntTensor : RankedTensorOf<[Tile_Int]>;
def Tile_Any : AnyTypeOf<[Tile_Scalar, Tile_Tensor], "scalar or tensor">;
def Tile_IntLike : AnyTypeOf<[Tile_Int, Tile_IntTensor], "integer or tensor of integers">;
def Tile_BoolLike : AnyTypeOf<[I1, RankedTensorOf<[I1]>], "i1 or tensor of i1">;
def Tile_PointerLike : AnyTypeOf<[Tile_Pointer, RankedTensorOf<[Tile_Pointer]>], "pointer or tensor of pointers">;
#endif
