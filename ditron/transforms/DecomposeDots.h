//===- DecomposeDots.h - Dots that no instruction does as they stand ----------------------------------------*- C++ -*-===//
//
// The pass tile-decompose-dots: what it does is said above its implementation.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_DECOMPOSEDOTS_H
#define DITRON_TRANSFORMS_DECOMPOSEDOTS_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace ditron::transforms {

/// Rewrites dots of higher precisions, batches of one and multiply-add dots that are too deep. Runs before every pass that
/// chooses instructions for dots; needs dgpu.num_warps.
std::unique_ptr<mlir::Pass> createDecomposeDots();
void registerDecomposeDots();

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_DECOMPOSEDOTS_H
