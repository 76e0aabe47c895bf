//===- TileAddresses.h - Addresses and bounds of a tile of a tensor -------------------------------------------*- C++ -*-===//
//
// What block pointers, and those accesses through tensor descriptors that have no operation of their own, expand to: a block
// of pointers and a mask. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_TILEADDRESSES_H
#define DITRON_FRONTEND_TILEADDRESSES_H

#include "ditron/frontend/Emitter.h"

namespace ditron::frontend {

/// A tile of a tensor in global memory. Sizes and strides are int64 scalars, one per dimension. A position is where the tile
/// begins in its dimension, an int64 scalar, or an int64 block of rank 1 that lists the coordinates one by one.
struct StridedTile {
  LangValue base; ///< A scalar pointer to the tensor's first element.
  llvm::ArrayRef<LangValue> sizes, strides, positions;
  llvm::ArrayRef<int64_t> shape; ///< Of the tile.
};

/// The addresses of the tile's elements:
///   base + sum of scalar positions * strides + sum of (arange or listed coordinates) * strides
/// The first sum is one scalar, and all that changes when a loop moves the tile; the second does not depend on the loop.
LangValue tilePointers(Emitter &emit, const StridedTile &tile);
/// Which elements lie inside of the tensor, judged by some dimensions; poison if there are none to judge by.
LangValue tileMask(Emitter &emit, const StridedTile &tile, llvm::ArrayRef<int64_t> dims);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_TILEADDRESSES_H
