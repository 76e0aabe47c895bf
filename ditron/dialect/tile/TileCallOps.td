//===- TileCallOps.td - Functions applied to elements, prints and assertions -------------------------------*- tablegen -*-===//
//
// Operations that hand single elements to something that tensors know nothing about: a function of the kernel language, a
// function of a device library, a piece of assembly, the user's eyes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_TILE_CALL_OPS_TD
#define DITRON_DIALECT_TILE_CALL_OPS_TD

include "ditron/dialect/tile/TileAttrs.td"
include "ditron/dialect/tile/TileTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_MapElementwiseOp : Tile_Op<"map_elementwise", [SingleBlock, RecursivelySpeculatable, RecursiveMemoryEffects]> {
  let summary = "applies a region on scalars to all elements";
  let description = [{
    The region takes `pack` scalars of the first source, then of the second and so on, and yields `pack` scalars of each result in
    the same order. Which elements of a source come together is not said. All sources and results have one shape.

    ```mlir
    %0 = tile.map_elementwise(%x) pack 1 { ^bb0(%a: f32):
      %b = arith.mulf %a, %a : f32
      tile.yield %b : f32
    } : (tensor<64xf32>) -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$sources, ConfinedAttr<I32Attr, [IntPositive]>:$pack);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $sources `)` `pack` $pack $body attr-dict `:` functional-type($sources, $results)";
  let hasVerifier = 1;
}

def Tile_ExternCallOp : Tile_Op<"extern_call", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a function of a device library, applied to scalars or to the elements of tensors of one shape";
  let description = [{
    Called once for each element. `isPure`: it neither reads nor writes memory, so that calls may be merged, moved and removed.

    ```mlir
    %1 = tile.extern_call "__nv_tanhf"(%a) {isPure} : (tensor<16xf32>) -> tensor<16xf32>
    ```
  }];
  let arguments = (ins StrAttr:$symbol, Variadic<Tile_Any>:$args, UnitAttr:$isPure);
  let results = (outs Tile_Any:$result);
  let assemblyFormat = "$symbol `(` $args `)` attr-dict `:` functional-type($args, $result)";
  let hasVerifier = 1;
}

def Tile_InlineAsmOp : Tile_Op<"inline_asm", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "assembly of the target, applied to `pack` elements at a time";
  let description = [{
    Operands and results are scalars, or tensors of one shape. Elements narrower than 32 bits share registers: an operand is as many
    registers as `pack` elements fill. Results come first in the constraints. Unless pure it is neither removed nor merged.

    ```mlir
    %2 = tile.inline_asm "mov.b32 $0, $1;" "=r,r"(%s) pack 1 : (f32) -> i32
    ```
  }];
  let arguments = (ins StrAttr:$assembly, StrAttr:$constraints, Variadic<Tile_Any>:$args,
                       ConfinedAttr<I32Attr, [IntPositive]>:$pack, UnitAttr:$isPure);
  let results = (outs Variadic<Tile_Any>:$results);
  let assemblyFormat = "$assembly $constraints `(` $args `)` `pack` $pack attr-dict `:` functional-type($args, $results)";
  let hasVerifier = 1;
}

def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "prints a prefix and values, an element a line, with the place in the grid";
  let description = [{
    `isSigned` says for each value whether its integers have a sign. Pointers print in hexadecimal; with `hex`
    integers do too, and floats as C's %a. Every thread prints a line for a scalar and for a prefix alone.

    ```mlir
    tile.print "x"(%a, %2) {isSigned = array<i1: false, true>} : tensor<16xf32>, i32
    ```
  }];
  let arguments = (ins StrAttr:$prefix, Variadic<Tile_Any>:$args, UnitAttr:$hex, DenseBoolArrayAttr:$isSigned);
  let assemblyFormat = "$prefix `(` $args `)` attr-dict (`:` type($args)^)?";
  let hasVerifier = 1;
}

def Tile_AssertOp : Tile_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "stops the kernel with a message where the condition is false and the mask true";
  let description = [{
    Once for each element. Where `mask` is false nothing is asked. Kernels that are compiled without debugging have none of these.

    ```mlir
    tile.assert %c, "positive" mask %c : tensor<16xi1> mask tensor<16xi1>
    ```
  }];
  let arguments = (ins Tile_BoolLike:$condition, StrAttr:$message, Optional<Tile_BoolLike>:$mask);
  let assemblyFormat = "$condition `,` $message (`mask` $mask^)? attr-dict `:` type($condition) (`mask` type($mask)^)?";
  let hasVerifier = 1;
}
#endif
