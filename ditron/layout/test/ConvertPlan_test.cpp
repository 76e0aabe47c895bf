//===- ConvertPlan_test.cpp ---------------------------------------------------------------------------------*- C++ -*-===//
//
// Conversion plans run by the interpreter: exhaustively on a small machine, at random on real ones, and the choice of class
// on cases that went wrong in other compilers.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "RandomLayouts.h"
#include "ditron/layout/Builders.h"
#include "ditron/layout/ConvertPlan.h"
#include "ditron/layout/Wgmma.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace ditron::layout;

namespace {

PlanOptions forced(ConvertClass cls) {
  PlanOptions options;
  options.force = cls;
  return options;
}

/// Each warp holds in the source everything that it needs in the destination.
bool warpsHoldWhatTheyNeed(const DistributedLayout &src, const DistributedLayout &dst) {
  auto held = [](const DistributedLayout &layout, int warp) {
    std::set<int64_t> elements;
    for (int lane = 0; lane < layout.numLanes(); ++lane)
      for (int reg = 0; reg < layout.numRegs(); ++reg)
        elements.insert(layout.apply(reg, lane, warp));
    return elements;
  };
  for (int warp = 0; warp < src.numWarps(); ++warp) {
    std::set<int64_t> has = held(src, warp), needs = held(dst, warp);
    if (!std::includes(has.begin(), has.end(), needs.begin(), needs.end()))
      return false;
  }
  return true;
}

TEST(ConvertPlan, AllPairsOfAllSmallLayouts) {
  std::vector<DistributedLayout> layouts = allLayouts(4, 2, 2);
  ASSERT_EQ(layouts.size(), 209u);
  int local = 0, shared = 0;
  for (const DistributedLayout &src : layouts) {
    ThreadValues values = ThreadValues::indicesOf(src);
    for (const DistributedLayout &dst : layouts) {
      ThreadValues expected = ThreadValues::indicesOf(dst);
      ConvertPlan plan = makePlan(src, dst, 32, forced(ConvertClass::Shuffle));
      ASSERT_TRUE(interpret(plan, dst, values) == expected) << src.toString() << "\n" << dst.toString();
      // Complete as well as correct: shared memory exactly where a warp lacks data.
      bool isLocal = warpsHoldWhatTheyNeed(src, dst);
      ASSERT_EQ(plan.cls == ConvertClass::Shared, !isLocal) << src.toString() << "\n" << dst.toString();
      (isLocal ? local : shared)++;
      ConvertPlan throughMemory = makePlan(src, dst, 32, forced(ConvertClass::Shared));
      ASSERT_TRUE(interpret(throughMemory, dst, values) == expected) << src.toString() << "\n" << dst.toString();
      ASSERT_EQ(throughMemory.cls, src == dst ? ConvertClass::None : ConvertClass::Shared);
    }
  }
  EXPECT_EQ(local + shared, 209 * 209);
  EXPECT_GT(local, 2000);
}

TEST(ConvertPlan, RandomPairsWithCopies) {
  RandomLayouts random(11);
  std::map<ConvertClass, int> classes;
  for (int i = 0; i < 3000; ++i) {
    Shape shape = random.shape();
    int laneBits = 3 + random.below(3), warpBits = random.below(3);
    DistributedLayout src = random.layout(shape, laneBits, warpBits), dst = random.layout(shape, laneBits, warpBits);
    ThreadValues values = ThreadValues::indicesOf(src), expected = ThreadValues::indicesOf(dst);
    PlanOptions rounds;
    rounds.maxBytes = 64;
    for (const PlanOptions &options : {PlanOptions(), forced(ConvertClass::Shuffle), forced(ConvertClass::Shared), rounds}) {
      ConvertPlan plan = makePlan(src, dst, 8 << random.below(4), options);
      ASSERT_TRUE(interpret(plan, dst, values) == expected)
          << src.toString() << "\n" << dst.toString() << "\n" << plan.describe();
      ++classes[plan.cls];
    }
  }
  for (ConvertClass cls : {ConvertClass::Select, ConvertClass::Shuffle, ConvertClass::Shared})
    EXPECT_GT(classes[cls], 50) << toString(cls);
}

TEST(ConvertPlan, Classes) {
  DistributedLayout row = tile({64, 64}, rowMajorOrder(2), 4, 32, 4);
  EXPECT_EQ(makePlan(row, row, 32).cls, ConvertClass::None);
  EXPECT_TRUE(makePlan(row, row, 32).steps.empty());
  int columnMajor[] = {0, 1};
  ConvertPlan transposed = makePlan(row, tile({64, 64}, columnMajor, 4, 32, 4), 32);
  ASSERT_EQ(transposed.cls, ConvertClass::Shared);
  EXPECT_EQ(transposed.sharedBytes(), 64 * 64 * 4);
  EXPECT_EQ(transposed.shared->scope, BarrierScope::Block);
  DistributedLayout inBlocks({8}, {0}, {1}, {}, {2}), otherBlocks({8}, {2}, {1}, {}, {0});
  EXPECT_EQ(makePlan(inBlocks, otherBlocks, 32).cls, ConvertClass::CrossBlock);
  EXPECT_EQ(makePlan(inBlocks, inBlocks, 32).cls, ConvertClass::None);
}

TEST(ConvertPlan, DataOfCopiesIsTakenLocally) {
  // A 16x1 pointer tile whose warps hold copies, to one whose warps own rows: triton#11646. No data has to move.
  DistributedLayout copies({16, 1}, {}, {0, 1, 2, 3, zeroBasis}, {zeroBasis, zeroBasis});
  DistributedLayout owned({16, 1}, {}, {0, 1, zeroBasis, zeroBasis, zeroBasis}, {2, 3});
  EXPECT_EQ(makePlan(copies, owned, 64).cls, ConvertClass::Shuffle);
  // Everything in each thread, to one element per thread: selects only.
  DistributedLayout everywhere({16}, {0, 1, 2, 3}, {zeroBasis, zeroBasis}, {zeroBasis, zeroBasis});
  ConvertPlan spread = makePlan(everywhere, DistributedLayout({16}, {}, {0, 1}, {2, 3}), 32);
  EXPECT_EQ(spread.cls, ConvertClass::Select);
  EXPECT_EQ(spread.shuffles, 0);
  EXPECT_EQ(spread.selects, 8 + 4 + 2 + 1);
}

TEST(ConvertPlan, WarpScopeWhenEachWarpKeepsItsPart) {
  DistributedLayout src({1024}, {5, 6, 7}, {0, 1, 2, 3, 4}, {8, 9});
  DistributedLayout dst({1024}, {2, 3, 4}, {0, 1, 5, 6, 7}, {8, 9});
  ConvertPlan plan = makePlan(src, dst, 32, forced(ConvertClass::Shared));
  EXPECT_EQ(plan.shared->scope, BarrierScope::Warp);
  EXPECT_TRUE(interpret(plan, dst, ThreadValues::indicesOf(src)) == ThreadValues::indicesOf(dst));
  // Three lane bits must be exchanged: more than the default allows.
  EXPECT_EQ(makePlan(src, dst, 32).cls, ConvertClass::Shared);
  PlanOptions generous;
  generous.maxExchanges = 3;
  EXPECT_EQ(makePlan(src, dst, 32, generous).cls, ConvertClass::Shuffle);
  generous.barrierCost = 0;
  EXPECT_EQ(makePlan(src, dst, 32, generous).shuffles, 12);
  EXPECT_EQ(makePlan(src, dst, 32, generous).cls, ConvertClass::Shuffle);
}

TEST(ConvertPlan, RoundsReuseTheBuffer) {
  DistributedLayout src({4096}, {7, 8, 9, 10, 11}, {0, 1, 2, 3, 4}, {5, 6});
  DistributedLayout dst({4096}, {3, 4, 9, 10, 11}, {5, 6, 7, 8, 0}, {1, 2});
  PlanOptions options;
  options.maxBytes = 8192;
  options.maxVecBits = 32;
  ConvertPlan plan = makePlan(src, dst, 32, options);
  ASSERT_EQ(plan.cls, ConvertClass::Shared);
  EXPECT_EQ(plan.shared->rounds, 2);
  EXPECT_EQ(plan.shared->bytes, 8192);
  EXPECT_TRUE(interpret(plan, dst, ThreadValues::indicesOf(src)) == ThreadValues::indicesOf(dst));
  EXPECT_EQ(plan.describe(), "shared: 8192 bytes, 32 stores and 32 loads of 32 bits, block barrier, 2 rounds");
}

TEST(ConvertPlan, DescribesShuffles) {
  DistributedLayout src({64}, {5}, {0, 1, 2, 3, 4}, {}), dst({64}, {0}, {5, 1, 2, 3, 4}, {});
  EXPECT_EQ(makePlan(src, dst, 32).describe(), "shuffle: 1 exchanges, 1 shuffles, 3 selects");
  EXPECT_EQ(makePlan(src, src, 32).describe(), "none");
}

TEST(ConvertPlan, NarrowElementsMoveByWords) {
  // The accumulator of one warpgroup multiply as A of another one of 8 bits.
  const auto sums = wgmmaAccumulator({64, 128}, 4);
  ASSERT_TRUE(sums.isOk());
  const auto operand = wgmmaOperandA(*sums, 128, 8);
  ASSERT_TRUE(operand.isOk());
  const ConvertPlan plan = makePlan(*sums, *operand, 8);
  ASSERT_EQ(plan.cls, ConvertClass::Shuffle);
  EXPECT_EQ(plan.shuffles, 24); // 8 words exchanged, then all 16 to other lanes
  EXPECT_EQ(bitsMovedTogether(plan, 8, sums->numRegs()), (std::vector<int>{0, 2})); // columns 1 and 16
  EXPECT_TRUE(interpret(plan, *operand, ThreadValues::indicesOf(*sums)) == ThreadValues::indicesOf(*operand));
  // Neighbours in a register that go to different lanes are no word.
  DistributedLayout src({64}, {0}, {1, 2, 3, 4, 5}, {}), dst({64}, {1}, {0, 2, 3, 4, 5}, {});
  EXPECT_TRUE(bitsMovedTogether(makePlan(src, dst, 16), 16, 2).empty());
}

TEST(ConvertPlan, ExchangesAreFreeOfBankConflicts) {
  // An accumulator to a coalesced store, and a transpose, in the widths that kernels use.
  int columnMajor[] = {0, 1};
  for (int bits : {16, 32}) {
    DistributedLayout mma = *mmaLayout(MmaKind::M16N8K16B16, DotOperand::C, {128, 128, 16}, {2, 2});
    DistributedLayout row = tile({128, 128}, rowMajorOrder(2), 128 / bits, 32, 4);
    DistributedLayout column = tile({128, 128}, columnMajor, 128 / bits, 32, 4);
    for (auto [src, dst] : {std::pair(&mma, &row), std::pair(&row, &mma), std::pair(&row, &column)}) {
      ConvertPlan plan = makePlan(*src, *dst, bits);
      ASSERT_EQ(plan.cls, ConvertClass::Shared);
      int accessBits = plan.shared->store.vecElems * bits;
      EXPECT_EQ(plan.shared->load.vecElems * bits, accessBits);
      EXPECT_EQ(countBankConflicts(*src, plan.shared->layout, 32, accessBits).worst, 1);
      EXPECT_EQ(countBankConflicts(*dst, plan.shared->layout, 32, accessBits).worst, 1);
    }
  }
}

} // namespace
