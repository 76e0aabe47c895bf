//===- ulysses_test.cpp - GEMM + all-to-all and all-to-all + GEMM against plain products --------------------------------------===//
//
// Tokens that no tile and no number of ranks divides, several sequences, types with and without scales, both schedules; calls of changing sizes, eager
// and replayed, with a slow rank; two groups; what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/sequence_parallel/AllToAllGemm.h"
#include "ditron/ops/sequence_parallel/GemmAllToAll.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::AllToAllGemm;
using ops::GemmAllToAll;
using ops::MatrixOrder;
using ops::RowShards;
using testing::HasSubstr;

const ops::TileConfig smallTile = {
    .blockM = 32, .blockN = 32, .blockK = 32, .groupM = 2, .numWarps = 4, .numStages = 2};

struct UlyssesCase {
  const char *name;
  uint32_t ranks = 4;
  int64_t batch = 1, rows = 90, inner = 64,
          outer = 96; ///< inner: K before attention, N behind it; outer: of all heads.
  DataType dtype = DataType::BF16;
  MatrixOrder order = MatrixOrder::Transposed;
  ops::Schedule schedule = ops::Schedule::Overlapped;
  uint32_t chunks = 1;
  bool scaled = false, bias = false;

  ops::SequenceProductOptions options() const {
    ops::SequenceProductOptions options;
    options.dtype = dtype;
    options.batch = batch;
    options.maxRows = rows + 20;
    options.weightOrder = order;
    options.schedule = schedule;
    options.tile = smallTile;
    if (scaled)
      options.epilogue.scalesB = ops::Scaling::Vector;
    if (bias)
      options.epilogue.bias = options.typeOfResult();
    return options;
  }
};
void PrintTo(const UlyssesCase &p, std::ostream *stream) { *stream << p.name; }

std::vector<float> turned(const std::vector<float> &b, int64_t k, int64_t n, MatrixOrder order) {
  if (order == MatrixOrder::Plain)
    return b;
  std::vector<float> result(b.size());
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j)
      result[j * k + i] = b[i * n + j];
  return result;
}

/// A product of all tokens, and what each rank has of its operands.
struct UlyssesData {
  UlyssesCase p;
  int64_t rows, k, n;
  std::vector<float> a, b, scales, bias; ///< A of all tokens [batch, rows, k], B [k, n]
  std::vector<double> expected;          ///< [batch, rows, n]

  UlyssesData(const UlyssesCase &p, int64_t rows, int64_t k, int64_t n, uint64_t seed) : p(p), rows(rows), k(k), n(n) {
    a = ops::randomValues(p.dtype, p.batch * rows * k, seed);
    b = ops::randomValues(p.dtype, k * n, seed + 1);
    expected = ops::referenceProduct(a, b, p.batch * rows, n, k);
    if (p.scaled)
      scales = randomFloats(n, seed + 2, 1e-4f, 2e-4f);
    if (p.bias)
      bias = randomFloats(n, seed + 3, -1, 1, p.options().typeOfResult());
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = expected[i] * (p.scaled ? scales[i % n] : 1) + (p.bias ? bias[i % n] : 0);
  }
  /// [batch, own rows, columns] of a matrix [batch, rows, columns].
  template <typename T> std::vector<T> tokensOf(const std::vector<T> &all, int64_t columns, uint32_t rank) const {
    const RowShards shards(rows, p.ranks);
    std::vector<T> own;
    for (int64_t s = 0; s < p.batch; ++s) {
      const auto first = all.begin() + (s * rows + shards.firstRowOf(rank)) * columns;
      own.insert(own.end(), first, first + shards.rowsOf(rank) * columns);
    }
    return own;
  }
  /// [batch, rows, columns / ranks] of the same.
  template <typename T> std::vector<T> columnsOf(const std::vector<T> &all, int64_t columns, uint32_t rank) const {
    const int64_t part = columns / p.ranks;
    std::vector<T> own;
    for (int64_t row = 0; row < p.batch * rows; ++row)
      own.insert(own.end(), all.begin() + row * columns + rank * part, all.begin() + row * columns + (rank + 1) * part);
    return own;
  }
};

class Ulysses : public KernelTest, public testing::WithParamInterface<UlyssesCase> {
protected:
  struct Memory {
    Buffer a, b, scales = {}, bias = {}, result = {};
    ops::EpilogueOperands extras() const {
      return {.scalesA = {},
              .scalesB = scales.isValid() ? scales.pointer() : Pointer(),
              .bias = bias.isValid() ? bias.pointer() : Pointer()};
    }
  };
  /// Memory of at least one element.
  Buffer some(DataType type, std::vector<float> values, std::string_view name, uint32_t id) {
    if (values.empty())
      values.push_back(0);
    return putAs(type, values, name, id);
  }
  std::vector<Memory> memoryFor(const UlyssesData &data, bool isBefore) {
    std::vector<Memory> memory;
    const UlyssesCase &p = data.p;
    for (uint32_t r = 0; r < p.ranks; ++r) {
      Memory own;
      if (isBefore)
        own.a = some(p.dtype, data.tokensOf(data.a, data.k, r), "a", r);
      own.b = putAs(p.dtype, turned(data.b, data.k, data.n, p.order), "b", r);
      if (p.scaled)
        own.scales = putAs(DataType::F32, data.scales, "scales", r);
      if (p.bias)
        own.bias = putAs(p.options().typeOfResult(), data.bias, "bias", r);
      if (!isBefore)
        own.result =
            some(p.options().typeOfResult(),
                 std::vector<float>(data.tokensOf(data.expected, data.n, r).size(), std::nanf("")), "result", r);
      memory.push_back(std::move(own));
    }
    return memory;
  }
  static void expectRight(const std::vector<float> &actual, const std::vector<double> &expected, const UlyssesCase &p,
                          const std::string &what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    if (expected.empty())
      return;
    const ops::Comparison comparison =
        ops::compare(actual, expected, ops::toleranceFor(p.options().typeOfResult(), ops::MultiplyPrecision::Tf32));
    EXPECT_TRUE(comparison.passed()) << what << ": element " << comparison.worstIndex << " is "
                                     << actual[comparison.worstIndex] << ", expected "
                                     << expected[comparison.worstIndex];
  }
  /// What stands behind an address of a rank: copied to memory of its own, on its stream.
  std::vector<float> read(Pointer from, int64_t count, uint32_t id) {
    Buffer copy = zeros(from.type, count, "copy", id);
    EXPECT_OK(rank(id).stream().copy(copy, from, count));
    EXPECT_OK(rank(id).synchronize());
    return getFloats(copy);
  }
};

INSTANTIATE_TEST_SUITE_P(
    All, Ulysses,
    testing::Values(
        UlyssesCase{.name = "bf16"},
        UlyssesCase{.name = "sequences_fp16",
                    .ranks = 3,
                    .batch = 2,
                    .rows = 77,
                    .inner = 40,
                    .dtype = DataType::F16,
                    .order = MatrixOrder::Plain,
                    .chunks = 2,
                    .bias = true},
        UlyssesCase{.name = "fp8", .ranks = 2, .rows = 40, .outer = 128, .dtype = DataType::F8E5, .scaled = true},
        UlyssesCase{.name = "int8", .ranks = 2, .rows = 65, .outer = 128, .dtype = DataType::I8, .scaled = true},
        UlyssesCase{.name = "ranks_without_tokens", .ranks = 4, .batch = 2, .rows = 5, .outer = 64, .chunks = 3},
        UlyssesCase{.name = "unfused", .ranks = 3, .batch = 2, .rows = 50, .schedule = ops::Schedule::Unfused}),
    [](const auto &info) { return info.param.name; });

/// A graph of one size and eager calls of another by turns, each with new data; the last rank is slow.
TEST_P(Ulysses, ProductBeforeAttention) {
  UlyssesCase p = GetParam();
  REQUIRE_RANKS(p.ranks);
  start(p.ranks, seeded(2, p.ranks - 1));
  auto op = GemmAllToAll::create(world(), sharedJit(), p.options(), p.inner, p.outer);
  ASSERT_OK(op);
  const int64_t sizes[] = {p.rows, p.rows + 20};
  for (int64_t rows : sizes)
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK(op->prepare(rank(r), rows));
  std::vector<std::vector<float>> firstResults(p.ranks);
  std::vector<UlyssesData> data = {UlyssesData(p, sizes[0], p.inner, p.outer, 10),
                                   UlyssesData(p, sizes[1], p.inner, p.outer, 20)};
  std::vector<std::vector<Memory>> memory;
  for (const UlyssesData &each : data)
    memory.push_back(memoryFor(each, true));
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < p.ranks; ++r) {
    ASSERT_OK(rank(r).stream().beginCapture());
    ASSERT_OK(op->enqueue(rank(r), rank(r).stream(), memory[0][r].a, memory[0][r].b, sizes[0], memory[0][r].extras()));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(graph).value());
  }
  for (int turn = 0; turn < 3 && !HasFailure(); ++turn) {
    const size_t which = turn % 2;
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK(which == 0 ? rank(r).stream().launch(graphs[r])
                           : op->enqueue(rank(r), rank(r).stream(), memory[1][r].a, memory[1][r].b, sizes[1],
                                         memory[1][r].extras()));
    ASSERT_OK(world().synchronize());
    for (uint32_t r = 0; r < p.ranks; ++r) {
      const std::vector<double> expected = data[which].columnsOf(data[which].expected, p.outer, r);
      const std::vector<float> actual = read(op->result(r), static_cast<int64_t>(expected.size()), r);
      expectRight(actual, expected, p, fmt::format("turn {}, rank {}", turn, r));
      if (turn == 0)
        firstResults[r] = actual;
      else if (turn == 2)
        expectSame(actual, firstResults[r], "the same call again");
    }
  }
}

TEST_P(Ulysses, ProductBehindAttention) {
  UlyssesCase p = GetParam();
  REQUIRE_RANKS(p.ranks);
  start(p.ranks, seeded(3, 0));
  const int64_t depth = p.outer % (16 * p.ranks) == 0 ? p.outer : 32 * p.ranks, columns = p.inner;
  auto op = AllToAllGemm::create(world(), sharedJit(), p.options(), depth, p.chunks);
  ASSERT_OK(op);
  const int64_t sizes[] = {p.rows, p.rows + 20};
  for (int64_t rows : sizes)
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK(op->prepare(rank(r), rows, columns));
  std::vector<UlyssesData> data = {UlyssesData(p, sizes[0], depth, columns, 30),
                                   UlyssesData(p, sizes[1], depth, columns, 40)};
  std::vector<std::vector<Memory>> memory;
  for (const UlyssesData &each : data)
    memory.push_back(memoryFor(each, false));
  // Operands are written by copies on the same stream, as attention would.
  std::vector<std::vector<Buffer>> operands(2);
  for (size_t which : {0, 1})
    for (uint32_t r = 0; r < p.ranks; ++r)
      operands[which].push_back(putAs(p.dtype, data[which].columnsOf(data[which].a, depth, r), "attended", r));
  const auto call = [&](size_t which, uint32_t r) -> Status {
    DITRON_RETURN_IF_ERROR(rank(r).stream().copy(op->operand(r), operands[which][r], operands[which][r].count()));
    return op->enqueue(rank(r), rank(r).stream(), memory[which][r].b, memory[which][r].result, sizes[which], columns,
                       memory[which][r].extras());
  };
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < p.ranks; ++r) {
    ASSERT_OK(rank(r).stream().beginCapture());
    ASSERT_OK(call(0, r));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(graph).value());
  }
  for (int turn = 0; turn < 2 && !HasFailure(); ++turn) {
    for (uint32_t r = 0; r < p.ranks; ++r) {
      ASSERT_OK(rank(r).stream().launch(graphs[r]));
      ASSERT_OK(call(1, r));
    }
    ASSERT_OK(world().synchronize());
    for (size_t which : {0, 1})
      for (uint32_t r = 0; r < p.ranks; ++r) {
        const std::vector<double> expected = data[which].tokensOf(data[which].expected, columns, r);
        std::vector<float> actual = getFloats(memory[which][r].result);
        actual.resize(expected.size());
        expectRight(actual, expected, p, fmt::format("turn {}, size {}, rank {}", turn, which, r));
      }
  }
}

class UlyssesProducts : public KernelTest {};

TEST_F(UlyssesProducts, RefusesWhatItCannotDo) {
  const uint32_t ranks = ranksOnTarget(2);
  start(ranks);
  ops::SequenceProductOptions options = {.maxRows = 32, .tile = smallTile};
  EXPECT_THAT(
      statusOf(GemmAllToAll::create(world(), sharedJit(), options, 32, 33 * ranks + (ranks > 1 ? 1 : 0))).message(),
      ranks > 1 ? HasSubstr("columns that 2 ranks divide") : HasSubstr(""));
  EXPECT_THAT(statusOf(AllToAllGemm::create(world(), sharedJit(), options, 24 * ranks)).message(),
              HasSubstr("multiples of 16"));
  ops::SequenceProductOptions narrow = options;
  narrow.dtype = DataType::I8;
  EXPECT_THAT(statusOf(AllToAllGemm::create(world(), sharedJit(), narrow, 48 * ranks)).message(),
              HasSubstr("multiples of 32"));
  EXPECT_THAT(statusOf(AllToAllGemm::create(world(), sharedJit(), options, 32 * ranks, 65)).message(),
              HasSubstr("65 chunks; 1 to 64 are accepted, or 0 for the library's choice"));
  options.maxRows = 0;
  EXPECT_THAT(statusOf(GemmAllToAll::create(world(), sharedJit(), options, 32, 32 * ranks)).message(),
              HasSubstr("maxRows is 0"));
  options.maxRows = 32;
  options.epilogue.activation = ops::Activation::Relu;
  EXPECT_THAT(statusOf(GemmAllToAll::create(world(), sharedJit(), options, 32, 32 * ranks)).message(),
              HasSubstr("activation relu"));
  options.epilogue = {};
  auto op = GemmAllToAll::create(world(), sharedJit(), options, 32, 32 * ranks);
  ASSERT_OK(op);
  Buffer a = zeros(DataType::BF16, 32 * 32), b = zeros(DataType::BF16, 32 * 32 * ranks);
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), a, b, 33).message(),
              HasSubstr("33 rows; 1 to 32 (maxRows) are accepted"));
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), a, b, 16).message(), HasSubstr("was not prepared"));
  EXPECT_OK(rank(0).stream().endCapture());
}

/// Ranks 1 and 2 are in both groups, each of which runs on streams of its own.
TEST_F(UlyssesProducts, TwoGroups) {
  REQUIRE_RANKS(4);
  start(4, seeded(4, 2));
  const std::vector<std::vector<uint32_t>> members = {{0, 1, 2}, {2, 3, 1}};
  const ops::SequenceProductOptions options = {.maxRows = 40, .tile = smallTile};
  const int64_t k = 32, n = 96, rows = 40;
  std::vector<std::unique_ptr<World>> groups;
  std::vector<GemmAllToAll> operators;
  std::vector<std::vector<runtime::Stream>> streams(2);
  std::vector<std::vector<Buffer>> a(2), b(2);
  std::vector<std::vector<double>> expected;
  for (size_t g : {0, 1}) {
    auto group = world().group(members[g]);
    ASSERT_OK(group);
    groups.push_back(std::move(group).value());
    auto op = GemmAllToAll::create(*groups[g], sharedJit(), options, k, n);
    ASSERT_OK(op);
    operators.push_back(std::move(op).value());
    const std::vector<float> left = ops::randomValues(DataType::BF16, rows * k, g),
                             right = ops::randomValues(DataType::BF16, k * n, g + 5);
    expected.push_back(ops::referenceProduct(left, right, rows, n, k));
    const RowShards shards(rows, 3);
    for (uint32_t r = 0; r < 3; ++r) {
      auto stream = groups[g]->rank(r).createStream(fmt::format("group {}", g));
      ASSERT_OK(stream);
      streams[g].push_back(std::move(stream).value());
      ASSERT_OK(operators[g].prepare(groups[g]->rank(r), rows));
      const auto first = left.begin() + shards.firstRowOf(r) * k;
      a[g].push_back(putAs(DataType::BF16, {first, first + shards.rowsOf(r) * k}, "a", members[g][r]));
      b[g].push_back(putAs(DataType::BF16, right, "b", members[g][r]));
    }
  }
  for (int turn = 0; turn < 2; ++turn)
    for (uint32_t r = 0; r < 3; ++r)
      for (size_t g : {r % 2, 1 - r % 2})
        ASSERT_OK(operators[g].enqueue(groups[g]->rank(r), streams[g][r], a[g][r], b[g][r], rows));
  ASSERT_OK(world().synchronize());
  for (size_t g : {0, 1})
    for (uint32_t r = 0; r < 3; ++r) {
      Buffer copy = zeros(DataType::BF16, rows * n / 3, "copy", members[g][r]);
      ASSERT_OK(rank(members[g][r]).stream().copy(copy, operators[g].result(r), copy.count()));
      ASSERT_OK(world().synchronize());
      std::vector<double> own;
      for (int64_t row = 0; row < rows; ++row)
        own.insert(own.end(), expected[g].begin() + row * n + r * (n / 3),
                   expected[g].begin() + row * n + (r + 1) * (n / 3));
      const ops::Comparison comparison =
          ops::compare(getFloats(copy), own, ops::toleranceFor(DataType::BF16, ops::MultiplyPrecision::Tf32));
      EXPECT_TRUE(comparison.passed()) << "group " << g << ", rank " << r;
    }
}

} // namespace
} // namespace ditron::e2e
