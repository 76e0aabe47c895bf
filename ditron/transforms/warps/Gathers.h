//===- Gathers.h - Asynchronous copies of tiles whose rows lie anywhere --------------------------------------*- C++ -*-===//
//
// A tile of pointers becomes dgpu.async_gather: each thread computes the addresses of what it copies by itself (ElementValue.h). What such an address
// needs of memory, and is computed before the loop, is held in registers (dgpu.gather_rows): a list of rows is read once, not in each turn.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_GATHERS_H
#define DITRON_TRANSFORMS_GATHERS_H

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"

namespace ditron::transforms {

/// What copies the load's tile into a slot, `threads` together. The load stands in an scf.for, of whose tile elementOperands exist back to scalars.
/// Returns the new operations that read memory.
llvm::SmallVector<mlir::Operation *> gatherTile(mlir::OpBuilder &builder, tile::LoadOp load, mlir::Value buffer,
                                                mlir::Value slot, int threads);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_GATHERS_H
