//===- TensorParallelMoeTest.h - What the tests of TensorParallelMoe share ------------------------------------*- C++ -*-===//
#ifndef DITRON_TESTS_E2E_TENSORPARALLELMOETEST_H
#define DITRON_TESTS_E2E_TENSORPARALLELMOETEST_H

#include "KernelTest.h"
#include "moe/MoeModel.h"
#include "ditron/ops/layers/TensorParallelMoe.h"

namespace ditron::e2e {

/// Of which each rank has a slice of every expert's inner columns.
struct SlicedMoeModel : MoeModel {
  ops::TensorParallelMoeOptions options;

  explicit SlicedMoeModel(const ops::TensorParallelMoeOptions &options)
      : MoeModel({.dtype = options.dtype,
                  .hidden = options.hidden,
                  .inner = options.inner,
                  .experts = options.experts,
                  .topK = options.topK}),
        options(options) {}

  /// [E, rows, columns] -> the same of rows [first, first + count).
  static std::vector<float> rowsOf(const std::vector<float> &all, uint32_t experts, int64_t rows, int64_t columns,
                                   int64_t first, int64_t count) {
    std::vector<float> result;
    for (uint32_t e = 0; e < experts; ++e)
      result.insert(result.end(), all.begin() + (e * rows + first) * columns,
                    all.begin() + (e * rows + first + count) * columns);
    return result;
  }
  std::vector<float> upOf(uint32_t rank, uint32_t ranks) const {
    const int64_t own = 2 * options.inner / ranks;
    return rowsOf(up, options.experts, 2 * options.inner, options.hidden, rank * own, own);
  }
  std::vector<float> downOf(uint32_t rank, uint32_t ranks) const {
    const int64_t own = options.inner / ranks;
    std::vector<float> result;
    for (size_t row = 0; row < options.experts * static_cast<size_t>(options.hidden); ++row)
      result.insert(result.end(), down.begin() + row * options.inner + rank * own,
                    down.begin() + row * options.inner + (rank + 1) * own);
    return result;
  }
};

class MoeLayer : public KernelTest {
protected:
  Buffer values(DataType type, const std::vector<float> &content, uint32_t id) {
    Buffer buffer = zeros(type, content.size(), "w", id);
    EXPECT_OK(buffer.uploadFloats(content));
    return buffer;
  }
  struct Weights {
    std::vector<Buffer> kept;
    std::vector<ops::TensorParallelMoeWeights> of; ///< By rank.
  };
  Weights weightsOf(const SlicedMoeModel &model) {
    Weights weights;
    const uint32_t ranks = world().numRanks();
    for (uint32_t id = 0; id < ranks; ++id) {
      for (const std::vector<float> &each : {model.router, model.upOf(id, ranks), model.downOf(id, ranks)})
        weights.kept.push_back(values(model.options.dtype, each, id));
      const Buffer *own = &weights.kept[3 * id];
      weights.of.push_back({own[0].pointer(), {}, own[1].pointer(), own[2].pointer()});
    }
    return weights;
  }
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_TENSORPARALLELMOETEST_H
