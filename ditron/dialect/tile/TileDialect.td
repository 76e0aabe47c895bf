//===- TileDialect.td - The device-independent tensor dialect ----------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_TILE_DIALECT_TD
#define DITRON_DIALECT_TILE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::ditron::tile";
  let summary = "Tensor operations of the kernel language, without layouts or targets";
  let description = [{
    `tile` holds what the Triton language says about blocks of values and is not already in `arith`, `math`, `scf` or
    `func`: program identity, index ranges, shape manipulation, memory accesses through tensors of pointers, atomics, dot
    products, reductions and scans. Values are builtin tensors of static power-of-two shape, or scalars. One program (a
    thread block) computes a whole tensor; how it is spread over threads is decided later by an encoding on the tensor
    type (`dgpu`), about which no op of this dialect knows anything. Integers are signless: signedness lives in the
    operations, as in `arith`.

    Elementwise arithmetic on tensors uses `arith` and `math` directly. See RATIONALE.md for why.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::func::FuncDialect"];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}
#endif
