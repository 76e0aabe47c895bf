//===- Swizzle_test.cpp -------------------------------------------------------------------------------------*- C++ -*-===//
//
// The swizzle solver and the hardware swizzles, judged by counting banks.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "RandomLayouts.h"
#include "ditron/layout/Builders.h"
#include "ditron/layout/SharedLayout.h"

#include <gtest/gtest.h>

using namespace ditron::layout;

namespace {

TEST(BankCounter, KnownPatterns) {
  int rowMajor[] = {1, 0}, columnMajor[] = {0, 1};
  SharedLayout plain = plainShared({32, 32}, rowMajor, 32);
  EXPECT_EQ(countBankConflicts(tile({32, 32}, rowMajor, 1, 32, 1), plain).worst, 1);
  DistributedLayout columns = tile({32, 32}, columnMajor, 1, 32, 1);
  EXPECT_EQ(countBankConflicts(columns, plain, 32, 32).worst, 32);
  EXPECT_EQ(countBankConflicts(columns, plain).worst, 8); // vectors of 4 along the row: 8 lanes per phase
  BankConflicts vector = countBankConflicts(tile({32, 32}, rowMajor, 4, 32, 1), plain);
  EXPECT_EQ(vector.worst, 1);
  EXPECT_EQ(vector.wavefronts, vector.ideal);
  EXPECT_EQ(vector.ideal, 32); // 4096 bytes at 128 bytes per wavefront
  // Lanes that read the same word, or bytes of the same word, do not conflict.
  EXPECT_EQ(countBankConflicts(tile({4}, rowMajorOrder(1), 1, 32, 1), plainShared({4}, rowMajorOrder(1), 8)).worst, 1);
  // The textbook transpose n ^ m of 16x32 with pairs of columns: two-way conflicts.
  DistributedLayout pairs({16, 32}, {1, 2, 3, 4}, {5, 6, 7, 8, 0}, {});
  F2Matrix textbook = {1, 2, 4, 8, 16, 32 | 1, 64 | 2, 128 | 4, 256 | 8};
  EXPECT_EQ(countBankConflicts(pairs, SharedLayout({16, 32}, 32, textbook)).worst, 2);
  F2Matrix doubled = {1, 2, 4, 8, 16, 32 | 2, 64 | 4, 128 | 8, 256 | 16};
  EXPECT_EQ(countBankConflicts(pairs, SharedLayout({16, 32}, 32, doubled)).worst, 1);
}

TEST(Swizzle, HardwareSwizzlesServeRowsAndFragments) {
  int rowMajor[] = {1, 0};
  struct Case {
    MmaKind kind;
    int bits;
  };
  for (Case each : {Case{MmaKind::M16N8K16B16, 16}, Case{MmaKind::M16N8K8TF32, 32}, Case{MmaKind::M16N8K32B8, 8}})
    for (int swizzle : {32, 64, 128}) {
      int64_t k = std::max<int64_t>(swizzle * 8 / each.bits, mmaShape(each.kind).k);
      Shape shape = {64, k};
      SharedLayout shared = swizzledShared(shape, rowMajor, each.bits, swizzle);
      DistributedLayout rows = tile(shape, rowMajor, 128 / each.bits, 32, 4);
      DistributedLayout fragment = *mmaLayout(each.kind, DotOperand::A, {64, 8, k}, {4, 1});
      EXPECT_EQ(countBankConflicts(rows, shared).worst, 1) << shared.toString();
      EXPECT_EQ(countBankConflicts(fragment, shared).worst, 1) << shared.toString();
    }
}

TEST(Swizzle, SolverMakesTransposeFree) {
  DistributedLayout src({16, 32}, {5, 6, 7, 8}, {0, 1, 2, 3, 4}, {});
  DistributedLayout dst({16, 32}, {1, 2, 3, 4}, {5, 6, 7, 8, 0}, {});
  SharedLayout shared = chooseSwizzle(src, dst, 32);
  ASSERT_TRUE(shared.verify().isOk());
  EXPECT_EQ(countBankConflicts(src, shared).worst, 1);
  EXPECT_EQ(countBankConflicts(dst, shared).worst, 1);
}

TEST(Swizzle, SolverIsFreeOfConflictsOnRandomPairs) {
  RandomLayouts random(5);
  for (int i = 0; i < 1200; ++i) {
    Shape shape = {int64_t(1) << (6 + random.below(6))};
    int warpBits = random.below(4), laneBits = random.below(4) == 0 ? 6 : 5, percent = random.below(2) ? 100 : 75;
    int elementBits = 8 << random.below(4), banks = random.below(4) == 0 ? 64 : 32;
    DistributedLayout src = random.layout(shape, laneBits, warpBits, percent);
    DistributedLayout dst = random.layout(shape, laneBits, warpBits, percent);
    SharedLayout shared = chooseSwizzle(src, dst, elementBits, banks);
    ASSERT_TRUE(shared.verify().isOk()) << shared.verify().message();
    int accessBits = elementBits << commonVectorBits(src, dst, elementBits);
    for (const DistributedLayout *side : {&src, &dst}) {
      ASSERT_EQ(countBankConflicts(*side, shared, banks, accessBits).worst, 1)
          << src.toString() << "\n" << dst.toString() << "\n" << shared.toString() << "\nbanks " << banks;
      ASSERT_EQ(makeOffsetPlan(*side, shared, accessBits).vecElems * elementBits, accessBits);
    }
  }
}

} // namespace
