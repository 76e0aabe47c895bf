//===- DescribeTiles.h - Tiles of dots that come through pointers, as tiles of descriptors --------------------*- C++ -*-===//
//
// What the pass dgpu-describe-tiles does, for those who try it on a copy of a kernel.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_DESCRIBETILES_H
#define DITRON_TRANSFORMS_DESCRIBETILES_H

#include "mlir/IR/BuiltinOps.h"

namespace ditron::transforms {

/// Makes descriptor loads of the module's loads through pointers, where a producer warp then fetches them; `limitBytes`: shared memory of a block. `isSilent`: without remarks.
void describeTiles(mlir::ModuleOp module, int64_t limitBytes, bool isSilent);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_DESCRIBETILES_H
