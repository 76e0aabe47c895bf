//===- ring_attention_test.cpp - Attention whose keys go round the ranks, and its gradients, against the plain reference ------===//
//
// Whole and causal (zig-zag), any number of ranks, on one node and on several, packed sequences, tokens that nothing divides, ranks without tokens, grouped heads, several sequences,
// both schedules; calls of two sizes with new data, eager and replayed, with a slow rank; two groups at once; the warp-specialised form on the simulated Hopper;
// the backward behind either forward; what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "attention/TokenAttentionModel.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/sequence_parallel/AllGatherAttention.h"
#include "ditron/ops/sequence_parallel/RingAttention.h"
#include "ditron/ops/sequence_parallel/RingAttentionBackward.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::RingAttention;
using ops::RingAttentionBackward;
using ops::RingAttentionOptions;
using testing::HasSubstr;

struct RingCase {
  const char *name;
  const char *target = nullptr; ///< Null: the target under test.
  uint32_t ranks = 3;
  uint32_t ranksPerNode = 0;
  RingAttentionOptions options = {};
  int64_t tokens = 50;
  int64_t otherTokens = 23;
  std::array<std::vector<int64_t>, 2> offsets = {}; ///< Of packed sequences: of either set of data.
};
void PrintTo(const RingCase &p, std::ostream *stream) { *stream << p.name; }

constexpr ops::HeadAttentionTile smallTile = {.blockM = 16, .blockN = 16, .numWarps = 2, .numStages = 2};
constexpr ops::RingBackwardTiles smallTiles = {.keys = smallTile, .queries = smallTile};

RingAttentionOptions smallOptions(auto change) {
  RingAttentionOptions options = {.heads = 2,
                                  .kvHeads = 1,
                                  .headDim = 16,
                                  .dtype = DataType::F16,
                                  .maxTokens = 60,
                                  .tile = smallTile,
                                  .gather = false};
  change(options);
  return options;
}

class RingAttentionTest : public testing::TestWithParam<RingCase> {
protected:
  struct Memory {
    Buffer q, k, v, out, lse, gradient, dq, dk, dv, offsets;

    RingAttention::Operands forward() const {
      return {.q = q, .k = k, .v = v, .out = out, .lse = lse, .offsets = sequences()};
    }
    RingAttentionBackward::Operands backward() const {
      return {.q = q,
              .k = k,
              .v = v,
              .out = out,
              .lse = lse,
              .gradient = gradient,
              .dq = dq,
              .dk = dk,
              .dv = dv,
              .offsets = sequences()};
    }
    Pointer sequences() const { return GetParam().offsets[0].empty() ? Pointer() : offsets.pointer(); }
  };

  void start() {
    const RingCase &p = GetParam();
    if (!p.target)
      REQUIRE_RANKS(p.ranks);
    WorldOptions options;
    options.seed = 3;
    options.ranksPerNode = p.ranksPerNode;
    if (p.ranks > 1)
      options.slowRanks[p.ranks - 1] = 6;
    auto made = World::local(p.ranks, p.target ? p.target : targetUnderTest(), options);
    ASSERT_OK(made);
    world = std::move(made).value();
  }
  jit::Jit &compiler() { return jitFor(GetParam().target ? GetParam().target : targetUnderTest()); }
  static DataType type() { return GetParam().options.dtype; }
  static int64_t depth() { return GetParam().options.headDim; }

  /// Memory of one call on all ranks.
  std::vector<Memory> allocate(const TokenAttentionModel &data) {
    std::vector<Memory> memory;
    for (uint32_t r = 0; r < world->numRanks(); ++r) {
      const auto some = [&](DataType of, int64_t count) {
        auto buffer = world->rank(r).allocate(of, std::max<int64_t>(count, 1), "operand");
        EXPECT_OK(buffer);
        return std::move(buffer).value();
      };
      const auto own = static_cast<int64_t>(data.of(data.q, depth(), r).size()),
                 ownKeys = static_cast<int64_t>(data.of(data.k, depth(), r).size());
      memory.push_back({some(type(), own), some(type(), ownKeys), some(type(), ownKeys), some(type(), own),
                        some(DataType::F32, own / depth()), some(type(), own), some(type(), own), some(type(), ownKeys),
                        some(type(), ownKeys), some(DataType::I32, static_cast<int64_t>(data.offsets.size()))});
    }
    return memory;
  }
  /// The data's operands, and something else where results will be.
  static void upload(std::vector<Memory> &memory, const TokenAttentionModel &data) {
    for (uint32_t r = 0; r < memory.size(); ++r) {
      Memory &own = memory[r];
      const auto put = [&](Buffer &buffer, const std::vector<float> &all) {
        const std::vector<float> values = data.of(all, depth(), r);
        if (!values.empty())
          EXPECT_OK(buffer.uploadFloats(values));
      };
      put(own.q, data.q), put(own.k, data.k), put(own.v, data.v), put(own.gradient, data.gradient);
      for (Buffer *result : {&own.out, &own.lse, &own.dq, &own.dk, &own.dv})
        EXPECT_OK(result->uploadFloats(std::vector<float>(result->count(), std::nanf(""))));
      const std::vector<int32_t> offsets(data.offsets.begin(), data.offsets.end());
      EXPECT_OK(own.offsets.upload(offsets.data(), offsets.size() * sizeof(int32_t)));
    }
  }
  static std::vector<float> download(const Buffer &buffer) {
    auto values = buffer.downloadFloats();
    EXPECT_OK(values);
    return std::move(values).value();
  }
  /// A rank's part of `all`, judged by how large its elements are on all ranks: of a query that sees one key the gradient is nothing but roundings.
  static void expectRight(const Buffer &buffer, const TokenAttentionModel &data, const std::vector<double> &all,
                          int64_t width, uint32_t r, double tolerance, const std::string &what) {
    std::vector<double> expected = data.of(all, width, r);
    if (expected.empty())
      return;
    std::vector<float> actual = download(buffer);
    double squares = 0;
    for (double value : all)
      squares += std::isnan(value) ? 0 : value * value;
    const std::vector<double> usual(expected.size(), std::sqrt(squares / static_cast<double>(all.size())));
    for (size_t i = 0; i < expected.size(); ++i)
      if (std::isnan(expected[i])) // padding
        expected[i] = actual[i] = 0;
    const ops::Comparison comparison = ops::compare(actual, expected, {tolerance}, usual);
    EXPECT_TRUE(comparison.passed()) << what << ": element " << comparison.worstIndex << " is "
                                     << actual[comparison.worstIndex] << ", expected "
                                     << expected[comparison.worstIndex];
  }
  static void check(const std::vector<Memory> &memory, const TokenAttentionModel &data, const std::string &what) {
    const double tolerance = type() == DataType::BF16 ? 1.6e-2 : 3e-3;
    for (uint32_t r = 0; r < memory.size(); ++r) {
      const Memory &own = memory[r];
      const auto expect = [&](const Buffer &buffer, const std::vector<double> &all, int64_t width, double allowed,
                              const char *result) {
        expectRight(buffer, data, all, width, r, allowed, fmt::format("{}, rank {}, {}", what, r, result));
      };
      expect(own.out, data.out, depth(), tolerance, "out");
      expect(own.lse, data.lse, 1, 1e-3, "lse");
      expect(own.dq, data.dq, depth(), 2 * tolerance, "dq");
      expect(own.dk, data.dk, depth(), 2 * tolerance, "dk");
      expect(own.dv, data.dv, depth(), 2 * tolerance, "dv");
    }
  }

  std::unique_ptr<World> world;
};

INSTANTIATE_TEST_SUITE_P(
    All, RingAttentionTest,
    testing::Values(
        RingCase{.name = "one_rank", .ranks = 1, .options = smallOptions([](auto &o) { o.causal = true; })},
        RingCase{.name = "two_ranks", .ranks = 2, .options = smallOptions([](auto &o) { o.dtype = DataType::BF16; })},
        RingCase{.name = "causal", .ranks = 3, .options = smallOptions([](auto &o) { o.causal = true, o.batch = 2; })},
        RingCase{.name = "five_ranks_unfused", .ranks = 5, .options = smallOptions([](auto &o) {
                                                             o.causal = true, o.schedule = ops::Schedule::Unfused;
                                                           })},
        RingCase{.name = "five_ranks_whole", .ranks = 5, .options = smallOptions([](auto &) {})},
        RingCase{.name = "gathered", .ranks = 3, .options = smallOptions([](auto &o) {
                                                   o.causal = true, o.batch = 2, o.gather = std::nullopt;
                                                 })},
        RingCase{.name = "gathered_unfused", .ranks = 4, .options = smallOptions([](auto &o) {
                                                           o.schedule = ops::Schedule::Unfused, o.gather = true;
                                                         })},
        RingCase{.name = "gathered_packed",
                 .options = smallOptions([](auto &o) {
                   o.causal = true, o.scale = 0.4, o.packedSequences = 4, o.gather = true;
                 }),
                 .offsets = {{{0, 7, 7, 40, 50}, {0, 33, 34, 35, 44}}}},
        RingCase{.name = "ranks_without_tokens",
                 .ranks = 4,
                 .options = smallOptions([](auto &o) { o.causal = true, o.scale = 0.4; }),
                 .tokens = 5,
                 .otherTokens = 3},
        RingCase{.name = "keys_where_others_had_none",
                 .ranks = 4,
                 .options = smallOptions([](auto &) {}),
                 .tokens = 9,
                 .otherTokens = 8},
        RingCase{.name = "two_nodes", .ranks = 4, .ranksPerNode = 2, .options = smallOptions([](auto &o) {
                                                                       o.causal = true;
                                                                     })},
        RingCase{.name = "two_nodes_of_three", .ranks = 6, .ranksPerNode = 3, .options = smallOptions([](auto &o) {
                                                                                o.schedule = ops::Schedule::Unfused;
                                                                              })},
        RingCase{.name = "packed",
                 .options = smallOptions([](auto &o) { o.causal = true, o.packedSequences = 4; }),
                 .offsets = {{{0, 7, 7, 40, 50}, {0, 33, 34, 35, 44}}}},
        RingCase{.name = "packed_whole",
                 .options = smallOptions([](auto &o) { o.packedSequences = 3; }),
                 .offsets = {{{0, 16, 48, 50}, {0, 0, 29, 45}}}},
        RingCase{.name = "three_nodes_of_one", .ranks = 3, .ranksPerNode = 1, .options = smallOptions([](auto &o) {
                                                                                o.causal = true;
                                                                              })},
        RingCase{.name = "hopper_packed",
                 .target = "sim:sm_90a",
                 .ranks = 2,
                 .options = smallOptions([](auto &o) {
                   o.causal = true, o.headDim = 64, o.tile = {.blockM = 64, .blockN = 64, .numWarps = 4};
                   o.heads = 1, o.maxTokens = 160, o.packedSequences = 3;
                 }),
                 .tokens = 150,
                 .otherTokens = 39,
                 .offsets = {{{0, 80, 81, 150}, {}}}},
        RingCase{.name = "hopper",
                 .target = "sim:sm_90a",
                 .ranks = 2,
                 .options = smallOptions([](auto &o) {
                   o.causal = true, o.headDim = 64, o.tile = {.blockM = 64, .blockN = 64, .numWarps = 4};
                   o.heads = 1, o.maxTokens = 160;
                 }),
                 .tokens = 150,
                 .otherTokens = 39}),
    [](const auto &info) { return info.param.name; });

/// Forward and backward as one graph for one size and eagerly for another by turns, with new data each time; the last rank is slow. The data of the first turn
/// come again in the last one, and give the same bits.
TEST_P(RingAttentionTest, ForwardAndBackwardOfTwoSizes) {
  const RingCase &p = GetParam();
  ASSERT_NO_FATAL_FAILURE(start());
  if (IsSkipped())
    return;
  auto forward = RingAttention::create(*world, compiler(), p.options);
  ASSERT_OK(forward);
  auto backward = RingAttentionBackward::create(
      *world, compiler(), p.options,
      p.target ? ops::RingBackwardTiles{.keys = {.blockM = 64, .blockN = 64, .numWarps = 4},
                                        .queries = {.blockM = 64, .blockN = 64, .numWarps = 4}}
               : smallTiles);
  ASSERT_OK(backward);
  const int64_t sizes[] = {p.tokens, p.otherTokens};
  std::vector<std::vector<TokenAttentionModel>> data(2);
  std::vector<std::vector<Memory>> memory;
  for (size_t which : {0, 1}) {
    for (uint64_t set = 0; set < (p.target ? 1 : 2); ++set) {
      std::vector<int64_t> offsets = p.offsets[set];
      for (int64_t &each : offsets)
        each = std::min(each, sizes[which]);
      data[which].emplace_back(p.options, forward->sections(sizes[which]), 10 * set + which, offsets);
      data[which].back().computeGradients();
    }
    memory.push_back(allocate(data[which][0]));
    for (uint32_t r = 0; r < p.ranks; ++r) {
      ASSERT_OK(forward->prepare(world->rank(r), sizes[which], true));
      ASSERT_OK(backward->prepare(world->rank(r), sizes[which]));
    }
  }
  const auto call = [&](size_t which, uint32_t r) -> Status {
    Rank &rank = world->rank(r);
    DITRON_RETURN_IF_ERROR(forward->enqueue(rank, rank.stream(), memory[which][r].forward(), sizes[which]));
    return backward->enqueue(rank, rank.stream(), memory[which][r].backward(), sizes[which]);
  };
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < p.ranks; ++r) {
    ASSERT_OK(world->rank(r).stream().beginCapture());
    ASSERT_OK(call(0, r));
    auto graph = world->rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(graph).value());
  }
  std::vector<std::vector<float>> first;
  const size_t turns = p.target ? 1 : 3; // thread for thread a Hopper takes its time
  for (size_t turn = 0; turn < turns && !HasFailure(); ++turn) {
    for (size_t which : {0, 1})
      upload(memory[which], data[which][turn % 2]);
    for (uint32_t r = 0; r < p.ranks; ++r) {
      ASSERT_OK(world->rank(r).stream().launch(graphs[r]));
      ASSERT_OK(call(1, r));
    }
    ASSERT_OK(world->synchronize());
    for (size_t which : {0, 1})
      check(memory[which], data[which][turn % 2], fmt::format("turn {}, {} tokens", turn, sizes[which]));
    size_t number = 0;
    for (size_t which : {0, 1})
      for (const Memory &own : memory[which])
        for (const Buffer *result : {&own.out, &own.lse, &own.dq, &own.dk, &own.dv}) {
          if (turn == 0)
            first.push_back(download(*result));
          else if (turn % 2 == 0 && !std::isnan(first[number][0])) // of ranks that have tokens
            expectSame(download(*result), first[number], "again");
          ++number;
        }
  }
  // What is measured without the exchange takes whatever shards are there, and leaves nothing that later calls would see.
  for (uint32_t r = 0; r < p.ranks; ++r) {
    Rank &rank = world->rank(r);
    ASSERT_OK(forward->enqueueWithoutExchange(rank, rank.stream(), sizes[1], true));
    ASSERT_OK(backward->enqueueWithoutExchange(rank, rank.stream(), sizes[1]));
  }
  ASSERT_OK(world->synchronize());
  if (p.ranks == 1)
    check(memory[1], data[1][(turns - 1) % 2], "without the exchange");
  for (uint32_t r = 0; r < p.ranks; ++r)
    ASSERT_OK(call(1, r));
  ASSERT_OK(world->synchronize());
  check(memory[1], data[1][(turns - 1) % 2], "behind that");
}

class RingAttentionBackwardOfGathered : public RingAttentionTest {};

INSTANTIATE_TEST_SUITE_P(
    All, RingAttentionBackwardOfGathered,
    testing::Values(RingCase{.name = "causal", .options = smallOptions([](auto &o) { o.causal = true; })},
                    RingCase{.name = "five_ranks_whole", .ranks = 5, .options = smallOptions([](auto &) {})},
                    RingCase{.name = "ranks_without_tokens",
                             .ranks = 4,
                             .options = smallOptions([](auto &o) { o.causal = true; }),
                             .tokens = 5}),
    [](const auto &info) { return info.param.name; });

/// The backward takes what AllGatherAttention left.
TEST_P(RingAttentionBackwardOfGathered, GivesTheSameGradients) {
  const RingCase &p = GetParam();
  ASSERT_NO_FATAL_FAILURE(start());
  if (IsSkipped())
    return;
  const RingAttentionOptions &o = p.options;
  auto forward = ops::AllGatherAttention::create(*world, compiler(),
                                                 {.batch = o.batch,
                                                  .heads = o.heads,
                                                  .kvHeads = o.kvHeads,
                                                  .headDim = o.headDim,
                                                  .dtype = o.dtype,
                                                  .causal = o.causal,
                                                  .scale = o.scale,
                                                  .maxTokens = o.maxTokens,
                                                  .tile = o.tile});
  ASSERT_OK(forward);
  auto backward = RingAttentionBackward::create(*world, compiler(), o, smallTiles);
  ASSERT_OK(backward);
  TokenAttentionModel data(o, forward->sections(p.tokens), 7);
  data.computeGradients();
  std::vector<Memory> memory = allocate(data);
  upload(memory, data);
  for (uint32_t r = 0; r < p.ranks; ++r) {
    Rank &rank = world->rank(r);
    const Memory &own = memory[r];
    ASSERT_OK(forward->enqueue(rank, rank.stream(),
                               {.q = own.q, .k = own.k, .v = own.v, .out = own.out, .lse = own.lse}, p.tokens));
    ASSERT_OK(backward->enqueue(rank, rank.stream(), own.backward(), p.tokens));
  }
  ASSERT_OK(world->synchronize());
  check(memory, data, "gathered");
}

class RingAttentionRefusals : public KernelTest {};

TEST_F(RingAttentionRefusals, NameWhatIsAccepted) {
  start(1);
  const auto messages = [&](auto change) {
    const RingAttentionOptions options = smallOptions(change);
    return statusOf(RingAttention::create(world(), sharedJit(), options)).message() + "\n" +
           statusOf(RingAttentionBackward::create(world(), sharedJit(), options, smallTiles)).message();
  };
  EXPECT_THAT(messages([](auto &o) { o.headDim = 80; }),
              HasSubstr("heads of 80 elements; 16, 32, 64, 128 and 256 are accepted"));
  EXPECT_THAT(messages([](auto &o) { o.headDim = 256; }),
              testing::StrEq("\nRingAttentionBackward: heads of 256 elements; up to 128 are accepted"));
  EXPECT_THAT(messages([](auto &o) { o.heads = 3, o.kvHeads = 2; }), HasSubstr("3 heads on 2 heads of K and V"));
  EXPECT_THAT(messages([](auto &o) { o.scale = -1; }), HasSubstr("the scale -1; positive ones of fp32 are accepted"));
  EXPECT_THAT(messages([](auto &o) { o.dtype = DataType::F32; }), HasSubstr("bf16 and fp16 are accepted"));
  EXPECT_THAT(messages([](auto &o) { o.packedSequences = 0; }), HasSubstr("0 packed sequences in a batch of 1"));
  EXPECT_THAT(messages([](auto &o) { o.tile.blockN = 48; }), HasSubstr("blockN 48; powers of two from 16 to 256"));
  ops::RingBackwardTiles large = smallTiles;
  large.keys.blockM = 256;
  EXPECT_THAT(
      statusOf(RingAttentionBackward::create(world(), sharedJit(), smallOptions([](auto &) {}), large)).message(),
      HasSubstr("tiles of 256 queries; powers of two up to 128 are accepted"));
  for (const bool gather : {false, true}) {
    SCOPED_TRACE(gather ? "gathered" : "going round");
    auto op = RingAttention::create(world(), sharedJit(), smallOptions([&](auto &o) { o.gather = gather; }));
    ASSERT_OK(op);
    Buffer data = zeros(DataType::F16, 2 * 60 * 16), floats = zeros(DataType::F32, 2 * 60);
    RingAttention::Operands operands = {.q = data, .k = data, .v = data, .out = data};
    EXPECT_THAT(op->enqueue(rank(), rank().stream(), operands, 61).message(),
                testing::StrEq("RingAttention: 61 tokens; 1 to 60 (maxTokens) are accepted"));
    ASSERT_OK(op->prepare(rank(), 8));
    ASSERT_OK(rank().stream().beginCapture());
    EXPECT_OK(op->enqueue(rank(), rank().stream(), operands, 8));
    operands.offsets = zeros(DataType::I32, 4);
    EXPECT_THAT(op->enqueue(rank(), rank().stream(), operands, 8).message(),
                HasSubstr("RingAttention: offsets of sequences that are not packed"));
    operands.offsets = {};
    operands.lse = floats;
    EXPECT_THAT(op->enqueue(rank(), rank().stream(), operands, 8).message(),
                HasSubstr("RingAttention: a call with 8 tokens, with lse was not prepared"));
    EXPECT_OK(rank().stream().endCapture());
  }
}

/// Where all shards take no more memory than three and the sums, as many bytes as heads / kvHeads shards, they are gathered.
TEST(RingAttentionForm, IsChosenByMemory) {
  if (!isSimulated())
    GTEST_SKIP() << "of any number of ranks";
  const auto formOf = [](uint32_t ranks, uint32_t ranksPerNode, std::optional<bool> wanted) {
    WorldOptions options;
    options.ranksPerNode = ranksPerNode;
    auto world = World::local(ranks, targetUnderTest(), options);
    EXPECT_OK(world);
    auto op =
        RingAttention::create(**world, jitFor(targetUnderTest()), smallOptions([&](auto &o) { o.gather = wanted; }));
    return op.isOk() ? op->planText().substr(0, op->planText().find(' ')) : op.status().message();
  };
  EXPECT_EQ(formOf(2, 0, {}), "gathered");
  EXPECT_EQ(formOf(5, 0, {}), "gathered");
  EXPECT_EQ(formOf(6, 0, {}), "ring");
  EXPECT_EQ(formOf(6, 0, true), "gathered");
  EXPECT_EQ(formOf(2, 0, false), "ring");
  EXPECT_EQ(formOf(2, 1, {}), "ring");
  EXPECT_THAT(formOf(2, 1, true), HasSubstr("RingAttention"));
}

} // namespace
} // namespace ditron::e2e
