//===- AttentionReference.cpp - Plain attention in double precision -------------------------------------------------------===//
#include "ditron/ops/attention/AttentionReference.h"

#include <algorithm>
#include <cmath>

namespace ditron::ops {

AttentionReference::Score AttentionReference::score(int64_t batch, int64_t head, int64_t query, int64_t key) const {
  const int64_t place = query + keysOf(batch) - queriesOf(batch);
  if ((problem.causal && key > place) || (problem.window && key < place - *problem.window))
    return {-INFINITY};
  double sum = 0;
  for (int64_t d = 0; d < problem.headDim; ++d)
    sum += q(batch, head, query, d) * k(batch, keyHead(head), key, d);
  const double scale = problem.scaleOfScores();
  Score result = {sum * scale, scale};
  if (problem.softCap) {
    const double ratio = std::tanh(result.value / *problem.softCap);
    result = {*problem.softCap * ratio, scale * (1 - ratio * ratio)};
  }
  if (!slopes.empty())
    result.value -= slopes[head] * static_cast<double>(std::abs(place - key));
  return result;
}

AttentionReference::Row AttentionReference::row(int64_t batch, int64_t head, int64_t query) const {
  std::vector<double> scores(keysOf(batch));
  double largest = sinks.empty() ? -INFINITY : sinks[head];
  for (int64_t key = 0; key < keysOf(batch); ++key)
    largest = std::max(largest, scores[key] = score(batch, head, query, key).value);
  Row result = {std::vector<double>(problem.dimOfValues(), 0.0), -INFINITY};
  if (largest == -INFINITY)
    return result;
  double sum = sinks.empty() ? 0 : std::exp(sinks[head] - largest);
  for (int64_t key = 0; key < keysOf(batch); ++key) {
    const double power = std::exp(scores[key] - largest);
    sum += power;
    if (power != 0)
      for (int64_t d = 0; d < problem.dimOfValues(); ++d)
        result.out[d] += power * v(batch, keyHead(head), key, d);
  }
  for (double &value : result.out)
    value /= sum;
  result.lse = largest + std::log(sum);
  return result;
}

std::vector<double> AttentionReference::queryGradient(const AttentionElement &gradient, int64_t batch, int64_t head,
                                                      int64_t query) const {
  const Row own = row(batch, head, query);
  std::vector<double> result(problem.headDim, 0.0);
  double delta = 0;
  for (int64_t d = 0; d < problem.dimOfValues(); ++d)
    delta += own.out[d] * gradient(batch, head, query, d);
  for (int64_t key = 0; key < keysOf(batch); ++key) {
    const Score s = score(batch, head, query, key);
    if (s.value == -INFINITY)
      continue;
    double product = 0;
    for (int64_t d = 0; d < problem.dimOfValues(); ++d)
      product += gradient(batch, head, query, d) * v(batch, keyHead(head), key, d);
    const double change = std::exp(s.value - own.lse) * (product - delta) * s.slope;
    for (int64_t d = 0; d < problem.headDim; ++d)
      result[d] += change * k(batch, keyHead(head), key, d);
  }
  return result;
}

AttentionReference::KeyGradients AttentionReference::keyGradients(const AttentionElement &gradient, int64_t batch,
                                                                  int64_t kvHead, int64_t key, const QueryValue &lse,
                                                                  const QueryValue &delta) const {
  KeyGradients result = {std::vector<double>(problem.headDim, 0.0), std::vector<double>(problem.dimOfValues(), 0.0)};
  const int64_t group = problem.heads / problem.kvHeads;
  for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
    for (int64_t query = 0; query < queriesOf(batch); ++query) {
      const Score s = score(batch, head, query, key);
      if (s.value == -INFINITY)
        continue;
      const double power = std::exp(s.value - lse(head, query));
      double product = 0;
      for (int64_t d = 0; d < problem.dimOfValues(); ++d) {
        const double own = gradient(batch, head, query, d);
        result.v[d] += power * own;
        product += own * v(batch, kvHead, key, d);
      }
      const double change = power * (product - delta(head, query)) * s.slope;
      for (int64_t d = 0; d < problem.headDim; ++d)
        result.k[d] += change * q(batch, head, query, d);
    }
  return result;
}

} // namespace ditron::ops
