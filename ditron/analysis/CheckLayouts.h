//===- CheckLayouts.h - Has every tensor a layout? ------------------------------------------------------------*- C++ -*-===//
//
// What comes after layout assignment asks tensors for their registers. The compiler runs its passes in order; who writes IR for
// ditron-opt may not, and is told so.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_CHECKLAYOUTS_H
#define DITRON_ANALYSIS_CHECKLAYOUTS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

namespace mlir {
class Operation;
}

namespace ditron::analysis {

/// Fails after an error at the first operation in `root` with a tensor that has no layout; `user` names what needs them.
llvm::LogicalResult checkLayouts(mlir::Operation *root, llvm::StringRef user);

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_CHECKLAYOUTS_H
