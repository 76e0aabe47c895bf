//===- LoopArguments.h - Adding and removing values that a loop carries -------------------------------------*- C++ -*-===//
//
// Small rewrites of scf.for for passes that change what it carries.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_LOOPARGUMENTS_H
#define DITRON_TRANSFORMS_LOOPARGUMENTS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ditron::transforms {

/// The loop with more carried values; the new arguments come last and are yielded unchanged until the caller sets the operands
/// of the yield. The old loop is gone.
mlir::scf::ForOp addLoopArguments(mlir::scf::ForOp loop, mlir::ValueRange inits);

/// The loop without carried values that only serve to compute themselves, and without the operations that did so. The old
/// loop is gone if there were any. `keepsScalars`: only tensors go.
mlir::scf::ForOp removeDeadLoopArguments(mlir::scf::ForOp loop, bool keepsScalars = false);

/// The stages that the author wants of a loop: its attribute tile.num_stages, else dgpu.num_stages of the module, else 1.
int pipelineStagesOf(mlir::scf::ForOp loop);

/// The branch with more results, last; `otherwise` are those of the region that does not have `ofBlock`. The old branch is gone.
mlir::scf::IfOp addBranchResults(mlir::scf::IfOp branch, mlir::Block *ofBlock, mlir::ValueRange values,
                                 mlir::ValueRange otherwise);

/// The branch without results that nobody uses. The old branch is gone if there were any.
mlir::scf::IfOp removeDeadBranchResults(mlir::scf::IfOp branch);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_LOOPARGUMENTS_H
