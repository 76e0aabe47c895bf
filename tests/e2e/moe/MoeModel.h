//===- MoeModel.h - A mixture of experts in double precision, for tests of layers ---------------------------------*- C++ -*-===//
#ifndef DITRON_TESTS_E2E_MOEMODEL_H
#define DITRON_TESTS_E2E_MOEMODEL_H

#include "ditron/ops/Reference.h"
#include "ditron/ops/moe/Routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace ditron::e2e {

struct MoeShape {
  DataType dtype = DataType::BF16;
  int64_t hidden = 0, inner = 0, sharedInner = 0;
  uint32_t experts = 0, topK = 1;
  ops::RouterScore score = ops::RouterScore::Softmax;
  bool normalized = true;
  double scale = 1;
  bool fp8 = false; ///< Of the experts: weights with a scale for each 128 x 128, rows with one for each 128.
};

/// The whole model's weights, and what it computes.
class MoeModel {
public:
  explicit MoeModel(const MoeShape &shape)
      : shape(shape), router(random(shape.experts * shape.hidden, 1)),
        up(random(shape.experts * 2 * shape.inner * shape.hidden, 2)),
        down(random(shape.experts * shape.hidden * shape.inner, 3)),
        sharedUp(random(2 * shape.sharedInner * shape.hidden, 4)),
        sharedDown(random(shape.hidden * shape.sharedInner, 5)) {
    if (shape.fp8) {
      upScale = quantizeBlocks(up, 2 * shape.inner, shape.hidden);
      downScale = quantizeBlocks(down, shape.hidden, shape.inner);
    }
  }

  const MoeShape shape;
  /// [E, hidden], [E, 2 inner, hidden] (gate and up in turns), [E, hidden, inner], [2 shared, hidden], [hidden, shared].
  std::vector<float> router, up, down, sharedUp, sharedDown;
  std::vector<float> upScale, downScale; ///< With fp8, of whose values up and down are then.
  std::vector<float> bias;               ///< [E], or none.

  struct Choice {
    std::vector<uint32_t> ids;
    std::vector<double> weights;
  };
  Choice choose(const float *x) const {
    std::vector<double> logits(shape.experts), scores;
    for (uint32_t e = 0; e < shape.experts; ++e)
      logits[e] = std::inner_product(x, x + shape.hidden, &router[e * shape.hidden], 0.0);
    double all = 0;
    for (double logit : logits)
      all += std::exp(logit);
    for (double logit : logits)
      scores.push_back(shape.score == ops::RouterScore::Softmax ? std::exp(logit) / all : 1 / (1 + std::exp(-logit)));
    Choice choice;
    choice.ids.resize(shape.experts);
    std::iota(choice.ids.begin(), choice.ids.end(), 0);
    const auto rank = [&](uint32_t e) { return scores[e] + (bias.empty() ? 0 : bias[e]); };
    std::stable_sort(choice.ids.begin(), choice.ids.end(), [&](uint32_t a, uint32_t b) { return rank(a) > rank(b); });
    choice.ids.resize(shape.topK);
    double total = 0;
    for (uint32_t e : choice.ids)
      total += scores[e];
    for (uint32_t e : choice.ids)
      choice.weights.push_back(scores[e] * shape.scale / (shape.normalized ? total : 1));
    return choice;
  }

  /// What expert e makes of a token.
  std::vector<double> expert(uint32_t e, const float *x) const {
    std::vector<double> row(x, x + shape.hidden);
    if (shape.fp8)
      row = throughFp8(row);
    const auto upAt = [&](int64_t i, int64_t h) {
      const double value = up[(e * 2 * shape.inner + i) * shape.hidden + h];
      return shape.fp8 ? value * upScale[scaleAt(e, i, h, 2 * shape.inner, shape.hidden)] : value;
    };
    const auto downAt = [&](int64_t h, int64_t i) {
      const double value = down[(e * shape.hidden + h) * shape.inner + i];
      return shape.fp8 ? value * downScale[scaleAt(e, h, i, shape.hidden, shape.inner)] : value;
    };
    std::vector<double> inner;
    for (int64_t i = 0; i < shape.inner; ++i) {
      double gate = 0, through = 0;
      for (int64_t h = 0; h < shape.hidden; ++h) {
        gate += row[h] * upAt(2 * i, h);
        through += row[h] * upAt(2 * i + 1, h);
      }
      inner.push_back(gate / (1 + std::exp(-gate)) * through);
    }
    if (shape.fp8)
      inner = throughFp8(inner);
    std::vector<double> result(shape.hidden, 0);
    for (int64_t h = 0; h < shape.hidden; ++h)
      for (int64_t i = 0; i < shape.inner; ++i)
        result[h] += inner[i] * downAt(h, i);
    return result;
  }
  std::vector<double> shared(const float *x) const {
    std::vector<double> result(shape.hidden, 0);
    for (int64_t i = 0; i < shape.sharedInner; ++i) {
      const auto dot = [&](int64_t row) {
        return std::inner_product(x, x + shape.hidden, &sharedUp[row * shape.hidden], 0.0);
      };
      const double gate = dot(2 * i), value = gate / (1 + std::exp(-gate)) * dot(2 * i + 1);
      for (int64_t h = 0; h < shape.hidden; ++h)
        result[h] += value * sharedDown[h * shape.sharedInner + i];
    }
    return result;
  }
  std::vector<double> apply(const float *x) const {
    std::vector<double> y = shared(x);
    const Choice choice = choose(x);
    for (uint32_t j = 0; j < shape.topK; ++j) {
      const std::vector<double> result = expert(choice.ids[j], x);
      for (int64_t h = 0; h < shape.hidden; ++h)
        y[h] += choice.weights[j] * result[h];
    }
    return y;
  }
  /// Of tokens one after the other.
  std::vector<double> applyAll(const std::vector<float> &x, int64_t firstToken, int64_t tokens) const {
    std::vector<double> all;
    for (int64_t t = firstToken; t < firstToken + tokens; ++t) {
      const std::vector<double> one = apply(&x[t * shape.hidden]);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

private:
  static constexpr int64_t scaled = 128;
  static int64_t blocks(int64_t count) { return (count + scaled - 1) / scaled; }
  static int64_t scaleAt(uint32_t e, int64_t row, int64_t column, int64_t rows, int64_t columns) {
    return (e * blocks(rows) + row / scaled) * blocks(columns) + column / scaled;
  }
  std::vector<float> random(int64_t count, uint64_t seed) const {
    return count == 0 ? std::vector<float>() : ops::randomValues(shape.dtype, count, seed);
  }
  static float narrowed(float value) { return float8E4NVToFloat(floatToFloat8E4NV(value)); }

  /// Weights become fp8; gives their scales.
  std::vector<float> quantizeBlocks(std::vector<float> &weights, int64_t rows, int64_t columns) const {
    std::vector<float> scales(shape.experts * blocks(rows) * blocks(columns), 0.0f);
    const auto each = [&](const auto &function) {
      for (uint32_t e = 0; e < shape.experts; ++e)
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t column = 0; column < columns; ++column)
            function(weights[(e * rows + row) * columns + column], scales[scaleAt(e, row, column, rows, columns)]);
    };
    each([](float &weight, float &scale) { scale = std::max(scale, std::fabs(weight)); });
    for (float &scale : scales)
      scale = scale > 0 ? scale / 448.0f : 1.0f;
    each([](float &weight, float &scale) { weight = narrowed(weight / scale); });
    return scales;
  }
  std::vector<double> throughFp8(const std::vector<double> &row) const {
    std::vector<double> result;
    for (size_t begin = 0; begin < row.size(); begin += scaled) {
      const size_t end = std::min(row.size(), begin + scaled);
      std::vector<float> values(row.begin() + static_cast<ptrdiff_t>(begin), row.begin() + static_cast<ptrdiff_t>(end));
      values = toFloats(shape.dtype, fromFloats(shape.dtype, values.data(), values.size()).data(), values.size());
      float most = 0;
      for (float value : values)
        most = std::max(most, std::fabs(value));
      const float scale = most > 0 ? most / 448.0f : 1.0f;
      for (float value : values)
        result.push_back(static_cast<double>(narrowed(value / scale)) * scale);
    }
    return result;
  }
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_MOEMODEL_H
