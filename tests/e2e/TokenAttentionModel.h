//===- TokenAttentionModel.h - What attention over tokens of several ranks must give ----------------------------*- C++ -*-===//
//
// A call's operands by all tokens in their order, the plain reference's results and gradients, and what of both a rank has. Of any operator whose
// options have the names that AllGatherAttention's and RingAttention's have.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_TOKENATTENTIONMODEL_H
#define DITRON_TESTS_E2E_TOKENATTENTIONMODEL_H

#include "KernelTest.h"
#include "ditron/ops/attention/AttentionReference.h"
#include "ditron/ops/sequence_parallel/TokenSections.h"

namespace ditron::e2e {

class TokenAttentionModel {
public:
  /// Tensors of values are [batch * heads, tokens, headDim], lse is [batch * heads, tokens].
  std::vector<float> q, k, v, gradient;
  std::vector<double> out, lse, dq, dk, dv;
  /// Of packed sequences, where each begins and at last the end; none: a batch is a sequence. Behind the end out and lse are not a number.
  std::vector<int64_t> offsets;

  template <typename Options>
  TokenAttentionModel(const Options &options, const ops::TokenSections &sections, uint64_t seed,
                      std::vector<int64_t> offsets = {})
      : offsets(std::move(offsets)), sections(sections), problem({.batch = options.batch,
                                                                  .heads = options.heads,
                                                                  .kvHeads = options.kvHeads,
                                                                  .queries = sections.tokens,
                                                                  .keys = sections.tokens,
                                                                  .headDim = options.headDim,
                                                                  .causal = options.causal,
                                                                  .dtype = options.dtype,
                                                                  .scale = options.scale}) {
    const auto draw = [&](int64_t heads, uint64_t salt) {
      return randomFloats(heads * sections.tokens * options.headDim, seed + salt, -2, 2, options.dtype);
    };
    q = draw(heads(), 0);
    k = draw(keyHeads(), 1);
    v = draw(keyHeads(), 2);
    gradient = draw(heads(), 3);
    computeResults();
  }
  /// With operands that the caller gives; results are computed by computeResults().
  TokenAttentionModel(const ops::AttentionProblem &problem, const ops::TokenSections &sections)
      : sections(sections), problem(problem) {}

  int64_t heads() const { return problem.batch * problem.heads; }
  int64_t keyHeads() const { return problem.batch * problem.kvHeads; }

  /// out and lse.
  void computeResults() {
    const ops::AttentionReference plain = reference();
    for (int64_t head = 0; head < heads(); ++head)
      for (int64_t query = 0; query < problem.queries; ++query) {
        int64_t batch = head / problem.heads, row = query;
        if (!offsets.empty()) {
          if (query >= offsets.back()) {
            out.insert(out.end(), problem.headDim, NAN);
            lse.push_back(NAN);
            continue;
          }
          batch = std::ranges::upper_bound(offsets, query) - offsets.begin() - 1;
          row = query - offsets[batch];
        }
        const ops::AttentionReference::Row result = plain.row(batch, head % problem.heads, row);
        out.insert(out.end(), result.out.begin(), result.out.end());
        lse.push_back(result.lse);
      }
  }
  /// dq, dk and dv, behind computeResults().
  void computeGradients() {
    const ops::AttentionReference plain = reference();
    const ops::AttentionElement ofResult = element(gradient, problem.heads);
    for (int64_t head = 0; head < heads(); ++head)
      for (int64_t query = 0; query < problem.queries; ++query) {
        const std::vector<double> row =
            plain.queryGradient(ofResult, head / problem.heads, head % problem.heads, query);
        dq.insert(dq.end(), row.begin(), row.end());
      }
    for (int64_t head = 0; head < keyHeads(); ++head) {
      const int64_t batch = head / problem.kvHeads;
      const auto placeOf = [&](int64_t queryHead, int64_t query) {
        return (batch * problem.heads + queryHead) * problem.queries + query;
      };
      const auto lseOf = [&](int64_t queryHead, int64_t query) { return lse[placeOf(queryHead, query)]; };
      const auto deltaOf = [&](int64_t queryHead, int64_t query) {
        double sum = 0;
        for (int64_t d = 0; d < problem.headDim; ++d)
          sum += out[placeOf(queryHead, query) * problem.headDim + d] *
                 gradient[placeOf(queryHead, query) * problem.headDim + d];
        return sum;
      };
      for (int64_t key = 0; key < problem.keys; ++key) {
        const auto gradients = plain.keyGradients(ofResult, batch, head % problem.kvHeads, key, lseOf, deltaOf);
        dk.insert(dk.end(), gradients.k.begin(), gradients.k.end());
        dv.insert(dv.end(), gradients.v.begin(), gradients.v.end());
      }
    }
  }

  /// A rank's part [heads, own tokens, width] of [heads, tokens, width].
  template <typename T> std::vector<T> of(const std::vector<T> &all, int64_t width, uint32_t rank) const {
    std::vector<T> own;
    const int64_t count = static_cast<int64_t>(all.size()) / (sections.tokens * width);
    for (int64_t head = 0; head < count; ++head)
      for (uint32_t part = 0; part < sections.parts(); ++part)
        if (sections.tokensOf(rank, part) > 0) {
          const auto first = all.begin() + (head * sections.tokens + sections.firstToken(rank, part)) * width;
          own.insert(own.end(), first, first + sections.tokensOf(rank, part) * width);
        }
    return own;
  }
  /// Puts a rank's part to its place in [heads, tokens, width].
  template <typename To, typename From>
  void place(std::vector<To> &all, int64_t width, uint32_t rank, const std::vector<From> &own) const {
    const int64_t count = static_cast<int64_t>(all.size()) / (sections.tokens * width);
    auto from = own.begin();
    for (int64_t head = 0; head < count; ++head)
      for (uint32_t part = 0; part < sections.parts(); ++part)
        for (int64_t i = 0; i < sections.tokensOf(rank, part) * width; ++i)
          all[(head * sections.tokens + sections.firstToken(rank, part)) * width + i] = static_cast<To>(*from++);
  }

private:
  ops::AttentionElement element(const std::vector<float> &values, int64_t headsOfBatch) const {
    return [this, &values, headsOfBatch](int64_t batch, int64_t head, int64_t token, int64_t column) -> double {
      if (!offsets.empty()) {
        token += offsets[batch];
        batch = 0;
      }
      return values[((batch * headsOfBatch + head) * sections.tokens + token) * problem.headDim + column];
    };
  }
  /// Packed sequences are batches of it.
  ops::AttentionReference reference() const {
    ops::AttentionReference plain(problem, element(q, problem.heads), element(k, problem.kvHeads),
                                  element(v, problem.kvHeads));
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      plain.queries.push_back(offsets[i + 1] - offsets[i]);
      plain.keys.push_back(plain.queries.back());
    }
    return plain;
  }

  ops::TokenSections sections;
  ops::AttentionProblem problem;
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_TOKENATTENTIONMODEL_H
