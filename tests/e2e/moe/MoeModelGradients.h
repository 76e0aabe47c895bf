//===- MoeModelGradients.h - Gradients of a mixture of experts in double precision --------------------------------*- C++ -*-===//
#ifndef DITRON_TESTS_E2E_MOEMODELGRADIENTS_H
#define DITRON_TESTS_E2E_MOEMODELGRADIENTS_H

#include "moe/MoeModel.h"

namespace ditron::e2e {

/// Gradients of all weights, like them, and of the tokens.
struct MoeModelGradients {
  std::vector<double> router, up, down, sharedUp, sharedDown;

  explicit MoeModelGradients(const MoeModel &model)
      : router(model.router.size()), up(model.up.size()), down(model.down.size()), sharedUp(model.sharedUp.size()),
        sharedDown(model.sharedDown.size()) {}

  /// Adds those of one token; gives that of the token itself.
  std::vector<double> add(const MoeModel &model, const float *x, const double *dy) {
    const MoeShape &shape = model.shape;
    std::vector<double> dx(shape.hidden, 0);
    const MoeModel::Choice choice = model.choose(x);
    std::vector<double> ofWeights;
    for (uint32_t j = 0; j < shape.topK; ++j) {
      const int64_t e = choice.ids[j], size = shape.inner * shape.hidden;
      ofWeights.push_back(addDense(x, dy, choice.weights[j], shape.inner, &model.up[e * 2 * size],
                                   &model.down[e * size], &up[e * 2 * size], &down[e * size], dx));
    }
    if (shape.sharedInner > 0)
      addDense(x, dy, 1, shape.sharedInner, model.sharedUp.data(), model.sharedDown.data(), sharedUp.data(),
               sharedDown.data(), dx);
    const std::vector<double> dlogits = ofLogits(model, x, choice, ofWeights);
    for (uint32_t e = 0; e < shape.experts; ++e)
      for (int64_t k = 0; k < shape.hidden; ++k) {
        router[e * shape.hidden + k] += dlogits[e] * x[k];
        dx[k] += dlogits[e] * model.router[e * shape.hidden + k];
      }
    return dx;
  }

private:
  /// One expert: its weights' gradients and the token's; gives that of the weight.
  static double addDense(const float *x, const double *dy, double weight, int64_t inner, const float *up,
                         const float *down, double *dup, double *ddown, std::vector<double> &dx) {
    const auto hidden = static_cast<int64_t>(dx.size());
    double ofWeight = 0;
    for (int64_t i = 0; i < inner; ++i) {
      double gate = 0, through = 0, g = 0;
      for (int64_t k = 0; k < hidden; ++k) {
        gate += x[k] * up[2 * i * hidden + k];
        through += x[k] * up[(2 * i + 1) * hidden + k];
        g += dy[k] * down[k * inner + i];
      }
      const double sigmoid = 1 / (1 + std::exp(-gate)), h = gate * sigmoid * through;
      ofWeight += g * h;
      const double dgate = weight * g * through * sigmoid * (1 + gate * (1 - sigmoid)),
                   dthrough = weight * g * gate * sigmoid;
      for (int64_t k = 0; k < hidden; ++k) {
        ddown[k * inner + i] += weight * dy[k] * h;
        dup[2 * i * hidden + k] += dgate * x[k];
        dup[(2 * i + 1) * hidden + k] += dthrough * x[k];
        dx[k] += dgate * up[2 * i * hidden + k] + dthrough * up[(2 * i + 1) * hidden + k];
      }
    }
    return ofWeight;
  }
  static std::vector<double> ofLogits(const MoeModel &model, const float *x, const MoeModel::Choice &choice,
                                      const std::vector<double> &ofWeights) {
    const MoeShape &shape = model.shape;
    std::vector<double> scores(shape.experts), ofScores(shape.experts, 0), result(shape.experts);
    const bool isSoftmax = shape.score == ops::RouterScore::Softmax;
    double all = 0, chosen = 0, mean = 0, scalar = 0;
    for (uint32_t e = 0; e < shape.experts; ++e) {
      const double power = std::exp(std::inner_product(x, x + shape.hidden, &model.router[e * shape.hidden], 0.0));
      all += power;
      scores[e] = isSoftmax ? power : power / (1 + power);
    }
    for (double &score : scores)
      score /= isSoftmax ? all : 1;
    for (uint32_t j = 0; j < shape.topK; ++j) {
      chosen += scores[choice.ids[j]];
      mean += choice.weights[j] * ofWeights[j] / shape.scale;
    }
    for (uint32_t j = 0; j < shape.topK; ++j)
      ofScores[choice.ids[j]] =
          shape.normalized ? shape.scale / chosen * (ofWeights[j] - mean) : shape.scale * ofWeights[j];
    for (uint32_t e = 0; e < shape.experts; ++e)
      scalar += scores[e] * ofScores[e];
    for (uint32_t e = 0; e < shape.experts; ++e)
      result[e] = isSoftmax ? scores[e] * (ofScores[e] - scalar) : ofScores[e] * scores[e] * (1 - scores[e]);
    return result;
  }
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_MOEMODELGRADIENTS_H
