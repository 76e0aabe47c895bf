//===- LateWaits.h - Dots are waited for where their results are used ------------------------------------------*- C++ -*-===//
//
// What dgpu-late-waits does to one block, for other passes that start dots together.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_LATEWAITS_H
#define DITRON_TRANSFORMS_LATEWAITS_H

#include "mlir/IR/Block.h"

namespace ditron::transforms {

/// Moves the block's waits for single dots down to the first uses of the results.
void sinkWaits(mlir::Block &block);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_LATEWAITS_H
