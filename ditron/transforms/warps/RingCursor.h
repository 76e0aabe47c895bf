//===- RingCursor.h - The place in a ring of slots that control flow carries --------------------------------*- C++ -*-===//
//
// A ring of tiles guarded by mbarriers is walked by its producer and its consumer in the same order. Both know their place by two
// numbers, the slot and the parity of the mbarrier's phase, and carry them through every loop and branch around.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_RINGCURSOR_H
#define DITRON_TRANSFORMS_RINGCURSOR_H

#include "mlir/IR/Builders.h"

namespace ditron::transforms {

/// i32 values.
struct RingCursor {
  mlir::Value slot, parity;
};

/// The cursors at the beginnings of `blocks`, for a ring of `slots` of which a run of one of them uses one; a block that is named several times
/// uses as many, one after the other. It starts at slot 0, parity 0 at the beginning of `top`, which contains them, moves on with each use, and
/// is carried through all scf.for and scf.if around. Those are replaced by others with more values; blocks stay. No block contains another one.
llvm::SmallVector<RingCursor> threadRing(mlir::Block *top, llvm::ArrayRef<mlir::Block *> blocks, int64_t slots,
                                         mlir::Location loc);

/// The slot before `slot`.
mlir::Value slotBefore(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value slot, int64_t slots);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_RINGCURSOR_H
