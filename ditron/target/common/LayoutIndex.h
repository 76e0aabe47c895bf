//===- LayoutIndex.h - Which element do I hold? -----------------------------------------------------------*- C++ -*-===//
//
// Turns layouts into address arithmetic. The packed index of the element in register r of a thread is
//   threadPart(lane, warp) | registerPart(r)
// where the thread part is computed once with a few shifts and masks and the register part is a constant. The bits of the
// two are disjoint, so `or`, `xor` and `add` are the same.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_LAYOUTINDEX_H
#define DITRON_TARGET_COMMON_LAYOUTINDEX_H

#include "ditron/layout/LinearLayout.h"
#include "ditron/target/common/TargetInfo.h"

namespace ditron::target {

/// The image of `id` (i32) under the map whose input bit b reaches bases[b] (any set of bits, none for 0):
/// bits that move by the same distance are moved together, one mask and one shift per distance.
mlir::Value mapBits(Emitter &e, mlir::Value id, llvm::ArrayRef<int64_t> bases);

/// The part of the packed index that this thread's lane and warp give, i32.
mlir::Value threadPart(Emitter &e, TargetInfo &target, const layout::DistributedLayout &layout);
/// The part that a register gives.
int64_t registerPart(const layout::DistributedLayout &layout, int reg);

/// True (i1) in the one thread, among those that hold copies of the same elements, that may store and do atomics. Null when
/// there are no copies.
mlir::Value isRepresentative(Emitter &e, TargetInfo &target, const layout::DistributedLayout &layout);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_LAYOUTINDEX_H
