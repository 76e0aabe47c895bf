//===- operators_test.cpp - AllGather+GEMM and GEMM+ReduceScatter against a plain reference ---------------------------===//
//
// Results over types, ranks, nodes, chunks and shapes that nothing divides; many calls in a row with new data and a slow
// rank; the same bits from every seed; proof from the timeline that computation and communication overlap.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"
#include "ditron/runtime/Timeline.h"

#include <fmt/format.h>
#include <random>

namespace ditron::e2e {
namespace {

using ops::AllGatherGemm;
using ops::GemmReduceScatter;
using ops::MultiplyPrecision;
using ops::Schedule;
using testing::AllOf;
using testing::HasSubstr;

struct Problem {
  const char *name;
  DataType dtype = DataType::BF16;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  uint32_t ranks = 4;
  int64_t m = 200, n = 80, k = 96; ///< Per rank: N of AllGather+GEMM, K of GEMM+ReduceScatter.
  uint32_t nodes = 1, chunks = 1;
  ops::TileConfig tile = {.blockM = 32, .blockN = 32, .blockK = 32, .groupM = 4, .numWarps = 4, .numStages = 3};
  uint64_t seed = 1;
  std::optional<uint32_t> slowRank = std::nullopt;
  int calls = 1;
  Schedule schedule = Schedule::Overlapped;
  int64_t oneLaunchRows = 0;
  uint32_t pushedChunks = 0; ///< Of GEMM+ReduceScatter by PushedProduct; 0: as the schedule says.
  uint32_t tailSplits = 0;   ///< Of overlapped calls; 0: as the options say.

  std::optional<ops::TensorParallelPlan> plan() const {
    using ops::TensorParallelForm;
    if (pushedChunks)
      return ops::TensorParallelPlan{.form = TensorParallelForm::Pushed, .chunks = pushedChunks};
    if (tailSplits)
      return ops::TensorParallelPlan{.form = TensorParallelForm::Overlapped, .tile = tile, .tailSplits = tailSplits};
    return std::nullopt;
  }
};

void PrintTo(const Problem &p, std::ostream *stream) { *stream << p.name; }

/// One rank's operands and result of one kind of operator.
struct Operands {
  std::vector<float> a, b;
  Buffer aBuffer, bBuffer, result;
};

class Operators : public KernelTest {
protected:
  /// Makes a world for the problem, runs it, checks every call on every rank; gives the last results as bits.
  std::vector<std::vector<std::byte>> runAllGatherGemm(const Problem &wanted);
  std::vector<std::vector<std::byte>> runGemmReduceScatter(const Problem &wanted);

  void startFor(const Problem &p) {
    WorldOptions options = seeded(p.seed, p.slowRank, 5);
    options.trace = true;
    start(p.ranks, options);
  }
  /// Tails that are asked for are split: by tensor copies, where there are several steps and the last wave is ragged.
  void expectTail(const Problem &p, const std::string &plan) {
    const int64_t tiles = ops::ceilDivide(p.m, p.tile.blockM) * ops::ceilDivide(p.n, p.tile.blockN);
    if (p.tailSplits && p.nodes == 1 && p.n % 8 == 0 && p.k % 8 == 0 && p.k > p.tile.blockK &&
        tiles % world().rank(0).attributes().multiprocessors != 0)
      EXPECT_THAT(plan, HasSubstr(" tail-splits "));
  }
  std::vector<std::byte> bitsOf(const Buffer &buffer) {
    std::vector<std::byte> bytes(buffer.bytes());
    EXPECT_OK(buffer.download(bytes.data(), bytes.size()));
    return bytes;
  }
  void expectProduct(const Problem &p, const std::vector<float> &actual, const std::vector<double> &expected,
                     std::string_view what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    ops::Comparison comparison = ops::compare(actual, expected, ops::toleranceFor(p.dtype, p.precision));
    EXPECT_TRUE(comparison.passed()) << what << ": error " << comparison.maxError << ", element "
                                     << comparison.worstIndex << " is " << actual[comparison.worstIndex]
                                     << ", expected " << expected[comparison.worstIndex] << ", allowed "
                                     << comparison.allowed;
  }
};

/// The problem on as many ranks as the target has; shapes stay as they are, so that fewer GPUs see the same tiles.
Problem onTarget(Problem p) {
  const uint32_t ranks = ranksOnTarget(p.ranks);
  if (ranks == p.ranks)
    return p;
  p.ranks = ranks;
  p.nodes = ranks % p.nodes == 0 ? p.nodes : 1;
  if (p.slowRank)
    p.slowRank = *p.slowRank % ranks;
  return p;
}

std::vector<std::vector<std::byte>> Operators::runAllGatherGemm(const Problem &wanted) {
  const Problem p = onTarget(wanted);
  startFor(p);
  auto created = AllGatherGemm::create(world(), sharedJit(),
                                       {.dtype = p.dtype,
                                        .maxRows = p.m,
                                        .depth = p.k,
                                        .chunksPerRank = p.chunks,
                                        .numNodes = p.nodes,
                                        .precision = p.precision,
                                        .schedule = p.schedule,
                                        .tile = p.tile,
                                        .oneLaunchRows = p.oneLaunchRows,
                                        .plan = p.plan()});
  if (created.isOk())
    expectTail(p, created->planText(p.m, p.n));
  EXPECT_OK(created);
  if (!created.isOk())
    return {};
  const ops::RowShards shards(p.m, p.ranks);
  std::vector<Operands> ranks(p.ranks);
  for (uint32_t r = 0; r < p.ranks; ++r) {
    // A rank may have no rows at all; memory of one element stands for them then.
    ranks[r].aBuffer = zeros(p.dtype, std::max<int64_t>(1, shards.rowsOf(r) * p.k), "a", r);
    ranks[r].bBuffer = zeros(p.dtype, p.k * p.n, "b", r);
    ranks[r].result = zeros(p.dtype, p.m * p.n, "c", r);
  }
  for (int call = 0; call < p.calls; ++call) {
    std::vector<float> gathered = ops::randomValues(p.dtype, p.m * p.k, 1000 + call);
    EXPECT_OK(world().runRanks([&](Rank &me) -> Status {
      Operands &mine = ranks[me.id()];
      mine.a.assign(gathered.begin() + shards.firstRowOf(me.id()) * p.k,
                    gathered.begin() + (shards.firstRowOf(me.id()) + shards.rowsOf(me.id())) * p.k);
      mine.a.resize(mine.aBuffer.count());
      mine.b = ops::randomValues(p.dtype, p.k * p.n, 2000 + 50 * call + me.id());
      DITRON_RETURN_IF_ERROR(mine.aBuffer.uploadFloats(mine.a));
      DITRON_RETURN_IF_ERROR(mine.bBuffer.uploadFloats(mine.b));
      DITRON_RETURN_IF_ERROR(created->enqueue(me, me.stream(), mine.aBuffer, mine.bBuffer, mine.result, p.m, p.n));
      return me.stream().synchronize();
    }));
    if (HasFailure())
      return {};
    for (uint32_t r = 0; r < p.ranks; ++r)
      expectProduct(p, getFloats(ranks[r].result), ops::referenceProduct(gathered, ranks[r].b, p.m, p.n, p.k),
                    fmt::format("{}, call {}, rank {}", p.name, call, r));
  }
  std::vector<std::vector<std::byte>> bits;
  for (Operands &each : ranks)
    bits.push_back(bitsOf(each.result));
  return bits;
}

std::vector<std::vector<std::byte>> Operators::runGemmReduceScatter(const Problem &wanted) {
  const Problem p = onTarget(wanted);
  startFor(p);
  auto created = GemmReduceScatter::create(world(), sharedJit(),
                                           {.dtype = p.dtype,
                                            .maxRows = p.m,
                                            .columns = p.n,
                                            .numNodes = p.nodes,
                                            .precision = p.precision,
                                            .schedule = p.schedule,
                                            .tile = p.tile,
                                            .oneLaunchRows = p.oneLaunchRows,
                                            .plan = p.plan()});
  if (created.isOk())
    expectTail(p, created->planText(p.m, p.k));
  EXPECT_OK(created);
  if (!created.isOk())
    return {};
  const ops::RowShards shards(p.m, p.ranks);
  std::vector<Operands> ranks(p.ranks);
  for (uint32_t r = 0; r < p.ranks; ++r) {
    ranks[r].aBuffer = zeros(p.dtype, p.m * p.k, "a", r);
    ranks[r].bBuffer = zeros(p.dtype, p.k * p.n, "b", r);
    ranks[r].result = zeros(p.dtype, std::max<int64_t>(1, shards.rowsOf(r) * p.n), "out", r);
  }
  for (int call = 0; call < p.calls; ++call) {
    EXPECT_OK(world().runRanks([&](Rank &me) -> Status {
      Operands &mine = ranks[me.id()];
      mine.a = ops::randomValues(p.dtype, p.m * p.k, 3000 + 50 * call + me.id());
      mine.b = ops::randomValues(p.dtype, p.k * p.n, 4000 + 50 * call + me.id());
      DITRON_RETURN_IF_ERROR(mine.aBuffer.uploadFloats(mine.a));
      DITRON_RETURN_IF_ERROR(mine.bBuffer.uploadFloats(mine.b));
      DITRON_RETURN_IF_ERROR(created->enqueue(me, me.stream(), mine.aBuffer, mine.bBuffer, mine.result, p.m, p.k));
      return me.stream().synchronize();
    }));
    if (HasFailure())
      return {};
    std::vector<double> sum(p.m * p.n);
    for (uint32_t r = 0; r < p.ranks; ++r) {
      std::vector<double> part = ops::referenceProduct(ranks[r].a, ranks[r].b, p.m, p.n, p.k);
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += part[i];
    }
    for (uint32_t r = 0; r < p.ranks; ++r) {
      std::vector<float> actual = getFloats(ranks[r].result);
      actual.resize(shards.rowsOf(r) * p.n);
      expectProduct(p, actual,
                    std::vector<double>(sum.begin() + shards.firstRowOf(r) * p.n,
                                        sum.begin() + (shards.firstRowOf(r) + shards.rowsOf(r)) * p.n),
                    fmt::format("{}, call {}, rank {}", p.name, call, r));
    }
  }
  std::vector<std::vector<std::byte>> bits;
  for (Operands &each : ranks)
    bits.push_back(bitsOf(each.result));
  return bits;
}

class OperatorResults : public Operators, public testing::WithParamInterface<Problem> {};

TEST_P(OperatorResults, AllGatherGemmIsRight) { runAllGatherGemm(GetParam()); }
TEST_P(OperatorResults, GemmReduceScatterIsRight) { runGemmReduceScatter(GetParam()); }
class PushedResults : public OperatorResults {};
TEST_P(PushedResults, GemmReduceScatterIsRight) { runGemmReduceScatter(GetParam()); }

const ops::TileConfig wideTile = {.blockM = 64, .blockN = 64, .blockK = 32, .groupM = 2, .numWarps = 4, .numStages = 2};
const Problem problems[] = {
    {.name = "bf16"},
    {.name = "bf16_other_seed", .seed = 2},
    {.name = "bf16_slow_rank", .seed = 3, .slowRank = 1},
    {.name = "fp16", .dtype = DataType::F16},
    {.name = "fp16_slow_rank", .dtype = DataType::F16, .seed = 2, .slowRank = 0},
    {.name = "fp32_tf32", .dtype = DataType::F32},
    {.name = "fp32_ieee", .dtype = DataType::F32, .precision = MultiplyPrecision::Ieee, .seed = 2, .slowRank = 2},
    {.name = "one_rank", .ranks = 1, .seed = 2},
    {.name = "two_ranks", .ranks = 2, .m = 129, .n = 33, .k = 70},
    {.name = "two_ranks_slow", .ranks = 2, .m = 129, .n = 33, .k = 70, .seed = 2, .slowRank = 1},
    {.name = "three_ranks", .ranks = 3, .m = 200, .n = 50, .k = 40}, // the ranks do not divide M
    {.name = "three_ranks_slow", .ranks = 3, .m = 200, .n = 50, .k = 40, .seed = 2, .slowRank = 0},
    {.name = "eight_ranks", .ranks = 8, .m = 500, .n = 64, .k = 64, .tile = wideTile},
    {.name = "eight_ranks_slow", .ranks = 8, .m = 500, .n = 64, .k = 64, .tile = wideTile, .seed = 2, .slowRank = 6},
    {.name = "two_nodes", .ranks = 4, .m = 330, .nodes = 2},
    {.name = "four_nodes_slow", .ranks = 8, .m = 300, .n = 40, .k = 33, .nodes = 4, .seed = 2, .slowRank = 3},
    {.name = "two_chunks", .m = 270, .chunks = 2},
    {.name = "four_chunks_slow", .m = 270, .chunks = 4, .seed = 2, .slowRank = 3},
    {.name = "empty_shards", .ranks = 8, .m = 5, .n = 20, .k = 17}, // ranks 5..7 own no rows
    {.name = "empty_shards_aligned", .ranks = 8, .m = 5, .n = 16, .k = 32},
    {.name = "one_launch_empty_shards_aligned", .ranks = 8, .m = 5, .n = 16, .k = 32, .oneLaunchRows = 128},
    {.name = "one_launch", .m = 30, .oneLaunchRows = 128},
    {.name = "one_launch_calls", .m = 30, .n = 40, .k = 40, .seed = 2, .slowRank = 0, .calls = 8, .oneLaunchRows = 128},
    {.name = "one_launch_of_fewer_rows", .m = 100, .seed = 2, .oneLaunchRows = 64},
    {.name = "one_launch_1_row_slow", .m = 1, .n = 77, .k = 51, .seed = 2, .slowRank = 1, .oneLaunchRows = 128},
    {.name = "one_launch_empty_shards", .ranks = 8, .m = 5, .n = 20, .k = 17, .seed = 3, .oneLaunchRows = 128},
    {.name = "one_launch_3_ranks",
     .dtype = DataType::F16,
     .ranks = 3,
     .m = 100,
     .n = 300,
     .k = 200,
     .seed = 4,
     .slowRank = 2,
     .oneLaunchRows = 128},
    {.name = "one_launch_fp32",
     .dtype = DataType::F32,
     .ranks = 2,
     .m = 33,
     .seed = 2,
     .calls = 5,
     .oneLaunchRows = 64},
    {.name = "issue_shape",
     .ranks = 8,
     .m = 997 * 8,
     .n = 300 / 4,
     .k = 130,
     .chunks = 2,
     .tile = {.blockM = 128, .blockN = 128, .blockK = 32, .groupM = 8, .numWarps = 8, .numStages = 3},
     .seed = 4},
};
INSTANTIATE_TEST_SUITE_P(Problems, OperatorResults, testing::ValuesIn(problems),
                         [](const auto &info) { return info.param.name; });
/// What calls of more than one launch do the pushed form does.
std::vector<Problem> pushedProblems() {
  std::vector<Problem> pushed;
  for (Problem each : problems)
    if (each.oneLaunchRows == 0) {
      each.pushedChunks = each.chunks > 1 ? each.chunks : 3;
      pushed.push_back(each);
    }
  return pushed;
}
INSTANTIATE_TEST_SUITE_P(Problems, PushedResults, testing::ValuesIn(pushedProblems()),
                         [](const auto &info) { return info.param.name; });

/// The same calls with the tiles of the last wave in two to five parts.
class TailResults : public OperatorResults {
protected:
  void SetUp() override {
    if (!hasTensorCopies(sharedJit().target()))
      GTEST_SKIP() << "needs tensor copies";
  }
};
TEST_P(TailResults, AllGatherGemmIsRight) { runAllGatherGemm(GetParam()); }
TEST_P(TailResults, GemmReduceScatterIsRight) { runGemmReduceScatter(GetParam()); }
std::vector<Problem> tailProblems() {
  std::vector<Problem> tails;
  for (Problem each : problems)
    if (each.oneLaunchRows == 0 && each.dtype != DataType::F32 &&
        each.m < 1000) { // larger ones take long on a simulator
      each.tailSplits = 2 + tails.size() % 4;
      tails.push_back(each);
    }
  tails.push_back(
      {.name = "deep", .m = 200, .n = 104, .k = 392, .seed = 5, .slowRank = 2, .calls = 2, .tailSplits = 12});
  return tails;
}
INSTANTIATE_TEST_SUITE_P(Problems, TailResults, testing::ValuesIn(tailProblems()),
                         [](const auto &info) { return info.param.name; });

/// The whole shape that the issue names, on every rank: M=997*8, N=300, K=130.
TEST_F(Operators, OddShapeOnEightRanks) {
  // Of each operator one seed: these are the longest runs of this file.
  for (uint64_t seed : {1, 2}) {
    const Problem p = {.name = "997x8",
                       .ranks = 8,
                       .m = 997 * 8,
                       .n = 150,
                       .k = 130,
                       .tile = {.blockM = 128, .blockN = 128, .blockK = 32, .groupM = 8, .numWarps = 8, .numStages = 3},
                       .seed = seed,
                       .slowRank = uint32_t(seed + 1)};
    if (seed == 1)
      runAllGatherGemm(p);
    else
      runGemmReduceScatter(p);
  }
}

TEST_F(Operators, TwentyCallsInARowWithASlowRank) {
  for (uint64_t seed : {1, 2}) {
    const Problem p = {.name = "20 calls",
                       .ranks = 4,
                       .m = 100,
                       .n = 40,
                       .k = 40,
                       .chunks = 2,
                       .seed = seed,
                       .slowRank = uint32_t(seed),
                       .calls = 20};
    runAllGatherGemm(p);
    runGemmReduceScatter(p);
  }
}

/// With streams and copies, and as one launch each.
class OperatorReplays : public Operators, public testing::WithParamInterface<int64_t> {};
INSTANTIATE_TEST_SUITE_P(OneLaunchRows, OperatorReplays, testing::Values(0, 128));

/// All calls are enqueued before the first runs: only the protocol keeps them apart.
TEST_P(OperatorReplays, CallsMayQueueUp) {
  const int64_t m = 96, n = 48, k = 32;
  const int calls = 6;
  const uint32_t ranks = ranksOnTarget(3);
  for (uint64_t seed : {1, 2}) {
    start(ranks, seeded(seed, ranks - 1));
    auto op = AllGatherGemm::create(
        world(), sharedJit(),
        {.maxRows = m, .depth = k, .tile = {.blockM = 32, .blockN = 32, .blockK = 32}, .oneLaunchRows = GetParam()});
    ASSERT_OK(op);
    std::vector<Buffer> a, b, c;
    std::vector<std::vector<float>> gathered, right;
    for (int call = 0; call < calls; ++call) {
      gathered.push_back(ops::randomValues(DataType::BF16, m * k, 10 + call));
      right.push_back(ops::randomValues(DataType::BF16, k * n, 30 + call));
      for (uint32_t r = 0; r < ranks; ++r) {
        a.push_back(putAs(
            DataType::BF16,
            {gathered[call].begin() + r * m / ranks * k, gathered[call].begin() + (r + 1) * m / ranks * k}, "a", r));
        b.push_back(putAs(DataType::BF16, right[call], "b", r));
        c.push_back(zeros(DataType::BF16, m * n, "c", r));
      }
    }
    for (uint32_t r = 0; r < ranks; ++r)
      for (int call = 0; call < calls; ++call)
        ASSERT_OK(op->enqueue(rank(r), rank(r).stream(), a[call * ranks + r], b[call * ranks + r], c[call * ranks + r],
                              m, n));
    ASSERT_OK(world().synchronize());
    for (int call = 0; call < calls; ++call)
      for (uint32_t r = 0; r < ranks; ++r)
        expectProduct({.name = ""}, getFloats(c[call * ranks + r]),
                      ops::referenceProduct(gathered[call], right[call], m, n, k),
                      fmt::format("seed {}, call {}, rank {}", seed, call, r));
  }
}

/// More tiles than a GPU can hold, queued up behind a closed gate, so that all streams start at the same moment: blocks that wait
/// for chunks fill the GPU while the chunks are still to be copied. What brings them must need no place of its own.
TEST_F(Operators, WaitingTilesMayFillTheGpu) {
  const uint32_t ranks = ranksOnTarget(4);
  const int64_t k = isSimulated() ? 32 : 512, n = isSimulated() ? 64 : 4096, m = isSimulated() ? 128 : 2048;
  const int calls = isSimulated() ? 2 : 30;
  for (std::optional<uint32_t> slow : {std::optional<uint32_t>(), std::optional<uint32_t>(ranks - 1)}) {
    start(ranks, seeded(1, slow, 3));
    const ops::TileConfig tile = {.blockM = 32, .blockN = 32, .blockK = 32};
    auto gather =
        AllGatherGemm::create(world(), sharedJit(), {.maxRows = m, .depth = k, .chunksPerRank = 4, .tile = tile});
    auto scatter = GemmReduceScatter::create(world(), sharedJit(), {.maxRows = m, .columns = n, .tile = tile});
    ASSERT_OK(gather);
    ASSERT_OK(scatter);
    SymmetricBuffer gate = symmetric(DataType::I64, 1, "gate");
    const ops::RowShards shards(m, ranks);
    // Small integers: sums are exact, whatever their order.
    std::vector<float> left = convertAll<float>(randomIntegers(m * k, 5, -2, 2)),
                       right = convertAll<float>(randomIntegers(k * n, 6, -2, 2));
    std::vector<Buffer> a, b, c, whole, out;
    std::vector<runtime::Stream> starters;
    for (uint32_t r = 0; r < ranks; ++r) {
      a.push_back(
          putAs(DataType::BF16,
                {left.begin() + shards.firstRowOf(r) * k, left.begin() + (shards.firstRowOf(r) + shards.rowsOf(r)) * k},
                "a", r));
      b.push_back(putAs(DataType::BF16, right, "b", r));
      c.push_back(zeros(DataType::BF16, m * n, "c", r));
      whole.push_back(putAs(DataType::BF16, left, "whole a", r));
      out.push_back(zeros(DataType::BF16, shards.rowsOf(r) * n, "out", r));
      ASSERT_OK(gather->prepare(rank(r), m, n));
      ASSERT_OK(scatter->prepare(rank(r), m, k));
      auto starter = rank(r).createStream("starter", 2);
      ASSERT_OK(starter);
      starters.push_back(std::move(starter).value());
      ASSERT_OK(rank(r).stream().signalWait(gate.on(r), runtime::Compare::GreaterEqual, 1));
    }
    for (int call = 0; call < calls; ++call)
      for (uint32_t r = 0; r < ranks; ++r) {
        ASSERT_OK(gather->enqueue(rank(r), rank(r).stream(), a[r], b[r], c[r], m, n));
        ASSERT_OK(scatter->enqueue(rank(r), rank(r).stream(), whole[r], b[r], out[r], m, k));
      }
    for (uint32_t r = 0; r < ranks; ++r)
      ASSERT_OK(starters[r].signalWrite(gate.on(r), 1));
    ASSERT_OK(world().synchronize());
    std::mt19937_64 random(7);
    for (uint32_t r = 0; r < ranks; ++r) {
      const std::vector<float> gathered = getFloats(c[r]), scattered = getFloats(out[r]);
      for (int sample = 0; sample < 2000; ++sample) {
        const int64_t row = random() % m, column = random() % n;
        float sum = 0;
        for (int64_t d = 0; d < k; ++d)
          sum += left[row * k + d] * right[d * n + column];
        auto rounded = [](float value) {
          return toFloats(DataType::BF16, fromFloats(DataType::BF16, &value, 1).data(), 1)[0];
        };
        ASSERT_EQ(gathered[row * n + column], rounded(sum)) << "rank " << r << ", row " << row << ", column " << column;
        if (row >= shards.firstRowOf(r) && row < shards.firstRowOf(r) + shards.rowsOf(r)) {
          // Each rank's partial result is rounded before it travels.
          float total = 0;
          for (uint32_t each = 0; each < ranks; ++each)
            total += rounded(sum);
          ASSERT_EQ(scattered[(row - shards.firstRowOf(r)) * n + column], rounded(total)) << "rank " << r;
        }
      }
    }
  }
}

/// Two operators on two streams, of which each rank prefers another one: its sums wait for a product that the other rank has put behind sums of
/// its own. They must leave the product a place. Of one node, and of two.
TEST_F(Operators, SumsLeavePlacesForTheProductsThatTheyWaitFor) {
  REQUIRE_RANKS(2);
  // Deep: a launch's latency is no time for the tiles of the other rank's rows.
  const int64_t k = isSimulated() ? 256 : 1024, n = isSimulated() ? 320 : 4096, m = isSimulated() ? 128 : 4096;
  const ops::TileConfig tile = {.blockM = 32, .blockN = 32, .blockK = 32};
  for (uint32_t ranksPerNode : {2u, 1u}) {
    if (ranksPerNode == 1 && !isSimulated())
      continue;
    WorldOptions options = seeded(0); // both ranks at the same pace
    options.sms = 2;
    options.ranksPerNode = ranksPerNode;
    options.callGraphs = false; // whose nodes have no priorities
    start(2, options);
    const std::vector<float> ones(m * k, 1);
    std::vector<GemmReduceScatter> operators;
    std::vector<Buffer> a, b, out;
    std::vector<runtime::Stream> streams;
    for (uint32_t op = 0; op < 2; ++op) {
      auto made = GemmReduceScatter::create(world(), sharedJit(),
                                            {.maxRows = m, .columns = n, .tile = tile, .oneLaunchRows = 0});
      ASSERT_OK(made);
      operators.push_back(std::move(*made));
      for (uint32_t r = 0; r < 2; ++r) {
        a.push_back(putAs(DataType::BF16, ones, "a", r));
        b.push_back(putAs(DataType::BF16, std::vector<float>(k * n, static_cast<float>(1 + op)), "b", r));
        out.push_back(zeros(DataType::BF16, m / 2 * n, "out", r));
        auto stream = rank(r).createStream("operator", op == r ? 1 : 0);
        ASSERT_OK(stream);
        streams.push_back(std::move(*stream));
        ASSERT_OK(operators[op].prepare(rank(r), m, k));
      }
    }
    for (int call = 0; call < 2; ++call)
      for (uint32_t op = 0; op < 2; ++op)
        for (uint32_t r = 0; r < 2; ++r) {
          const uint32_t i = 2 * op + r;
          ASSERT_OK(operators[op].enqueue(rank(r), streams[i], a[i], b[i], out[i], m, k));
        }
    ASSERT_OK(world().synchronize());
    for (uint32_t i = 0; i < out.size(); ++i) {
      const float sum = static_cast<float>(2 * k * (1 + i / 2));
      expectSame(getFloats(out[i]), std::vector<float>(m / 2 * n, sum),
                 fmt::format("operator {}, rank {}", i / 2, i % 2));
    }
  }
}

/// One graph per rank with both operators in it, replayed with new data each time and then without a pause, with eager calls between.
TEST_P(OperatorReplays, CapturedCallsCanBeReplayed) {
  const int64_t m = 96, n = 40, k = 48;
  const uint32_t ranks = ranksOnTarget(2);
  const int replays = isSimulated() ? 4 : 1000;
  start(ranks, seeded(5, ranks - 1, 2));
  const ops::TileConfig tile = {.blockM = 32, .blockN = 32, .blockK = 32};
  auto gather = AllGatherGemm::create(
      world(), sharedJit(), {.maxRows = m, .depth = k, .chunksPerRank = 2, .tile = tile, .oneLaunchRows = GetParam()});
  auto scatter = GemmReduceScatter::create(world(), sharedJit(),
                                           {.maxRows = m, .columns = n, .tile = tile, .oneLaunchRows = GetParam()});
  ASSERT_OK(gather);
  ASSERT_OK(scatter);
  const int64_t rows = m / ranks;
  std::vector<Buffer> a, whole, b, c, out;
  std::vector<runtime::Graph> graphs;
  auto enqueue = [&](uint32_t r) {
    runtime::Stream &stream = rank(r).stream();
    Status status = gather->enqueue(rank(r), stream, a[r], b[r], c[r], m, n);
    return status.isOk() ? scatter->enqueue(rank(r), stream, whole[r], b[r], out[r], m, k) : status;
  };
  for (uint32_t r = 0; r < ranks; ++r) {
    a.push_back(zeros(DataType::BF16, rows * k, "a", r));
    whole.push_back(zeros(DataType::BF16, m * k, "whole a", r));
    b.push_back(zeros(DataType::BF16, k * n, "b", r));
    c.push_back(zeros(DataType::BF16, m * n, "c", r));
    out.push_back(zeros(DataType::BF16, rows * n, "out", r));
    ASSERT_OK(gather->prepare(rank(r), m, n));
    ASSERT_OK(scatter->prepare(rank(r), m, k));
    ASSERT_OK(rank(r).stream().beginCapture());
    ASSERT_OK(enqueue(r));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(*graph);
    ASSERT_OK(gather->prepare(rank(r), m, n)); // again: what the graph has stays
    ASSERT_OK(scatter->prepare(rank(r), m, k));
  }
  // A few data sets, whose products the host knows; each replay gets the next one.
  constexpr int sets = 3;
  struct Data {
    std::vector<float> gathered;
    std::vector<std::vector<float>> whole, b; ///< Of each rank.
    std::vector<std::vector<double>> product;
    std::vector<double> sum;
  };
  std::vector<Data> data(sets);
  for (int set = 0; set < sets; ++set) {
    Data &each = data[set];
    each.gathered = ops::randomValues(DataType::BF16, m * k, 100 * set + 99);
    each.sum.resize(m * n);
    for (uint32_t r = 0; r < ranks; ++r) {
      each.whole.push_back(ops::randomValues(DataType::BF16, m * k, 100 * set + r));
      each.b.push_back(ops::randomValues(DataType::BF16, k * n, 100 * set + 50 + r));
      each.product.push_back(ops::referenceProduct(each.gathered, each.b[r], m, n, k));
      const std::vector<double> part = ops::referenceProduct(each.whole[r], each.b[r], m, n, k);
      for (size_t i = 0; i < part.size(); ++i)
        each.sum[i] += part[i];
    }
  }
  auto upload = [&](const Data &each) {
    for (uint32_t r = 0; r < ranks; ++r) {
      EXPECT_OK(a[r].uploadFloats({each.gathered.begin() + r * rows * k, each.gathered.begin() + (r + 1) * rows * k}));
      EXPECT_OK(whole[r].uploadFloats(each.whole[r]));
      EXPECT_OK(b[r].uploadFloats(each.b[r]));
    }
  };
  auto check = [&](const Data &each, const std::string &when) {
    for (uint32_t r = 0; r < ranks; ++r) {
      expectProduct({.name = ""}, getFloats(c[r]), each.product[r],
                    fmt::format("AllGather+GEMM, {}, rank {}", when, r));
      expectProduct({.name = ""}, getFloats(out[r]),
                    {each.sum.begin() + r * rows * n, each.sum.begin() + (r + 1) * rows * n},
                    fmt::format("GEMM+ReduceScatter, {}, rank {}", when, r));
    }
  };
  for (int replay = 0; replay < replays; ++replay) {
    upload(data[replay % sets]);
    for (uint32_t r = 0; r < ranks; ++r)
      ASSERT_OK(replay % 10 == 3 ? enqueue(r) : rank(r).stream().launch(graphs[r]));
    ASSERT_OK(world().synchronize());
    check(data[replay % sets], fmt::format("replay {}", replay));
    if (HasFailure())
      return;
  }
  // Without a pause, until more are queued up than the hardware holds.
  upload(data[1]);
  for (int replay = 0; replay < replays; ++replay)
    for (uint32_t r = 0; r < ranks; ++r)
      ASSERT_OK(rank(r).stream().launch(graphs[r]));
  ASSERT_OK(world().synchronize());
  check(data[1], "without a pause");
}

/// The order in which ranks and blocks meet must not show in the result.
TEST_F(Operators, EverySeedGivesTheSameBits) {
  Problem p = {.name = "bits", .ranks = 4, .m = 150, .n = 70, .k = 50, .chunks = 2};
  std::vector<std::vector<std::byte>> gathered = runAllGatherGemm(p), scattered = runGemmReduceScatter(p);
  for (uint64_t seed : {2, 3, 4}) {
    p.seed = seed;
    p.slowRank = seed == 4 ? std::optional<uint32_t>(2) : std::nullopt;
    EXPECT_EQ(runAllGatherGemm(p), gathered) << "AllGather+GEMM, seed " << seed;
    EXPECT_EQ(runGemmReduceScatter(p), scattered) << "GEMM+ReduceScatter, seed " << seed;
    Problem pushed = p;
    pushed.pushedChunks = uint32_t(seed);
    EXPECT_EQ(runGemmReduceScatter(pushed), scattered) << "GEMM+ReduceScatter in " << seed << " chunks, pushed";
  }
  p = {.name = "bits of one launch", .ranks = 4, .m = 50, .n = 70, .k = 300, .oneLaunchRows = 128};
  gathered = runAllGatherGemm(p);
  scattered = runGemmReduceScatter(p);
  for (uint64_t seed : {2, 3, 4}) {
    p.seed = seed;
    p.slowRank = seed == 4 ? std::optional<uint32_t>(2) : std::nullopt;
    EXPECT_EQ(runAllGatherGemm(p), gathered) << "AllGather+GEMM in one launch, seed " << seed;
    EXPECT_EQ(runGemmReduceScatter(p), scattered) << "GEMM+ReduceScatter in one launch, seed " << seed;
  }
}

TEST_F(Operators, ComputationAndCommunicationOverlap) {
  if (!isSimulated())
    GTEST_SKIP() << "needs the simulator's timeline";
  // With warpgroup multiplies it takes more of them to be as long under way as the copies.
  const bool isHopper = targetUnderTest() == "sim:sm_90a";
  const int64_t depth = isHopper ? 1024 : 256;
  const uint32_t blocks = isHopper ? 8 : 16; // persistent: one per multiprocessor; else one per tile
  // The times of the model: other seeds make ranks and copies late.
  for (Schedule schedule : {Schedule::Overlapped, Schedule::Unfused}) {
    // As many rows for each rank would be a collective and a product, which have no copies.
    Problem p = {.name = "overlap",
                 .ranks = 4,
                 .m = schedule == Schedule::Unfused ? 511 : 512,
                 .n = 128,
                 .k = depth,
                 .tile = wideTile,
                 .seed = 0,
                 .schedule = schedule};
    runAllGatherGemm(p);
    for (uint32_t r = 0; r < p.ranks; ++r) {
      auto overlap = runtime::overlapWithCopies(world(), r, AllGatherGemm::kernelName, runtime::CopyDirection::Incoming,
                                                AllGatherGemm::copyName);
      ASSERT_OK(overlap);
      EXPECT_EQ(overlap->blocks, blocks);
      EXPECT_GE(overlap->copies, p.ranks - 1);
      if (schedule == Schedule::Overlapped)
        EXPECT_GT(overlap->startedBeforeLastCopy, 0u) << "rank " << r;
      else
        EXPECT_EQ(overlap->startedBeforeLastCopy, 0u) << "rank " << r;
    }
    runGemmReduceScatter(p);
    for (uint32_t r = 0; r < p.ranks; ++r) {
      auto overlap = runtime::overlapWithCopies(world(), r, GemmReduceScatter::kernelName,
                                                runtime::CopyDirection::Outgoing, GemmReduceScatter::copyName);
      ASSERT_OK(overlap);
      EXPECT_EQ(overlap->blocks, blocks);
      // Here the copies come after blocks: blocks that still ran when the first segment had already left are the proof.
      if (schedule == Schedule::Overlapped)
        EXPECT_GT(overlap->kernelEnd, overlap->firstCopyEnd) << "rank " << r;
      else
        EXPECT_LT(overlap->kernelEnd, overlap->firstCopyEnd) << "rank " << r;
    }
  }
}

/// Unfused calls begin with a collective, in front of which a rank whose rows have gaps copies them.
TEST_F(Operators, UnfusedCallsOfDifferentSizesAreRefusedByTheOperator) {
  if (!isSimulated())
    GTEST_SKIP() << "needs the simulator";
  constexpr int64_t n = 32, k = 16, gap = 8;
  std::vector<Buffer> kept;
  const auto operand = [&](int64_t elements, uint32_t r) -> Pointer {
    return kept.emplace_back(zeros(DataType::F32, elements, "operand", r)).pointer();
  };
  const auto callOf = [&](int64_t rowsOfFirst, int64_t strideOfFirst) -> Status {
    kept.clear();
    start(2);
    DITRON_ASSIGN_OR_RETURN(
        AllGatherGemm op,
        AllGatherGemm::create(world(), sharedJit(),
                              {.dtype = DataType::F32, .maxRows = 96, .depth = k, .schedule = Schedule::Unfused}));
    for (const int64_t rows : {int64_t{96}, int64_t{95}})
      for (uint32_t r = 0; r < 2; ++r) {
        const bool isOther = r == 0 && rows == 96;
        const int64_t stride = isOther ? strideOfFirst : k;
        DITRON_RETURN_IF_ERROR(op.enqueue(rank(r), rank(r).stream(), operand(48 * stride, r), operand(k * n, r),
                                          operand(96 * n, r), isOther ? rowsOfFirst : rows, n, {}, {.a = stride}));
      }
    return world().synchronize();
  };
  EXPECT_OK(callOf(96, k));
  EXPECT_OK(callOf(96, k + gap)); // strides may differ between ranks
  for (const int64_t other : {95, 92})
    EXPECT_THAT(callOf(other, k).message(), AllOf(HasSubstr("AllGatherGemm: call 1 of rank"), HasSubstr("96 rows"),
                                                  HasSubstr(std::to_string(other) + " rows")));
}

TEST_F(Operators, WrongOptionsAreRefused) {
  REQUIRE_RANKS(4);
  start(4);
  auto gather = [&](AllGatherGemm::Options options) {
    Status status = AllGatherGemm::create(world(), sharedJit(), options).status();
    EXPECT_FALSE(status.isOk());
    return status.message();
  };
  const AllGatherGemm::Options good = {.maxRows = 128, .depth = 64};
  auto changed = [&](auto change) {
    AllGatherGemm::Options options = good;
    change(options);
    return gather(options);
  };
  EXPECT_OK(AllGatherGemm::create(world(), sharedJit(), good));
  EXPECT_THAT(changed([](auto &o) { o.dtype = DataType::I16; }), AllOf(HasSubstr("i16"), HasSubstr("fp8e5 and i8")));
  EXPECT_THAT(changed([](auto &o) { o.numNodes = 3; }), AllOf(HasSubstr("3 nodes"), HasSubstr("4 ranks")));
  EXPECT_THAT(changed([](auto &o) { o.tile.blockM = 48; }), AllOf(HasSubstr("blockM"), HasSubstr("48")));
  EXPECT_THAT(changed([](auto &o) { o.tile = {.numStages = 0}; }), HasSubstr("numStages"));
  EXPECT_THAT(changed([](auto &o) { o.chunksPerRank = 65; }), HasSubstr("chunk"));
  EXPECT_THAT(changed([](auto &o) { o.maxRows = 0; }), HasSubstr("maxRows"));
  EXPECT_THAT(changed([](auto &o) { o.depth = -1; }), HasSubstr("-1"));
  EXPECT_THAT(changed([](auto &o) { o.oneLaunchRows = 200; }), AllOf(HasSubstr("oneLaunchRows"), HasSubstr("128")));

  auto op = AllGatherGemm::create(world(), sharedJit(), good);
  ASSERT_OK(op);
  Buffer a = zeros(DataType::BF16, 32 * 64, "a"), b = zeros(DataType::BF16, 64 * 32, "b"),
         c = zeros(DataType::BF16, 128 * 32, "c"), wrong = zeros(DataType::F32, 64 * 32, "wrong");
  auto enqueue = [&](Pointer left, Pointer right, int64_t rows, int64_t columns) {
    Status status = op->enqueue(rank(), rank().stream(), left, right, c, rows, columns);
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
    return status.message();
  };
  EXPECT_THAT(enqueue(a, b, 129, 32), AllOf(HasSubstr("129"), HasSubstr("128")));
  EXPECT_THAT(enqueue(a, b, 0, 32), HasSubstr("0"));
  EXPECT_THAT(enqueue(a, wrong, 128, 32), AllOf(HasSubstr("fp32"), HasSubstr("bf16")));
  EXPECT_THAT(enqueue({nullptr, DataType::BF16}, b, 128, 32), HasSubstr("null"));
}

} // namespace
} // namespace ditron::e2e
