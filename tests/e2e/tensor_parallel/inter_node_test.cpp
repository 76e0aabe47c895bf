//===- inter_node_test.cpp - AllGather+GEMM and GEMM+ReduceScatter between nodes ----------------------------------------===//
//
// Simulated worlds of several nodes, between which only puts and signals go and arrive in any order: results against a plain
// reference for shapes that nothing divides, the same bits from every schedule, calls in a row and replayed, what crosses the
// network, and that computation and communication overlap.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"
#include "ditron/runtime/Timeline.h"
#include "ditron/sim/Machine.h"

#include <fmt/format.h>
#include <random>

namespace ditron::e2e {
namespace {

using ops::AllGatherGemm;
using ops::GemmReduceScatter;
using ops::Schedule;
using testing::AllOf;
using testing::HasSubstr;

struct Problem {
  std::string name;
  uint32_t ranks = 4, perNode = 2;
  int64_t m = 200, n = 40, k = 56; ///< Per rank: N of AllGather+GEMM, K of GEMM+ReduceScatter.
  uint32_t chunks = 1;
  DataType dtype = DataType::BF16;
  std::optional<DataType> partialType = std::nullopt;
  ops::MatrixOrder weights = ops::MatrixOrder::Plain;
  uint64_t seed = 1;
  std::optional<uint32_t> slowRank = std::nullopt;
  int calls = 1;
  Schedule schedule = Schedule::Overlapped;
  int64_t gap = 0; ///< Elements behind each row of the result.
  bool checkRaces = true;
  ops::TileConfig tile = {.blockM = 32, .blockN = 32, .blockK = 32, .groupM = 4, .numWarps = 4, .numStages = 2};

  std::string text() const {
    return fmt::format("{}: {} ranks in nodes of {}, {}x{}x{}, {} chunks, seed {}, {}", name, ranks, perNode, m, n, k,
                       chunks, seed, toString(schedule));
  }
};
void PrintTo(const Problem &p, std::ostream *stream) { *stream << p.name; }

/// One operator with its operands on all ranks.
class OperatorCalls {
public:
  OperatorCalls(const Problem &p, World &world) : p(p), world(world), shards(p.m, p.ranks), operands(p.ranks) {}
  virtual ~OperatorCalls() = default;
  virtual Status create() = 0;
  virtual Status prepare(uint32_t rank) = 0;
  /// New data for a call, from its number.
  virtual Status upload(int call) = 0;
  virtual Status enqueue(uint32_t rank, runtime::Stream &stream) = 0;
  /// What rank r must have after the last upload.
  virtual std::vector<double> expected(uint32_t rank) = 0;
  /// Bytes that all ranks together must send to other nodes in a call: each to each other node once.
  virtual uint64_t networkBytes() const = 0;

  std::vector<std::byte> bits(uint32_t rank) {
    std::vector<std::byte> bytes(operands[rank].result.bytes());
    EXPECT_OK(operands[rank].result.download(bytes.data(), bytes.size()));
    return bytes;
  }
  void check(std::string_view what) {
    for (uint32_t r = 0; r < p.ranks; ++r) {
      const std::vector<double> wanted = expected(r);
      const std::vector<std::byte> bytes = bits(r);
      const std::vector<float> actual =
          rowsWithoutGaps(toFloats(p.dtype, bytes.data(), wanted.size() / p.n * strides().c));
      ASSERT_EQ(actual.size(), wanted.size());
      const ops::Comparison comparison =
          ops::compare(actual, wanted, ops::toleranceFor(p.dtype, ops::MultiplyPrecision::Tf32));
      ASSERT_TRUE(comparison.passed()) << p.text() << ", " << what << ", rank " << r << ": element "
                                       << comparison.worstIndex << " is " << actual[comparison.worstIndex]
                                       << ", expected " << wanted[comparison.worstIndex];
    }
  }

protected:
  static constexpr float inGaps = 7;
  struct Operands {
    std::vector<float> a, b;
    Buffer aBuffer, bBuffer, result;
  };
  Status allocate(uint32_t r, int64_t a, int64_t b, int64_t resultRows) {
    // A rank may have no rows at all; memory of one element stands for them then.
    DITRON_ASSIGN_OR_RETURN(operands[r].aBuffer, world.rank(r).allocate(p.dtype, std::max<int64_t>(a, 1), "a"));
    DITRON_ASSIGN_OR_RETURN(operands[r].bBuffer, world.rank(r).allocate(p.dtype, b, "b"));
    DITRON_ASSIGN_OR_RETURN(operands[r].result,
                            world.rank(r).allocate(p.dtype, std::max<int64_t>(resultRows, 1) * strides().c, "result"));
    return operands[r].result.uploadFloats(std::vector<float>(operands[r].result.count(), inGaps));
  }
  ops::RowStrides strides() const { return {.c = p.n + p.gap}; }
  /// Of a result; what is in its gaps must be as it was.
  std::vector<float> rowsWithoutGaps(const std::vector<float> &result) const {
    std::vector<float> rows;
    for (size_t i = 0; i < result.size(); ++i)
      if (int64_t(i) % strides().c < p.n)
        rows.push_back(result[i]);
      else
        EXPECT_EQ(result[i], inGaps) << p.text() << ": element " << i << ", in a gap between rows";
    return rows;
  }
  Status uploadTo(uint32_t r) {
    std::vector<float> a = operands[r].a;
    a.resize(operands[r].aBuffer.count());
    DITRON_RETURN_IF_ERROR(operands[r].aBuffer.uploadFloats(a));
    return operands[r].bBuffer.uploadFloats(operands[r].b);
  }
  /// B as [depth, columns], whatever its order in memory.
  std::vector<float> plainB(uint32_t r, int64_t depth, int64_t columns) const {
    if (p.weights == ops::MatrixOrder::Plain)
      return operands[r].b;
    std::vector<float> plain(depth * columns);
    for (int64_t row = 0; row < depth; ++row)
      for (int64_t column = 0; column < columns; ++column)
        plain[row * columns + column] = operands[r].b[column * depth + row];
    return plain;
  }

  Problem p;
  World &world;
  ops::RowShards shards;
  std::vector<Operands> operands;
};

class GatherCalls : public OperatorCalls {
public:
  using OperatorCalls::OperatorCalls;
  Status create() override {
    DITRON_ASSIGN_OR_RETURN(op, AllGatherGemm::create(world, sharedJit(),
                                                      {.dtype = p.dtype,
                                                       .maxRows = p.m,
                                                       .depth = p.k,
                                                       .chunksPerRank = p.chunks,
                                                       .weightOrder = p.weights,
                                                       .schedule = p.schedule,
                                                       .tile = p.tile}));
    for (uint32_t r = 0; r < p.ranks; ++r)
      DITRON_RETURN_IF_ERROR(allocate(r, shards.rowsOf(r) * p.k, p.k * p.n, p.m));
    return Status::ok();
  }
  Status prepare(uint32_t r) override { return op.prepare(world.rank(r), p.m, p.n, strides()); }
  Status upload(int call) override {
    gathered = ops::randomValues(p.dtype, p.m * p.k, 1000 + call);
    for (uint32_t r = 0; r < p.ranks; ++r) {
      const auto first = gathered.begin() + shards.firstRowOf(r) * p.k;
      operands[r].a.assign(first, first + shards.rowsOf(r) * p.k);
      operands[r].b = ops::randomValues(p.dtype, p.k * p.n, 2000 + 50 * call + r);
      DITRON_RETURN_IF_ERROR(uploadTo(r));
    }
    return Status::ok();
  }
  Status enqueue(uint32_t r, runtime::Stream &stream) override {
    return op.enqueue(world.rank(r), stream, operands[r].aBuffer, operands[r].bBuffer, operands[r].result, p.m, p.n, {},
                      strides());
  }
  std::vector<double> expected(uint32_t r) override {
    return ops::referenceProduct(gathered, plainB(r, p.k, p.n), p.m, p.n, p.k);
  }
  uint64_t networkBytes() const override { // rows as they lie where they are gathered, padded
    const ops::GatheredRows layout(p.dtype, p.k, /*hasScales=*/false);
    return p.m * layout.stride * sizeOf(p.dtype) * (world.numNodes() - 1);
  }

private:
  AllGatherGemm op;
  std::vector<float> gathered;
};

class ScatterCalls : public OperatorCalls {
public:
  using OperatorCalls::OperatorCalls;
  Status create() override {
    DITRON_ASSIGN_OR_RETURN(op, GemmReduceScatter::create(world, sharedJit(),
                                                          {.dtype = p.dtype,
                                                           .partialType = p.partialType,
                                                           .maxRows = p.m,
                                                           .columns = p.n,
                                                           .weightOrder = p.weights,
                                                           .schedule = p.schedule,
                                                           .tile = p.tile}));
    for (uint32_t r = 0; r < p.ranks; ++r)
      DITRON_RETURN_IF_ERROR(allocate(r, p.m * p.k, p.k * p.n, shards.rowsOf(r)));
    return Status::ok();
  }
  Status prepare(uint32_t r) override { return op.prepare(world.rank(r), p.m, p.k, strides()); }
  Status upload(int call) override {
    sum.assign(p.m * p.n, 0);
    for (uint32_t r = 0; r < p.ranks; ++r) {
      operands[r].a = ops::randomValues(p.dtype, p.m * p.k, 3000 + 50 * call + r);
      operands[r].b = ops::randomValues(p.dtype, p.k * p.n, 4000 + 50 * call + r);
      DITRON_RETURN_IF_ERROR(uploadTo(r));
      const std::vector<double> part = ops::referenceProduct(operands[r].a, plainB(r, p.k, p.n), p.m, p.n, p.k);
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += part[i];
    }
    return Status::ok();
  }
  Status enqueue(uint32_t r, runtime::Stream &stream) override {
    return op.enqueue(world.rank(r), stream, operands[r].aBuffer, operands[r].bBuffer, operands[r].result, p.m, p.k, {},
                      strides());
  }
  std::vector<double> expected(uint32_t r) override {
    const auto first = sum.begin() + shards.firstRowOf(r) * p.n;
    return std::vector<double>(first, first + shards.rowsOf(r) * p.n);
  }
  uint64_t networkBytes() const override {
    return p.m * p.n * sizeOf(p.partialType.value_or(p.dtype)) * (world.numNodes() - 1);
  }

private:
  GemmReduceScatter op;
  std::vector<double> sum;
};

class InterNode : public KernelTest {
protected:
  void SetUp() override {
    if (!isSimulated())
      GTEST_SKIP() << "GPUs of one machine are one node";
  }
  void startFor(const Problem &p) {
    WorldOptions options = seeded(p.seed, p.slowRank, 5);
    options.ranksPerNode = p.perNode;
    options.trace = true;
    options.checkRaces = p.checkRaces;
    start(p.ranks, options);
  }
  template <typename Kind> std::unique_ptr<OperatorCalls> make(const Problem &p) {
    auto run = std::make_unique<Kind>(p, world());
    EXPECT_OK(run->create());
    return run;
  }
  /// Makes a world and the calls, checks each on all ranks, and gives the last results as bits.
  template <typename Kind> std::vector<std::vector<std::byte>> runCalls(const Problem &p) {
    SCOPED_TRACE(p.text());
    startFor(p);
    const std::unique_ptr<OperatorCalls> run = make<Kind>(p);
    for (int call = 0; call < p.calls && !HasFailure(); ++call) {
      const uint64_t before = world().machine()->counters().networkBytes;
      EXPECT_OK(run->upload(call));
      for (uint32_t r = 0; r < p.ranks; ++r)
        EXPECT_OK(run->enqueue(r, rank(r).stream()));
      EXPECT_OK(world().synchronize());
      EXPECT_EQ(world().machine()->counters().networkBytes - before, run->networkBytes()) << p.text();
      run->check(fmt::format("call {}", call));
    }
    std::vector<std::vector<std::byte>> bits;
    for (uint32_t r = 0; r < p.ranks; ++r)
      bits.push_back(run->bits(r));
    return bits;
  }
  void runBoth(const Problem &p) {
    runCalls<GatherCalls>(p);
    runCalls<ScatterCalls>(p);
  }
};

class InterNodeResults : public InterNode, public testing::WithParamInterface<Problem> {};
TEST_P(InterNodeResults, AllGatherGemmIsRight) { runCalls<GatherCalls>(GetParam()); }
TEST_P(InterNodeResults, GemmReduceScatterIsRight) { runCalls<ScatterCalls>(GetParam()); }

const Problem problems[] = {
    {.name = "two_nodes_of_two"},
    {.name = "seed_zero", .seed = 0},
    {.name = "unfused", .seed = 2, .schedule = Schedule::Unfused},
    {.name = "two_nodes_of_four", .ranks = 8, .perNode = 4, .m = 300, .seed = 3},
    {.name = "two_nodes_of_eight", .ranks = 16, .perNode = 8, .m = 500, .seed = 4},
    {.name = "four_nodes_of_four", .ranks = 16, .perNode = 4, .m = 500, .seed = 5},
    {.name = "four_nodes_of_eight", .ranks = 32, .perNode = 8, .m = 600, .n = 24, .k = 32, .seed = 6},
    {.name = "one_rank_a_node", .ranks = 3, .perNode = 1, .m = 100, .seed = 7},
    {.name = "three_a_node", .ranks = 6, .perNode = 3, .m = 197, .seed = 8},
    {.name = "five_a_node", .ranks = 10, .perNode = 5, .m = 131, .seed = 9},
    {.name = "six_a_node", .ranks = 12, .perNode = 6, .m = 131, .seed = 10},
    {.name = "seven_a_node", .ranks = 14, .perNode = 7, .m = 97, .seed = 11},
    {.name = "chunks", .ranks = 8, .perNode = 4, .m = 270, .chunks = 3, .seed = 2, .slowRank = 5},
    {.name = "one_row", .ranks = 8, .perNode = 4, .m = 1, .n = 17, .k = 33, .seed = 2},
    {.name = "two_rows", .ranks = 8, .perNode = 2, .m = 2, .n = 1, .k = 1, .seed = 3},
    {.name = "empty_shards", .ranks = 8, .perNode = 2, .m = 5, .n = 20, .k = 17, .chunks = 2, .seed = 4},
    {.name = "odd_sizes", .ranks = 4, .perNode = 2, .m = 129, .n = 33, .k = 71, .chunks = 2, .seed = 5, .slowRank = 2},
    {.name = "fp16_transposed", .dtype = DataType::F16, .weights = ops::MatrixOrder::Transposed, .seed = 6},
    {.name = "fp32", .dtype = DataType::F32, .seed = 7, .slowRank = 0},
    {.name = "fp32_partials", .ranks = 8, .perNode = 4, .partialType = DataType::F32, .seed = 8},
    {.name = "gaps", .ranks = 6, .perNode = 2, .m = 101, .n = 33, .k = 40, .seed = 10, .calls = 2, .gap = 3},
    {.name = "gaps_unfused", .m = 50, .n = 24, .seed = 11, .schedule = Schedule::Unfused, .gap = 8},
    {.name = "calls_slow_rank", .ranks = 8, .perNode = 4, .m = 100, .chunks = 2, .seed = 9, .slowRank = 6, .calls = 6},
};
INSTANTIATE_TEST_SUITE_P(Problems, InterNodeResults, testing::ValuesIn(problems),
                         [](const auto &info) { return info.param.name; });

/// The number of schedules in which both operators must give the same bits; a property of the protocol, so the shape is small.
TEST_F(InterNode, EveryScheduleGivesTheSameBits) {
  Problem p = {.name = "seeds", .ranks = 8, .perNode = 4, .m = 75, .n = 24, .k = 24, .chunks = 2, .calls = 2};
  std::vector<std::vector<std::byte>> gathered, scattered;
  for (uint64_t seed = 0; seed < 25 && !HasFailure(); ++seed) {
    p.seed = seed;
    p.slowRank = seed % 3 ? std::optional<uint32_t>(seed % p.ranks) : std::nullopt;
    const auto first = runCalls<GatherCalls>(p), second = runCalls<ScatterCalls>(p);
    if (seed == 0)
      gathered = first, scattered = second;
    EXPECT_EQ(first, gathered) << "seed " << seed;
    EXPECT_EQ(second, scattered) << "seed " << seed;
  }
}

/// Overlapped or not, the sums are the same ones in the same order.
TEST_F(InterNode, SchedulesGiveTheSameBits) {
  Problem p = {.name = "schedules", .ranks = 6, .perNode = 2, .m = 101, .n = 33, .k = 40, .seed = 3};
  const auto gathered = runCalls<GatherCalls>(p), scattered = runCalls<ScatterCalls>(p);
  p.schedule = Schedule::Unfused;
  EXPECT_EQ(runCalls<GatherCalls>(p), gathered);
  EXPECT_EQ(runCalls<ScatterCalls>(p), scattered);
}

TEST_F(InterNode, AnyShapeIsRight) {
  std::mt19937_64 random(17);
  const auto draw = [&](int64_t low, int64_t high) { return low + int64_t(random() % uint64_t(high - low + 1)); };
  const std::pair<uint32_t, uint32_t> worlds[] = {{4, 2}, {8, 4}, {8, 2}, {6, 3}, {2, 1}, {12, 4}};
  for (int i = 0; i < 12 && !HasFailure(); ++i) {
    const auto [ranks, perNode] = worlds[i % std::size(worlds)];
    Problem p = {.name = fmt::format("drawn {}", i), .ranks = ranks, .perNode = perNode};
    p.m = draw(1, i % 2 ? 40 : 400), p.n = draw(1, 70), p.k = draw(1, 90), p.chunks = uint32_t(draw(1, 4));
    p.dtype = std::array{DataType::BF16, DataType::F16, DataType::F32}[draw(0, 2)];
    p.schedule = draw(0, 3) ? Schedule::Overlapped : Schedule::Unfused;
    p.seed = random() % 1000, p.calls = 2;
    if (draw(0, 1))
      p.slowRank = uint32_t(draw(0, ranks - 1));
    runBoth(p);
  }
}

/// All calls are enqueued before the first runs, of both operators on streams of their own: only the protocol keeps the calls apart.
TEST_F(InterNode, CallsMayQueueUpOnTwoStreams) {
  for (uint64_t seed : {1, 2, 3, 4}) {
    const Problem p = {
        .name = "queue", .ranks = 8, .perNode = 4, .m = 90, .n = 24, .k = 40, .chunks = 2, .seed = seed, .slowRank = 3};
    startFor(p);
    const auto gather = make<GatherCalls>(p), scatter = make<ScatterCalls>(p);
    ASSERT_OK(gather->upload(0));
    ASSERT_OK(scatter->upload(0));
    std::vector<runtime::Stream> streams;
    for (uint32_t r = 0; r < p.ranks; ++r) {
      auto stream = rank(r).createStream("second");
      ASSERT_OK(stream);
      streams.push_back(std::move(stream).value());
    }
    for (uint32_t r = 0; r < p.ranks; ++r)
      for (int call = 0; call < 5; ++call) {
        ASSERT_OK(gather->enqueue(r, rank(r).stream()));
        ASSERT_OK(scatter->enqueue(r, streams[r]));
      }
    ASSERT_OK(world().synchronize());
    gather->check("queued");
    scatter->check("queued");
  }
}

/// One graph per rank with both operators in it, replayed with new data each time and then without a pause, with eager calls between.
TEST_F(InterNode, CapturedCallsCanBeReplayed) {
  const Problem p = {
      .name = "graphs", .ranks = 4, .perNode = 2, .m = 99, .n = 40, .k = 48, .chunks = 2, .seed = 5, .slowRank = 3};
  startFor(p);
  const auto gather = make<GatherCalls>(p), scatter = make<ScatterCalls>(p);
  const auto enqueue = [&](uint32_t r) {
    DITRON_RETURN_IF_ERROR(gather->enqueue(r, rank(r).stream()));
    return scatter->enqueue(r, rank(r).stream());
  };
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < p.ranks; ++r) {
    ASSERT_OK(gather->prepare(r));
    ASSERT_OK(scatter->prepare(r));
    ASSERT_OK(rank(r).stream().beginCapture());
    ASSERT_OK(enqueue(r));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(graph).value());
  }
  for (int call = 0; call < 6; ++call) {
    ASSERT_OK(gather->upload(call));
    ASSERT_OK(scatter->upload(call));
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK(call % 3 == 1 ? enqueue(r) : rank(r).stream().launch(graphs[r]));
    ASSERT_OK(world().synchronize());
    gather->check(fmt::format("replay {}", call));
    scatter->check(fmt::format("replay {}", call));
  }
  for (uint32_t r = 0; r < p.ranks; ++r)
    for (int call = 0; call < 6; ++call)
      ASSERT_OK(call == 3 ? enqueue(r) : rank(r).stream().launch(graphs[r]));
  ASSERT_OK(world().synchronize());
  gather->check("replays without a pause");
  scatter->check("replays without a pause");
}

/// Two operators of groups that share no rank, on ranks of several nodes each.
TEST_F(InterNode, GroupsOfSeveralNodes) {
  Problem p = {.name = "groups", .ranks = 8, .perNode = 4, .m = 77, .seed = 2};
  startFor(p);
  std::vector<std::unique_ptr<World>> groups;
  std::vector<std::unique_ptr<OperatorCalls>> calls;
  p.ranks = 4, p.perNode = 2;
  for (const std::vector<uint32_t> &members : {std::vector<uint32_t>{0, 2, 4, 6}, {5, 7, 1, 3}}) {
    auto group = world().group(members);
    ASSERT_OK(group);
    groups.push_back(std::move(group).value());
    calls.push_back(std::make_unique<GatherCalls>(p, *groups.back()));
    calls.push_back(std::make_unique<ScatterCalls>(p, *groups.back()));
  }
  for (int call = 0; call < 2; ++call) {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (call == 0)
        ASSERT_OK(calls[i]->create());
      ASSERT_OK(calls[i]->upload(10 * int(i) + call));
      for (uint32_t r = 0; r < p.ranks; ++r)
        ASSERT_OK(calls[i]->enqueue(r, groups[i / 2]->rank(r).stream()));
    }
    ASSERT_OK(world().synchronize());
    for (const auto &each : calls)
      each->check("group");
  }
}

/// In virtual time an overlapped call is faster than the exchange and the product one after the other.
TEST_F(InterNode, OverlapIsFaster) {
  for (auto [ranks, perNode] : {std::pair{8u, 4u}, {16u, 4u}}) {
    Problem p = {.name = "time",
                 .ranks = ranks,
                 .perNode = perNode,
                 .m = 512,
                 .n = 256,
                 .k = 512,
                 .seed = 0,
                 .checkRaces = false, // smaller problems are for that
                 .tile = {.blockM = 32, .blockN = 64, .blockK = 32, .groupM = 1, .numWarps = 4, .numStages = 2}};
    const auto time = [&](Schedule schedule, auto kind) {
      p.schedule = schedule;
      runCalls<typename decltype(kind)::type>(p);
      auto span = runtime::spanOfRecordedWork(world());
      EXPECT_OK(span);
      return double(span.isOk() ? *span : 0);
    };
    const std::type_identity<GatherCalls> gather;
    const std::type_identity<ScatterCalls> scatter;
    EXPECT_LT(time(Schedule::Overlapped, gather), time(Schedule::Unfused, gather))
        << ranks << " in nodes of " << perNode;
    EXPECT_LT(time(Schedule::Overlapped, scatter), time(Schedule::Unfused, scatter))
        << ranks << " in nodes of " << perNode;
  }
}

TEST_F(InterNode, WrongOptionsAreRefused) {
  startFor({.name = "options"});
  const auto gatherError = [&](auto change) {
    AllGatherGemm::Options options = {.maxRows = 128, .depth = 64};
    change(options);
    return AllGatherGemm::create(world(), sharedJit(), options).status().message();
  };
  const auto scatterError = [&](auto change) {
    GemmReduceScatter::Options options = {.maxRows = 128, .columns = 64};
    change(options);
    return GemmReduceScatter::create(world(), sharedJit(), options).status().message();
  };
  const auto asked = [](auto &o) { o.numNodes = 4; };
  EXPECT_THAT(gatherError(asked), AllOf(HasSubstr("AllGatherGemm: 4 nodes"), HasSubstr("0 or 2 are accepted")));
  EXPECT_THAT(scatterError(asked), AllOf(HasSubstr("GemmReduceScatter: 4 nodes"), HasSubstr("0 or 2 are accepted")));
  const auto oneLaunch = [](auto &o) { o.oneLaunchRows = 64; };
  EXPECT_THAT(gatherError(oneLaunch), AllOf(HasSubstr("oneLaunchRows"), HasSubstr("4 ranks on 2 nodes of 2")));
  EXPECT_THAT(scatterError(oneLaunch), AllOf(HasSubstr("oneLaunchRows"), HasSubstr("4 ranks on 2 nodes of 2")));
}

} // namespace
} // namespace ditron::e2e
