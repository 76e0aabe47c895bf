//===- all_gather_attention_test.cpp - Attention to the keys of all ranks against plain loops ---------------------------------===//
//
// Whole and causal (zig-zag), tokens that nothing divides, ranks without tokens, grouped heads, several sequences and pieces, both schedules; calls of changing
// sizes, eager and replayed, with a slow rank; the warp-specialised form on the simulated Hopper; what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "attention/TokenAttentionModel.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/sequence_parallel/AllGatherAttention.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::AllGatherAttention;
using ops::AllGatherAttentionOptions;
using ops::TokenSections;
using testing::HasSubstr;

struct AttentionCase {
  const char *name;
  const char *target = nullptr; ///< Null: the target under test.
  uint32_t ranks = 4;
  AllGatherAttentionOptions options = {};
  int64_t tokens = 100;
  int64_t otherTokens = 51;
};
void PrintTo(const AttentionCase &p, std::ostream *stream) { *stream << p.name; }

class AllGatherAttentionTest : public testing::TestWithParam<AttentionCase> {
protected:
  struct Memory {
    Buffer q, k, v, out, lse;
    AllGatherAttention::Operands operands() const { return {.q = q, .k = k, .v = v, .out = out, .lse = lse}; }
  };
  static Buffer put(World &world, uint32_t id, DataType type, std::vector<float> values) {
    if (values.empty())
      values.push_back(0);
    auto buffer = world.rank(id).allocate(type, values.size(), "operand");
    EXPECT_OK(buffer);
    EXPECT_OK(buffer->uploadFloats(values));
    return std::move(buffer).value();
  }
  static std::vector<Memory> memoryFor(World &world, const TokenAttentionModel &data) {
    std::vector<Memory> memory;
    const int64_t depth = GetParam().options.headDim;
    const DataType type = GetParam().options.dtype;
    for (uint32_t r = 0; r < world.numRanks(); ++r) {
      const size_t rows = data.of(data.lse, 1, r).size();
      memory.push_back({put(world, r, type, data.of(data.q, depth, r)), put(world, r, type, data.of(data.k, depth, r)),
                        put(world, r, type, data.of(data.v, depth, r)),
                        put(world, r, type, std::vector<float>(rows * depth, std::nanf(""))),
                        put(world, r, DataType::F32, std::vector<float>(rows, std::nanf("")))});
    }
    return memory;
  }
  static void check(const std::vector<Memory> &memory, const TokenAttentionModel &data, const std::string &what) {
    for (uint32_t r = 0; r < memory.size(); ++r) {
      const std::vector<double> expected = data.of(data.out, GetParam().options.headDim, r),
                                lse = data.of(data.lse, 1, r);
      if (expected.empty())
        continue;
      auto actual = memory[r].out.downloadFloats(), actualLse = memory[r].lse.downloadFloats();
      ASSERT_OK(actual);
      ASSERT_OK(actualLse);
      const ops::Comparison comparison =
          ops::compare(*actual, expected, {GetParam().options.dtype == DataType::BF16 ? 1.6e-2 : 3e-3});
      EXPECT_TRUE(comparison.passed()) << what << ", rank " << r << ": element " << comparison.worstIndex << " is "
                                       << (*actual)[comparison.worstIndex] << ", expected "
                                       << expected[comparison.worstIndex];
      expectClose(*actualLse, lse, 1e-3, 1e-2, what + ", lse");
    }
  }
};

const AllGatherAttentionOptions smallTiles = {.heads = 4,
                                              .kvHeads = 2,
                                              .headDim = 32,
                                              .maxTokens = 140,
                                              .tile = {.blockM = 32, .blockN = 32, .numWarps = 4, .numStages = 2}};
AllGatherAttentionOptions with(AllGatherAttentionOptions options, auto change) {
  change(options);
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    All, AllGatherAttentionTest,
    testing::Values(
        AttentionCase{.name = "whole", .options = smallTiles},
        AttentionCase{.name = "causal", .options = with(smallTiles, [](auto &o) { o.causal = true, o.pieces = 2; })},
        AttentionCase{.name = "sequences_fp16_unfused",
                      .ranks = 3,
                      .options = with(smallTiles,
                                      [](auto &o) {
                                        o.batch = 2, o.heads = 2, o.kvHeads = 1, o.dtype = DataType::F16,
                                        o.causal = true, o.schedule = ops::Schedule::Unfused;
                                      }),
                      .tokens = 70,
                      .otherTokens = 36},
        AttentionCase{.name = "ranks_without_tokens",
                      .options = with(smallTiles, [](auto &o) { o.causal = true; }),
                      .tokens = 5,
                      .otherTokens = 3},
        // The last rank has no queries of 9 tokens, waits for nobody, and has its own keys of 8 where others' of the 9 were.
        AttentionCase{.name = "own_keys_where_others_came", .options = smallTiles, .tokens = 9, .otherTokens = 8},
        AttentionCase{.name = "hopper_causal",
                      .target = "sim:sm_90a",
                      .ranks = 2,
                      .options = with(smallTiles,
                                      [](auto &o) {
                                        o.headDim = 64, o.heads = 2, o.kvHeads = 1, o.causal = true, o.tile.blockM = 64,
                                        o.tile.blockN = 64, o.maxTokens = 400;
                                      }),
                      .tokens = 330,
                      .otherTokens = 166},
        AttentionCase{.name = "hopper_whole",
                      .target = "sim:sm_90a",
                      .ranks = 2,
                      .options = with(smallTiles,
                                      [](auto &o) {
                                        o.headDim = 64, o.heads = 2, o.kvHeads = 2, o.pieces = 2, o.tile.blockM = 64,
                                        o.tile.blockN = 64, o.maxTokens = 300;
                                      }),
                      .tokens = 250,
                      .otherTokens = 126}),
    [](const auto &info) { return info.param.name; });

/// A graph of one size and eager calls of another by turns; the last rank is slow. The same call again has the same bits.
TEST_P(AllGatherAttentionTest, CallsOfTwoSizes) {
  const AttentionCase &p = GetParam();
  if (!p.target)
    REQUIRE_RANKS(p.ranks);
  WorldOptions worldOptions;
  worldOptions.seed = 3;
  worldOptions.slowRanks[p.ranks - 1] = 6;
  auto world = World::local(p.ranks, p.target ? p.target : targetUnderTest(), worldOptions);
  ASSERT_OK(world);
  auto jit = jit::Jit::create((*world)->target());
  ASSERT_OK(jit);
  auto op = AllGatherAttention::create(**world, **jit, p.options);
  ASSERT_OK(op);
  const int64_t sizes[] = {p.tokens, p.otherTokens};
  std::vector<TokenAttentionModel> data;
  std::vector<std::vector<Memory>> memory;
  for (int64_t tokens : sizes) {
    data.emplace_back(p.options, op->sections(tokens), 10 + tokens);
    memory.push_back(memoryFor(**world, data.back()));
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK(op->prepare((*world)->rank(r), tokens, true));
  }
  const auto call = [&](size_t which, uint32_t r) {
    Rank &rank = (*world)->rank(r);
    return op->enqueue(rank, rank.stream(), memory[which][r].operands(), sizes[which]);
  };
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < p.ranks; ++r) {
    runtime::Stream &stream = (*world)->rank(r).stream();
    ASSERT_OK(stream.beginCapture());
    ASSERT_OK(call(0, r));
    auto graph = stream.endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(graph).value());
  }
  std::vector<std::vector<float>> first;
  for (int turn = 0; turn < 2 && !HasFailure(); ++turn) {
    for (uint32_t r = 0; r < p.ranks; ++r) {
      ASSERT_OK((*world)->rank(r).stream().launch(graphs[r]));
      ASSERT_OK(call(1, r));
    }
    ASSERT_OK((*world)->synchronize());
    for (size_t which : {0, 1})
      check(memory[which], data[which], fmt::format("turn {}, {} tokens", turn, sizes[which]));
    for (uint32_t r = 0; r < p.ranks; ++r) {
      auto values = memory[0][r].out.downloadFloats();
      ASSERT_OK(values);
      if (turn == 0)
        first.push_back(*values);
      else
        expectSame(*values, first[r], "again");
    }
  }
  // What is measured without the exchange is the work of the last call.
  for (Memory &own : memory[1])
    ASSERT_OK(own.out.uploadFloats(std::vector<float>(own.out.count(), std::nanf(""))));
  for (uint32_t r = 0; r < p.ranks; ++r)
    ASSERT_OK(op->enqueueWithoutExchange((*world)->rank(r), (*world)->rank(r).stream(), sizes[1], true));
  ASSERT_OK((*world)->synchronize());
  check(memory[1], data[1], "without the exchange");
  EXPECT_THAT(op->enqueueWithoutExchange((*world)->rank(0), (*world)->rank(0).stream(), 1, true).message(),
              HasSubstr("no call with 1 tokens has been made"));
}

struct PackedCase {
  const char *name;
  const char *target = nullptr;
  uint32_t ranks = 3;
  bool causal = true;
  int64_t tokens = 100;
  std::vector<std::vector<int64_t>> offsets; ///< Of each replay.
};
void PrintTo(const PackedCase &p, std::ostream *stream) { *stream << p.name; }

class PackedAllGatherAttention : public testing::TestWithParam<PackedCase> {};

INSTANTIATE_TEST_SUITE_P(
    All, PackedAllGatherAttention,
    testing::Values(
        PackedCase{.name = "causal", .offsets = {{0, 30, 31, 100}, {0, 0, 97, 97}, {0, 5, 50, 80}}},
        PackedCase{.name = "whole", .causal = false, .offsets = {{0, 30, 31, 100}, {0, 100, 100, 100}, {0, 1, 16, 90}}},
        PackedCase{.name = "one_rank", .ranks = 1, .tokens = 60, .offsets = {{0, 60}, {0, 31}}},
        PackedCase{.name = "ranks_without_tokens", .ranks = 4, .tokens = 5, .offsets = {{0, 1, 3, 5}}},
        PackedCase{
            .name = "hopper", .target = "sim:sm_90a", .ranks = 2, .tokens = 210, .offsets = {{0, 70, 75, 75, 205}}}),
    [](const auto &info) { return info.param.name; });

/// One graph, replayed with other lengths: they are on the device only.
TEST_P(PackedAllGatherAttention, LengthsChangeBetweenReplays) {
  const PackedCase &p = GetParam();
  if (!p.target)
    REQUIRE_RANKS(p.ranks);
  WorldOptions worldOptions;
  worldOptions.seed = 5;
  auto world = World::local(p.ranks, p.target ? p.target : targetUnderTest(), worldOptions);
  ASSERT_OK(world);
  AllGatherAttentionOptions options = smallTiles;
  options.causal = p.causal;
  options.maxTokens = p.tokens;
  options.packedSequences = static_cast<int64_t>(p.offsets.front().size()) - 1;
  if (p.target)
    options.headDim = 64, options.heads = 1, options.kvHeads = 1, options.tile.blockM = options.tile.blockN = 64;
  auto op = AllGatherAttention::create(**world, jitFor(p.target ? p.target : targetUnderTest()), options);
  ASSERT_OK(op);
  struct Memory {
    Buffer q, k, v, out, lse, offsets;
  };
  std::vector<Memory> memory(p.ranks);
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < p.ranks; ++r) {
    Rank &rank = (*world)->rank(r);
    const int64_t rows = std::max<int64_t>(op->sections(p.tokens).tokensOf(r), 1);
    const auto allocate = [&](Buffer &buffer, DataType type, int64_t count) {
      auto made = rank.allocate(type, count, "operand");
      ASSERT_OK(made);
      buffer = std::move(made).value();
    };
    Memory &own = memory[r];
    for (Buffer *each : {&own.q, &own.out})
      allocate(*each, options.dtype, rows * options.heads * options.headDim);
    for (Buffer *each : {&own.k, &own.v})
      allocate(*each, options.dtype, rows * options.kvHeads * options.headDim);
    allocate(own.lse, DataType::F32, rows * options.heads);
    allocate(own.offsets, DataType::I32, static_cast<int64_t>(p.offsets.front().size()));
    ASSERT_OK(op->prepare(rank, p.tokens, true));
    ASSERT_OK(rank.stream().beginCapture());
    ASSERT_OK(op->enqueue(rank, rank.stream(),
                          {.q = own.q, .k = own.k, .v = own.v, .out = own.out, .lse = own.lse, .offsets = own.offsets},
                          p.tokens));
    auto graph = rank.stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(graph).value());
  }
  for (size_t replay = 0; replay < p.offsets.size(); ++replay) {
    const TokenAttentionModel data(options, op->sections(p.tokens), 20 + replay, p.offsets[replay]);
    for (uint32_t r = 0; r < p.ranks; ++r) {
      Memory &own = memory[r];
      const std::vector<int32_t> offsets(p.offsets[replay].begin(), p.offsets[replay].end());
      ASSERT_OK(own.offsets.upload(offsets.data(), offsets.size() * sizeof(int32_t)));
      if (op->sections(p.tokens).tokensOf(r) == 0)
        continue;
      ASSERT_OK(own.q.uploadFloats(data.of(data.q, options.headDim, r)));
      ASSERT_OK(own.k.uploadFloats(data.of(data.k, options.headDim, r)));
      ASSERT_OK(own.v.uploadFloats(data.of(data.v, options.headDim, r)));
      ASSERT_OK(own.out.uploadFloats(std::vector<float>(own.out.count(), std::nanf(""))));
      ASSERT_OK(own.lse.uploadFloats(std::vector<float>(own.lse.count(), std::nanf(""))));
    }
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK((*world)->rank(r).stream().launch(graphs[r]));
    ASSERT_OK((*world)->synchronize());
    for (uint32_t r = 0; r < p.ranks; ++r)
      for (auto [buffer, all, width] : {std::tuple(&memory[r].out, &data.out, options.headDim),
                                        std::tuple(&memory[r].lse, &data.lse, int64_t{1})}) {
        const std::vector<double> expected = data.of(*all, width, r);
        auto actual = buffer->downloadFloats();
        ASSERT_OK(actual);
        for (size_t i = 0; i < expected.size(); ++i)
          if (!std::isnan(expected[i])) // padding
            ASSERT_NEAR((*actual)[i], expected[i], 1.6e-2 * (1 + std::abs(expected[i])))
                << "replay " << replay << ", rank " << r << ", element " << i << " of rows of " << width;
      }
  }
}

class AllGatherAttentionRefusals : public KernelTest {};

TEST_F(AllGatherAttentionRefusals, NameWhatIsAccepted) {
  start(1);
  const auto message = [&](auto change) {
    return statusOf(AllGatherAttention::create(world(), sharedJit(), with(smallTiles, change))).message();
  };
  EXPECT_THAT(message([](auto &o) { o.headDim = 80; }),
              HasSubstr("heads of 80 elements; 16, 32, 64, 128 and 256 are accepted"));
  EXPECT_THAT(message([](auto &o) { o.kvHeads = 3; }), HasSubstr("4 heads on 3 heads of K and V"));
  EXPECT_THAT(message([](auto &o) { o.pieces = 3; }), HasSubstr("3 pieces of 2 heads of K and V"));
  EXPECT_THAT(message([](auto &o) { o.scale = -1; }), HasSubstr("the scale -1; positive ones of fp32 are accepted"));
  EXPECT_THAT(message([](auto &o) { o.dtype = DataType::F32; }), HasSubstr("bf16 and fp16 are accepted"));
  EXPECT_THAT(message([](auto &o) { o.tile.blockN = 48; }), HasSubstr("blockN 48; powers of two from 16 to 256"));
  EXPECT_THAT(message([](auto &o) { o.packedSequences = 3, o.batch = 2; }),
              HasSubstr("3 packed sequences in a batch of 2; 1 to 2147483647 are accepted, in a batch of 1"));
  auto op = AllGatherAttention::create(world(), sharedJit(), smallTiles);
  ASSERT_OK(op);
  Buffer data = zeros(DataType::BF16, 4 * 140 * 32);
  const AllGatherAttention::Operands operands = {.q = data, .k = data, .v = data, .out = data};
  EXPECT_THAT(op->enqueue(rank(), rank().stream(), operands, 141).message(),
              HasSubstr("141 tokens; 1 to 140 (maxTokens) are accepted"));
  Buffer offsets = zeros(DataType::I32, 4);
  EXPECT_THAT(
      op->enqueue(rank(), rank().stream(), {.q = data, .k = data, .v = data, .out = data, .offsets = offsets}, 8)
          .message(),
      HasSubstr("offsets of sequences that are not packed"));
  ASSERT_OK(rank().stream().beginCapture());
  EXPECT_THAT(op->enqueue(rank(), rank().stream(), operands, 8).message(),
              HasSubstr("a call with 8 tokens was not prepared"));
  EXPECT_OK(rank().stream().endCapture());
}

TEST(TokenSectionsTest, EveryTokenIsSomebodys) {
  for (int64_t tokens : {1, 5, 16, 63, 64, 100})
    for (uint32_t ranks : {1u, 3u, 4u})
      for (bool zigZag : {false, true}) {
        const TokenSections sections = {tokens, ranks, zigZag};
        std::vector<int> owners(tokens);
        for (uint32_t r = 0; r < ranks; ++r)
          for (uint32_t part = 0; part < sections.parts(); ++part)
            for (int64_t i = 0; i < sections.tokensOf(r, part); ++i)
              ++owners[sections.firstToken(r, part) + i];
        EXPECT_THAT(owners, testing::Each(1)) << tokens << " tokens, " << ranks << " ranks";
      }
}

} // namespace
} // namespace ditron::e2e
