//===- AttentionLayerModel.h - A layer of attention in plain loops -----------------------------------------*- C++ -*-===//
//
// Projection, norm and rotation of heads, attention and the projection back, of whole sequences, rounded where the layers round.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_ATTENTIONLAYERMODEL_H
#define DITRON_TESTS_E2E_ATTENTIONLAYERMODEL_H

#include "KernelTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/attention/AttentionReference.h"
#include "ditron/ops/layers/AttentionHeads.h"

namespace ditron::e2e {

inline std::vector<float> roundedTo(DataType type, const std::vector<double> &values) {
  std::vector<float> result;
  for (double value : values)
    result.push_back(static_cast<float>(ops::roundedTo(type, value)));
  return result;
}

inline std::vector<float> turned(const std::vector<float> &b, int64_t n, int64_t k) {
  std::vector<float> result(b.size());
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < k; ++i)
      result[i * n + j] = b[j * k + i];
  return result;
}

/// A layer's weights, as torch has them, and what it makes of whole sequences.
struct AttentionLayerModel {
  DataType dtype = DataType::F16;
  int64_t hidden = 0, heads = 1, kvHeads = 1, headDim = 16;
  bool causal = true;
  std::optional<double> scale = std::nullopt;
  ops::RotaryEmbedding rotary = {};
  std::optional<double> normEpsilon = std::nullopt;
  bool hasBias = false;
  /// [(heads + 2 kvHeads) headDim, hidden], [hidden, heads * headDim], [(heads + 2 kvHeads) headDim], [headDim] twice, [positions, rotary.dim].
  std::vector<float> qkv = {}, out = {}, bias = {}, qNorm = {}, kNorm = {}, angles = {};

  /// Weights, and angles of so many positions.
  void draw(int64_t positions) {
    const auto drawn = [&](int64_t count, uint64_t seed) { return randomFloats(count, seed, -0.5, 0.5, dtype); };
    qkv = drawn(columns() * hidden, 1);
    out = drawn(hidden * width(), 2);
    bias = drawn(columns(), 3);
    qNorm = drawn(headDim, 4);
    kNorm = drawn(headDim, 5);
    for (int64_t position = 0; position < positions; ++position)
      for (bool isSine : {false, true})
        for (int64_t j = 0; j < rotary.dim / 2; ++j) {
          const double angle = static_cast<double>(position) * std::pow(100.0, -2.0 * j / rotary.dim);
          angles.push_back(static_cast<float>(isSine ? std::sin(angle) : std::cos(angle)));
        }
  }
  int64_t columns() const { return (heads + 2 * kvHeads) * headDim; }
  int64_t width() const { return heads * headDim; }

  /// A head of Q or K as attention gets it.
  std::vector<double> head(const float *values, const std::vector<float> &norm, int64_t position) const {
    std::vector<double> result(values, values + headDim);
    if (normEpsilon) {
      double squares = 0;
      for (double value : result)
        squares += value * value;
      for (int64_t d = 0; d < headDim; ++d)
        result[d] *= norm[d] / std::sqrt(squares / headDim + *normEpsilon);
    }
    const int64_t half = rotary.dim / 2;
    for (int64_t j = 0; j < half; ++j) {
      const int64_t first = rotary.interleaved ? 2 * j : j, second = rotary.interleaved ? 2 * j + 1 : j + half;
      const double cosine = angles[position * rotary.dim + j], sine = angles[position * rotary.dim + half + j];
      const double a = result[first], b = result[second];
      result[first] = a * cosine - b * sine;
      result[second] = b * cosine + a * sine;
    }
    return result;
  }

  /// y [tokens, hidden] of a sequence's x.
  std::vector<double> operator()(const std::vector<float> &x) const {
    const auto tokens = static_cast<int64_t>(x.size()) / hidden;
    std::vector<double> sums = ops::referenceProduct(x, turned(qkv, columns(), hidden), tokens, columns(), hidden);
    if (hasBias)
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] += bias[i % columns()];
    std::vector<float> rows = roundedTo(dtype, sums);
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t h = 0; h < heads + kvHeads; ++h) {
        float *values = rows.data() + token * columns() + h * headDim;
        const std::vector<float> changed = roundedTo(dtype, head(values, h < heads ? qNorm : kNorm, token));
        std::copy(changed.begin(), changed.end(), values);
      }
    const auto element = [&](int64_t firstHead) {
      return [&, firstHead](int64_t, int64_t h, int64_t token, int64_t d) -> double {
        return rows[token * columns() + (firstHead + h) * headDim + d];
      };
    };
    const ops::AttentionReference plain({.heads = heads,
                                         .kvHeads = kvHeads,
                                         .queries = tokens,
                                         .keys = tokens,
                                         .headDim = headDim,
                                         .causal = causal,
                                         .scale = scale},
                                        element(0), element(heads), element(heads + kvHeads));
    std::vector<double> attended;
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t h = 0; h < heads; ++h) {
        const std::vector<double> row = plain.row(0, h, token).out;
        attended.insert(attended.end(), row.begin(), row.end());
      }
    return ops::referenceProduct(roundedTo(dtype, attended), turned(out, hidden, width()), tokens, hidden, width());
  }
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_ATTENTIONLAYERMODEL_H
