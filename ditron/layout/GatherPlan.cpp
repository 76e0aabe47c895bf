//===- GatherPlan.cpp - Elements chosen by indices along an axis ----------------------------------------------------------===//
//
// See GatherPlan.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/GatherPlan.h"

#include <algorithm>

namespace ditron::layout {

GatherPlan makeGatherPlan(const DistributedLayout &source, const DistributedLayout &index, int axis, int maxShuffles) {
  GatherPlan plan;
  const size_t ownBits = index.numTensorBits(), valueBits = source.axisBits(axis).size();
  for (auto *bases : {&plan.valueLanes, &plan.valueRegs, &plan.valueOffsets})
    bases->assign(valueBits, 0);
  for (auto *bases : {&plan.ownLanes, &plan.ownRegs, &plan.ownOffsets})
    bases->assign(ownBits, 0);

  plan.isWithinWarp = true;
  plan.isWithinThread = true;
  for (int bit = 0; bit < source.numTensorBits(); ++bit) {
    const BitOwner owner = source.owner(bit);
    const bool isAlongAxis = source.axisOf(bit) == axis;
    // The input bit that decides this bit of the source: one of the value, or of the own position.
    int input = source.bitInAxis(bit);
    if (!isAlongAxis)
      input = lowestBitOfAxis(index.shape(), source.axisOf(bit)) + input;
    const bool isSamePlace = !isAlongAxis && index.owner(input) == owner;
    (isAlongAxis ? plan.valueOffsets : plan.ownOffsets)[input] = int64_t(1) << bit;
    switch (owner.dim) {
    case MachineDim::Reg:
      (isAlongAxis ? plan.valueRegs : plan.ownRegs)[input] = int64_t(1) << owner.position;
      if (isAlongAxis || index.owner(input).dim != MachineDim::Reg)
        plan.unknownRegBits.push_back(owner.position);
      break;
    case MachineDim::Lane:
      (isAlongAxis ? plan.valueLanes : plan.ownLanes)[input] = int64_t(1) << owner.position;
      plan.isWithinThread = plan.isWithinThread && isSamePlace;
      break;
    case MachineDim::Warp:
    case MachineDim::Block:
      plan.isWithinWarp = plan.isWithinWarp && isSamePlace;
      break;
    }
  }
  plan.isWithinThread = plan.isWithinThread && plan.isWithinWarp;
  std::sort(plan.unknownRegBits.begin(), plan.unknownRegBits.end());
  if (plan.unknownRegBits.size() > 12 || (int64_t(index.numRegs()) << plan.unknownRegBits.size()) > maxShuffles)
    plan.isWithinWarp = plan.isWithinThread = false;
  return plan;
}

ExchangeMasks makeExchangeMasks(const DistributedLayout &layout, int axis, int64_t mask) {
  ExchangeMasks masks;
  uint32_t *ofDim[] = {&masks.regs, &masks.lanes, &masks.warps, &masks.blocks};
  for (int bit : layout.axisBits(axis)) {
    if (!(mask >> layout.bitInAxis(bit) & 1))
      continue;
    const BitOwner owner = layout.owner(bit);
    *ofDim[static_cast<int>(owner.dim)] |= 1u << owner.position;
  }
  return masks;
}

DistributedLayout makeSplittable(const DistributedLayout &source) {
  const BitOwner owner = source.owner(0);
  if (owner.dim == MachineDim::Reg)
    return source;
  std::vector<int> bases[numMachineDims];
  for (int dim = 0; dim < numMachineDims; ++dim)
    bases[dim] = source.bases(static_cast<MachineDim>(dim));
  std::vector<int> &regs = bases[0];
  // Registers are ascending: the lowest bit moves least data between distant threads.
  int moved = zeroBasis;
  if (!regs.empty()) {
    moved = regs.front();
    regs.erase(regs.begin());
  }
  regs.insert(regs.begin(), 0);
  bases[static_cast<int>(owner.dim)][owner.position] = moved;
  return DistributedLayout(source.shape(), bases[0], bases[1], bases[2], bases[3]);
}

} // namespace ditron::layout
