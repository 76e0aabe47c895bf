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

#include <numeric>

namespace ditron::e2e {

class TokenAttentionModel {
public:
  /// Tensors of values are [batch * heads, tokens, headDim], lse is [batch * heads, tokens].
  std::vector<float> q, k, v, gradient;
  std::vector<double> out, lse, dq, dk, dv;
  /// Of packed sequences, where each begins and at last the end; none: a batch is a sequence. Behind the end results are not a number.
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
    eachToken(heads(), problem.heads, [&](int64_t batch, int64_t head, int64_t row) {
      ops::AttentionReference::Row result = {std::vector<double>(problem.headDim, NAN), NAN};
      if (row >= 0)
        result = plain.row(batch, head, row);
      append(out, result.out);
      lse.push_back(result.lse);
    });
  }
  /// dq, dk and dv, behind computeResults().
  void computeGradients() {
    const ops::AttentionReference plain = reference();
    const ops::AttentionElement ofResult = element(gradient, problem.heads);
    const std::vector<double> none(problem.headDim, NAN);
    eachToken(heads(), problem.heads, [&](int64_t batch, int64_t head, int64_t row) {
      append(dq, row >= 0 ? plain.queryGradient(ofResult, batch, head, row) : none);
    });
    eachToken(keyHeads(), problem.kvHeads, [&](int64_t batch, int64_t keyHead, int64_t key) {
      const auto placeOf = [&](int64_t head, int64_t query) {
        return offsets.empty() ? (batch * problem.heads + head) * problem.queries + query
                               : head * problem.queries + offsets[batch] + query;
      };
      const auto lseOf = [&](int64_t head, int64_t query) { return lse[placeOf(head, query)]; };
      const auto deltaOf = [&](int64_t head, int64_t query) {
        const auto row = out.begin() + placeOf(head, query) * problem.headDim;
        return std::inner_product(row, row + problem.headDim, gradient.begin() + placeOf(head, query) * problem.headDim,
                                  0.0);
      };
      ops::AttentionReference::KeyGradients gradients = {none, none};
      if (key >= 0)
        gradients = plain.keyGradients(ofResult, batch, keyHead, key, lseOf, deltaOf);
      append(dk, gradients.k);
      append(dv, gradients.v);
    });
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
  static void append(std::vector<double> &all, const std::vector<double> &row) {
    all.insert(all.end(), row.begin(), row.end());
  }
  /// Of each head's tokens the reference's batch, its head and row; row -1 is padding.
  template <typename Visit> void eachToken(int64_t allHeads, int64_t headsOfBatch, const Visit &visit) const {
    for (int64_t head = 0; head < allHeads; ++head)
      for (int64_t token = 0; token < problem.queries; ++token) {
        if (offsets.empty()) {
          visit(head / headsOfBatch, head % headsOfBatch, token);
          continue;
        }
        const int64_t sequence = std::ranges::upper_bound(offsets, token) - offsets.begin() - 1;
        visit(sequence, head, token < offsets.back() ? token - offsets[sequence] : -1);
      }
  }
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
