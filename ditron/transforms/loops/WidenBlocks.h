//===- WidenBlocks.h - Two warpgroups for sums that one has no registers for ---------------------------------*- C++ -*-===//
//
// Which kernels may have more warps than their author says.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_WIDENBLOCKS_H
#define DITRON_TRANSFORMS_WIDENBLOCKS_H

#include "mlir/IR/BuiltinOps.h"

namespace ditron::transforms {

/// True if what a module of one warpgroup computes does not depend on the number of its warps, and two can do all dots that one can.
bool mayHaveTwoWarpgroups(mlir::ModuleOp module);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_WIDENBLOCKS_H
