//===- cuda_memory_test.cpp - The free list behind the heaps ------------------------------------------------------===//
#include "ditron/runtime/OffsetAllocator.h"
#include "ditron/runtime/cuda/PtxLog.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace ditron::cuda;
using ditron::runtime::OffsetAllocator;

namespace {

TEST(OffsetAllocator, FirstFitAndMerging) {
  OffsetAllocator offsets(4096, 512);
  EXPECT_EQ(offsets.allocate(1), 0u);
  EXPECT_EQ(offsets.allocate(513), 512u);
  EXPECT_EQ(offsets.allocate(2048), 1536u);
  EXPECT_EQ(offsets.allocate(513), std::nullopt);
  EXPECT_EQ(offsets.largestGap(), 512u);
  EXPECT_TRUE(offsets.free(512));
  EXPECT_FALSE(offsets.free(512));
  EXPECT_FALSE(offsets.free(1024)); // inside a piece, not its begin
  EXPECT_EQ(offsets.allocate(512), 512u);
  EXPECT_TRUE(offsets.free(0));
  EXPECT_TRUE(offsets.free(1536));
  EXPECT_TRUE(offsets.free(512));
  EXPECT_EQ(offsets.usedBytes(), 0u);
  EXPECT_EQ(offsets.allocate(4096), 0u); // one gap again
  EXPECT_EQ(offsets.allocate(1), std::nullopt);
}

TEST(OffsetAllocator, HugeRequestsDoNotOverflow) {
  OffsetAllocator offsets(4096, 512);
  EXPECT_EQ(offsets.allocate(~uint64_t(0)), std::nullopt);
  EXPECT_EQ(offsets.allocate(~uint64_t(0) - 100), std::nullopt);
}

/// Two allocators with one history agree, and pieces never overlap.
TEST(OffsetAllocator, RandomHistories) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    OffsetAllocator first(1 << 20), second(1 << 20);
    std::vector<std::pair<uint64_t, uint64_t>> live;
    std::vector<bool> taken((1 << 20) / 512);
    for (int step = 0; step < 300; ++step) {
      if (live.empty() || random() % 3) {
        const uint64_t bytes = 1 + random() % 20000;
        const auto offset = first.allocate(bytes);
        ASSERT_EQ(offset, second.allocate(bytes));
        if (!offset)
          continue;
        for (uint64_t granule = *offset / 512; granule < (*offset + bytes + 511) / 512; ++granule) {
          ASSERT_FALSE(taken[granule]);
          taken[granule] = true;
        }
        live.emplace_back(*offset, bytes);
      } else {
        const size_t index = random() % live.size();
        const auto [offset, bytes] = live[index];
        ASSERT_TRUE(first.free(offset));
        ASSERT_TRUE(second.free(offset));
        for (uint64_t granule = offset / 512; granule < (offset + bytes + 511) / 512; ++granule)
          taken[granule] = false;
        live.erase(live.begin() + static_cast<ptrdiff_t>(index));
      }
    }
    for (const auto &[offset, bytes] : live)
      ASSERT_TRUE(first.free(offset));
    EXPECT_EQ(first.largestGap(), uint64_t(1) << 20);
  }
}

TEST(PtxLog, WithoutDirectivesOnlyThePtx) {
  EXPECT_EQ(explainPtxLog("ptxas input, line 2; error : x\n", "one;\n  two;\n"),
            "ptxas input, line 2; error : x\n  in the PTX: two;");
  EXPECT_EQ(explainPtxLog("line 99; error", "one;"), "line 99; error");
  EXPECT_EQ(explainPtxLog("", "one;"), "");
}

TEST(PtxLog, TheLastDirectiveAbove) {
  const char *ptx =
      ".file 1 \"a.py\"\n.file 2 \"b.py\"\n.visible .entry k()\n{\n.loc 1 3 1\nadd;\n.loc 2 7 9\nmul;\nsub;\n}\n";
  EXPECT_EQ(explainPtxLog("line 9; error : bad", ptx), "line 9; error : bad\n  at b.py:7:9, in the PTX: sub;");
  EXPECT_EQ(explainPtxLog("line 6; error : bad", ptx), "line 6; error : bad\n  at a.py:3:1, in the PTX: add;");
}

} // namespace
