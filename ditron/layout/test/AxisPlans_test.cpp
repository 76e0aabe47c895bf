//===- AxisPlans_test.cpp -----------------------------------------------------------------------------------*- C++ -*-===//
//
// Reductions and scans run from their plans on random layouts with a combine that is not commutative: the expression must be
// the same text whatever the layout, in every copy.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "RandomLayouts.h"
#include "ditron/layout/AxisPlans.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

using namespace ditron::layout;

namespace {

using Place = std::tuple<int, int, int>; // reg, lane, warp
using Texts = std::map<Place, std::string>;

Texts namesOf(const DistributedLayout &layout) {
  Texts texts;
  for (int warp = 0; warp < layout.numWarps(); ++warp)
    for (int lane = 0; lane < layout.numLanes(); ++lane)
      for (int reg = 0; reg < layout.numRegs(); ++reg)
        texts[{reg, lane, warp}] = std::to_string(layout.apply(reg, lane, warp)) + ".";
  return texts;
}

std::string combine(const std::string &left, const std::string &right) { return "(" + left + right + ")"; }

int withInserted(int reg, int position, int value) {
  int low = reg & ((1 << position) - 1);
  return (reg ^ low) << 1 | value << position | low;
}

/// The packed index with the axis position replaced.
int64_t onAxis(const DistributedLayout &layout, std::vector<int64_t> coordinates, int axis, int64_t position) {
  coordinates[axis] = position;
  return layout.pack(coordinates);
}

/// One level of a reduction, place by place.
Texts afterStep(const Texts &x, const ReduceStep &step) {
  Texts y;
  const int bit = 1 << step.position;
  for (const auto &[place, value] : x) {
    auto [reg, lane, warp] = place;
    if (step.dim == MachineDim::Reg) {
      if (x.count({withInserted(reg, step.position, 1), lane, warp}))
        y[place] = combine(x.at({withInserted(reg, step.position, 0), lane, warp}),
                           x.at({withInserted(reg, step.position, 1), lane, warp}));
      continue;
    }
    const bool isLane = step.dim == MachineDim::Lane;
    const std::string &other = x.at({reg, isLane ? lane ^ bit : lane, isLane ? warp : warp ^ bit});
    y[place] = (isLane ? lane : warp) & bit ? combine(other, value) : combine(value, other);
  }
  return y;
}

/// One round of a reduction: what each place loads and combines, then the levels between lanes.
Texts afterRound(const Texts &x, const WarpRound &round, const ReducePlan &plan) {
  const ReduceStep *steps = &plan.steps[round.step];
  Texts y;
  for (const auto &[place, value] : x) {
    auto [reg, lane, warp] = place;
    int storingWarp = warp & ~static_cast<int>(round.copyWarps);
    for (int level = 0; level < round.levels; ++level) {
      const int lanePart = level - round.localLevels(), bit = 1 << steps[level].position;
      storingWarp &= ~bit;
      if (lanePart >= 0 && lane >> round.laneBits[lanePart] & 1)
        storingWarp |= bit;
    }
    std::vector<std::string> loaded;
    for (int i = 0; i < 1 << round.localLevels(); ++i) {
      int from = storingWarp;
      for (int level = 0; level < round.localLevels(); ++level)
        from |= (i >> level & 1) << steps[level].position;
      loaded.push_back(x.at({reg, lane & ~static_cast<int>(round.copyLanes), from}));
    }
    for (; loaded.size() > 1; loaded.resize(loaded.size() / 2))
      for (size_t i = 0; i < loaded.size(); i += 2)
        loaded[i / 2] = combine(loaded[i], loaded[i + 1]);
    y[place] = loaded[0];
  }
  for (int laneBit : round.laneBits)
    y = afterStep(y, {0, MachineDim::Lane, laneBit});
  return y;
}

TEST(ReducePlan, RoundsDoAllLevelsAcrossWarps) {
  RandomLayouts random(12);
  for (int i = 0; i < 300; ++i) {
    Shape shape = random.shape();
    int axis = random.below(static_cast<int>(shape.size()));
    DistributedLayout source = random.layout(shape, 3 + random.below(2), random.below(5));
    ReducePlan plan = makeReducePlan(source, axis, i % 2 ? ReduceOrder::NearestFirst : ReduceOrder::Canonical);
    std::vector<WarpRound> rounds = warpRoundsOf(plan, source);
    Texts byStep = namesOf(source), byRound = byStep;
    auto round = rounds.begin();
    for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step) {
      const int registers = std::get<0>(byRound.rbegin()->first) + 1;
      if (round != rounds.end() && round->step == step) {
        ASSERT_EQ(round->registers, registers);
        byRound = afterRound(byRound, *round++, plan);
      } else if (plan.steps[step].dim != MachineDim::Warp) {
        byRound = afterStep(byRound, plan.steps[step]);
      }
      byStep = afterStep(byStep, plan.steps[step]);
    }
    ASSERT_TRUE(round == rounds.end());
    ASSERT_EQ(byRound, byStep) << source.toString() << " axis " << axis;
  }
}

TEST(ReducePlan, OneTreeForAllLayouts) {
  RandomLayouts random(9);
  for (int i = 0; i < 300; ++i) {
    Shape shape = random.shape();
    int axis = random.below(static_cast<int>(shape.size()));
    DistributedLayout source = random.layout(shape, 3 + random.below(2), random.below(3));
    ReducePlan plan = makeReducePlan(source, axis);
    Texts x = namesOf(source);
    bool usesWarps = false;
    for (const ReduceStep &step : plan.steps) {
      usesWarps |= step.dim == MachineDim::Warp;
      x = afterStep(x, step);
    }
    EXPECT_EQ(plan.needsSharedMemory(), usesWarps);
    ASSERT_EQ(plan.result, source.dropAxis(axis));
    ASSERT_EQ(static_cast<int>(x.size()), plan.result.numRegs() * source.numLanes() * source.numWarps());
    for (const auto &[place, value] : x) {
      auto [reg, lane, warp] = place;
      std::vector<int64_t> coordinates = plan.result.coordinates(plan.result.apply(reg, lane, warp));
      coordinates.insert(coordinates.begin() + axis, 0);
      std::vector<std::string> level;
      for (int64_t p = 0; p < shape[axis]; ++p)
        level.push_back(std::to_string(onAxis(source, coordinates, axis, p)) + ".");
      while (level.size() > 1) {
        std::vector<std::string> next;
        for (size_t p = 0; p < level.size(); p += 2)
          next.push_back(combine(level[p], level[p + 1]));
        level = std::move(next);
      }
      ASSERT_EQ(value, level[0]) << source.toString() << " axis " << axis;
    }
  }
}

/// The other order has the same steps and combines each element exactly once, with whatever brackets.
TEST(ReducePlan, NearestFirstOrder) {
  RandomLayouts random(11);
  for (int i = 0; i < 300; ++i) {
    Shape shape = random.shape();
    int axis = random.below(static_cast<int>(shape.size()));
    DistributedLayout source = random.layout(shape, 3 + random.below(2), random.below(3));
    ReducePlan plan = makeReducePlan(source, axis, ReduceOrder::NearestFirst);
    ASSERT_EQ(plan.result, source.dropAxis(axis));
    ASSERT_EQ(plan.steps.size(), makeReducePlan(source, axis).steps.size());
    // Sums of distinct powers of two tell which elements went in.
    std::map<Place, uint64_t> x;
    for (const auto &[place, name] : namesOf(source)) {
      auto [reg, lane, warp] = place;
      x[place] = uint64_t(1) << source.coordinates(source.apply(reg, lane, warp))[axis] % 64;
    }
    if (shape[axis] > 64)
      continue;
    MachineDim previous = MachineDim::Reg;
    for (const ReduceStep &step : plan.steps) {
      EXPECT_GE(step.dim, previous);
      previous = step.dim;
      std::map<Place, uint64_t> y;
      for (const auto &[place, value] : x) {
        auto [reg, lane, warp] = place;
        int bit = 1 << step.position;
        if (step.dim == MachineDim::Reg) {
          if (x.count({withInserted(reg, step.position, 1), lane, warp}))
            y[place] = x[{withInserted(reg, step.position, 0), lane, warp}] +
                       x[{withInserted(reg, step.position, 1), lane, warp}];
          continue;
        }
        bool isLane = step.dim == MachineDim::Lane;
        y[place] = value + x[{reg, isLane ? lane ^ bit : lane, isLane ? warp : warp ^ bit}];
      }
      x = std::move(y);
    }
    const uint64_t all = shape[axis] == 64 ? ~uint64_t(0) : (uint64_t(1) << shape[axis]) - 1;
    for (const auto &[place, value] : x)
      ASSERT_EQ(value, all) << source.toString() << " axis " << axis;
  }
}

TEST(ScanPlan, InclusiveScanInBothDirections) {
  RandomLayouts random(10);
  for (int i = 0; i < 300; ++i) {
    Shape shape = random.shape();
    int axis = random.below(static_cast<int>(shape.size()));
    bool reverse = random.below(2);
    DistributedLayout layout = random.layout(shape, 3 + random.below(2), random.below(3));
    Texts x = namesOf(layout);
    for (const ScanStep &step : makeScanPlan(layout, axis)) {
      Texts y = x;
      for (const auto &[place, value] : x) {
        auto [reg, lane, warp] = place;
        int id = step.dim == MachineDim::Reg ? reg : step.dim == MachineDim::Lane ? lane : warp;
        if (((id >> step.position & 1) != 0) == reverse)
          continue;
        auto source = [&](int own, uint32_t set, uint32_t clear) {
          return static_cast<int>(reverse ? (own | clear) & ~set : (own | set) & ~clear);
        };
        const std::string &other =
            x[{source(reg, step.regSet, step.regClear), source(lane, step.laneSet, step.laneClear),
               source(warp, step.warpSet, step.warpClear)}];
        y[place] = other + value;
      }
      x = std::move(y);
    }
    for (const auto &[place, value] : x) {
      auto [reg, lane, warp] = place;
      std::vector<int64_t> coordinates = layout.coordinates(layout.apply(reg, lane, warp));
      std::string expected;
      int64_t first = reverse ? shape[axis] - 1 : 0, step = reverse ? -1 : 1;
      for (int64_t p = first; p != coordinates[axis] + step; p += step)
        expected += std::to_string(onAxis(layout, coordinates, axis, p)) + ".";
      ASSERT_EQ(value, expected) << layout.toString() << " axis " << axis;
    }
  }
}

} // namespace
