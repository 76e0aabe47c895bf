//===- AxisPlans.cpp - Reduce and scan along an axis, in one canonical order --------------------------------*- C++ -*-===//
//
// Reads the owners of the axis bits, lowest first.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/AxisPlans.h"

#include <algorithm>

namespace ditron::layout {

bool ReducePlan::needsSharedMemory() const {
  return std::any_of(steps.begin(), steps.end(), [](const ReduceStep &step) { return step.dim >= MachineDim::Warp; });
}

ReducePlan makeReducePlan(const DistributedLayout &source, int axis, ReduceOrder order) {
  ReducePlan plan;
  plan.result = source.dropAxis(axis);
  int removed = 0; // register bits of this axis are adjacent in the canonical order, and those below are gone already
  std::vector<int> bits = source.axisBits(axis);
  for (size_t axisBit = 0; axisBit < bits.size(); ++axisBit) {
    BitOwner owner = source.owner(bits[axisBit]);
    int position = owner.dim == MachineDim::Reg ? owner.position - removed++ : owner.position;
    plan.steps.push_back({static_cast<int>(axisBit), owner.dim, position});
  }
  // The register steps keep their order among themselves, so their positions stay right.
  if (order == ReduceOrder::NearestFirst)
    std::stable_sort(plan.steps.begin(), plan.steps.end(),
                     [](const ReduceStep &a, const ReduceStep &b) { return a.dim < b.dim; });
  return plan;
}

std::vector<ScanStep> makeScanPlan(const DistributedLayout &source, int axis) {
  std::vector<ScanStep> steps;
  uint32_t lower[numMachineDims] = {};
  std::vector<int> bits = source.axisBits(axis);
  for (size_t axisBit = 0; axisBit < bits.size(); ++axisBit) {
    BitOwner owner = source.owner(bits[axisBit]);
    ScanStep step{static_cast<int>(axisBit), owner.dim, owner.position};
    step.regSet = lower[static_cast<int>(MachineDim::Reg)];
    step.laneSet = lower[static_cast<int>(MachineDim::Lane)];
    step.warpSet = lower[static_cast<int>(MachineDim::Warp)];
    uint32_t own = 1u << owner.position;
    step.regClear = owner.dim == MachineDim::Reg ? own : 0;
    step.laneClear = owner.dim == MachineDim::Lane ? own : 0;
    step.warpClear = owner.dim == MachineDim::Warp ? own : 0;
    lower[static_cast<int>(owner.dim)] |= own;
    steps.push_back(step);
  }
  return steps;
}

} // namespace ditron::layout
