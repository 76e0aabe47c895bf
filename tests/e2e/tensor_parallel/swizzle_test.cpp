//===- swizzle_test.cpp - The order of tiles in the overlapped GEMMs --------------------------------------------------===//
//
// Runs the two threadblock swizzles of kernels/tensor_parallel_gemm for all indices on one simulated GPU and checks what the
// operators rely on: the order is a permutation for any shape, and follows the arrival (AllGather) or the sending
// (ReduceScatter) of the shards. And watches the products themselves: their tiles are stored in the order that the host's functions
// say, by which `ditron swizzle` draws and predictions go.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/CallSchedule.h"
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ditron::e2e {
namespace {

const char *const probe = R"(

@triton.jit
def swizzle_probe(gather_ptr, scatter_ptr, shapes_ptr, WORLD_SIZE: tl.constexpr, NUM_NODES: tl.constexpr, BLOCK_M: tl.constexpr,
                  LIMIT: tl.constexpr):
    # Program x: one shape; program y: one rank.
    M = tl.load(shapes_ptr + 2 * tl.program_id(0))
    rows_per_rank = tl.load(shapes_ptr + 2 * tl.program_id(0) + 1)
    rank = tl.program_id(1)
    at = (tl.program_id(0) * WORLD_SIZE + rank) * LIMIT
    for index in range(tl.cdiv(M, BLOCK_M)):
        tl.store(gather_ptr + at + index, swizzle_all_gather(index, M, rows_per_rank, rank, WORLD_SIZE, NUM_NODES, BLOCK_M))
        tl.store(scatter_ptr + at + index, swizzle_reduce_scatter(index, M, rows_per_rank, rank, WORLD_SIZE, NUM_NODES, BLOCK_M))
)";

struct Shape {
  int32_t m, rowsPerRank;
};

/// (ranks, nodes, block)
class Swizzle : public KernelTest, public testing::WithParamInterface<std::tuple<int, int, int>> {
protected:
  static constexpr int limit = 64;
};

/// How far the owner of a row is from the rank in the order in which shards arrive: own node first, then upwards cyclically,
/// and inside a node likewise from the own local rank.
int arrival(int row, int rowsPerRank, int rank, int ranks, int nodes) {
  const int local = ranks / nodes, owner = std::min(row / rowsPerRank, ranks - 1);
  return (owner / local - rank / local + nodes) % nodes * local + (owner % local - rank % local + local) % local;
}

/// The same for sending: next node's first and own last, next local rank's first and own last.
int departure(int row, int rowsPerRank, int rank, int ranks, int nodes) {
  const int local = ranks / nodes, owner = std::min(row / rowsPerRank, ranks - 1);
  return (owner / local - rank / local - 1 + 2 * nodes) % nodes * local +
         (owner % local - rank % local - 1 + 2 * local) % local;
}

TEST_P(Swizzle, PermutationInOrderOfArrival) {
  auto [ranks, nodes, block] = GetParam();
  std::vector<Shape> shapes;
  for (int m : {1, block - 1, block, block * ranks, block * ranks * 2, block * ranks + 1, block * 3 * ranks - 5, 997,
                23 * block + 7})
    if (m > 0 && (m + block - 1) / block <= limit)
      for (int rows : {(m + ranks - 1) / ranks, (m + ranks - 1) / ranks + 3})
        shapes.push_back({m, rows});
  // Perfect tilings, for which the order must be exact.
  for (int tiles : {1, 2, 3})
    if (tiles * ranks <= limit)
      shapes.push_back({tiles * ranks * block, tiles * block});

  ops::EmbeddedSource embedded = ops::kernelSource("tensor_parallel_gemm");
  ASSERT_FALSE(embedded.text.empty());
  auto function = sharedJit().load({std::string(embedded.path), std::string(embedded.text) + probe}, "swizzle_probe");
  ASSERT_OK(function);
  std::vector<int32_t> words;
  for (Shape shape : shapes)
    words.insert(words.end(), {shape.m, shape.rowsPerRank});
  Buffer shapeBuffer = put(words, "shapes");
  Buffer gather = zeros(DataType::I32, shapes.size() * ranks * limit, "gather"),
         scatter = zeros(DataType::I32, shapes.size() * ranks * limit, "scatter");
  ASSERT_OK(sharedJit().launch(rank().stream(), *function, {.grid = {uint32_t(shapes.size()), uint32_t(ranks), 1}},
                               {{gather, scatter, shapeBuffer},
                                {{"WORLD_SIZE", ranks}, {"NUM_NODES", nodes}, {"BLOCK_M", block}, {"LIMIT", limit}}},
                               {.numWarps = 1, .numStages = 1}));
  ASSERT_OK(world().synchronize());
  std::vector<int32_t> gathered = get<int32_t>(gather), scattered = get<int32_t>(scatter);

  for (size_t s = 0; s < shapes.size(); ++s)
    for (int r = 0; r < ranks; ++r) {
      auto [m, rows] = shapes[s];
      const int tiles = (m + block - 1) / block;
      SCOPED_TRACE(
          fmt::format("M={} rows_per_rank={} rank={} of {} in {} nodes, BLOCK_M={}", m, rows, r, ranks, nodes, block));
      for (bool isGather : {true, false}) {
        auto begin = (isGather ? gathered : scattered).begin() + (s * ranks + r) * limit;
        std::vector<int32_t> order(begin, begin + tiles), sorted = order, identity(tiles);
        std::sort(sorted.begin(), sorted.end());
        std::iota(identity.begin(), identity.end(), 0);
        EXPECT_EQ(sorted, identity) << (isGather ? "gather" : "scatter")
                                    << " order is no permutation: " << testing::PrintToString(order);
        // What predictions take for the order is that of the device code.
        ops::RowShards shards(m, ranks);
        shards.rowsPerRank = rows;
        const std::vector<int64_t> expected = isGather ? ops::allGatherTileRows(shards, r, ranks, nodes, block)
                                                       : ops::reduceScatterTileRows(shards, r, ranks, nodes, block);
        ASSERT_EQ(std::vector<int64_t>(order.begin(), order.end()), expected) << (isGather ? "gather" : "scatter");
        if (rows % block != 0 || m != rows * ranks)
          continue;
        // Every tile lies in one shard: the owners' distances must never fall.
        std::vector<int> distance;
        for (int32_t tile : order)
          distance.push_back(isGather ? arrival(tile * block, rows, r, ranks, nodes)
                                      : departure(tile * block, rows, r, ranks, nodes));
        EXPECT_TRUE(std::is_sorted(distance.begin(), distance.end()))
            << (isGather ? "gather" : "scatter") << " order " << testing::PrintToString(order) << " has distances "
            << testing::PrintToString(distance);
        if (isGather)
          EXPECT_EQ(order.front() * block / rows, r) << "own shard first";
        else
          EXPECT_EQ(order.back() * block / rows, r) << "own segment last";
      }
    }
}
INSTANTIATE_TEST_SUITE_P(Worlds, Swizzle,
                         testing::Values(std::tuple(1, 1, 16), std::tuple(2, 1, 32), std::tuple(2, 2, 32),
                                         std::tuple(3, 1, 16), std::tuple(4, 1, 64), std::tuple(4, 2, 16),
                                         std::tuple(8, 1, 128), std::tuple(8, 2, 32), std::tuple(8, 4, 16),
                                         std::tuple(6, 3, 32)),
                         [](const auto &info) {
                           return fmt::format("ranks{}_nodes{}_block{}", std::get<0>(info.param),
                                              std::get<1>(info.param), std::get<2>(info.param));
                         });

/// The two products as the operators launch them, on one SM, so that their blocks come one after the other. For each tile a stream waits
/// until its first element is there.
TEST_F(KernelTest, SwizzledProductsStoreTheirTilesInTheOrderOfTheHostsFunctions) {
  if (targetUnderTest() != "sim:sm_80")
    GTEST_SKIP() << "needs blocks that come one after the other, and end";
  const ops::EmbeddedSource embedded = ops::kernelSource("tensor_parallel_gemm");
  const std::string text(embedded.text);
  constexpr int32_t block = 32, groupM = 3, n = 64, k = 64;
  for (auto [ranks, nodes, m] : {std::tuple{4, 1, 8 * block}, {4, 2, 301}, {6, 3, 390}, {8, 2, 200}})
    for (int rankNumber : {0, ranks / 2, ranks - 1})
      for (bool gathers : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {} rows, rank {} of {} on {} nodes", gathers ? "gather" : "scatter", m, rankNumber,
                                 ranks, nodes));
        WorldOptions options;
        options.sms = 1;
        options.checkRaces = false; // the streams look at what nothing orders
        start(1, options);
        const ops::RowShards shards(m, ranks);
        const auto rowsPerRank = static_cast<int32_t>(shards.rowsPerRank);
        const int32_t columns = n / block, tiles = (m + block - 1) / block * columns;
        Buffer a = putAs(DataType::F32, std::vector<float>(m * k, 1), "a"),
               b = putAs(DataType::F32, std::vector<float>(k * n, 1), "b"), c = zeros(DataType::F32, m * n, "c"),
               words = zeros(DataType::I64, ranks, "words"), generation = zeros(DataType::I64, 1, "generation"),
               counters = zeros(DataType::I32, ranks, "counters");
        std::vector<runtime::Stream> streams;
        std::vector<runtime::Event> appeared;
        for (int32_t tile = 0; tile < tiles; ++tile) {
          auto stream = rank().createStream("watch");
          ASSERT_OK(stream);
          auto event = rank().createEvent("appeared");
          ASSERT_OK(event);
          const int64_t corner = int64_t(tile / columns) * block * n + tile % columns * block;
          ASSERT_OK(stream->signalWait(c.pointer().as(DataType::I32) + corner, runtime::Compare::NotEqual, 0));
          ASSERT_OK(stream->record(*event));
          streams.push_back(std::move(stream).value());
          appeared.push_back(std::move(event).value());
        }
        auto product = sharedJit().load({std::string(embedded.path), text}, gathers ? "all_gather_gemm" : "gemm_reduce_scatter");
        ASSERT_OK(product);
        // All signals hold already: the generation is 0.
        std::vector<Argument> arguments = {a, b, c};
        if (gathers)
          arguments.insert(arguments.end(), {words, generation, m, n, k, k, n, n, rowsPerRank, rowsPerRank, rankNumber});
        else
          arguments.insert(arguments.end(), {counters, words, m, n, k, k, n, rowsPerRank, rankNumber});
        jit::CallArguments call{arguments,
                                {{"WORLD_SIZE", ranks},
                                 {"NUM_NODES", nodes},
                                 {"BLOCK_M", block},
                                 {"BLOCK_N", block},
                                 {"BLOCK_K", 32},
                                 {"GROUP_SIZE_M", groupM},
                                 {"B_TRANSPOSED", false},
                                 {"PRECISION", std::string("tf32")}}};
        if (gathers)
          call.keywords.emplace_back("CHUNKS", 1);
        ASSERT_OK(sharedJit().launch(rank().stream(), *product, {.grid = {uint32_t(tiles), 1, 1}}, call,
                                     {.numWarps = 4, .numStages = 2}));
        ASSERT_OK(world().synchronize());
        std::vector<int32_t> expected;
        for (const ops::TilePlace &tile :
             ops::tilesInOrder((gathers ? ops::allGatherTileRows : ops::reduceScatterTileRows)(shards, rankNumber,
                                                                                               ranks, nodes, block),
                               columns, groupM))
          expected.push_back(int32_t(tile.row * columns + tile.column));
        std::vector<int64_t> times;
        for (const runtime::Event &event : appeared) {
          auto time = event.time();
          ASSERT_OK(time);
          times.push_back(*time);
        }
        std::vector<int32_t> order(tiles);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::sort(order, {}, [&](int32_t tile) { return times[tile]; });
        std::ranges::sort(times);
        EXPECT_EQ(std::ranges::adjacent_find(times), times.end()) << "two tiles at once: their order is not known";
        expectSame(order, expected);
      }
}

} // namespace
} // namespace ditron::e2e
