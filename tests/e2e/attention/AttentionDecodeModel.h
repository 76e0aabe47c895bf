//===- AttentionDecodeModel.h - Attention of few queries in plain loops ------------------------------------*- C++ -*-===//
//
// Keys of sequences as values by (sequence, head, key, element), laid out in memory as a KeyLayout says, with NaN where no key is, or one in front of every
// window, and no page where there are only such; and what the
// attention of queries to those of one rank or of several must give, with whatever options.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_ATTENTIONDECODEMODEL_H
#define DITRON_TESTS_E2E_ATTENTIONDECODEMODEL_H

#include "KernelTest.h"
#include "ditron/ops/attention_decode/DecodeProblem.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace ditron::e2e {

enum class KeyOrder { HeadsFirst, KeysFirst, Paged };

/// What one rank gives to a call.
class DecodeOperandsOfRank {
public:
  /// lengths: [batch, queries]. `pageSize`: of KeyOrder::Paged.
  DecodeOperandsOfRank(const ops::DecodeProblem &problem, KeyOrder order, int64_t pageSize,
                       std::vector<int32_t> lengths, int64_t mostKeys, uint64_t seed)
      : problem(problem), lengths(std::move(lengths)), mostKeys(mostKeys) {
    const int64_t count = problem.batch * problem.kvHeads * mostKeys;
    k = randomFloats(count * problem.headDim, seed * 8 + 1, -2, 2, problem.dtype);
    v = randomFloats(count * problem.dimOfValues(), seed * 8 + 2, -2, 2, problem.dtype);
    if (problem.valuesInKeys)
      for (int64_t row = 0; row < count; ++row)
        std::copy_n(k.begin() + row * problem.headDim, problem.dimOfValues(), v.begin() + row * problem.dimOfValues());
    const int64_t pages = (mostKeys + std::max<int64_t>(pageSize, 1) - 1) / std::max<int64_t>(pageSize, 1);
    if (order == KeyOrder::Paged) {
      table.resize(problem.batch * pages);
      std::iota(table.begin(), table.end(), 1); // page 0 is nobody's
      std::mt19937_64 random(seed);
      std::ranges::shuffle(table, random);
    }
    for (int64_t s = 0; s < problem.batch && order == KeyOrder::Paged; ++s)
      std::fill_n(table.begin() + s * pages, firstSeen(s) / pageSize, -1);
    memoryPages = order == KeyOrder::Paged ? problem.batch * pages + 1 : problem.batch;
    const auto layoutOf = [&](int64_t dim) {
      switch (order) {
      case KeyOrder::HeadsFirst: return ops::KeyLayout::headsFirst(problem.kvHeads, mostKeys, dim);
      case KeyOrder::KeysFirst: return ops::KeyLayout::keysFirst(problem.kvHeads, mostKeys, dim);
      case KeyOrder::Paged: break;
      }
      return ops::KeyLayout::paged(pageSize, pages, problem.kvHeads, dim);
    };
    layout = layoutOf(problem.headDim);
    valueLayout = layoutOf(problem.dimOfValues());
  }

  /// The problem of a call with these operands.
  ops::DecodeProblem problemOfCall() const {
    ops::DecodeProblem call = problem;
    call.keys = layout;
    if (problem.dimOfValues() != problem.headDim && !problem.valuesInKeys)
      call.values = valueLayout;
    return call;
  }

  int64_t longest(int64_t sequence) const {
    const auto first = lengths.begin() + sequence * problem.queries;
    return std::max(*std::max_element(first, first + problem.queries), 0);
  }
  /// The first key that a query of the sequence has in its window.
  int64_t firstSeen(int64_t sequence) const {
    if (!problem.window)
      return 0;
    int64_t shortest = longest(sequence);
    for (int64_t query = 0; query < problem.queries; ++query)
      if (const int64_t length = lengths[sequence * problem.queries + query]; length > 0)
        shortest = std::min(shortest, length);
    return std::max<int64_t>(shortest - 1 - *problem.window, 0);
  }
  /// A key's row among those of all.
  int64_t row(int64_t sequence, int64_t head, int64_t key) const {
    return (sequence * problem.kvHeads + head) * mostKeys + key;
  }
  static int64_t place(const ops::KeyLayout &layout, const std::vector<int32_t> &table, int64_t sequence, int64_t head,
                       int64_t key) {
    int64_t page = sequence, row = key;
    if (layout.pageSize) {
      page = table[sequence * layout.tableStride + key / layout.pageSize];
      row = key % layout.pageSize;
    }
    return page * layout.pageStride + row * layout.rowStride + head * layout.headStride;
  }
  std::vector<float> keysInMemory() const { return laidOut(k, layout, problem.headDim); }
  std::vector<float> valuesInMemory() const { return laidOut(v, valueLayout, problem.dimOfValues()); }

  ops::DecodeProblem problem;
  ops::KeyLayout layout, valueLayout;
  std::vector<int32_t> lengths, table;
  std::vector<float> k, v;
  int64_t mostKeys = 0, memoryPages = 0;

private:
  std::vector<float> laidOut(const std::vector<float> &values, const ops::KeyLayout &order, int64_t dim) const {
    std::vector<float> memory(memoryPages * order.pageStride, std::numeric_limits<float>::quiet_NaN());
    for (int64_t s = 0; s < problem.batch; ++s)
      for (int64_t h = 0; h < problem.kvHeads; ++h)
        for (int64_t key = firstSeen(s); key < longest(s); ++key)
          std::copy_n(values.begin() + row(s, h, key) * dim, dim, memory.begin() + place(order, table, s, h, key));
    return memory;
  }
};

struct DecodeResult {
  std::vector<double> out, lse;
};

/// Of the keys of all ranks together; `sinks` of each head, or none.
inline DecodeResult expectedDecode(const ops::DecodeProblem &problem, const std::vector<float> &q,
                                   const std::vector<DecodeOperandsOfRank> &ranks,
                                   const std::vector<float> &sinks = {}) {
  const int64_t depth = problem.headDim, width = problem.dimOfValues(), group = problem.heads / problem.kvHeads;
  const double scale = problem.scale.value_or(1 / std::sqrt(static_cast<double>(depth)));
  DecodeResult result = {std::vector<double>(problem.rows() * width, 0.0), {}};
  for (int64_t row = 0; row < problem.rows(); ++row) {
    const int64_t sequence = row / (problem.heads * problem.queries), query = row % problem.queries;
    const int64_t queryHead = row / problem.queries % problem.heads, head = queryHead / group;
    double largest = sinks.empty() ? -INFINITY : sinks[queryHead], sum = 0;
    std::vector<std::pair<double, const float *>> scores;
    for (const DecodeOperandsOfRank &rank : ranks) {
      const int64_t length = rank.lengths[sequence * problem.queries + query];
      for (int64_t key = std::max<int64_t>(length - 1 - problem.window.value_or(length), 0); key < length; ++key) {
        const int64_t place = rank.row(sequence, head, key);
        double score = 0;
        for (int64_t d = 0; d < depth; ++d)
          score += double(q[row * depth + d]) * rank.k[place * depth + d];
        score *= scale;
        if (problem.softCap)
          score = *problem.softCap * std::tanh(score / *problem.softCap);
        scores.emplace_back(score, &rank.v[place * width]);
        largest = std::max(largest, score);
      }
    }
    if (!sinks.empty())
      sum = std::exp(sinks[queryHead] - largest);
    for (auto &[score, values] : scores)
      sum += score = std::exp(score - largest);
    for (const auto &[power, values] : scores)
      for (int64_t d = 0; d < width; ++d)
        result.out[row * width + d] += power / sum * values[d];
    result.lse.push_back(largest + std::log(sum));
  }
  return result;
}

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_ATTENTIONDECODEMODEL_H
