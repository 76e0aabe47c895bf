//===- ElementValue.h - One element of a tile, computed by itself -------------------------------------------*- C++ -*-===//
//
// A tile of addresses or of masks is arithmetic on counters, scalars and other tiles, element by element. So the value at one place can be
// computed as a scalar from the place, by threads that do not hold the tile, with no layout and nothing to exchange:
//
//   ptr + (load(rows + arange(0, 128)) * stride)[:, None] + arange(0, 64)[None, :]
//   at (i, j):    ptr + load(rows + i) * stride + j
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_ELEMENTVALUE_H
#define DITRON_TRANSFORMS_ELEMENTVALUE_H

#include "mlir/IR/Builders.h"

namespace ditron::transforms {

/// The operands of an operation that gives a tile, from whose elements its own can be computed by themselves; nothing if that is not so.
std::optional<llvm::SmallVector<mlir::Value>> elementOperands(mlir::Operation *op);

/// The element of a tile at an index, or null.
using KnownElement = llvm::function_ref<mlir::Value(mlir::Value tile, llvm::ArrayRef<mlir::Value> index)>;

/// The element of a tile at an index, one i32 for each dimension; of a scalar itself. Everything that the tile comes from, back to scalars or to what
/// is `known`, must have elementOperands.
mlir::Value elementAt(
    mlir::OpBuilder &builder, mlir::Value tile, llvm::ArrayRef<mlir::Value> index,
    KnownElement known = [](mlir::Value, llvm::ArrayRef<mlir::Value>) { return mlir::Value(); });

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_ELEMENTVALUE_H
