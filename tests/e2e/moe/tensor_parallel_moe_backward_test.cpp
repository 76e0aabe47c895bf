//===- tensor_parallel_moe_backward_test.cpp - Gradients of TensorParallelMoe against a plain reference ---------------------===//
#include "moe/MoeModelGradients.h"
#include "moe/TensorParallelMoeTest.h"
#include "ditron/ops/layers/TensorParallelMoeBackward.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::MoeTokens;
using ops::TensorParallelMoeBackward;
using testing::HasSubstr;

class MoeLayerBackward : public MoeLayer, public testing::WithParamInterface<MoeTokens> {
protected:
  static constexpr float before = 0.25f; ///< What the gradients' memory holds.
  bool areDealt() const { return GetParam() == MoeTokens::Dealt; }

  struct Call {
    std::vector<Buffer> x, dy, dx, router, up, down; ///< By rank.
    std::vector<float> tokens, gradients;            ///< Of all ranks.
  };
  Call makeCall(const SlicedMoeModel &model, DataType gradientType) {
    const ops::TensorParallelMoeOptions &options = model.options;
    const uint32_t ranks = world().numRanks();
    Call call;
    for (uint32_t id = 0; id < ranks; ++id) {
      for (std::vector<Buffer> *each : {&call.x, &call.dy, &call.dx})
        each->push_back(zeros(options.dtype, options.maxTokensPerRank * options.hidden, "tokens", id));
      call.router.push_back(zeros(gradientType, model.router.size(), "gradient", id));
      call.up.push_back(zeros(gradientType, model.up.size() / ranks, "gradient", id));
      call.down.push_back(zeros(gradientType, model.down.size() / ranks, "gradient", id));
    }
    return call;
  }
  void fill(const SlicedMoeModel &model, Call &call, int64_t tokens, uint64_t seed) {
    const ops::TensorParallelMoeOptions &options = model.options;
    const uint32_t ranks = world().numRanks();
    const int64_t elements = tokens * options.hidden;
    call.tokens = ops::randomValues(options.dtype, (areDealt() ? ranks : 1) * elements, seed);
    call.gradients = ops::randomValues(options.dtype, call.tokens.size(), seed + 1);
    for (float &value : call.tokens)
      value *= 4; // so that experts differ
    for (uint32_t id = 0; id < ranks; ++id) {
      for (const auto &[buffer, all] :
           {std::pair(&call.x[id], &call.tokens), std::pair(&call.dy[id], &call.gradients)}) {
        std::vector<float> own(all->begin() + (areDealt() ? id * elements : 0),
                               all->begin() + (areDealt() ? id * elements : 0) + elements);
        own.resize(buffer->count(), 0.0f);
        EXPECT_OK(buffer->uploadFloats(own));
      }
      for (Buffer *each : {&call.router[id], &call.up[id], &call.down[id]})
        EXPECT_OK(each->uploadFloats(std::vector<float>(each->count(), before)));
    }
  }
  void expectGradients(const SlicedMoeModel &model, const Call &call, int64_t tokens, bool adds,
                       const std::string &what) {
    const ops::TensorParallelMoeOptions &options = model.options;
    const uint32_t ranks = world().numRanks();
    const int64_t hidden = options.hidden;
    const double tolerance = 6 * ops::toleranceFor(options.dtype, ops::MultiplyPrecision::Ieee).relative;
    MoeModelGradients all(model);
    std::vector<MoeModelGradients> own(ranks, MoeModelGradients(model));
    std::vector<double> dx;
    const std::vector<double> dy(call.gradients.begin(), call.gradients.end());
    for (int64_t t = 0; t < static_cast<int64_t>(call.tokens.size()) / hidden; ++t) {
      const std::vector<double> one = all.add(model, &call.tokens[t * hidden], &dy[t * hidden]);
      own[areDealt() ? t / tokens : 0].add(model, &call.tokens[t * hidden], &dy[t * hidden]);
      dx.insert(dx.end(), one.begin(), one.end());
    }
    const auto expect = [&](const Buffer &buffer, std::vector<double> expected, const std::string &which,
                            bool isAdded) {
      for (double &value : expected)
        value += isAdded ? before : 0;
      std::vector<float> got = getFloats(buffer);
      got.resize(expected.size());
      const ops::Comparison comparison = ops::compare(got, expected, {tolerance});
      EXPECT_TRUE(comparison.passed()) << what << ", " << which << ": element " << comparison.worstIndex << " is "
                                       << got[comparison.worstIndex] << ", expected " << expected[comparison.worstIndex]
                                       << ", ratio " << comparison.worstRatio;
    };
    SlicedMoeModel sliced = model;
    sliced.up.assign(all.up.begin(), all.up.end());
    sliced.down.assign(all.down.begin(), all.down.end());
    for (uint32_t id = 0; id < ranks; ++id) {
      const std::string where = fmt::format("rank {}", id);
      const auto first = dx.begin() + (areDealt() ? id * tokens * hidden : 0);
      expect(call.dx[id], {first, first + tokens * hidden}, where + ", dx", false);
      expect(call.router[id], areDealt() ? own[id].router : all.router, where + ", router", adds);
      expect(call.up[id], convertAll<double>(sliced.upOf(id, ranks)), where + ", up", adds);
      expect(call.down[id], convertAll<double>(sliced.downOf(id, ranks)), where + ", down", adds);
    }
  }
  Status enqueue(TensorParallelMoeBackward &backward, Rank &me, const Call &call, int64_t tokens) {
    const uint32_t r = me.id();
    return backward.enqueue(me, me.stream(),
                            {call.x[r], call.dy[r], call.dx[r], call.router[r], call.up[r], call.down[r]}, tokens);
  }
};

INSTANTIATE_TEST_SUITE_P(Tokens, MoeLayerBackward, testing::Values(MoeTokens::Dealt, MoeTokens::Replicated),
                         [](const auto &info) { return info.param == MoeTokens::Dealt ? "Dealt" : "Replicated"; });

TEST_P(MoeLayerBackward, EqualsTheReferenceOnAnyNumberOfRanks) {
  for (const uint32_t wanted : {1u, 2u, 4u}) {
    if (ranksOnTarget(wanted) < wanted)
      continue;
    start(wanted, seeded(wanted, wanted - 1, 4));
    for (const bool adds : {true, false}) {
      const SlicedMoeModel model({.dtype = adds ? DataType::F32 : DataType::BF16,
                                  .hidden = 40,
                                  .inner = 32,
                                  .experts = 6,
                                  .topK = 2,
                                  .maxTokensPerRank = 11,
                                  .tokens = GetParam()});
      const Weights weights = weightsOf(model);
      auto backward = TensorParallelMoeBackward::create(world(), sharedJit(), model.options, weights.of,
                                                        {.gradientType = DataType::F32, .adds = adds});
      ASSERT_OK(backward);
      Call call = makeCall(model, DataType::F32);
      for (const int64_t tokens : {int64_t(11), int64_t(1), int64_t(6)}) {
        for (uint32_t id = 0; id < wanted; ++id)
          ASSERT_OK(backward->prepare(rank(id), tokens));
        fill(model, call, tokens, 100 + tokens);
        ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
          DITRON_RETURN_IF_ERROR(enqueue(*backward, me, call, tokens));
          return me.stream().synchronize();
        }));
        expectGradients(model, call, tokens, adds, fmt::format("{} ranks, {} tokens", wanted, tokens));
        if (HasFailure())
          return;
      }
    }
  }
}

TEST_P(MoeLayerBackward, IsReplayed) {
  REQUIRE_RANKS(2);
  start(2, seeded(5, 1));
  const SlicedMoeModel model({.dtype = DataType::F32,
                              .hidden = 32,
                              .inner = 16,
                              .experts = 5,
                              .topK = 2,
                              .score = ops::RouterScore::Softmax,
                              .maxTokensPerRank = 5,
                              .tokens = GetParam()});
  const Weights weights = weightsOf(model);
  auto backward = TensorParallelMoeBackward::create(world(), sharedJit(), model.options, weights.of);
  ASSERT_OK(backward);
  Call call = makeCall(model, DataType::F32);
  std::vector<runtime::Graph> graphs;
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(enqueue(*backward, rank(0), call, 5).message(), HasSubstr("5 tokens of each rank was not prepared"));
  (void)rank(0).stream().endCapture();
  for (uint32_t id = 0; id < 2; ++id)
    ASSERT_OK(backward->prepare(rank(id), 5));
  for (uint32_t id = 0; id < 2; ++id) {
    ASSERT_OK(rank(id).stream().beginCapture());
    ASSERT_OK(enqueue(*backward, rank(id), call, 5));
    auto graph = rank(id).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(*graph));
  }
  for (int replay = 0; replay < 3 && !HasFailure(); ++replay) {
    fill(model, call, 5, 20 + replay);
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(me.stream().launch(graphs[me.id()]));
      return me.stream().synchronize();
    }));
    expectGradients(model, call, 5, true, fmt::format("replay {}", replay));
  }
  EXPECT_THAT(backward->prepare(rank(0), 6).message(), HasSubstr("6 tokens of each rank; 1 to 5"));
}

} // namespace
} // namespace ditron::e2e
