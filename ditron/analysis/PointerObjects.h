//===- PointerObjects.h - Which arguments a pointer may come from ----------------------------------------*- C++ -*-===//
//
// An object is what a kernel argument points into: an allocation, and on other ranks its symmetric copies. A pointer stays in
// its object through sums, casts, shapes and what branches and loops hand on; one that may be one of several has all their
// objects.
//
//   %p = scf.for ... iter_args(%a = %x, %b = %y) { ... yield %b, %a }      %a may point into the objects of x and of y
//   %q = tile.load %table                                                  anywhere
//
// Two arguments may point into one object: that only a launch can tell.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_POINTEROBJECTS_H
#define DITRON_ANALYSIS_POINTEROBJECTS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <tuple>

namespace mlir {
class Operation;
}

namespace ditron::analysis {

/// The kernel arguments whose objects a pointer may point into.
struct ObjectSet {
  bool anywhere = false;
  llvm::SmallVector<unsigned, 2> arguments; ///< Numbers, ascending; none if `anywhere`.

  /// True if this changed it.
  bool add(const ObjectSet &other);
  bool operator==(const ObjectSet &) const = default;
  bool operator<(const ObjectSet &other) const {
    return std::tie(anywhere, arguments) < std::tie(other.anywhere, other.arguments);
  }
};

/// The objects of all pointers (and tensors of pointers, tensor maps) in an operation with functions.
class PointerObjects {
public:
  explicit PointerObjects(mlir::Operation *root);

  ObjectSet of(mlir::Value pointer) const;
  /// Whether a value is the hidden last argument of a kernel, which nobody writes through (dist-lower-world).
  static bool isWorldView(mlir::Value value);

private:
  llvm::DenseMap<mlir::Value, ObjectSet> objects;
};

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_POINTEROBJECTS_H
