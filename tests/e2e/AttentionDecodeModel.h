//===- AttentionDecodeModel.h - Attention of few queries in plain loops ------------------------------------*- C++ -*-===//
//
// Keys of sequences as values by (sequence, head, key, element), laid out in memory as a KeyLayout says, with NaN where no key is; and what the
// attention of queries to those of one rank or of several must give.
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
    const int64_t count = problem.batch * problem.kvHeads * mostKeys * problem.headDim;
    k = randomFloats(count, seed * 8 + 1, -2, 2, problem.dtype);
    v = randomFloats(count, seed * 8 + 2, -2, 2, problem.dtype);
    const int64_t pages = (mostKeys + std::max<int64_t>(pageSize, 1) - 1) / std::max<int64_t>(pageSize, 1);
    if (order == KeyOrder::Paged) {
      layout = ops::KeyLayout::paged(pageSize, pages, problem.kvHeads, problem.headDim);
      table.resize(problem.batch * pages);
      std::iota(table.begin(), table.end(), 1); // page 0 is nobody's
      std::mt19937_64 random(seed);
      std::ranges::shuffle(table, random);
      elements = (problem.batch * pages + 1) * layout.pageStride;
    } else {
      layout = order == KeyOrder::HeadsFirst ? ops::KeyLayout::headsFirst(problem.kvHeads, mostKeys, problem.headDim)
                                             : ops::KeyLayout::keysFirst(problem.kvHeads, mostKeys, problem.headDim);
      elements = problem.batch * layout.pageStride;
    }
  }

  int64_t longest(int64_t sequence) const {
    const auto first = lengths.begin() + sequence * problem.queries;
    return std::max(*std::max_element(first, first + problem.queries), 0);
  }
  int64_t value(int64_t sequence, int64_t head, int64_t key) const {
    return ((sequence * problem.kvHeads + head) * mostKeys + key) * problem.headDim;
  }
  int64_t place(int64_t sequence, int64_t head, int64_t key) const {
    int64_t page = sequence, row = key;
    if (layout.pageSize) {
      page = table[sequence * layout.tableStride + key / layout.pageSize];
      row = key % layout.pageSize;
    }
    return page * layout.pageStride + row * layout.rowStride + head * layout.headStride;
  }
  std::vector<float> laidOut(const std::vector<float> &values) const {
    std::vector<float> memory(elements, std::numeric_limits<float>::quiet_NaN());
    for (int64_t s = 0; s < problem.batch; ++s)
      for (int64_t h = 0; h < problem.kvHeads; ++h)
        for (int64_t key = 0; key < longest(s); ++key)
          std::copy_n(values.begin() + value(s, h, key), problem.headDim, memory.begin() + place(s, h, key));
    return memory;
  }

  ops::DecodeProblem problem;
  ops::KeyLayout layout;
  std::vector<int32_t> lengths, table;
  std::vector<float> k, v;
  int64_t mostKeys = 0, elements = 0;
};

struct DecodeResult {
  std::vector<double> out, lse;
};

/// Of the keys of all ranks together.
inline DecodeResult expectedDecode(const ops::DecodeProblem &problem, const std::vector<float> &q,
                                   const std::vector<DecodeOperandsOfRank> &ranks) {
  const int64_t depth = problem.headDim, group = problem.heads / problem.kvHeads;
  const double scale = problem.scale.value_or(1 / std::sqrt(static_cast<double>(depth)));
  DecodeResult result = {std::vector<double>(q.size(), 0.0), {}};
  for (int64_t row = 0; row < problem.rows(); ++row) {
    const int64_t sequence = row / (problem.heads * problem.queries), query = row % problem.queries;
    const int64_t head = row / problem.queries % problem.heads / group;
    double largest = -INFINITY, sum = 0;
    std::vector<std::pair<double, const float *>> scores;
    for (const DecodeOperandsOfRank &rank : ranks)
      for (int64_t key = 0; key < rank.lengths[sequence * problem.queries + query]; ++key) {
        double score = 0;
        for (int64_t d = 0; d < depth; ++d)
          score += double(q[row * depth + d]) * rank.k[rank.value(sequence, head, key) + d];
        scores.emplace_back(score * scale, &rank.v[rank.value(sequence, head, key)]);
        largest = std::max(largest, score * scale);
      }
    for (auto &[score, values] : scores)
      sum += score = std::exp(score - largest);
    for (const auto &[power, values] : scores)
      for (int64_t d = 0; d < depth; ++d)
        result.out[row * depth + d] += power / sum * values[d];
    result.lse.push_back(largest + std::log(sum));
  }
  return result;
}

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_ATTENTIONDECODEMODEL_H
