//===- Recomputation.h - Values in another layout, computed again ------------------------------------------*- C++ -*-===//
//
// Where a value is wanted in another layout than it has and is cheap, the operations that lead to it are repeated there, from scalars on: that costs
// arithmetic, and no exchange between threads.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_RECOMPUTATION_H
#define DITRON_TRANSFORMS_RECOMPUTATION_H

#include "ditron/layout/LinearLayout.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace ditron::transforms {

/// Of several values, which share what leads to them.
class Recomputation {
public:
  /// True if all operations that lead to the value may be repeated.
  bool isPossible(mlir::Value value);

  /// The value in `layout`, beside the original. Needs isPossible to be true, or the layout to be the value's own.
  mlir::Value in(mlir::Value value, const layout::DistributedLayout &layout);

private:
  llvm::DenseSet<mlir::Value> possible; ///< Or found to be none of it, which ended the question.
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> copies;
};

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_RECOMPUTATION_H
