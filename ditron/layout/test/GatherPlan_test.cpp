//===- GatherPlan_test.cpp - Gathers and exchanges find every element -----------------------------------------------------===//
#include "ditron/layout/GatherPlan.h"

#include "ditron/layout/Builders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ditron::layout {
namespace {

/// Random owners for all bits of a shape: two register bits at least stay possible, some lanes and warps hold copies.
DistributedLayout randomLayout(std::mt19937 &random, Shape shape, int laneBits, int warpBits) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  std::vector<int> bits(log2Exact(elements));
  for (size_t i = 0; i < bits.size(); ++i)
    bits[i] = static_cast<int>(i);
  std::shuffle(bits.begin(), bits.end(), random);
  std::vector<int> lanes(laneBits, zeroBasis), warps(warpBits, zeroBasis), regs;
  for (int bit : bits) {
    size_t place = random() % (laneBits + warpBits + 2);
    if (place < lanes.size() && lanes[place] == zeroBasis)
      lanes[place] = bit;
    else if (place >= lanes.size() && place < lanes.size() + warps.size() && warps[place - lanes.size()] == zeroBasis)
      warps[place - lanes.size()] = bit;
    else
      regs.push_back(bit);
  }
  return DistributedLayout(std::move(shape), regs, lanes, warps);
}

int64_t image(const std::vector<int64_t> &bases, int64_t input) {
  int64_t result = 0;
  for (size_t bit = 0; bit < bases.size(); ++bit)
    if (input >> bit & 1)
      result ^= bases[bit];
  return result;
}

TEST(GatherPlan, FindsEveryElement) {
  std::mt19937 random(7);
  int withinWarp = 0;
  for (int round = 0; round < 600; ++round) {
    const int axis = round % 3;
    Shape shape = {2, 4, 8}, indexShape = shape;
    indexShape[axis] = int64_t(1) << random() % 4;
    DistributedLayout source = randomLayout(random, shape, 3, 1);
    DistributedLayout index = randomLayout(random, indexShape, 3, 1);
    if (round % 2 == 0 && indexShape == shape)
      index = source;
    GatherPlan plan = makeGatherPlan(source, index, axis, /*maxShuffles=*/1 << 12);
    withinWarp += plan.isWithinWarp;
    for (int warp = 0; warp < 2; ++warp)
      for (int lane = 0; lane < 8; ++lane)
        for (int reg = 0; reg < index.numRegs(); ++reg) {
          const int64_t position = index.apply(reg, lane, warp), value = random() % shape[axis];
          std::vector<int64_t> coordinates = index.coordinates(position);
          coordinates[axis] = value;
          const int64_t wanted = source.pack(coordinates);
          EXPECT_EQ(image(plan.valueOffsets, value) ^ image(plan.ownOffsets, position), wanted);
          if (!plan.isWithinWarp)
            continue;
          const int sourceLane = static_cast<int>(image(plan.valueLanes, value) ^ image(plan.ownLanes, position));
          const int sourceReg = static_cast<int>(image(plan.valueRegs, value) ^ image(plan.ownRegs, position));
          EXPECT_EQ(source.apply(sourceReg, sourceLane, warp), wanted);
          if (plan.isWithinThread) {
            EXPECT_EQ(source.apply(sourceReg, lane, warp), wanted);
          }
          // What is called known is the same for all threads.
          int64_t unknown = 0;
          for (int bit : plan.unknownRegBits)
            unknown |= int64_t(1) << bit;
          EXPECT_EQ((sourceReg ^ image(plan.ownRegs, index.applyDim(MachineDim::Reg, reg))) & ~unknown, 0);
        }
  }
  EXPECT_GT(withinWarp, 20);
}

TEST(GatherPlan, ManyRegistersGoThroughSharedMemory) {
  DistributedLayout layout = tile({4096}, rowMajorOrder(1), 1, 32, 1);
  EXPECT_FALSE(makeGatherPlan(layout, layout, 0).isWithinWarp);
  DistributedLayout small = tile({64}, rowMajorOrder(1), 1, 32, 1);
  EXPECT_TRUE(makeGatherPlan(small, small, 0).isWithinWarp);
}

TEST(ExchangeMasks, ReachThePartner) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    DistributedLayout layout = randomLayout(random, {8, 16}, 3, 2);
    const int axis = round % 2;
    const int64_t mask = random() % layout.shape()[axis];
    ExchangeMasks masks = makeExchangeMasks(layout, axis, mask);
    for (int warp = 0; warp < 4; ++warp)
      for (int lane = 0; lane < 8; ++lane)
        for (int reg = 0; reg < layout.numRegs(); ++reg) {
          std::vector<int64_t> coordinates = layout.coordinates(layout.apply(reg, lane, warp));
          coordinates[axis] ^= mask;
          EXPECT_EQ(layout.apply(reg ^ int(masks.regs), lane ^ int(masks.lanes), warp ^ int(masks.warps)),
                    layout.pack(coordinates));
        }
  }
}

TEST(Splittable, PutsTheLastBitIntoARegister) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    DistributedLayout layout = randomLayout(random, {8, 4, 2}, 3, 2);
    DistributedLayout splittable = makeSplittable(layout);
    EXPECT_TRUE(splittable.verify().isOk()) << splittable.toString();
    EXPECT_TRUE(splittable.split().has_value()) << splittable.toString();
    EXPECT_EQ(splittable.numLanes(), 8);
    EXPECT_EQ(splittable.numWarps(), 4);
  }
  DistributedLayout pair({2}, {}, {0, -1}, {-1});
  EXPECT_EQ(makeSplittable(pair), DistributedLayout({2}, {0}, {-1, -1}, {-1}));
}

} // namespace
} // namespace ditron::layout
