//===- WarpSlots.h - Values of other warps, as the scratch plan says ----------------------------------------*- C++ -*-===//
//
// One round trip of a reduction or scan through shared memory (analysis::WarpExchange): the threads whose values somebody reads store
// them in numbered slots; after the barrier every thread loads slots of its choice.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_WARPSLOTS_H
#define DITRON_TARGET_COMMON_WARPSLOTS_H

#include "ditron/analysis/Scratch.h"
#include "ditron/target/common/Exchange.h"

namespace ditron::target {

class WarpSlots {
public:
  /// `values` (operand -> registers) are what this thread stores; `offsetBytes` is where the operation's scratch memory begins.
  WarpSlots(Emitter &e, TargetInfo &target, const analysis::WarpExchange &exchange, int64_t offsetBytes,
            llvm::ArrayRef<llvm::SmallVector<mlir::Value>> values);

  /// Stores, then the block's barrier.
  void storeAndWait();

  /// The slot (i32) that the bits of a lane's and a warp's id name; other bits do not matter.
  mlir::Value slotOf(mlir::Value lane, mlir::Value warp);
  /// What a bit of the warp's id adds to the slot.
  int64_t distanceOf(int warpBit) const;

  /// The values (operand -> registers) of the slot that lies `distance` behind `slot`.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> load(mlir::Value slot, int64_t distance = 0);

private:
  /// True (i1) in the threads that store; null when all do.
  mlir::Value stores();

  Emitter &e;
  TargetInfo &target;
  const analysis::WarpExchange &exchange;
  llvm::SmallVector<SharedSlots> groups;
};

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_WARPSLOTS_H
