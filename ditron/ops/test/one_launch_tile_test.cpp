//===- one_launch_tile_test.cpp - Which tiles products of few rows have ------------------------------------------------------===//
#include "ditron/ops/tensor_parallel/OneLaunch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ditron::ops {
namespace {

TEST(OneLaunchTileChoice, TilesFillTheGpu) {
  runtime::DeviceAttributes h200;
  h200.multiprocessors = 132;
  h200.sharedBytesPerBlock = 227 << 10;
  for (int64_t columns : {4096, 5120, 8192, 16384})
    for (int64_t rows : {1, 8, 16, 32, 64, 128})
      for (uint32_t calls : {1, 2}) {
        const auto shape = chooseOneLaunchTile(rows, columns, DataType::BF16, h200, calls);
        ASSERT_TRUE(shape.has_value()) << rows << " x " << columns;
        const TileConfig &tile = shape->tile;
        const int64_t tiles = ceilDivide(columns, tile.blockN), blocks = tiles * shape->splits;
        const std::string what = fmt::format("{} x {}, {} calls: {}x{}x{} splits {} stages {}", rows, columns, calls,
                                             tile.blockM, tile.blockN, tile.blockK, shape->splits, tile.numStages);
        EXPECT_LE(shape->splits == 1 ? 0 : blocks, 132 / calls) << what;
        // A block's share of the columns is at most a fifth more than it must be.
        const double share = double(tile.blockN) * double(ceilDivide(tiles, 132)) / shape->splits;
        if (calls == 1)
          EXPECT_LE(share, 1.2 * double(columns) / 132 + (columns == 4096 ? 4 : 0)) << what;
        const uint32_t stage = (tile.blockM + tile.blockN) * tile.blockK * 2;
        EXPECT_GE(stage * (tile.numStages - 1), 60u << 10) << what;
        EXPECT_LE(stage * tile.numStages, (shape->splits == 1 && tile.blockM * tile.blockN <= 32 * 64 ? 110u : 210u)
                                              << 10)
            << what;
      }
}

// What was fastest, or within 1 % of it, on an H200 for the weights of AllGather+GEMM on 2, 4 and 8 ranks (docs/ops/ag_gemm.md, "Few rows").
TEST(OneLaunchTileChoice, NoTurnLeavesTheMemoryIdle) {
  runtime::DeviceAttributes h200;
  h200.multiprocessors = 132;
  h200.sharedBytesPerBlock = 227 << 10;
  struct Case {
    int64_t columns;
    uint32_t blockN, splits;
  };
  for (const Case &each :
       {Case{3584, 64, 2}, {7168, 64, 1}, {7392, 64, 1}, {13312, 128, 1}, {14336, 128, 1}, {16384, 64, 1}})
    for (int64_t rows : {1, 8, 32}) {
      const auto shape = chooseOneLaunchTile(rows, each.columns, DataType::BF16, h200, 1);
      ASSERT_TRUE(shape.has_value()) << rows << " x " << each.columns;
      EXPECT_EQ(std::pair(shape->tile.blockN, shape->splits), std::pair(each.blockN, each.splits))
          << rows << " x " << each.columns;
    }
}

} // namespace
} // namespace ditron::ops
