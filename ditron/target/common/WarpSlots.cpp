//===- WarpSlots.cpp - Values of other warps, as the scratch plan says ----------------------------------------------------===//
//
// See WarpSlots.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/WarpSlots.h"

#include "ditron/target/common/LayoutIndex.h"

using namespace mlir;

namespace ditron::target {

/// For mapBits: bit i of an id, if it is in the mask, becomes the next bit of the number, from bit `first` on.
static SmallVector<int64_t> packingBases(uint32_t mask, int first) {
  SmallVector<int64_t> bases;
  for (int bit = 0; mask >> bit != 0; ++bit)
    bases.push_back(mask >> bit & 1 ? int64_t(1) << first++ : 0);
  return bases;
}

WarpSlots::WarpSlots(Emitter &e, TargetInfo &target, const analysis::WarpExchange &exchange, int64_t offsetBytes,
                     ArrayRef<SmallVector<Value>> values)
    : e(e), target(target), exchange(exchange) {
  for (auto [operand, operandOffset] : llvm::zip_equal(values, exchange.operandOffsets))
    groups.push_back({offsetBytes + operandOffset, operand});
}

Value WarpSlots::stores() {
  // Ids that exist have no other bits than those of the machine; an empty complement needs no test.
  auto hasBits = [&](Value id, uint32_t all, uint32_t slotBits, uint32_t storing) -> Value {
    if (uint32_t others = all & ~slotBits)
      return e.compare(LLVM::ICmpPredicate::eq, e.bitAnd(id, e.i32(static_cast<int32_t>(others))), e.i32(storing));
    return {};
  };
  Value lane = hasBits(target.laneId(e), target.warpSize() - 1, exchange.slotLanes, exchange.storingLanes);
  Value warp = hasBits(target.warpId(e), exchange.allWarps, exchange.slotWarps, exchange.storingWarps);
  return e.conjunction(lane, warp);
}

void WarpSlots::storeAndWait() {
  storeToSlots(e, target, groups, exchange.slots(), slotOf(target.laneId(e), target.warpId(e)), stores());
  target.blockBarrier(e);
}

Value WarpSlots::slotOf(Value lane, Value warp) {
  Value lanes = mapBits(e, lane, packingBases(exchange.slotLanes, 0));
  return e.bitOr(lanes, mapBits(e, warp, packingBases(exchange.slotWarps, llvm::popcount(exchange.slotLanes))));
}

int64_t WarpSlots::distanceOf(int warpBit) const {
  const uint32_t lower = exchange.slotWarps & ((1u << warpBit) - 1);
  return int64_t(1) << (llvm::popcount(exchange.slotLanes) + llvm::popcount(lower));
}

SmallVector<SmallVector<Value>> WarpSlots::load(Value slot, int64_t distance) {
  return loadFromSlots(e, target, groups, exchange.slots(), slot, distance);
}

} // namespace ditron::target
