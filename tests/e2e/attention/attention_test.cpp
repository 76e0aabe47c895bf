//===- attention_test.cpp - Attention against a plain reference ------------------------------------------------------------===//
//
// Forward and backward, by pointers and by descriptors: shapes that no tile divides, masks, grouped heads, every option, packed rows, pages;
// what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "LibraryMachine.h"
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/attention/AttentionBackward.h"
#include "ditron/ops/attention/AttentionReference.h"

namespace ditron::e2e {
namespace {

using ops::AttentionLayout;
using ops::AttentionMovement;
using testing::HasSubstr;

/// What a case has besides the problem.
struct AttentionExtras {
  bool sinks = false, slopes = false;
  /// Rows of each batch, packed where the problem says so; `keys` else by keyLengths.
  std::vector<int64_t> queries = {}, keys = {};
};

/// Operands of a problem, in memory and as the reference sees them.
class AttentionData {
public:
  AttentionData(Machine &machine, const ops::AttentionProblem &given, const AttentionExtras &extras)
      : machine(machine), problem(given), extras(extras) {
    queryOffsets = offsetsOf(extras.queries);
    keyOffsets = offsetsOf(extras.keys);
    if (problem.packedQueries)
      problem.packedQueries = queryOffsets.back();
    if (problem.packedKeys)
      problem.packedKeys = keyOffsets.back();
    pagesOfBatch = problem.pages ? ops::ceilDivide(problem.keys, problem.pages->size) : 0;
    for (int64_t i = 0; i < problem.batch * pagesOfBatch; ++i) // from the last page down
      table.push_back(static_cast<int32_t>(problem.batch * pagesOfBatch - 1 - i));
    if (problem.pages)
      problem.pages->count = problem.batch * pagesOfBatch;
  }

  int64_t queriesOf(int64_t batch) const { return extras.queries.empty() ? problem.queries : extras.queries[batch]; }
  int64_t keysOf(int64_t batch) const { return extras.keys.empty() ? problem.keys : extras.keys[batch]; }

  /// Where an element of Q (or of the result) lies, and one of K (or V).
  int64_t queryPlace(int64_t batch, int64_t head, int64_t row, int64_t column, int64_t dim) const {
    if (problem.packedQueries)
      return ((queryOffsets[batch] + row) * problem.heads + head) * dim + column;
    return place(batch, head, row, column, problem.heads, problem.queries, dim);
  }
  int64_t keyPlace(int64_t batch, int64_t head, int64_t row, int64_t column, int64_t dim) const {
    if (problem.packedKeys)
      return ((keyOffsets[batch] + row) * problem.kvHeads + head) * dim + column;
    if (problem.pages)
      return place(table[batch * pagesOfBatch + row / problem.pages->size], head, row % problem.pages->size, column,
                   problem.kvHeads, problem.pages->size, dim);
    return place(batch, head, row, column, problem.kvHeads, problem.keys, dim);
  }
  int64_t valuePlace(int64_t batch, int64_t head, int64_t row, int64_t column) const {
    if (problem.valuesTransposed)
      return ((batch * problem.kvHeads + head) * problem.dimOfValues() + column) * problem.keys + row;
    return keyPlace(batch, head, row, column, problem.dimOfValues());
  }
  int64_t queryCount(int64_t dim) const {
    return problem.packedQueries.value_or(problem.batch * problem.queries) * problem.heads * dim;
  }
  int64_t keyCount(int64_t dim) const {
    const int64_t rows = problem.pages ? problem.pages->count * problem.pages->size
                                       : problem.packedKeys.value_or(problem.batch * problem.keys);
    return rows * problem.kvHeads * dim;
  }
  int64_t lsePlace(int64_t batch, int64_t head, int64_t query) const {
    if (problem.packedQueries)
      return head * *problem.packedQueries + queryOffsets[batch] + query;
    return (batch * problem.heads + head) * problem.queries + query;
  }

  std::vector<float> random(int64_t count, uint64_t seed) const {
    return randomFloats(count, seed, -2, 2, problem.dtype);
  }
  Buffer put(const std::vector<float> &values) { return machine.put(problem.dtype, values); }
  std::optional<Pointer> offsets(const std::vector<int64_t> &values, bool isGiven) {
    return isGiven ? std::optional(integers(values)) : std::nullopt;
  }
  std::optional<Pointer> floats(const std::vector<double> &values) {
    if (values.empty())
      return std::nullopt;
    kept.push_back(machine.put(DataType::F32, std::vector<float>(values.begin(), values.end())));
    return kept.back().pointer();
  }
  Pointer integers(const std::vector<int64_t> &values) {
    auto buffer = machine.rank().allocate(DataType::I32, values.size(), "numbers");
    EXPECT_OK(buffer);
    const std::vector<int32_t> narrow(values.begin(), values.end());
    EXPECT_OK(buffer->upload(narrow.data(), narrow.size() * sizeof(int32_t)));
    kept.push_back(std::move(buffer).value());
    return kept.back().pointer();
  }

  ops::AttentionReference reference(const std::vector<float> &q, const std::vector<float> &k,
                                    const std::vector<float> &v) const {
    ops::AttentionReference plain(
        problem,
        [this, &q](int64_t b, int64_t h, int64_t r, int64_t c) { return q[queryPlace(b, h, r, c, problem.headDim)]; },
        [this, &k](int64_t b, int64_t h, int64_t r, int64_t c) { return k[keyPlace(b, h, r, c, problem.headDim)]; },
        [this, &v](int64_t b, int64_t h, int64_t r, int64_t c) { return v[valuePlace(b, h, r, c)]; });
    plain.sinks = sinks();
    plain.slopes = slopes();
    plain.queries = extras.queries;
    plain.keys = extras.keys;
    return plain;
  }
  std::vector<double> sinks() const { return perHead(extras.sinks, 0.75); }
  std::vector<double> slopes() const { return perHead(extras.slopes, 0.0625); }

  Machine &machine;
  ops::AttentionProblem problem;
  AttentionExtras extras;
  std::vector<int64_t> queryOffsets, keyOffsets;
  std::vector<int32_t> table;
  std::vector<Buffer> kept;

private:
  int64_t place(int64_t batch, int64_t head, int64_t row, int64_t column, int64_t heads, int64_t rows,
                int64_t dim) const {
    return problem.layout == AttentionLayout::HeadsFirst ? ((batch * heads + head) * rows + row) * dim + column
                                                         : ((batch * rows + row) * heads + head) * dim + column;
  }
  static std::vector<int64_t> offsetsOf(const std::vector<int64_t> &rows) {
    std::vector<int64_t> result = {0};
    for (int64_t count : rows)
      result.push_back(result.back() + count);
    return result;
  }
  std::vector<double> perHead(bool isGiven, double first) const {
    std::vector<double> result;
    for (int64_t head = 0; isGiven && head < problem.heads; ++head)
      result.push_back(first * static_cast<double>(head + 1));
    return result;
  }

  int64_t pagesOfBatch;
};

struct AttentionCase {
  const char *name;
  const char *target;
  ops::AttentionProblem problem;
  ops::AttentionPlan plan;
  AttentionExtras extras = {};
};
void PrintTo(const AttentionCase &p, std::ostream *stream) { *stream << p.name; }

class LibraryAttention : public testing::TestWithParam<AttentionCase> {};

TEST_P(LibraryAttention, Forward) {
  const AttentionCase &p = GetParam();
  Machine machine(p.target ? p.target : targetUnderTest());
  AttentionData data(machine, p.problem, p.extras);
  const ops::AttentionProblem &problem = data.problem;
  const int64_t width = problem.dimOfValues();
  const std::vector<float> q = data.random(data.queryCount(problem.headDim), 31);
  const std::vector<float> k = data.random(data.keyCount(problem.headDim), 32),
                           v = data.random(data.keyCount(width), 33);
  Buffer qBuffer = data.put(q), kBuffer = data.put(k), vBuffer = data.put(v);
  Buffer out = machine.unwritten(problem.typeOfResult(), data.queryCount(width));
  Buffer lse = machine.unwritten(DataType::F32, data.queryCount(1));
  ops::AttentionOperands operands = {qBuffer, kBuffer, vBuffer, out, lse};
  operands.sinks = data.floats(data.sinks());
  operands.slopes = data.floats(data.slopes());
  operands.queryOffsets = data.offsets(data.queryOffsets, problem.packedQueries.has_value());
  operands.keyOffsets = data.offsets(data.keyOffsets, problem.packedKeys.has_value());
  operands.keyLengths = data.offsets(p.extras.keys, !problem.packedKeys && !p.extras.keys.empty());
  operands.blockTable = data.offsets({data.table.begin(), data.table.end()}, problem.pages.has_value());
  const std::vector<float> actual =
      machine.run(ops::prepareAttention(*machine.jit, machine.rank(), problem, operands, p.plan), out);
  auto actualLse = lse.downloadFloats();
  ASSERT_OK(actualLse);
  const ops::AttentionReference plain = data.reference(q, k, v);
  std::vector<double> expected(actual.size());
  const bool is8Bit = problem.dtype == DataType::F8E4NV;
  for (int64_t batch = 0; batch < problem.batch; ++batch)
    for (int64_t head = 0; head < problem.heads; ++head)
      for (int64_t query = 0; query < data.queriesOf(batch); ++query) {
        const auto [values, logarithm] = plain.row(batch, head, query);
        for (int64_t column = 0; column < width; ++column)
          expected[data.queryPlace(batch, head, query, column, width)] = values[column];
        const float row = (*actualLse)[data.lsePlace(batch, head, query)];
        if (std::isinf(logarithm))
          EXPECT_EQ(row, logarithm) << "batch " << batch << " head " << head << " query " << query;
        else
          EXPECT_NEAR(row, logarithm, is8Bit ? 2e-2 : 2e-3)
              << "batch " << batch << " head " << head << " query " << query;
      }
  expectWithin(actual, expected, is8Bit ? 1e-1 : problem.dtype == DataType::BF16 ? 1.6e-2 : 3e-3, p.name);
}

INSTANTIATE_TEST_SUITE_P(
    All, LibraryAttention,
    testing::Values(
        AttentionCase{"causal",
                      nullptr,
                      {.heads = 2, .kvHeads = 2, .queries = 70, .keys = 70, .headDim = 64, .causal = true},
                      {.blockM = 32, .blockN = 32, .numWarps = 4}},
        AttentionCase{
            "grouped",
            nullptr,
            {.batch = 2, .heads = 4, .kvHeads = 2, .queries = 33, .keys = 50, .headDim = 32, .dtype = DataType::F16},
            {.blockM = 16, .blockN = 16, .numWarps = 4}},
        AttentionCase{"more_keys_than_queries",
                      nullptr,
                      {.queries = 20, .keys = 100, .headDim = 32, .causal = true},
                      {.blockM = 16, .blockN = 32, .numWarps = 4}},
        AttentionCase{"queries_without_keys",
                      nullptr,
                      {.queries = 60, .keys = 25, .headDim = 32, .causal = true},
                      {.blockM = 32, .blockN = 32, .numWarps = 4}},
        AttentionCase{"wide_head",
                      nullptr,
                      {.queries = 64, .keys = 130, .headDim = 128, .causal = true, .scale = 0.2},
                      {.blockM = 64, .blockN = 64, .numWarps = 4}},
        AttentionCase{"hopper",
                      "sim:sm_90a",
                      {.heads = 2, .queries = 150, .keys = 150, .headDim = 64, .causal = true},
                      {.blockM = 128, .blockN = 64, .numWarps = 8}},
        AttentionCase{"fetched_causal",
                      "sim:sm_90a",
                      {.heads = 2, .queries = 390, .keys = 390, .headDim = 64, .causal = true},
                      {.blockM = 128, .blockN = 64, .numWarps = 8, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_whole",
                      "sim:sm_90a",
                      {.heads = 2, .queries = 256, .keys = 384, .headDim = 128},
                      {.blockM = 128, .blockN = 128, .numWarps = 8, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{
            "fetched_grouped",
            "sim:sm_90a",
            {.batch = 2, .heads = 4, .kvHeads = 2, .queries = 130, .keys = 201, .headDim = 64, .dtype = DataType::F16},
            {.blockM = 128, .blockN = 128, .numWarps = 8, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_more_keys",
                      "sim:sm_90a",
                      {.queries = 70, .keys = 451, .headDim = 128, .causal = true, .scale = 0.2},
                      {.blockM = 128,
                       .blockN = 64,
                       .numWarps = 8,
                       .numStages = 3,
                       .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_queries_without_keys",
                      "sim:sm_90a",
                      {.queries = 300, .keys = 100, .headDim = 64, .causal = true},
                      {.blockM = 64, .blockN = 64, .numWarps = 4, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_one_slot",
                      "sim:sm_90a",
                      {.queries = 128, .keys = 300, .headDim = 64},
                      {.blockM = 128,
                       .blockN = 64,
                       .numWarps = 8,
                       .numStages = 1,
                       .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{
            "fetched_more_tiles_than_programs",
            "sim:sm_90a",
            {.batch = 3, .heads = 15, .kvHeads = 5, .queries = 290, .keys = 290, .headDim = 64, .causal = true},
            {.blockM = 64, .blockN = 64, .numWarps = 4, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_by_four_warpgroups",
                      "sim:sm_90a",
                      {.heads = 3, .queries = 500, .keys = 500, .headDim = 64, .causal = true},
                      {.blockM = 256,
                       .blockN = 64,
                       .numWarps = 16,
                       .numStages = 3,
                       .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"descriptors_without_copies",
                      "sim:sm_80",
                      {.queries = 70, .keys = 90, .headDim = 32, .causal = true},
                      {.blockM = 64, .blockN = 32, .numWarps = 4, .movement = ops::AttentionMovement::Descriptors}}),
    [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Options, LibraryAttention,
    testing::Values(
        AttentionCase{"window_cap_sinks_slopes",
                      nullptr,
                      {.heads = 4,
                       .kvHeads = 2,
                       .queries = 90,
                       .keys = 101,
                       .headDim = 32,
                       .causal = true,
                       .window = 37,
                       .softCap = 3.0},
                      {.blockM = 32, .blockN = 16, .numWarps = 4},
                      {.sinks = true, .slopes = true}},
        AttentionCase{"window_that_ends_nowhere",
                      nullptr,
                      {.queries = 70, .keys = 70, .headDim = 16, .window = 20},
                      {.blockM = 32, .blockN = 16, .numWarps = 4}},
        AttentionCase{
            "rows_first_head_of_96",
            nullptr,
            {.batch = 2, .heads = 3, .queries = 33, .keys = 40, .headDim = 96, .layout = AttentionLayout::RowsFirst},
            {.blockM = 16, .blockN = 16, .numWarps = 4}},
        AttentionCase{
            "wide_products_narrow_values",
            nullptr,
            {.queries = 20, .keys = 50, .headDim = 192, .causal = true, .dtype = DataType::F16, .valueDim = 128},
            {.blockM = 16, .blockN = 32, .numWarps = 4}},
        AttentionCase{"packed",
                      nullptr,
                      {.batch = 3,
                       .heads = 2,
                       .kvHeads = 1,
                       .queries = 60,
                       .keys = 60,
                       .headDim = 32,
                       .causal = true,
                       .layout = AttentionLayout::RowsFirst,
                       .packedQueries = 0,
                       .packedKeys = 0},
                      {.blockM = 32, .blockN = 32, .numWarps = 4},
                      {.queries = {17, 60, 1}, .keys = {30, 60, 5}}},
        AttentionCase{"pages",
                      nullptr,
                      {.batch = 2,
                       .heads = 4,
                       .kvHeads = 2,
                       .queries = 5,
                       .keys = 90,
                       .headDim = 64,
                       .causal = true,
                       .layout = AttentionLayout::RowsFirst,
                       .pages = ops::AttentionPages{.size = 16}},
                      {.blockM = 16, .blockN = 32, .numWarps = 4},
                      {.keys = {90, 41}}},
        AttentionCase{"eight_bits",
                      "sim:sm_90a",
                      {.queries = 64, .keys = 80, .headDim = 64, .causal = true, .dtype = DataType::F8E4NV},
                      {.blockM = 64, .blockN = 64, .numWarps = 4}},
        AttentionCase{"fetched_window_cap_sinks_slopes",
                      "sim:sm_90a",
                      {.heads = 4,
                       .kvHeads = 2,
                       .queries = 200,
                       .keys = 220,
                       .headDim = 64,
                       .causal = true,
                       .window = 70,
                       .softCap = 3.0},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors},
                      {.sinks = true, .slopes = true}},
        AttentionCase{
            "fetched_rows_first_head_of_96",
            "sim:sm_90a",
            {.batch = 2, .heads = 3, .queries = 133, .keys = 140, .headDim = 96, .layout = AttentionLayout::RowsFirst},
            {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors}},
        AttentionCase{"fetched_wide_products_narrow_values",
                      "sim:sm_90a",
                      {.queries = 130, .keys = 130, .headDim = 192, .causal = true, .valueDim = 128},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors}},
        AttentionCase{"fetched_head_of_256",
                      "sim:sm_90a",
                      {.queries = 130, .keys = 130, .headDim = 256, .causal = true},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors}},
        AttentionCase{"fetched_packed",
                      "sim:sm_90a",
                      {.batch = 3,
                       .heads = 2,
                       .kvHeads = 1,
                       .queries = 200,
                       .keys = 200,
                       .headDim = 64,
                       .causal = true,
                       .layout = AttentionLayout::RowsFirst,
                       .packedQueries = 0,
                       .packedKeys = 0},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors},
                      {.queries = {17, 200, 1}, .keys = {30, 200, 5}}},
        AttentionCase{"fetched_pages",
                      "sim:sm_90a",
                      {.batch = 2,
                       .heads = 2,
                       .queries = 70,
                       .keys = 190,
                       .headDim = 64,
                       .causal = true,
                       .layout = AttentionLayout::RowsFirst,
                       .pages = ops::AttentionPages{.size = 64}},
                      {.blockM = 64, .blockN = 64, .numWarps = 4, .movement = AttentionMovement::Descriptors},
                      {.keys = {190, 71}}},
        AttentionCase{"fetched_eight_bits",
                      "sim:sm_90a",
                      {.heads = 2,
                       .kvHeads = 2,
                       .queries = 128,
                       .keys = 160,
                       .headDim = 64,
                       .dtype = DataType::F8E4NV,
                       .valuesTransposed = true},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors}}),
    [](const auto &info) { return info.param.name; });

//===--------------------------------------------------------------------------------------------------------------===//
// Backward
//===--------------------------------------------------------------------------------------------------------------===//

struct BackwardCase {
  const char *name;
  const char *target;
  ops::AttentionProblem problem;
  ops::AttentionBackwardPlan plan;
  AttentionExtras extras = {};
};
void PrintTo(const BackwardCase &p, std::ostream *stream) { *stream << p.name; }

class LibraryAttentionBackward : public testing::TestWithParam<BackwardCase> {};

TEST_P(LibraryAttentionBackward, Gradients) {
  const BackwardCase &p = GetParam();
  Machine machine(p.target ? p.target : targetUnderTest());
  AttentionData data(machine, p.problem, p.extras);
  const ops::AttentionProblem &problem = data.problem;
  const int64_t dim = problem.headDim, queryCount = data.queryCount(dim), keyCount = data.keyCount(dim);
  const std::vector<float> q = data.random(queryCount, 31), gradient = data.random(queryCount, 34);
  const std::vector<float> k = data.random(keyCount, 32), v = data.random(keyCount, 33);
  const ops::AttentionReference plain = data.reference(q, k, v);
  const ops::AttentionElement gradientAt = [&](int64_t b, int64_t h, int64_t r, int64_t c) {
    return gradient[data.queryPlace(b, h, r, c, dim)];
  };
  std::vector<float> out(queryCount), lse(data.queryCount(1));
  std::vector<double> delta(lse.size()), exactLse(lse.size()), dq(queryCount), dk(keyCount), dv(keyCount);
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    for (int64_t head = 0; head < problem.heads; ++head)
      for (int64_t query = 0; query < data.queriesOf(batch); ++query) {
        const auto [values, logarithm] = plain.row(batch, head, query);
        const int64_t row = data.lsePlace(batch, head, query);
        lse[row] = static_cast<float>(exactLse[row] = logarithm);
        for (int64_t column = 0; column < dim; ++column) {
          out[data.queryPlace(batch, head, query, column, dim)] = static_cast<float>(values[column]);
          delta[row] += values[column] * gradientAt(batch, head, query, column);
        }
        const std::vector<double> own = plain.queryGradient(gradientAt, batch, head, query);
        for (int64_t column = 0; column < dim; ++column)
          dq[data.queryPlace(batch, head, query, column, dim)] = own[column];
      }
    const auto lseAt = [&](int64_t head, int64_t query) { return exactLse[data.lsePlace(batch, head, query)]; };
    const auto deltaAt = [&](int64_t head, int64_t query) { return delta[data.lsePlace(batch, head, query)]; };
    for (int64_t head = 0; head < problem.kvHeads; ++head)
      for (int64_t key = 0; key < data.keysOf(batch); ++key) {
        const auto [ofKey, ofValue] = plain.keyGradients(gradientAt, batch, head, key, lseAt, deltaAt);
        for (int64_t column = 0; column < dim; ++column) {
          dk[data.keyPlace(batch, head, key, column, dim)] = ofKey[column];
          dv[data.keyPlace(batch, head, key, column, dim)] = ofValue[column];
        }
      }
  }
  Buffer qBuffer = data.put(q), kBuffer = data.put(k), vBuffer = data.put(v), outBuffer = data.put(out);
  Buffer gradientBuffer = data.put(gradient), lseBuffer = machine.put(DataType::F32, lse);
  Buffer dqBuffer = machine.unwritten(problem.dtype, queryCount), dkBuffer = machine.unwritten(problem.dtype, keyCount);
  Buffer dvBuffer = machine.unwritten(problem.dtype, keyCount);
  ops::AttentionBackwardOperands operands = {.q = qBuffer,
                                             .k = kBuffer,
                                             .v = vBuffer,
                                             .out = outBuffer,
                                             .lse = lseBuffer,
                                             .gradient = gradientBuffer,
                                             .dq = dqBuffer,
                                             .dk = dkBuffer,
                                             .dv = dvBuffer};
  operands.slopes = data.floats(data.slopes());
  operands.sinks = data.floats(data.sinks());
  Buffer dsinks = machine.unwritten(DataType::F32, problem.heads);
  if (operands.sinks)
    operands.dsinks = dsinks.pointer();
  operands.queryOffsets = data.offsets(data.queryOffsets, problem.packedQueries.has_value());
  operands.keyOffsets = data.offsets(data.keyOffsets, problem.packedKeys.has_value());
  auto call = ops::prepareAttentionBackward(*machine.jit, machine.rank(), problem, operands, p.plan);
  ASSERT_OK(call);
  ASSERT_OK(call->enqueue(machine.rank().stream()));
  ASSERT_OK(machine.world->synchronize());
  const double tolerance = problem.dtype == DataType::BF16 ? 2e-2 : 3e-3;
  if (operands.sinks) {
    std::vector<double> expected(problem.heads, 0.0);
    for (int64_t batch = 0; batch < problem.batch; ++batch)
      for (int64_t head = 0; head < problem.heads; ++head)
        for (int64_t query = 0; query < data.queriesOf(batch); ++query) {
          const int64_t row = data.lsePlace(batch, head, query);
          expected[head] -= std::exp(data.sinks()[head] - exactLse[row]) * delta[row];
        }
    auto actual = dsinks.downloadFloats();
    ASSERT_OK(actual);
    expectWithin(*actual, expected, tolerance, std::string(p.name) + ": dsinks");
  }
  for (auto [what, buffer, expected] :
       {std::tuple("dq", &dqBuffer, &dq), std::tuple("dk", &dkBuffer, &dk), std::tuple("dv", &dvBuffer, &dv)}) {
    auto actual = buffer->downloadFloats();
    ASSERT_OK(actual);
    expectWithin(*actual, *expected, tolerance, std::string(p.name) + ": " + what);
  }
}

constexpr ops::AttentionPlan fetched(uint32_t blockM, uint32_t blockN, uint32_t numWarps = 8) {
  return {.blockM = blockM, .blockN = blockN, .numWarps = numWarps, .movement = AttentionMovement::Descriptors};
}

INSTANTIATE_TEST_SUITE_P(
    All, LibraryAttentionBackward,
    testing::Values(
        BackwardCase{"causal_grouped",
                     nullptr,
                     {.batch = 2,
                      .heads = 4,
                      .kvHeads = 2,
                      .queries = 50,
                      .keys = 61,
                      .headDim = 32,
                      .causal = true,
                      .dtype = DataType::F16},
                     {{.blockM = 16, .blockN = 32, .numWarps = 4}, {.blockM = 32, .blockN = 16, .numWarps = 4}}},
        BackwardCase{"queries_without_keys",
                     nullptr,
                     {.queries = 60, .keys = 25, .headDim = 16, .causal = true},
                     {{.blockM = 32, .blockN = 16, .numWarps = 4}, {.blockM = 32, .blockN = 16, .numWarps = 4}}},
        BackwardCase{"packed_window_cap_slopes",
                     nullptr,
                     {.batch = 3,
                      .heads = 2,
                      .queries = 60,
                      .keys = 60,
                      .headDim = 32,
                      .causal = true,
                      .layout = AttentionLayout::RowsFirst,
                      .window = 21,
                      .softCap = 4.0,
                      .packedQueries = 0,
                      .packedKeys = 0},
                     {{.blockM = 16, .blockN = 16, .numWarps = 4}, {.blockM = 16, .blockN = 16, .numWarps = 4}},
                     {.sinks = true, .slopes = true, .queries = {17, 60, 1}, .keys = {30, 60, 5}}},
        BackwardCase{"head_of_96",
                     nullptr,
                     {.queries = 33, .keys = 20, .headDim = 96, .layout = AttentionLayout::RowsFirst},
                     {{.blockM = 16, .blockN = 16, .numWarps = 4}, {.blockM = 16, .blockN = 16, .numWarps = 4}}},
        BackwardCase{"fetched_causal_grouped",
                     "sim:sm_90a",
                     {.batch = 2,
                      .heads = 4,
                      .kvHeads = 2,
                      .queries = 150,
                      .keys = 161,
                      .headDim = 64,
                      .causal = true,
                      .dtype = DataType::F16},
                     {fetched(128, 128), fetched(128, 128)}},
        BackwardCase{"fetched_whole_wide",
                     "sim:sm_90a",
                     {.queries = 200, .keys = 130, .headDim = 128},
                     {fetched(64, 128), fetched(128, 64)}},
        BackwardCase{"fetched_packed_window_cap_slopes",
                     "sim:sm_90a",
                     {.batch = 3,
                      .heads = 2,
                      .queries = 150,
                      .keys = 150,
                      .headDim = 64,
                      .causal = true,
                      .layout = AttentionLayout::RowsFirst,
                      .window = 50,
                      .softCap = 4.0,
                      .packedQueries = 0,
                      .packedKeys = 0},
                     {fetched(64, 64, 4), fetched(64, 64, 4)},
                     {.slopes = true, .queries = {17, 150, 1}, .keys = {30, 150, 5}}}),
    [](const auto &info) { return info.param.name; });

TEST(LibraryAttentionPlans, RefuseWhatCannotBe) {
  Machine machine(targetUnderTest());
  Buffer x = machine.put(DataType::BF16, std::vector<float>(64));
  auto message = [&](const ops::AttentionProblem &problem) {
    return statusOf(ops::prepareAttention(*machine.jit, machine.rank(), problem, {x, x, x, x})).message();
  };
  const ops::AttentionBackwardOperands all = {x, x, x, x, x.pointer().as(DataType::F32), x, x, x, x};
  auto backward = [&](const ops::AttentionProblem &problem, const ops::AttentionBackwardPlan &plan = {}) {
    return statusOf(ops::prepareAttentionBackward(*machine.jit, machine.rank(), problem, all, plan)).message();
  };
  EXPECT_THAT(backward({.queries = 1, .keys = 1, .headDim = 256}), HasSubstr("heads of 256"));
  EXPECT_THAT(backward({.queries = 1, .keys = 1, .valueDim = 64}), HasSubstr("of V 64"));
  EXPECT_THAT(backward({.queries = 1, .keys = 1, .pages = ops::AttentionPages{.count = 1}}), HasSubstr("in pages"));
  EXPECT_THAT(backward({.queries = 1, .keys = 1}, {.keys = {.blockM = 256}}), HasSubstr("tiles of 256 queries"));
  EXPECT_THAT(statusOf(ops::parseAttentionBackwardPlan("64x64 warps 4 stages 2")).message(), HasSubstr("written like"));
  EXPECT_THAT(message({.heads = 3, .kvHeads = 2, .queries = 1, .keys = 1}), HasSubstr("must divide"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .headDim = 80}), HasSubstr("heads of 80"));
  EXPECT_THAT(message({.queries = 0, .keys = 1}), HasSubstr("queries is 0; 1 to 2147483647 are accepted"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .dtype = DataType::F32}), HasSubstr("bf16, fp16 and fp8e4nv"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .scale = -1.0}), HasSubstr("the scale -1"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .window = -1}), HasSubstr("a window of -1"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .softCap = 0.0}), HasSubstr("capped at 0"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .softCap = std::numeric_limits<double>::infinity()}),
              HasSubstr("capped at inf"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .packedQueries = 1}), HasSubstr("RowsFirst is accepted"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .layout = AttentionLayout::RowsFirst, .packedQueries = 1}),
              HasSubstr("queryOffsets"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .pages = ops::AttentionPages{.count = 1, .size = 24}}),
              HasSubstr("of 24 rows"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .pages = ops::AttentionPages{.count = 1}}), HasSubstr("blockTable"));
}

} // namespace
} // namespace ditron::e2e
