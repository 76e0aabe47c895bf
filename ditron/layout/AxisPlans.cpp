//===- AxisPlans.cpp - Reduce and scan along an axis, level by level -----------------------------------------*- C++ -*-===//
//
// Reads the owners of the axis bits, lowest first.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/AxisPlans.h"

#include <algorithm>
#include <bit>

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

/// More values than these are not loaded at once: a thread would rather take part in another round.
static constexpr int mostLoadsOfRound = 32;

/// The lowest `count` bits of a mask.
static std::vector<int> lowestBits(uint32_t mask, int count) {
  std::vector<int> bits;
  for (; count > 0; --count, mask &= mask - 1)
    bits.push_back(std::countr_zero(mask));
  return bits;
}

std::vector<WarpRound> warpRoundsOf(const ReducePlan &plan, const DistributedLayout &source) {
  std::vector<WarpRound> rounds;
  int registers = source.numRegs();
  uint32_t copyLanes = source.freeMask(MachineDim::Lane), copyWarps = source.freeMask(MachineDim::Warp);
  for (auto step = plan.steps.begin(); step != plan.steps.end();) {
    if (step->dim != MachineDim::Warp) {
      registers /= step->dim == MachineDim::Reg ? 2 : 1;
      copyLanes |= step->dim == MachineDim::Lane ? 1u << step->position : 0;
      ++step;
      continue;
    }
    auto isOther = [](const ReduceStep &other) { return other.dim != MachineDim::Warp; };
    const int run = static_cast<int>(std::find_if(step, plan.steps.end(), isOther) - step);
    const int byLanes = std::min(run, std::popcount(copyLanes));
    int local = run - byLanes;
    while (local > 1 && registers << local > mostLoadsOfRound)
      --local;
    rounds.push_back({static_cast<int>(step - plan.steps.begin()), local + byLanes, registers, copyLanes, copyWarps,
                      lowestBits(copyLanes, byLanes)});
    for (int level = 0; level < local + byLanes; ++level, ++step)
      copyWarps |= 1u << step->position;
  }
  return rounds;
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
