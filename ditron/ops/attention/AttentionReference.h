//===- AttentionReference.h - Plain attention in double precision -------------------------------------------*- C++ -*-===//
//
// What tests and `ditron bench attention` compare with: rows of the result one by one, by the definition. Operands are functions of places,
// so that every layout, and operands that exist only as a formula, have the same reference.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_ATTENTIONREFERENCE_H
#define DITRON_OPS_ATTENTION_ATTENTIONREFERENCE_H

#include "ditron/ops/attention/Attention.h"

#include <functional>
#include <vector>

namespace ditron::ops {

/// An element of a batch's head: of row `row` (a query or a key) the column `column`.
using AttentionElement = std::function<double(int64_t batch, int64_t head, int64_t row, int64_t column)>;

class AttentionReference {
public:
  AttentionReference(const AttentionProblem &problem, AttentionElement q, AttentionElement k, AttentionElement v)
      : problem(problem), q(std::move(q)), k(std::move(k)), v(std::move(v)) {}

  /// As the operands have them; empty: none, and all batches are equally long.
  std::vector<double> sinks, slopes;
  std::vector<int64_t> queries, keys;

  struct Row {
    std::vector<double> out;
    double lse; ///< -inf of a query that sees no key, whose `out` is zeros.
  };
  Row row(int64_t batch, int64_t head, int64_t query) const;

  /// A number of each query of a head.
  using QueryValue = std::function<double(int64_t head, int64_t query)>;
  /// The gradient of a query, of which `gradient` is that of the result.
  std::vector<double> queryGradient(const AttentionElement &gradient, int64_t batch, int64_t head, int64_t query) const;
  struct KeyGradients {
    std::vector<double> k, v;
  };
  /// The gradients of a key, given what the queries' rows have: log-sum-exp and the sum of gradient * result.
  KeyGradients keyGradients(const AttentionElement &gradient, int64_t batch, int64_t kvHead, int64_t key,
                            const QueryValue &lse, const QueryValue &delta) const;

private:
  int64_t keyHead(int64_t head) const { return head / (problem.heads / problem.kvHeads); }
  int64_t queriesOf(int64_t batch) const { return queries.empty() ? problem.queries : queries[batch]; }
  int64_t keysOf(int64_t batch) const { return keys.empty() ? problem.keys : keys[batch]; }
  struct Score {
    double value;     ///< -inf where a mask hides the key.
    double slope = 0; ///< By the product of query and key.
  };
  Score score(int64_t batch, int64_t head, int64_t query, int64_t key) const;

  AttentionProblem problem;
  AttentionElement q, k, v;
};

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_ATTENTIONREFERENCE_H
