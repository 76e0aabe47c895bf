//===- DgpuDialect.td - Layouts, shared memory, conversions ------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_DGPU_DIALECT_TD
#define DITRON_DIALECT_DGPU_DIALECT_TD

include "mlir/IR/OpBase.td"

def Dgpu_Dialect : Dialect {
  let name = "dgpu";
  let cppNamespace = "::ditron::dgpu";
  let summary = "How tiles lie in registers and shared memory";
  let description = [{
    After layout assignment every tensor type carries a `#dgpu.layout`: which register, lane and warp holds which element, as
    a linear map over bits (DESIGN.md decision 3, spec/linear_layouts.md). `dgpu` adds what that level needs beside `tile`:
    conversions between layouts, buffers in shared memory and asynchronous copies into them.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::ditron::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}
#endif
