//===- TileAttrs.td - Enumerations of the tile dialect -----------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_TILE_ATTRS_TD
#define DITRON_DIALECT_TILE_ATTRS_TD

include "mlir/IR/EnumAttr.td"
include "ditron/dialect/tile/TileDialect.td"

class Tile_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::ditron::tile";
  let genSpecializedAttr = 0;
}

def Tile_AtomicOp : Tile_Enum<"AtomicOp", "read-modify-write operation", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"And", 1, "and">, I32EnumAttrCase<"Or", 2, "or">,
  I32EnumAttrCase<"Xor", 3, "xor">, I32EnumAttrCase<"Max", 4, "max">, I32EnumAttrCase<"Min", 5, "min">,
  I32EnumAttrCase<"UMax", 6, "umax">, I32EnumAttrCase<"UMin", 7, "umin">, I32EnumAttrCase<"Exchange", 8, "exch">,
  I32EnumAttrCase<"FAdd", 9, "fadd">, I32EnumAttrCase<"FMax", 10, "fmax">, I32EnumAttrCase<"FMin", 11, "fmin">]>;
def Tile_AtomicOpAttr : EnumAttr<Tile_Dialect, Tile_AtomicOp, "atomic_op">;

def Tile_MemoryOrder : Tile_Enum<"MemoryOrder", "memory order", [
  I32EnumAttrCase<"Relaxed", 0, "relaxed">, I32EnumAttrCase<"Acquire", 1, "acquire">,
  I32EnumAttrCase<"Release", 2, "release">, I32EnumAttrCase<"AcquireRelease", 3, "acq_rel">]>;
def Tile_MemoryOrderAttr : EnumAttr<Tile_Dialect, Tile_MemoryOrder, "order">;

def Tile_MemoryScope : Tile_Enum<"MemoryScope", "who may observe the access in order", [
  I32EnumAttrCase<"Block", 0, "block">, I32EnumAttrCase<"Gpu", 1, "gpu">, I32EnumAttrCase<"System", 2, "sys">]>;
def Tile_MemoryScopeAttr : EnumAttr<Tile_Dialect, Tile_MemoryScope, "scope">;

// The enumerations below stand in attribute dictionaries, where their text needs brackets: #tile.cache<cg>.
def Tile_CacheModifier : Tile_Enum<"CacheModifier", "cache hint", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"CA", 1, "ca">, I32EnumAttrCase<"CG", 2, "cg">,
  I32EnumAttrCase<"CS", 3, "cs">, I32EnumAttrCase<"CV", 4, "cv">, I32EnumAttrCase<"WB", 5, "wb">,
  I32EnumAttrCase<"WT", 6, "wt">]>;
def Tile_CacheModifierAttr : EnumAttr<Tile_Dialect, Tile_CacheModifier, "cache"> {
  let assemblyFormat = "`<` $value `>`";
}

def Tile_EvictionPolicy : Tile_Enum<"EvictionPolicy", "eviction hint", [
  I32EnumAttrCase<"Normal", 0, "normal">, I32EnumAttrCase<"EvictFirst", 1, "evict_first">,
  I32EnumAttrCase<"EvictLast", 2, "evict_last">]>;
def Tile_EvictionPolicyAttr : EnumAttr<Tile_Dialect, Tile_EvictionPolicy, "evict"> {
  let assemblyFormat = "`<` $value `>`";
}

def Tile_DescriptorPadding : Tile_Enum<"DescriptorPadding", "what lies outside of a descriptor's tensor", [
  I32EnumAttrCase<"Zero", 0, "zero">, I32EnumAttrCase<"Nan", 1, "nan">]>;
def Tile_DescriptorPaddingAttr : EnumAttr<Tile_Dialect, Tile_DescriptorPadding, "padding"> {
  let assemblyFormat = "`<` $value `>`";
}

def Tile_DotPrecision : Tile_Enum<"DotPrecision", "how fp32 operands of a dot are multiplied", [
  I32EnumAttrCase<"TF32", 0, "tf32">, I32EnumAttrCase<"TF32x3", 1, "tf32x3">, I32EnumAttrCase<"IEEE", 2, "ieee">,
  I32EnumAttrCase<"BF16x3", 3, "bf16x3">, I32EnumAttrCase<"BF16x6", 4, "bf16x6">]>;
def Tile_DotPrecisionAttr : EnumAttr<Tile_Dialect, Tile_DotPrecision, "precision"> {
  let assemblyFormat = "`<` $value `>`";
}

def Tile_ReductionOrdering : Tile_Enum<"ReductionOrdering", "in which order a reduction combines the elements", [
  I32EnumAttrCase<"Unordered", 0, "unordered">, I32EnumAttrCase<"InnerTree", 1, "inner_tree">]>;
def Tile_ReductionOrderingAttr : EnumAttr<Tile_Dialect, Tile_ReductionOrdering, "reduction_ordering">;

// Without brackets: the words stand in the assembly of tile.bitonic.
def Tile_SortDirection : Tile_Enum<"SortDirection", "order of the blocks that the last stage of a bitonic network makes", [
  I32EnumAttrCase<"Alternating", 0, "alternating">, I32EnumAttrCase<"Ascending", 1, "ascending">,
  I32EnumAttrCase<"Descending", 2, "descending">]>;
def Tile_SortDirectionAttr : EnumAttr<Tile_Dialect, Tile_SortDirection, "direction">;

def Tile_SortKey : Tile_Enum<"SortKey", "how integers are compared", [
  I32EnumAttrCase<"Signed", 0, "signed">, I32EnumAttrCase<"Unsigned", 1, "unsigned">,
  I32EnumAttrCase<"SignMagnitude", 2, "sign_magnitude">]>;
def Tile_SortKeyAttr : EnumAttr<Tile_Dialect, Tile_SortKey, "key"> {
  let assemblyFormat = "`<` $value `>`";
}
#endif
