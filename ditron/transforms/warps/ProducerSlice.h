//===- ProducerSlice.h - What a producer warp must run of a kernel ------------------------------------------*- C++ -*-===//
//
// A producer runs only what its copies need: the control flow around them, scalar arithmetic for their offsets, scalar loads
// that these depend on, and waits for data that others make. The slice says whether a kernel can be cut like this; pruneToSlice
// cuts a copy of its body.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_PRODUCERSLICE_H
#define DITRON_TRANSFORMS_PRODUCERSLICE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace ditron::transforms {

/// Collects what values depend on. All functions return the reason if a producer cannot have something, else nothing.
class ProducerSlice {
public:
  explicit ProducerSlice(mlir::Operation *kernel);

  /// A scalar and all that it depends on.
  std::string addValue(mlir::Value value);
  /// The elements of a tile, each by itself (ElementValue.h).
  std::string addElements(mlir::Value tile);
  /// The loops and branches around an operation.
  std::string addControlAround(mlir::Operation *op);
  /// A dist.wait, to be run by the producer as well.
  std::string addWait(mlir::Operation *wait);
  /// The tokens on the way from a kernel argument to a pointer or descriptor.
  std::string addTokensOf(mlir::Value pointerOrDescriptor);
  /// Why `reader` may not read data at `pointer` ahead of the kernel's own writes and of what orders them; `readsAfterWait`: a wait orders the read.
  std::string whyNotAhead(mlir::Operation *reader, mlir::Value pointer, bool readsAfterWait);

  /// The operations with side effects that belong to the slice: scalar loads and waits.
  const llvm::SetVector<mlir::Operation *> &effects() const { return sliceEffects; }

private:
  mlir::Operation *kernel;
  llvm::SmallVector<mlir::Operation *> writes, synchronisations; ///< Of the kernel's own, in its order.
  llvm::DenseSet<mlir::Value> values;
  llvm::DenseSet<mlir::Operation *> controls;
  llvm::SetVector<mlir::Operation *> sliceEffects;
};

/// Erases everything from `body` but the operations in `kept` (those with side effects) and what they depend on.
void pruneToSlice(mlir::Block &body, const llvm::DenseSet<mlir::Operation *> &kept);
/// Erases unused operations without effects, unused values of loops and branches, until nothing changes. `keepsScalars`: loops go on
/// carrying their scalars, by which dgpu-join-loops tells that two are alike.
void eraseDeadCode(mlir::Block &body, bool keepsScalars = false);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_PRODUCERSLICE_H
