//===- NeededRows.h - Is a part of a tile used at all? --------------------------------------------------------*- C++ -*-===//
//
// Kernels of matrix products let indices wrap around, `(first + arange) % M`, for which their loads need no masks: the rows behind the last one are
// those of other tiles, and are multiplied for nothing, since the store has a mask.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_NEEDEDROWS_H
#define DITRON_TRANSFORMS_NEEDEDROWS_H

#include "ditron/analysis/AffineTiles.h"

namespace ditron::transforms {

/// True if elements of the tile beyond the limit change nothing that the kernel stores: they go through dots and functions of single elements, and are
/// masked away in the end. The limit must be the same in all turns.
bool isNeededBelow(mlir::Value tile, const analysis::IndexLimit &limit);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_NEEDEDROWS_H
