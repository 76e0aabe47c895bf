//===- Tile.h - The tile dialect -------------------------------------------------------------------------*- C++ -*-===//
//
// Device-independent tensor operations of the kernel language. The definitions are in the .td files beside this header.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_TILE_TILE_H
#define DITRON_DIALECT_TILE_TILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ditron/dialect/tile/TileDialect.h.inc"
#include "ditron/dialect/tile/TileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ditron/dialect/tile/TileAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ditron/dialect/tile/TileTypes.h.inc"

namespace ditron::tile {
/// Global memory as a side-effect resource: its accesses do not order shared-memory accesses.
struct GlobalMemory : public mlir::SideEffects::Resource::Base<GlobalMemory> {
  llvm::StringRef getName() final { return "GlobalMemory"; }
};

/// `type` with its element type replaced, keeping shape and encoding; a scalar becomes `element` itself.
mlir::Type withElementType(mlir::Type type, mlir::Type element);
/// The element type of a tensor, or the type itself.
mlir::Type elementTypeOf(mlir::Type type);
/// The shape of a tensor; empty for a scalar.
llvm::ArrayRef<int64_t> shapeOf(mlir::Type type);

/// Emits an error unless the atomic operation exists for elements of the type; for verifiers, also those of dist.
llvm::LogicalResult verifyAtomicElement(mlir::Operation *op, AtomicOp kind, mlir::Type element);
llvm::LogicalResult verifyCompareSwapElement(mlir::Operation *op, mlir::Type element);
} // namespace ditron::tile

#define GET_OP_CLASSES
#include "ditron/dialect/tile/TileOps.h.inc"

#endif // DITRON_DIALECT_TILE_TILE_H
