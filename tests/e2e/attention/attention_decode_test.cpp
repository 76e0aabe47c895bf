//===- attention_decode_test.cpp - Attention of few queries over many keys, on one GPU and over ranks ----------------------===//
//
// Sequences of all lengths, none included, in every order in memory; several queries; heads of all sizes; calls with other lengths, eagerly and
// replayed; over ranks with and without keys, slow ranks, two groups; what is refused. Against plain loops.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "attention/AttentionDecodeModel.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/attention_decode/AttentionDecode.h"
#include "ditron/ops/attention_decode/ShardedAttentionDecode.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::DecodeOperands;
using ops::DecodePlan;
using ops::DecodeProblem;
using testing::HasSubstr;

double tolerance(DataType type) { return type == DataType::BF16 ? 1.6e-2 : 3e-3; }

/// The memory of a rank's call.
struct DecodeMemory {
  Buffer q, k, v, out = {}, lse = {}, lengths = {}, table = {}, sinks = {};

  DecodeOperands operands(bool withLse) const {
    return {.q = q,
            .k = k,
            .v = v,
            .out = out,
            .lse = withLse ? lse.pointer() : Pointer(),
            .lengths = lengths,
            .table = table.isValid() ? table.pointer() : Pointer(),
            .sinks = sinks.isValid() ? sinks.pointer() : Pointer()};
  }
};

class AttentionDecodeTest : public KernelTest {
protected:
  DecodeMemory memoryFor(const DecodeOperandsOfRank &own, const std::vector<float> &q, uint32_t id = 0) {
    const DataType type = own.problem.dtype;
    DecodeMemory memory = {.q = putAs(type, q, "q", id),
                           .k = putAs(type, own.keysInMemory(), "k", id),
                           .v = putAs(type, own.valuesInMemory(), "v", id)};
    memory.out = putAs(type, unwritten(own.problem), "out", id);
    memory.lse = putAs(DataType::F32, std::vector<float>(own.problem.rows(), std::nanf("")), "lse", id);
    memory.lengths = put(own.lengths, "lengths", id);
    if (!own.table.empty())
      memory.table = put(own.table, "table", id);
    return memory;
  }
  static std::vector<float> unwritten(const DecodeProblem &problem) {
    return std::vector<float>(problem.rows() * problem.dimOfValues(), std::nanf(""));
  }
  /// Of each head, fp32.
  Buffer sinksOf(const std::vector<float> &sinks, uint32_t id = 0) { return putAs(DataType::F32, sinks, "sinks", id); }
  void check(const DecodeMemory &memory, const DecodeResult &expected, DataType type, const std::string &what) {
    const ops::Comparison comparison = ops::compare(getFloats(memory.out), expected.out, {tolerance(type)});
    EXPECT_TRUE(comparison.passed()) << what << ": element " << comparison.worstIndex << " is "
                                     << getFloats(memory.out)[comparison.worstIndex] << ", expected "
                                     << expected.out[comparison.worstIndex];
  }
  /// With sums' logarithms.
  void checkAll(const DecodeMemory &memory, const DecodeResult &expected, DataType type, const std::string &what) {
    check(memory, expected, type, what);
    expectClose(getFloats(memory.lse), expected.lse, 1e-3, 1e-2, what + ", lse");
  }
};

struct DecodeCase {
  const char *name;
  DecodeProblem problem;
  KeyOrder order = KeyOrder::HeadsFirst;
  int64_t pageSize = 0;
  std::vector<int32_t> lengths;
  DecodePlan plan = {.blockN = 32, .numWarps = 2, .numStages = 2, .blocksPerMultiprocessor = 1};
  bool sinks = false;
};
void PrintTo(const DecodeCase &p, std::ostream *stream) { *stream << p.name; }

class AttentionDecode : public AttentionDecodeTest, public testing::WithParamInterface<DecodeCase> {};

TEST_P(AttentionDecode, AgainstLoops) {
  const DecodeCase &p = GetParam();
  DecodeProblem problem = p.problem;
  const std::vector<float> q = randomFloats(problem.rows() * problem.headDim, 7, -2, 2, problem.dtype);
  const int64_t mostKeys = *std::ranges::max_element(p.lengths) + 3;
  const DecodeOperandsOfRank own(problem, p.order, p.pageSize, p.lengths, mostKeys, 3);
  problem = own.problemOfCall();
  DecodeMemory memory = memoryFor(own, q);
  std::vector<float> sinks;
  if (p.sinks)
    memory.sinks = sinksOf(sinks = randomFloats(problem.heads, 11, -2, 4, DataType::F32));
  auto call = ops::prepareAttentionDecode(sharedJit(), rank(), problem, memory.operands(true), p.plan);
  ASSERT_OK(call);
  ASSERT_OK(call->enqueue(rank().stream()));
  ASSERT_OK(world().synchronize());
  checkAll(memory, expectedDecode(problem, q, {own}, sinks), problem.dtype, "first");
  // The second call finds counters as the first did, and has its bits.
  const std::vector<float> first = getFloats(memory.out);
  ASSERT_OK(memory.out.uploadFloats(unwritten(problem)));
  ASSERT_OK(call->enqueue(rank().stream()));
  ASSERT_OK(world().synchronize());
  expectSame(getFloats(memory.out), first, "second");
}

INSTANTIATE_TEST_SUITE_P(
    All, AttentionDecode,
    testing::Values(
        DecodeCase{
            "one_sequence", {.batch = 1, .heads = 4, .kvHeads = 1, .headDim = 64}, KeyOrder::HeadsFirst, 0, {401}},
        DecodeCase{"all_lengths",
                   {.batch = 6, .heads = 6, .kvHeads = 2, .headDim = 32},
                   KeyOrder::KeysFirst,
                   0,
                   {0, 1, 37, 300, 64, 0}},
        DecodeCase{"less_tiles_than_programs",
                   {.batch = 2, .heads = 2, .kvHeads = 2, .headDim = 32},
                   KeyOrder::HeadsFirst,
                   0,
                   {5, 40}},
        DecodeCase{"no_keys", {.batch = 2, .heads = 2, .kvHeads = 1, .headDim = 32}, KeyOrder::HeadsFirst, 0, {0, 0}},
        DecodeCase{"small_pages",
                   {.batch = 3, .heads = 4, .kvHeads = 2, .headDim = 64},
                   KeyOrder::Paged,
                   16,
                   {100, 17, 210},
                   {.blockN = 32, .numWarps = 4, .numStages = 3, .blocksPerMultiprocessor = 1}},
        DecodeCase{"large_pages",
                   {.batch = 3, .heads = 4, .kvHeads = 2, .headDim = 64, .dtype = DataType::F16},
                   KeyOrder::Paged,
                   64,
                   {200, 64, 63}},
        DecodeCase{"odd_pages", {.batch = 2, .heads = 3, .kvHeads = 3, .headDim = 16}, KeyOrder::Paged, 5, {99, 12}},
        DecodeCase{"several_queries",
                   {.batch = 2, .heads = 10, .kvHeads = 2, .queries = 3, .headDim = 32},
                   KeyOrder::KeysFirst,
                   0,
                   {150, 151, 152, 0, 1, 2}},
        DecodeCase{"several_tiles_of_rows",
                   {.batch = 2, .heads = 18, .kvHeads = 1, .queries = 4, .headDim = 32},
                   KeyOrder::HeadsFirst,
                   0,
                   {90, 91, 92, 93, 33, 34, 35, 36},
                   {.blockN = 32, .numWarps = 4, .numStages = 2, .blocksPerMultiprocessor = 1}},
        DecodeCase{"wide_head",
                   {.batch = 1, .heads = 2, .kvHeads = 1, .headDim = 256, .scale = 0.1},
                   KeyOrder::HeadsFirst,
                   0,
                   {130},
                   {.blockN = 32, .numWarps = 4, .numStages = 2, .blocksPerMultiprocessor = 2}},
        // Each head has programs of its own, of the 16 on this machine 5, or 4 for heads of two lengths; and cut evenly.
        DecodeCase{"programs_of_heads",
                   {.batch = 1, .heads = 6, .kvHeads = 3, .headDim = 32},
                   KeyOrder::HeadsFirst,
                   0,
                   {500},
                   {.blockN = 32, .numWarps = 4, .numStages = 2, .blocksPerMultiprocessor = 2}},
        DecodeCase{"programs_of_heads_of_two_lengths",
                   {.batch = 2, .heads = 4, .kvHeads = 2, .headDim = 32},
                   KeyOrder::KeysFirst,
                   0,
                   {300, 260},
                   {.blockN = 32, .numWarps = 4, .numStages = 2, .blocksPerMultiprocessor = 2}},
        DecodeCase{"even",
                   {.batch = 1, .heads = 6, .kvHeads = 3, .headDim = 32},
                   KeyOrder::HeadsFirst,
                   0,
                   {500},
                   {.blockN = 32, .numWarps = 4, .numStages = 2, .blocksPerMultiprocessor = 2, .even = true}},
        // Heads that are no power of two, V narrower than K.
        DecodeCase{"head_96", {.batch = 3, .heads = 4, .kvHeads = 2, .headDim = 96}, KeyOrder::Paged, 16, {17, 0, 70}},
        DecodeCase{"head_192_128",
                   {.batch = 2, .heads = 4, .kvHeads = 2, .headDim = 192, .dtype = DataType::F16, .valueDim = 128},
                   KeyOrder::Paged,
                   64,
                   {90, 1}},
        DecodeCase{"head_80_48",
                   {.batch = 2, .heads = 3, .kvHeads = 1, .queries = 2, .headDim = 80, .valueDim = 48},
                   KeyOrder::HeadsFirst,
                   0,
                   {40, 41, 0, 1}},
        // Multi-head latent attention: small latents with several tiles of rows, and DeepSeek's.
        DecodeCase{"latent",
                   {.batch = 3, .heads = 16, .kvHeads = 1, .headDim = 80, .valuesInKeys = true},
                   KeyOrder::Paged,
                   16,
                   {0, 17, 150}},
        DecodeCase{"latent_tiles_of_rows",
                   {.batch = 2, .heads = 72, .kvHeads = 1, .queries = 2, .headDim = 48, .valuesInKeys = true},
                   KeyOrder::Paged,
                   64,
                   {1, 2, 99, 100},
                   {.blockN = 32, .numWarps = 4, .numStages = 2, .blocksPerMultiprocessor = 1}},
        DecodeCase{"latent_576",
                   {.batch = 2, .heads = 16, .kvHeads = 1, .headDim = 576, .scale = 0.07, .valuesInKeys = true},
                   KeyOrder::Paged,
                   64,
                   {70, 1},
                   {.blockN = 32, .numWarps = 8, .numStages = 2, .blocksPerMultiprocessor = 1}},
        // So many parts that groups of programs combine theirs first; equal shares, too, of which two programs have two items.
        DecodeCase{"groups_of_parts",
                   {.batch = 1, .heads = 16, .kvHeads = 1, .headDim = 256},
                   KeyOrder::HeadsFirst,
                   0,
                   {1000},
                   {.blockN = 32, .numWarps = 4, .numStages = 2, .blocksPerMultiprocessor = 4}},
        DecodeCase{"groups_of_parts_even",
                   {.batch = 3, .heads = 20, .kvHeads = 1, .headDim = 256},
                   KeyOrder::Paged,
                   16,
                   {100, 900, 310},
                   {.blockN = 32, .numWarps = 4, .numStages = 2, .blocksPerMultiprocessor = 8, .even = true}},
        DecodeCase{"latent_576_groups_of_parts",
                   {.batch = 1, .heads = 21, .kvHeads = 1, .headDim = 576, .scale = 0.07, .valuesInKeys = true},
                   KeyOrder::Paged,
                   64,
                   {640},
                   {.blockN = 32, .numWarps = 4, .numStages = 2, .blocksPerMultiprocessor = 4}},
        // Windows, of queries that begin behind different keys; caps and sinks.
        DecodeCase{"window",
                   {.batch = 4, .heads = 4, .kvHeads = 2, .queries = 2, .headDim = 32, .window = 50},
                   KeyOrder::Paged,
                   16,
                   {300, 301, 7, 60, 0, 0, 0, 260}},
        DecodeCase{"window_of_one",
                   {.batch = 2, .heads = 2, .kvHeads = 1, .headDim = 32, .window = 0},
                   KeyOrder::KeysFirst,
                   0,
                   {97, 1}},
        DecodeCase{"cap_and_sinks",
                   {.batch = 3, .heads = 6, .kvHeads = 2, .queries = 3, .headDim = 32, .window = 100, .softCap = 1.5},
                   KeyOrder::HeadsFirst,
                   0,
                   {200, 201, 202, 0, 1, 2, 30, 31, 0},
                   {.blockN = 32, .numWarps = 2, .numStages = 2, .blocksPerMultiprocessor = 1},
                   true}),
    [](const auto &info) { return info.param.name; });

/// Replayed with other lengths, other pages and other keys.
TEST_F(AttentionDecodeTest, ReplaysReadLengthsAndPagesOfTheirTime) {
  DecodeProblem problem = {.batch = 3, .heads = 4, .kvHeads = 2, .headDim = 32};
  const std::vector<float> q = randomFloats(problem.rows() * problem.headDim, 7, -2, 2, problem.dtype);
  const std::vector<std::vector<int32_t>> lengths = {{10, 120, 3}, {0, 0, 128}, {64, 65, 66}};
  DecodeMemory memory;
  std::optional<ops::PreparedCall> call; // owns what the graph's kernel works in
  std::optional<runtime::Graph> graph;
  for (size_t turn = 0; turn < lengths.size(); ++turn) {
    const DecodeOperandsOfRank own(problem, KeyOrder::Paged, 16, lengths[turn], 128, turn);
    problem = own.problemOfCall();
    if (turn == 0) {
      memory = memoryFor(own, q);
      auto made = ops::prepareAttentionDecode(
          sharedJit(), rank(), problem, memory.operands(true),
          DecodePlan{.blockN = 32, .numWarps = 2, .numStages = 2, .blocksPerMultiprocessor = 1});
      ASSERT_OK(made);
      call = std::move(made).value();
      ASSERT_OK(rank().stream().beginCapture());
      ASSERT_OK(call->enqueue(rank().stream()));
      auto captured = rank().stream().endCapture();
      ASSERT_OK(captured);
      graph = std::move(captured).value();
    }
    ASSERT_OK(memory.k.uploadFloats(own.keysInMemory()));
    ASSERT_OK(memory.v.uploadFloats(own.valuesInMemory()));
    ASSERT_OK(memory.lengths.upload(own.lengths.data(), own.lengths.size() * sizeof(int32_t)));
    ASSERT_OK(memory.table.upload(own.table.data(), own.table.size() * sizeof(int32_t)));
    ASSERT_OK(rank().stream().launch(*graph));
    ASSERT_OK(world().synchronize());
    checkAll(memory, expectedDecode(problem, q, {own}), problem.dtype, fmt::format("turn {}", turn));
  }
}

TEST_F(AttentionDecodeTest, RefusesWhatItCannotDo) {
  Buffer data = zeros(DataType::BF16, 1024), words = zeros(DataType::I32, 16);
  const DecodeProblem good = {
      .batch = 1, .heads = 4, .kvHeads = 2, .headDim = 32, .keys = ops::KeyLayout::headsFirst(2, 8, 32)};
  const auto message = [&](auto change) {
    DecodeProblem problem = good;
    DecodeOperands operands = {.q = data, .k = data, .v = data, .out = data, .lse = {}, .lengths = words, .table = {}};
    DecodePlan plan;
    change(problem, operands, plan);
    return ops::prepareAttentionDecode(sharedJit(), rank(), problem, operands, plan).status().message();
  };
  using P = DecodeProblem &;
  using O = DecodeOperands &;
  using Q = DecodePlan &;
  EXPECT_THAT(message([](P p, O, Q) { p.headDim = 56; }),
              HasSubstr("heads of 56 elements; powers of two from 16 and sums of two of them are accepted, up to 256"));
  EXPECT_THAT(message([](P p, O, Q) { p.headDim = 576; }), HasSubstr("heads of 576 elements; powers of two"));
  EXPECT_THAT(message([](P p, O, Q) { p.valueDim = 112; }), HasSubstr("V: AttentionDecode: heads of 112 elements"));
  EXPECT_THAT(message([](P p, O, Q) { p.headDim = 96, p.valuesInKeys = true, p.valueDim = 32; }),
              HasSubstr("V in K's rows of 96 elements has their first 64"));
  EXPECT_THAT(message([](P p, O, Q) { p.values = ops::KeyLayout::paged(16, 1, 2, 32); }),
              HasSubstr("pages of 16 keys of V and of 0 of K; they have one table"));
  EXPECT_THAT(message([](P p, O, Q) { p.window = -1; }), HasSubstr("a window of -1 keys; 0 to"));
  EXPECT_THAT(message([](P p, O, Q) { p.softCap = 0; }), HasSubstr("scores capped at 0; caps from"));
  EXPECT_THAT(message([](P p, O, Q) { p.softCap = 1e30; }), HasSubstr("scores capped at 1e+30; caps from"));
  EXPECT_THAT(message([&](P, O o, Q) { o.sinks = words; }), HasSubstr("sinks"));
  EXPECT_THAT(message([](P p, O, Q) { p.kvHeads = 3; }), HasSubstr("4 heads on 3 heads of K and V"));
  EXPECT_THAT(message([](P p, O, Q) { p.batch = 5000; }), HasSubstr("batch is 5000; 1 to 4096 are accepted"));
  EXPECT_THAT(message([](P p, O, Q) { p.dtype = DataType::F32; }), HasSubstr("bf16 and fp16 are accepted"));
  EXPECT_THAT(message([](P p, O, Q) { p.keys = {}; }), HasSubstr("KeyLayout says where they lie"));
  EXPECT_THAT(message([](P p, O, Q) { p.keys.pageSize = 16; }), HasSubstr("table"));
  EXPECT_THAT(message([&](P, O o, Q) { o.lengths = data; }), HasSubstr("lengths"));
  EXPECT_THAT(message([](P, O, Q q) { q.blockN = 48; }),
              HasSubstr("steps of 48 keys; powers of two from 16 to 256 are accepted"));
  auto plan = ops::parseDecodePlan("64 warps 4 stages 3 blocks 2");
  ASSERT_OK(plan);
  EXPECT_EQ(plan->text(), "64 warps 4 stages 3 blocks 2");
  EXPECT_THAT(ops::parseDecodePlan("64 warps 4").status().message(), HasSubstr("a plan is written like"));
  plan = ops::parseDecodePlan("64 warps 4 stages 3 blocks 2 even");
  ASSERT_OK(plan);
  EXPECT_TRUE(plan->even);
  EXPECT_EQ(plan->text(), "64 warps 4 stages 3 blocks 2 even");
}

//===--------------------------------------------------------------------------------------------------------------------===//
// Over ranks
//===--------------------------------------------------------------------------------------------------------------------===//

const DecodePlan smallPlan = {.blockN = 32, .numWarps = 2, .numStages = 2, .blocksPerMultiprocessor = 1};

class ShardedAttentionDecodeTest : public AttentionDecodeTest {
protected:
  /// One call's operands on all ranks of a world.
  struct Call {
    DecodeProblem problem;
    std::vector<float> q;
    std::vector<DecodeOperandsOfRank> ranks;
    std::vector<DecodeMemory> memory;
    std::vector<float> sinks = {};
  };
  /// `lengths`: of each rank [batch, queries]. `members`: the ranks of this world that a group has, in its order.
  Call callFor(DecodeProblem problem, const std::vector<std::vector<int32_t>> &lengths, int64_t mostKeys, uint64_t seed,
               const std::vector<uint32_t> &members) {
    Call call;
    call.problem = problem;
    call.q = randomFloats(problem.rows() * problem.headDim, seed + 100, -2, 2, problem.dtype);
    for (size_t r = 0; r < members.size(); ++r) {
      call.ranks.emplace_back(problem, KeyOrder::Paged, 16, lengths[r], mostKeys, seed * 16 + r);
      call.memory.push_back(memoryFor(call.ranks.back(), call.q, members[r]));
    }
    call.problem = call.ranks.front().problemOfCall();
    return call;
  }
  void upload(Call &call, const std::vector<std::vector<int32_t>> &lengths, uint64_t seed) {
    for (size_t r = 0; r < call.ranks.size(); ++r) {
      call.ranks[r] =
          DecodeOperandsOfRank(call.problem, KeyOrder::Paged, 16, lengths[r], call.ranks[r].mostKeys, seed * 16 + r);
      DecodeMemory &memory = call.memory[r];
      EXPECT_OK(memory.k.uploadFloats(call.ranks[r].keysInMemory()));
      EXPECT_OK(memory.v.uploadFloats(call.ranks[r].valuesInMemory()));
      EXPECT_OK(memory.lengths.upload(lengths[r].data(), lengths[r].size() * sizeof(int32_t)));
      EXPECT_OK(memory.table.upload(call.ranks[r].table.data(), call.ranks[r].table.size() * sizeof(int32_t)));
      EXPECT_OK(memory.out.uploadFloats(unwritten(call.problem)));
    }
  }
  void checkCall(const Call &call, const std::string &what) {
    const DecodeResult expected = expectedDecode(call.problem, call.q, call.ranks, call.sinks);
    checkAll(call.memory[0], expected, call.problem.dtype, what);
    for (size_t r = 1; r < call.memory.size(); ++r) {
      expectSame(getFloats(call.memory[r].out), getFloats(call.memory[0].out), fmt::format("{}: rank {}", what, r));
      expectSame(getFloats(call.memory[r].lse), getFloats(call.memory[0].lse),
                 fmt::format("{}: lse of rank {}", what, r));
    }
  }
  static std::vector<uint32_t> firstRanks(uint32_t count) {
    std::vector<uint32_t> ranks(count);
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
};

/// Two sizes of call in turns, replayed and eager, ranks without keys among them, one of them slow.
TEST_F(ShardedAttentionDecodeTest, CallsOfAllSizesEagerAndReplayed) {
  const uint32_t ranks = ranksOnTarget(4);
  start(ranks, seeded(3, ranks - 1));
  const DecodeProblem problem = {.batch = 3, .heads = 6, .kvHeads = 2, .queries = 1, .headDim = 32};
  DecodeProblem small = problem;
  small.batch = 1;
  std::vector<std::vector<std::vector<int32_t>>> lengths = {{{90, 0, 17}, {0, 0, 40}, {128, 0, 0}, {1, 0, 2}},
                                                            {{3, 4, 5}, {128, 128, 128}, {0, 1, 0}, {50, 60, 70}}};
  std::vector<std::vector<std::vector<int32_t>>> fewer = {{{0}, {0}, {0}, {0}}, {{100}, {0}, {31}, {32}}};
  Call large = callFor(problem, lengths[0], 128, 1, firstRanks(ranks));
  Call few = callFor(small, fewer[0], 128, 2, firstRanks(ranks));
  DecodeProblem most = large.problem;
  auto op = ops::ShardedAttentionDecode::create(world(), sharedJit(), {.problem = most, .plan = smallPlan});
  ASSERT_OK(op);
  for (uint32_t r = 0; r < ranks; ++r) {
    ASSERT_OK(op->prepare(rank(r), 3, true));
    ASSERT_OK(op->prepare(rank(r), 1, true));
  }
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < ranks; ++r) {
    ASSERT_OK(rank(r).stream().beginCapture());
    ASSERT_OK(op->enqueue(rank(r), rank(r).stream(), large.memory[r].operands(true), 3));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(graph).value());
  }
  for (uint64_t turn = 0; turn < 4 && !HasFailure(); ++turn) {
    upload(large, lengths[turn % 2], turn);
    upload(few, fewer[turn / 2], turn + 20);
    for (uint32_t r = 0; r < ranks; ++r) {
      ASSERT_OK(rank(r).stream().launch(graphs[r]));
      ASSERT_OK(op->enqueue(rank(r), rank(r).stream(), few.memory[r].operands(true), 1));
      if (turn == 2)
        ASSERT_OK(op->enqueue(rank(r), rank(r).stream(), large.memory[r].operands(true), 3));
    }
    ASSERT_OK(world().synchronize());
    checkCall(large, fmt::format("turn {}", turn));
    checkCall(few, fmt::format("few, turn {}", turn));
  }
}

/// One, two and three ranks, some without keys; latents, V narrower than K, caps and sinks.
TEST_F(ShardedAttentionDecodeTest, LatentsNarrowValuesAndSinks) {
  struct Case {
    DecodeProblem problem;
    bool sinks = false;
  };
  const std::vector<Case> cases = {
      {{.batch = 2, .heads = 20, .kvHeads = 1, .queries = 1, .headDim = 80, .valuesInKeys = true}, true},
      {{.batch = 2, .heads = 4, .kvHeads = 2, .headDim = 96, .dtype = DataType::F16, .valueDim = 48, .softCap = 2.0}}};
  for (uint32_t ranks = 1; ranks <= ranksOnTarget(3); ++ranks) {
    start(ranks, seeded(ranks, 0));
    for (const Case &each : cases) {
      Call call = callFor(each.problem, {{17, 0}, {0, 0}, {33, 90}}, 96, ranks, firstRanks(ranks));
      if (each.sinks) {
        call.sinks = randomFloats(each.problem.heads, 5, -2, 4, DataType::F32);
        for (uint32_t r = 0; r < ranks; ++r)
          call.memory[r].sinks = sinksOf(call.sinks, r);
      }
      auto op = ops::ShardedAttentionDecode::create(world(), sharedJit(), {.problem = call.problem, .plan = smallPlan});
      ASSERT_OK(op);
      for (uint32_t r = 0; r < ranks; ++r)
        ASSERT_OK(op->prepare(rank(r), 2, true, each.sinks));
      for (int turn = 0; turn < 3; ++turn)
        for (uint32_t r = 0; r < ranks; ++r)
          ASSERT_OK(op->enqueue(rank(r), rank(r).stream(), call.memory[r].operands(true), 2));
      ASSERT_OK(world().synchronize());
      checkCall(call, fmt::format("{} ranks, heads of {}", ranks, each.problem.headDim));
    }
  }
}

/// Ranks 1 and 2 are in both groups.
TEST_F(ShardedAttentionDecodeTest, TwoGroups) {
  REQUIRE_RANKS(4);
  start(4, seeded(5, 1));
  const std::vector<std::vector<uint32_t>> members = {{0, 1, 2}, {2, 3, 1}};
  const DecodeProblem problem = {
      .batch = 2, .heads = 2, .kvHeads = 1, .queries = 2, .headDim = 32, .dtype = DataType::F16};
  std::vector<std::unique_ptr<World>> groups;
  std::vector<ops::ShardedAttentionDecode> operators;
  std::vector<Call> calls;
  std::vector<std::vector<runtime::Stream>> streams(2);
  for (size_t g = 0; g < 2; ++g) {
    auto group = world().group(members[g]);
    ASSERT_OK(group);
    groups.push_back(std::move(group).value());
    calls.push_back(callFor(problem, {{40, 41, 0, 1}, {0, 0, 60, 61}, {7, 7, 7, 7}}, 64, g + 1, members[g]));
    auto op =
        ops::ShardedAttentionDecode::create(*groups[g], sharedJit(), {.problem = calls[g].problem, .plan = smallPlan});
    ASSERT_OK(op);
    operators.push_back(std::move(op).value());
    for (uint32_t r = 0; r < 3; ++r) {
      auto stream = groups[g]->rank(r).createStream(fmt::format("group {}", g));
      ASSERT_OK(stream);
      streams[g].push_back(std::move(stream).value());
      ASSERT_OK(operators[g].prepare(groups[g]->rank(r), 2, true));
    }
  }
  for (int turn = 0; turn < 2; ++turn)
    for (size_t g : {0, 1})
      for (uint32_t r = 0; r < 3; ++r)
        ASSERT_OK(operators[g].enqueue(groups[g]->rank(r), streams[g][r], calls[g].memory[r].operands(true), 2));
  ASSERT_OK(world().synchronize());
  for (size_t g : {0, 1})
    checkCall(calls[g], fmt::format("group {}", g));
}

TEST_F(ShardedAttentionDecodeTest, RefusesWhatItCannotDo) {
  const uint32_t ranks = ranksOnTarget(2);
  start(ranks);
  const DecodeProblem problem = {.batch = 2, .heads = 2, .kvHeads = 1, .headDim = 32};
  Call call = callFor(problem, std::vector<std::vector<int32_t>>(ranks, {5, 6}), 16, 1, firstRanks(ranks));
  auto op = ops::ShardedAttentionDecode::create(world(), sharedJit(), {.problem = call.problem, .plan = smallPlan});
  ASSERT_OK(op);
  const DecodeOperands operands = call.memory[0].operands(true);
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), operands, 3).message(),
              HasSubstr("3 sequences; 1 to 2 (problem.batch) are accepted"));
  ASSERT_OK(op->prepare(rank(0), 2, /*withLse=*/false));
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), operands, 2).message(),
              HasSubstr("a call with 2 sequences, with lse was not prepared"));
  EXPECT_OK(rank(0).stream().endCapture());
  EXPECT_THAT(statusOf(ops::ShardedAttentionDecode::create(world(), sharedJit(),
                                                           {.problem = call.problem, .concurrentCalls = 0}))
                  .message(),
              HasSubstr("concurrentCalls is 0; 1 to"));
  DecodeProblem windowed = call.problem;
  windowed.window = 5;
  EXPECT_THAT(statusOf(ops::ShardedAttentionDecode::create(world(), sharedJit(), {.problem = windowed})).message(),
              HasSubstr("a window of 5 keys; a rank does not know which keys of other ranks are behind its own"));
}

} // namespace
} // namespace ditron::e2e
