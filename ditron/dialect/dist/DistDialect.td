//===- DistDialect.td - Ranks, symmetric memory, signals, thread level -------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_DIST_DIALECT_TD
#define DITRON_DIALECT_DIST_DIALECT_TD

include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::ditron::dist";
  let summary = "Distributed semantics of the kernel language, and its thread level";
  let description = [{
    `dist` says which rank a kernel runs on, where the peers' copies of symmetric memory are, how blocks signal each other and
    wait, and what a single thread does. The semantics follow OpenSHMEM; the names follow the language.

    Memory model in short (docs/memory-model.md in full): `dist.notify` orders all earlier stores of the whole block before
    the signal, at the scope of its receiver. `dist.wait` is an acquire for the whole block and is never removed, merged or
    moved: it has a write effect. `dist.consume_token` makes a value depend on a wait, so that loads through it follow it.

    Thread-level operations run once per thread that reaches them; their results differ between threads ("varying").
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::ditron::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
}
#endif
