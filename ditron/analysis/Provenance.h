//===- Provenance.h - Which pointers lead to other ranks -------------------------------------------------*- C++ -*-===//
//
// A pointer from dist.symm_at leads to another rank's memory, and so does all that is computed from it: sums, casts, selects,
// what branches and loops hand on. symm_at of the own rank gives the own memory.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_PROVENANCE_H
#define DITRON_ANALYSIS_PROVENANCE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace ditron::analysis {

/// The values that `value` becomes by way of `use`: results of the operation, arguments and results of the regions that it
/// enters or leaves.
llvm::SmallVector<mlir::Value> flowsTo(mlir::OpOperand &use);

class PeerPointers {
public:
  explicit PeerPointers(mlir::Operation *root);

  /// The dist.symm_at that a pointer comes from on some path, or null.
  mlir::Operation *sourceOf(mlir::Value pointer) const { return sources.lookup(pointer); }

private:
  llvm::DenseMap<mlir::Value, mlir::Operation *> sources;
};

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_PROVENANCE_H
