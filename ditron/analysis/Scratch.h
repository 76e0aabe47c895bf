//===- Scratch.h - Shared memory that an operation's own lowering needs --------------------------------------*- C++ -*-===//
//
// Some operations move data between warps while they are lowered: convert_layout, reduce and scan across warps, atomics whose
// old value every thread gets, and volatile loads of tiles of which warps hold copies. They do it in scratch memory, at the attribute `offset_bytes`. This file is the only place that
// says how many bytes and how they are laid out; shared-memory allocation, barrier insertion and lowering all ask here, so
// they cannot disagree.
//
// Layout of the scratch memory, in bytes from offset_bytes:
//   convert_layout   as its plan says (layout::SharedExchange), one round trip: store, barrier, load.
//   reduce, scan     one region per round across warps (see WarpExchange), so that no barrier is needed between the loads of
//                    one round and the stores of the next: store region 0, barrier, load region 0, store region 1, ...
//                    With a combine region whose effects give results (an atomic's old value), a last region hands the results
//                    of the threads that performed it to the others; map_elementwise has just this one.
//   gather           across warps: the source in row-major order, one round trip. An exchange (tile/ExchangeAttr.h) across warps:
//                    as a step of a scan.
//   bitonic          across warps: rounds of a few registers each (networkRoundRegisters), register r of a round, thread t at
//                    (r * threads + t) * elementBytes: barrier, store, barrier, load.
//   histogram        the bins, 4 bytes each: zeros, barrier, counting, barrier, loads.
//   atomics          scalar: the old value at 0, written by thread 0. Tensor (volatile loads, too), when warps hold copies: register r of thread t
//                    at (r * threads + t) * elementBytes, written by representatives, then barrier, then read by everyone
//                    at its representative's place (t with the free bits cleared).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_SCRATCH_H
#define DITRON_ANALYSIS_SCRATCH_H

#include "ditron/layout/AxisPlans.h"
#include "ditron/layout/ConvertPlan.h"
#include "ditron/layout/GatherPlan.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"

#include <cstdint>
#include <optional>

namespace mlir {
class Operation;
}

namespace ditron::analysis {

/// Bytes between elements of a type in shared memory: 1 for i1, 8 for pointers and indices.
int64_t sharedElementBytes(mlir::Type elementType);
/// The same in bits; this is the `elementBits` that layout::makePlan gets for a tensor of that element type.
int sharedElementBits(mlir::Type elementType);

/// The plan of a dgpu.convert_layout whose types carry layouts.
layout::ConvertPlan convertPlanOf(mlir::Operation *convertLayout);

/// The plan of a tile.reduce whose types carry layouts: what is nearest first, or the canonical tree where the ordering asks for it.
/// Combines that are one integer operation or one extreme need no tree, since every order gives the same value (of two zeros, an
/// extreme of floats may give either).
layout::ReducePlan reducePlanOf(mlir::Operation *reduce);

/// The plan of a tile.gather whose types carry layouts and that is not an exchange.
layout::GatherPlan gatherPlanOf(mlir::Operation *gather);

/// True for an operation within a region on scalars (of a reduction, scan or map): its work is that of single threads.
bool isInScalarRegion(mlir::Operation *op);
/// True for an operation without regions that does something besides computing and reading.
bool isScalarEffect(mlir::Operation *op);
/// True if the region of a reduce, scan or map has side effects.
bool regionHasEffects(mlir::Operation *op);
/// True if the results of such effects are used: then only threads that perform them know what the region yields.
bool regionUsesEffects(mlir::Operation *op);

/// One round trip of a reduce or scan through shared memory. Threads whose values nobody reads, among them all but one of those that
/// hold copies, store nothing: the bits `slotLanes` of the lane and `slotWarps` of the warp number the slots, lanes first, and the
/// threads whose other bits are `storingLanes` and `storingWarps` store. Register r of operand o of slot s lies at
/// operandOffsets[o] + (r * slots() + s) * bytes of o's element; in a scan the registers are scanSourceRegisters. Offsets count from the
/// op's offset_bytes and are multiples of 16.
struct WarpExchange {
  int registers; ///< Per operand.
  uint32_t slotLanes, slotWarps;
  uint32_t allWarps; ///< All bits of warps' ids.
  uint32_t storingLanes = 0, storingWarps = 0;
  int levels = 1;                 ///< Of a reduction: how many it does, see layout::WarpRound.
  std::vector<int> laneBits = {}; ///< Of a reduction, from the round.
  llvm::SmallVector<int64_t> operandOffsets = {};

  int slots() const { return 1 << (llvm::popcount(slotLanes) + llvm::popcount(slotWarps)); }
};
/// The registers, ascending, whose values a step of a scan combines with others.
llvm::SmallVector<uint32_t> scanSourceRegisters(const layout::ScanStep &step, int numRegs, bool reverse);

/// The exchanges of a tile.reduce (its rounds), tile.scan (its steps that cross warps), tile.map_elementwise or exchange whose types
/// carry layouts; empty when it stays within warps. The last one hands out results if that is necessary (see above).
llvm::SmallVector<WarpExchange> warpExchangesOf(mlir::Operation *op);

/// How many registers of a thread a tile.bitonic sends to other warps at once: so many that a round takes at most 32 KiB, a power of
/// two; 0 when no step crosses warps.
int64_t networkRoundRegisters(mlir::Operation *bitonic);

/// Bytes of scratch memory that the lowering of `op` needs; 0 for an operation that needs none (buffers are not scratch).
int64_t scratchBytes(mlir::Operation *op);

/// The barrier that the lowering of an op with scratch has between its stores and its loads. Only convert_layout may do with
/// a warp-level one. Nothing for ops without scratch.
std::optional<layout::BarrierScope> scratchBarrier(mlir::Operation *op);

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_SCRATCH_H
