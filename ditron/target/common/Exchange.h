//===- Exchange.h - Values of other threads ---------------------------------------------------------------*- C++ -*-===//
//
// The primitives by which tile operations move values between the threads of a block: shuffles of many values at once, packed
// into as few words as the target's shuffle takes, and a round trip through shared memory for data that crosses warps.
// Reductions, scans, conversions and atomics are loops over these.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_EXCHANGE_H
#define DITRON_TARGET_COMMON_EXCHANGE_H

#include "ditron/target/common/TargetInfo.h"

namespace ditron::target {

/// Values side by side in a word, an integer type that has room for them, the first one lowest; each takes its width, at least a byte.
mlir::Value packWord(Emitter &e, mlir::ValueRange values, mlir::Type word);
/// The values of these types that packWord has put there.
llvm::SmallVector<mlir::Value> unpackWord(Emitter &e, mlir::Value word, llvm::ArrayRef<mlir::Type> types);

/// The same registers of another lane: the lane that `kind` and `operand` (i32) name. Values of any scalar types. All lanes
/// of the warp take part.
llvm::SmallVector<mlir::Value> shuffleValues(Emitter &e, TargetInfo &target, dist::ShuffleKind kind,
                                             mlir::ValueRange values, mlir::Value operand);

/// The registers of the lane whose id differs in bit `position`.
llvm::SmallVector<mlir::Value> exchangeLaneBit(Emitter &e, TargetInfo &target, mlir::ValueRange values, int position);

/// One group of values of equal type in a round trip through shared memory.
struct SharedSlots {
  int64_t offsetBytes; ///< From the base of shared memory.
  mlir::ValueRange values;
};

/// Through shared memory: every thread (where `writes`, null for all, is true) stores its values, value r of thread t at
/// offsetBytes + (r * threads + t) * bytes; block barrier; every thread loads those of thread `source` (i32).
llvm::SmallVector<llvm::SmallVector<mlir::Value>> exchangeThroughShared(Emitter &e, TargetInfo &target,
                                                                        llvm::ArrayRef<SharedSlots> groups, int threads,
                                                                        mlir::Value source, mlir::Value writes);

/// Values that only the representatives of `layout` have, to all threads that hold copies: to other lanes by a shuffle, to other warps through the scratch memory
/// of `op` (analysis/Scratch.h) and a block barrier, of which `hadBarrier` tells. `threads`: of the block, or of the partition that `op` is in.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> giveToCopies(Emitter &e, TargetInfo &target, mlir::Operation *op,
                                                             const layout::DistributedLayout &layout,
                                                             mlir::ValueRange values, int threads, bool &hadBarrier);

/// One side of such a round trip, with `slots` numbered places for each value: value r of slot s lies at
/// offsetBytes + (r * slots + s) * bytes. Stores the caller's values in `slot` (i32) where `writes` (null for always) is true.
void storeToSlots(Emitter &e, TargetInfo &target, llvm::ArrayRef<SharedSlots> groups, int slots, mlir::Value slot,
                  mlir::Value writes);
/// Loads what lies in slot + distance, values of the types of `groups`.
llvm::SmallVector<llvm::SmallVector<mlir::Value>> loadFromSlots(Emitter &e, TargetInfo &target,
                                                                llvm::ArrayRef<SharedSlots> groups, int slots,
                                                                mlir::Value slot, int64_t distance = 0);

/// The address of a byte of shared memory.
mlir::Value sharedAddress(Emitter &e, TargetInfo &target, int64_t offsetBytes);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_EXCHANGE_H
