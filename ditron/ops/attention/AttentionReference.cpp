//===- AttentionReference.cpp - Plain attention in double precision -------------------------------------------------------===//
#include "ditron/ops/attention/AttentionReference.h"

#include <algorithm>
#include <cmath>

namespace ditron::ops {

double AttentionReference::score(int64_t batch, int64_t head, int64_t query, int64_t key) const {
  if (problem.causal && key > query + problem.keys - problem.queries)
    return -INFINITY;
  double sum = 0;
  for (int64_t d = 0; d < problem.headDim; ++d)
    sum += q(batch, head, query, d) * k(batch, keyHead(head), key, d);
  return sum * problem.scaleOfScores();
}

AttentionReference::Row AttentionReference::row(int64_t batch, int64_t head, int64_t query) const {
  std::vector<double> scores(problem.keys);
  for (int64_t key = 0; key < problem.keys; ++key)
    scores[key] = score(batch, head, query, key);
  const double largest = *std::ranges::max_element(scores);
  Row result = {std::vector<double>(problem.headDim, 0.0), -INFINITY};
  if (largest == -INFINITY)
    return result;
  double sum = 0;
  for (int64_t key = 0; key < problem.keys; ++key) {
    const double power = std::exp(scores[key] - largest);
    sum += power;
    if (power != 0)
      for (int64_t d = 0; d < problem.headDim; ++d)
        result.out[d] += power * v(batch, keyHead(head), key, d);
  }
  for (double &value : result.out)
    value /= sum;
  result.lse = largest + std::log(sum);
  return result;
}

} // namespace ditron::ops
