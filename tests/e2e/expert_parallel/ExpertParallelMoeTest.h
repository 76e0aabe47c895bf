//===- ExpertParallelMoeTest.h - What the tests of ExpertParallelMoe share ------------------------------------*- C++ -*-===//
#ifndef DITRON_TESTS_E2E_EXPERTPARALLELMOETEST_H
#define DITRON_TESTS_E2E_EXPERTPARALLELMOETEST_H

#include "moe/MoeModel.h"
#include "collectives/TransferTest.h"
#include "ditron/ops/layers/ExpertParallelMoe.h"

#include <fmt/format.h>

namespace ditron::e2e {

inline MoeShape shapeOf(const ops::ExpertParallelMoeOptions &options) {
  return {options.dtype, options.hidden, options.inner,      options.sharedInner, options.experts,
          options.topK,  options.score,  options.normalized, options.scale,       options.fp8};
}

class ExpertParallelMoeTest : public Transfers {
protected:
  ops::ExpertParallelForm form = ops::ExpertParallelForm::LowLatency; ///< Under test.

  /// A layer with its model and memory for one call.
  struct Made {
    ops::ExpertParallelMoeOptions options;
    std::unique_ptr<MoeModel> model;
    std::vector<Buffer> kept;
    std::unique_ptr<ops::ExpertParallelMoe> layer;
    std::vector<Buffer> x, y; ///< By rank, of the most tokens.
    std::vector<std::vector<float>> given;
    std::vector<int64_t> tokens;
  };

  Buffer values(DataType type, const std::vector<float> &content, uint32_t id) {
    Buffer buffer = zeros(type, std::max<size_t>(content.size(), 1), "w", id);
    if (!content.empty()) {
      EXPECT_OK(buffer.uploadFloats(content));
    }
    return buffer;
  }
  static std::vector<float> part(const std::vector<float> &all, uint32_t rank, uint32_t ranks) {
    const size_t count = all.size() / ranks;
    return {all.begin() + static_cast<ptrdiff_t>(rank * count),
            all.begin() + static_cast<ptrdiff_t>((rank + 1) * count)};
  }

  /// By the form under test, with windows that few tokens fill.
  Made make(ops::ExpertParallelMoeOptions options, const std::vector<float> &bias = {}) {
    if (!options.plan && !options.fused)
      options.plan = ops::ExpertParallelPlan{form, 4, 2, 4, 2, 2};
    Made made;
    made.options = options;
    made.model = std::make_unique<MoeModel>(shapeOf(options));
    made.model->bias = bias;
    const MoeModel &model = *made.model;
    const DataType ofExperts = options.fp8 ? DataType::F8E4NV : options.dtype;
    std::vector<ops::ExpertParallelMoeWeights> weights(ranks());
    for (uint32_t id = 0; id < ranks(); ++id) {
      const auto put = [&](DataType type, const std::vector<float> &content) {
        made.kept.push_back(values(type, content, id));
        return made.kept.back().pointer();
      };
      ops::ExpertParallelMoeWeights &own = weights[id];
      own.router = put(options.dtype, model.router);
      own.up = put(ofExperts, part(model.up, id, ranks()));
      own.down = put(ofExperts, part(model.down, id, ranks()));
      if (!bias.empty())
        own.bias = put(DataType::F32, bias);
      if (options.fp8) {
        own.upScale = put(DataType::F32, part(model.upScale, id, ranks()));
        own.downScale = put(DataType::F32, part(model.downScale, id, ranks()));
      }
      if (options.sharedInner > 0) {
        own.sharedUp = put(options.dtype, model.sharedUp);
        own.sharedDown = put(options.dtype, model.sharedDown);
      }
      made.x.push_back(zeros(options.dtype, options.maxTokens * options.hidden, "x", id));
      made.y.push_back(zeros(options.dtype, options.maxTokens * options.hidden, "y", id));
    }
    auto layer = ops::ExpertParallelMoe::create(world(), sharedJit(), options, weights);
    EXPECT_OK(layer);
    if (layer.isOk())
      made.layer = std::make_unique<ops::ExpertParallelMoe>(std::move(layer).value());
    made.given.resize(ranks());
    made.tokens.assign(ranks(), 0);
    return made;
  }
  /// Other tokens, so many on each rank.
  void fill(Made &made, const std::vector<int64_t> &tokens) {
    for (uint32_t id = 0; id < ranks(); ++id) {
      const int64_t count = made.tokens[id] = tokens[id % tokens.size()];
      made.given[id] =
          ops::randomValues(made.options.dtype, std::max<int64_t>(count, 1) * made.options.hidden, random());
      for (float &value : made.given[id])
        value *= 4; // so that experts differ
      std::vector<float> all = made.given[id];
      all.resize(count * made.options.hidden);
      all.resize(made.x[id].count(), 9.0f);
      EXPECT_OK(made.x[id].uploadFloats(all));
      EXPECT_OK(made.y[id].uploadFloats(std::vector<float>(made.y[id].count(), 5.0f)));
    }
  }
  Status enqueue(Made &made, Rank &me, bool inPlace = false) {
    const uint32_t id = me.id();
    return made.layer->enqueue(me, me.stream(), made.x[id], inPlace ? made.x[id] : made.y[id], made.tokens[id]);
  }
  /// Rows, inner columns, results and sums are rounded one after the other.
  static double toleranceOf(const ops::ExpertParallelMoeOptions &options) {
    return options.fp8 ? 0.02 : 3 * ops::toleranceFor(options.dtype, ops::MultiplyPrecision::Ieee).relative;
  }
  void expectResults(const Made &made, const std::string &what, bool inPlace = false) {
    for (uint32_t id = 0; id < ranks(); ++id) {
      const int64_t elements = made.tokens[id] * made.options.hidden;
      std::vector<float> got = getFloats(inPlace ? made.x[id] : made.y[id]);
      const std::vector<double> expected = made.model->applyAll(made.given[id], 0, made.tokens[id]);
      for (size_t i = elements; i < got.size(); ++i)
        ASSERT_EQ(got[i], inPlace ? 9.0f : 5.0f) << what << ", rank " << id << ": row " << i / made.options.hidden;
      got.resize(elements);
      if (got.empty())
        continue;
      const ops::Comparison comparison = ops::compare(got, expected, {toleranceOf(made.options)});
      EXPECT_TRUE(comparison.passed()) << what << ", " << made.tokens[id] << " tokens, rank " << id << ": element "
                                       << comparison.worstIndex << " is " << got[comparison.worstIndex] << ", expected "
                                       << expected[comparison.worstIndex] << ", ratio " << comparison.worstRatio;
    }
  }
  /// Two calls one behind the other for each of these numbers of tokens.
  void runCalls(Made &made, const std::vector<std::vector<int64_t>> &counts, const std::string &what,
                bool inPlace = false) {
    ASSERT_TRUE(made.layer);
    for (const std::vector<int64_t> &tokens : counts) {
      fill(made, tokens);
      const Status ran = world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(made.layer->prepare(me, made.tokens[me.id()]));
        DITRON_RETURN_IF_ERROR(me.hostBarrier());
        for (int call = 0; call < (inPlace ? 1 : 2); ++call)
          DITRON_RETURN_IF_ERROR(enqueue(made, me, inPlace));
        return me.stream().synchronize();
      });
      ASSERT_TRUE(ran.isOk()) << what << ": " << ran.message();
      expectResults(made, what, inPlace);
      for (uint32_t id = 0; id < ranks(); ++id)
        EXPECT_OK(made.layer->check(rank(id)));
      if (HasFailure())
        return;
    }
  }
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_EXPERTPARALLELMOETEST_H
