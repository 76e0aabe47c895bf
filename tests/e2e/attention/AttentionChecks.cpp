//===- AttentionChecks.cpp - Attention, forward and backward, against a plain reference ------------------------------------===//
//
// See AttentionChecks.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "AttentionChecks.h"

#include "LibraryMachine.h"
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/attention/AttentionReference.h"

namespace ditron::e2e {
namespace {

using ops::AttentionLayout;

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

} // namespace

std::optional<std::string> checkForward(const AttentionCase &p) {
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
  auto call = ops::prepareAttention(*machine.jit, machine.rank(), problem, operands, p.plan);
  if (!call.isOk())
    return call.status().message();
  const std::vector<float> actual = machine.run(call, out);
  auto actualLse = lse.downloadFloats();
  EXPECT_OK(actualLse);
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
          EXPECT_NEAR(row, logarithm, p.slack * (is8Bit ? 2e-2 : 2e-3))
              << "batch " << batch << " head " << head << " query " << query;
      }
  expectWithin(actual, expected, p.slack * (is8Bit ? 1e-1 : problem.dtype == DataType::BF16 ? 1.6e-2 : 3e-3), p.name);
  return std::nullopt;
}

/// Their root mean square for each element: rows that see nothing have no gradients, and say nothing of the others' size.
static std::vector<double> sizeOfOthersThanZero(const std::vector<double> &values) {
  double squares = 0, count = 0;
  for (double value : values)
    squares += value * value, count += value != 0;
  return std::vector<double>(values.size(), count ? std::sqrt(squares / count) : 0);
}

std::optional<std::string> checkBackward(const BackwardCase &p) {
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
  if (!call.isOk())
    return call.status().message();
  EXPECT_OK(call->enqueue(machine.rank().stream()));
  EXPECT_OK(machine.world->synchronize());
  const double tolerance = p.slack * (problem.dtype == DataType::BF16 ? 2e-2 : 3e-3);
  if (operands.sinks) {
    std::vector<double> expected(problem.heads, 0.0);
    for (int64_t batch = 0; batch < problem.batch; ++batch)
      for (int64_t head = 0; head < problem.heads; ++head)
        for (int64_t query = 0; query < data.queriesOf(batch); ++query) {
          const int64_t row = data.lsePlace(batch, head, query);
          expected[head] -= std::exp(data.sinks()[head] - exactLse[row]) * delta[row];
        }
    auto actual = dsinks.downloadFloats();
    EXPECT_OK(actual);
    expectWithin(*actual, expected, tolerance, p.name + ": dsinks");
  }
  for (auto [what, buffer, expected] :
       {std::tuple("dq", &dqBuffer, &dq), std::tuple("dk", &dkBuffer, &dk), std::tuple("dv", &dvBuffer, &dv)}) {
    auto actual = buffer->downloadFloats();
    EXPECT_OK(actual);
    expectWithin(*actual, *expected, tolerance, p.name + ": " + what, sizeOfOthersThanZero(*expected));
  }
  return std::nullopt;
}

} // namespace ditron::e2e
