//===- MemoryLayouts.h - Coalesced layouts for memory accesses ----------------------------------------------*- C++ -*-===//
//
// What contiguity, divisibility and constancy say about one access through a tensor of pointers, and the layout that follows
// when all accesses of the same shape and order agree on a width.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_MEMORYLAYOUTS_H
#define DITRON_TRANSFORMS_MEMORYLAYOUTS_H

#include "ditron/analysis/AxisInfo.h"
#include "ditron/layout/LinearLayout.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/MapVector.h"

#include <map>

namespace ditron::transforms {

/// The pointer operand of tile.load, store and atomics on tensors and of dgpu.async_copy; null for other operations.
mlir::Value accessedPointers(mlir::Operation *op);
/// The mask of such an operation, or null.
mlir::Value accessMask(mlir::Operation *op);
/// The most bytes that one instruction may move per thread.
inline constexpr int64_t maxAccessBytes = 16;

/// How one access walks memory.
struct AccessPattern {
  std::vector<int> order;   ///< Dimensions, fastest first.
  int64_t vectorElems = 1;  ///< Elements along order[0] that one instruction may move, as proved; at most 16 bytes.
  int64_t maskElems = 1;    ///< Elements along order[0] that share one mask value, as proved; without a mask, all.
  int64_t elementBytes = 1; ///< In memory.
};
AccessPattern accessPattern(mlir::Operation *access, const analysis::AxisInfoAnalysis &axisInfo);

/// Chooses one layout for each shape and order that occurs in a kernel. The width is that of the widest access with this shape
/// and order, not more than each thread's share of the tile, so that neighbours in a chain of elementwise operations get the
/// same layout: narrower accesses then need several instructions and waste no sectors.
class MemoryLayouts {
public:
  MemoryLayouts(mlir::Operation *kernel, const analysis::AxisInfoAnalysis &axisInfo, int lanes, int warps);

  layout::DistributedLayout layoutFor(mlir::Operation *access) const;
  const AccessPattern &patternOf(mlir::Operation *access) const { return patterns.find(access)->second; }
  /// All tensor accesses in program order.
  auto accesses() const { return llvm::make_first_range(patterns); }

private:
  int lanes, warps;
  llvm::MapVector<mlir::Operation *, AccessPattern> patterns;
  std::map<std::pair<std::vector<int>, layout::Shape>, int64_t> widest; ///< Elements, by order and shape.
};

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_MEMORYLAYOUTS_H
