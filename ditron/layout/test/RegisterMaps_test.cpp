//===- RegisterMaps_test.cpp --------------------------------------------------------------------------------*- C++ -*-===//
//
// Renaming registers for trans, broadcast, join and split, checked element by element.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/RegisterMaps.h"
#include "RandomLayouts.h"

#include <gtest/gtest.h>

using namespace ditron::layout;

namespace {

/// Calls check(reg, lane, warp) for every place of a layout.
template <typename Function> void forEachPlace(const DistributedLayout &layout, Function check) {
  for (int warp = 0; warp < layout.numWarps(); ++warp)
    for (int lane = 0; lane < layout.numLanes(); ++lane)
      for (int reg = 0; reg < layout.numRegs(); ++reg)
        check(reg, lane, warp);
}

TEST(RegisterMaps, Permute) {
  RandomLayouts random(1);
  for (int i = 0; i < 100; ++i) {
    DistributedLayout source = random.layout(random.shape(), 4, 1);
    std::vector<int> order(source.rank());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random.random);
    DistributedLayout result = source.permute(order);
    std::vector<int> map = permuteRegisters(source, order);
    forEachPlace(result, [&](int reg, int lane, int warp) {
      std::vector<int64_t> to = result.coordinates(result.apply(reg, lane, warp));
      std::vector<int64_t> from = source.coordinates(source.apply(map[reg], lane, warp));
      for (int d = 0; d < source.rank(); ++d)
        ASSERT_EQ(to[d], from[order[d]]);
    });
  }
}

TEST(RegisterMaps, Broadcast) {
  RandomLayouts random(2);
  for (int i = 0; i < 200; ++i) {
    Shape narrow = random.below(2) ? Shape{16, 1} : Shape{1, 4, 1};
    Shape wide = narrow;
    for (int64_t &size : wide)
      if (size == 1)
        size = 1 << random.below(4);
    // Both directions of inference: from the source, and from the result.
    bool forward = random.below(2);
    DistributedLayout result = forward ? random.layout(narrow, 3, 2).broadcastTo(wide) : random.layout(wide, 3, 2);
    DistributedLayout source = result.dropBroadcast(narrow);
    ASSERT_TRUE(isFreeBroadcast(source, result));
    std::vector<int> map = broadcastRegisters(source, result);
    forEachPlace(result, [&](int reg, int lane, int warp) {
      std::vector<int64_t> c = result.coordinates(result.apply(reg, lane, warp));
      for (size_t d = 0; d < c.size(); ++d)
        c[d] %= narrow[d];
      ASSERT_EQ(source.apply(map[reg], lane, warp), source.pack(c));
    });
  }
}

TEST(RegisterMaps, BroadcastThatMovesDataIsNotFree) {
  DistributedLayout source({4, 1}, {}, {0, 1}, {});
  EXPECT_FALSE(isFreeBroadcast(source, DistributedLayout({4, 4}, {0, 1}, {3, 2}, {})));
  EXPECT_TRUE(isFreeBroadcast(source, DistributedLayout({4, 4}, {0, 1}, {2, 3}, {})));
  EXPECT_FALSE(isFreeBroadcast(source, DistributedLayout({4}, {}, {0, 1}, {})));
  EXPECT_FALSE(isFreeBroadcast(source, DistributedLayout({8, 1}, {2}, {0, 1}, {})));
}

TEST(RegisterMaps, JoinAndSplit) {
  RandomLayouts random(3);
  for (int i = 0; i < 100; ++i) {
    DistributedLayout source = random.layout(random.shape(), 3, 1);
    DistributedLayout joined = source.join();
    std::vector<JoinedRegister> map = joinRegisters(source);
    forEachPlace(joined, [&](int reg, int lane, int warp) {
      int64_t packed = joined.apply(reg, lane, warp);
      ASSERT_EQ(map[reg].operand, packed & 1);
      ASSERT_EQ(source.apply(map[reg].reg, lane, warp), packed >> 1);
    });
    for (int which : {0, 1}) {
      std::vector<int> half = splitRegisters(joined, which);
      forEachPlace(source, [&](int reg, int lane, int warp) {
        ASSERT_EQ(joined.apply(half[reg], lane, warp), source.apply(reg, lane, warp) << 1 | which);
      });
    }
  }
}

} // namespace
