//===- ConvertPlan.h - How to get from one register layout to another ---------------------------------------*- C++ -*-===//
//
// makePlan decides once how convert_layout moves data; cost model, shared memory allocation, barrier insertion and lowering
// all read the same plan, so they cannot disagree. The plan is exact and mechanical: a lowering emits a few instructions for
// each step, and interpret() below does the same on arrays.
//
// The state of a lowering between steps is an array x of 2^n scalars per thread: register r of the current state. Each step
// maps it to a new array y, possibly of another length. `lane` and `warp` are the thread's own ids.
//
//   SelectStep{regBit, dim, bit}     The thread already holds both values and keeps one. n shrinks by one:
//                                      y[r] = x[insert bit `bit of own lane or warp id` at position regBit of r]
//                                    2^(n-1) selects; no data moves.
//   WarpLaneStep{laneBit, warpBit}   The warp already holds what it needs, in other lanes:
//                                      y[r] = shuffle_idx(x[r], lane with bit laneBit replaced by bit warpBit of warp)
//   ExchangeStep{regBit, laneBit}    Swaps the contents of a register bit and a lane bit. For each r with bit regBit = 0,
//                                    s = r | 1 << regBit, b = bit laneBit of lane:
//                                      recv = shuffle_xor(b ? x[r] : x[s], 1 << laneBit)
//                                      y[r] = b ? recv : x[r];   y[s] = b ? x[s] : recv
//   LanePermuteStep{srcLaneBit}      y[r] = shuffle_idx(x[r], lane' ) where bit srcLaneBit[j] of lane' is bit j of lane, for all
//                                    j; srcLaneBit is a permutation.
//   RenameStep{srcRegOfDstReg}       y[r] = x[srcRegOfDstReg[r]]. Free; also duplicates registers.
//
// The shared path is one record (SharedExchange) and no steps: representatives store, barrier, everyone loads.
//
// Which way is chosen: nothing is sent through shared memory if the warp owns it already; a choice among copies is always the
// local one. Otherwise shuffles, if they are few (PlanOptions), else shared memory.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_CONVERTPLAN_H
#define DITRON_LAYOUT_CONVERTPLAN_H

#include "ditron/layout/SharedLayout.h"

#include <variant>

namespace ditron::layout {

struct SelectStep {
  int regBit;
  MachineDim dim; ///< Lane or Warp.
  int bit;
};
struct WarpLaneStep {
  int laneBit;
  int warpBit;
};
struct ExchangeStep {
  int regBit;
  int laneBit;
};
struct LanePermuteStep {
  std::vector<int> srcLaneBit;
};
struct RenameStep {
  std::vector<int> srcRegOfDstReg;
};
using ConvertStep = std::variant<SelectStep, WarpLaneStep, ExchangeStep, LanePermuteStep, RenameStep>;

/// From cheap to dear.
enum class ConvertClass : uint8_t {
  None,      ///< Equal layouts: no steps.
  Select,    ///< Selects by own lane or warp bits; no data moves.
  Shuffle,   ///< Data moves between lanes of a warp.
  Shared,    ///< Through shared memory.
  CrossBlock ///< Block bits differ: data would have to move between blocks, which no plan does. Lowering must refuse.
};
/// "none", "select", "shuffle", "shared", "cross-block".
std::string_view toString(ConvertClass cls);

/// Whom a barrier between store and load must join.
enum class BarrierScope : uint8_t { Warp, Block };

/// The shared memory path. Emission, for each round q of `rounds` (1 unless PlanOptions::maxBytes asks for more):
///   if q > 0: barrier of `scope`
///   if ((lane & storeLaneFree) == 0 && (warp & storeWarpFree) == 0) for each access of `store` in round q: write its registers
///   barrier of `scope`
///   for each access of `load` in round q: read its registers
/// The accesses of round q are the q-th of `rounds` equal parts of store.accesses and load.accesses. A barrier is also needed
/// before the first store when other threads may still read these bytes; that is for the pass that places barriers. Element
/// type: elements of `layout.elementBits()` (1-bit values are widened to 8, pointers are 64 bits).
struct SharedExchange {
  /// The layout of one round's part of the tile. With one round its shape is the tile's.
  SharedLayout layout;
  OffsetPlan store, load;
  int rounds = 1;
  uint32_t storeLaneFree = 0;
  uint32_t storeWarpFree = 0;
  BarrierScope scope = BarrierScope::Block;
  int64_t bytes = 0;
  int64_t alignment = 16;
};

struct PlanOptions {
  int banks = 32;
  int maxVecBits = 128;
  /// Shuffles are used if there are at most maxExchanges exchanges and no more shuffles than the shared path has accesses
  /// plus barrierCost; else shared memory.
  int maxExchanges = 2;
  int barrierCost = 16;
  /// A larger exchange goes in rounds that reuse the buffer, as far as both layouts have common register bits.
  int64_t maxBytes = int64_t(1) << 40;
  /// For tests and measurements. Shared: even if cheaper ways exist (equal layouts still need nothing). Shuffle: whatever it
  /// costs, unless data must cross warps. Other classes have no effect.
  std::optional<ConvertClass> force;
};

struct ConvertPlan {
  ConvertClass cls = ConvertClass::None;
  std::vector<ConvertStep> steps;       ///< For None to Shuffle.
  std::optional<SharedExchange> shared; ///< For Shared.

  // Cost per thread, for the cost model and for remarks. A shuffle moves a word, of as many registers as registersOfWord says.
  int shuffles = 0;
  int selects = 0;
  int64_t sharedBytes() const { return shared ? shared->bytes : 0; }

  /// One line, for remarks: "shuffle: 1 exchange, 8 shuffles, 24 selects".
  std::string describe() const;
};

/// The plan from `src` to `dst`: same shape, same numbers of lanes, warps and blocks. elementBits may be 1 (stored as 8).
ConvertPlan makePlan(const DistributedLayout &src, const DistributedLayout &dst, int elementBits,
                     const PlanOptions &options = {});

/// Registers of such elements that fill a word of 32 bits, at least one.
int registersOfWord(int elementBits);
/// Register bits, ascending, whose registers fill a word and go the same way in all steps of the plan in front of the first renaming, so that a word
/// may be treated as one register there; empty if there are too few such bits, or elements fill words anyway.
std::vector<int> bitsMovedTogether(const ConvertPlan &plan, int elementBits, int numRegs);

/// The values of all threads of one block: value(reg, lane, warp).
class ThreadValues {
public:
  ThreadValues(int regs, int lanes, int warps)
      : numRegs(regs), numLanes(lanes), numWarps(warps), values(size_t(regs) * lanes * warps) {}
  int64_t &at(int reg, int lane, int warp) { return values[(size_t(warp) * numLanes + lane) * numRegs + reg]; }
  int64_t at(int reg, int lane, int warp) const { return values[(size_t(warp) * numLanes + lane) * numRegs + reg]; }

  /// Each place holds the packed index of its element, as a layout says.
  static ThreadValues indicesOf(const DistributedLayout &layout);

  bool operator==(const ThreadValues &) const = default;

  int numRegs, numLanes, numWarps;

private:
  std::vector<int64_t> values;
};

/// Runs a plan on values, thread by thread, as a lowering would: the test oracle.
ThreadValues interpret(const ConvertPlan &plan, const DistributedLayout &dst, const ThreadValues &values);

} // namespace ditron::layout

#endif // DITRON_LAYOUT_CONVERTPLAN_H
