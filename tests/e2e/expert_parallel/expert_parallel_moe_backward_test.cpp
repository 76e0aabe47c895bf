//===- expert_parallel_moe_backward_test.cpp - Gradients of ExpertParallelMoe against a plain reference ---------------------===//
#include "expert_parallel/ExpertParallelMoeTest.h"
#include "moe/MoeModelGradients.h"
#include "ditron/ops/layers/ExpertParallelMoeBackward.h"

namespace ditron::e2e {
namespace {

using ops::ExpertParallelMoeBackward;
using ops::ExpertParallelMoeBackwardOptions;
using ops::ExpertParallelMoeGradients;
using Form = ops::ExpertParallelForm;
using testing::HasSubstr;

class ExpertParallelMoeBackwards : public ExpertParallelMoeTest, public testing::WithParamInterface<Form> {
protected:
  void SetUp() override { form = GetParam(); }

  /// A layer with its backward, and memory of a call of both.
  struct Trained {
    Made made;
    std::unique_ptr<ExpertParallelMoeBackward> backward;
    ExpertParallelMoeBackwardOptions options;
    std::vector<Buffer> dy, dx;
    std::vector<std::vector<Buffer>> gradients; ///< By rank: router, up, down, sharedUp, sharedDown.
    std::vector<std::vector<double>> givenDy;
  };
  static constexpr float before = 0.25f; ///< What the gradients' memory holds.

  Trained train(ops::ExpertParallelMoeOptions options, const ExpertParallelMoeBackwardOptions &backward = {}) {
    options.training = true;
    Trained trained;
    trained.made = make(options);
    trained.options = backward;
    if (!trained.made.layer)
      return trained;
    auto created = ExpertParallelMoeBackward::create(world(), sharedJit(), *trained.made.layer, backward);
    EXPECT_OK(created);
    if (created.isOk())
      trained.backward = std::make_unique<ExpertParallelMoeBackward>(std::move(created).value());
    const MoeModel &model = *trained.made.model;
    for (uint32_t id = 0; id < ranks(); ++id) {
      trained.dy.push_back(zeros(options.dtype, options.maxTokens * options.hidden, "dy", id));
      trained.dx.push_back(zeros(options.dtype, options.maxTokens * options.hidden, "dx", id));
      trained.gradients.emplace_back();
      for (size_t count : {model.router.size(), model.up.size() / ranks(), model.down.size() / ranks(),
                           model.sharedUp.size(), model.sharedDown.size()})
        trained.gradients.back().push_back(
            values(backward.gradientType, std::vector<float>(std::max<size_t>(count, 1), before), id));
    }
    trained.givenDy.resize(ranks());
    return trained;
  }
  void fillAll(Trained &trained, const std::vector<int64_t> &tokens) {
    fill(trained.made, tokens);
    for (uint32_t id = 0; id < ranks(); ++id) {
      std::vector<float> drawn =
          ops::randomValues(trained.made.options.dtype,
                            std::max<int64_t>(trained.made.tokens[id] * trained.made.options.hidden, 1), random());
      trained.givenDy[id] = convertAll<double>(drawn);
      drawn.resize(trained.dy[id].count(), 0.0f);
      EXPECT_OK(trained.dy[id].uploadFloats(drawn));
      EXPECT_OK(trained.dx[id].uploadFloats(std::vector<float>(trained.dx[id].count(), 5.0f)));
      for (Buffer &buffer : trained.gradients[id])
        EXPECT_OK(buffer.uploadFloats(std::vector<float>(buffer.count(), before)));
    }
  }
  ExpertParallelMoeGradients operandsOf(const Trained &trained, uint32_t id) {
    const std::vector<Buffer> &gradients = trained.gradients[id];
    return {.x = trained.made.x[id],
            .dy = trained.dy[id],
            .dx = trained.dx[id],
            .router = gradients[0],
            .up = gradients[1],
            .down = gradients[2],
            .sharedUp = gradients[3],
            .sharedDown = gradients[4]};
  }
  Status enqueueBoth(Trained &trained, Rank &me) {
    DITRON_RETURN_IF_ERROR(enqueue(trained.made, me));
    return trained.backward->enqueue(me, me.stream(), operandsOf(trained, me.id()), trained.made.tokens[me.id()]);
  }

  void expectGradients(const Trained &trained, const std::string &what) {
    const Made &made = trained.made;
    const MoeModel &model = *made.model;
    const int64_t hidden = model.shape.hidden;
    const double tolerance = 2 * toleranceOf(made.options);
    MoeModelGradients all(model); // of the experts, over all ranks
    for (uint32_t id = 0; id < ranks(); ++id) {
      MoeModelGradients own(model); // of what each rank has for itself
      std::vector<double> dx;
      for (int64_t t = 0; t < made.tokens[id]; ++t) {
        const float *x = &made.given[id][t * hidden];
        const double *dy = &trained.givenDy[id][t * hidden];
        all.add(model, x, dy);
        const std::vector<double> one = own.add(model, x, dy);
        dx.insert(dx.end(), one.begin(), one.end());
      }
      std::vector<float> got = getFloats(trained.dx[id]);
      for (size_t i = dx.size(); i < got.size(); ++i)
        ASSERT_EQ(got[i], 5.0f) << what << ", rank " << id;
      got.resize(dx.size());
      expectNear(got, dx, tolerance, fmt::format("{}, rank {}, dx", what, id));
      expectGradient(trained, id, 0, own.router, fmt::format("{}, rank {}, router", what, id));
      if (model.shape.sharedInner > 0) {
        expectGradient(trained, id, 3, own.sharedUp, fmt::format("{}, rank {}, sharedUp", what, id));
        expectGradient(trained, id, 4, own.sharedDown, fmt::format("{}, rank {}, sharedDown", what, id));
      }
    }
    for (uint32_t id = 0; id < ranks(); ++id)
      for (const auto &[place, gradient] : {std::pair(1, &all.up), std::pair(2, &all.down)}) {
        const auto count = static_cast<ptrdiff_t>(gradient->size() / ranks());
        expectGradient(trained, id, place, {gradient->begin() + id * count, gradient->begin() + (id + 1) * count},
                       fmt::format("{}, rank {}, {}", what, id, place == 1 ? "up" : "down"));
      }
  }
  void expectGradient(const Trained &trained, uint32_t id, size_t place, std::vector<double> expected,
                      const std::string &what) {
    for (double &value : expected)
      value += trained.options.adds ? before : 0;
    expectNear(getFloats(trained.gradients[id][place]), expected, 2 * toleranceOf(trained.made.options), what);
  }
  static void expectNear(const std::vector<float> &got, const std::vector<double> &expected, double tolerance,
                         const std::string &what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    if (got.empty())
      return;
    const ops::Comparison comparison = ops::compare(got, expected, {tolerance});
    EXPECT_TRUE(comparison.passed()) << what << ": element " << comparison.worstIndex << " is "
                                     << got[comparison.worstIndex] << ", expected " << expected[comparison.worstIndex]
                                     << ", ratio " << comparison.worstRatio;
  }
  void runCalls(Trained &trained, const std::vector<std::vector<int64_t>> &counts, const std::string &what) {
    ASSERT_TRUE(trained.backward);
    for (const std::vector<int64_t> &tokens : counts) {
      fillAll(trained, tokens);
      const Status ran = world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(trained.made.layer->prepare(me, trained.made.tokens[me.id()]));
        DITRON_RETURN_IF_ERROR(trained.backward->prepare(me, trained.made.tokens[me.id()]));
        DITRON_RETURN_IF_ERROR(me.hostBarrier());
        DITRON_RETURN_IF_ERROR(enqueueBoth(trained, me));
        return me.stream().synchronize();
      });
      ASSERT_TRUE(ran.isOk()) << what << ": " << ran.message();
      expectResults(trained.made, what);
      expectGradients(trained, what);
      if (HasFailure())
        return;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Forms, ExpertParallelMoeBackwards, testing::Values(Form::LowLatency, Form::HighThroughput),
                         [](const auto &info) {
                           return info.param == Form::LowLatency ? "LowLatency" : "HighThroughput";
                         });

/// The reference: its gradients are the slopes of what the model computes.
TEST(MoeGradientReference, IsTheSlope) {
  for (const auto &[score, normalized] :
       {std::pair(ops::RouterScore::Softmax, true), std::pair(ops::RouterScore::Softmax, false),
        std::pair(ops::RouterScore::Sigmoid, true), std::pair(ops::RouterScore::Sigmoid, false)}) {
    MoeModel model({.dtype = DataType::F32,
                    .hidden = 6,
                    .inner = 4,
                    .sharedInner = 3,
                    .experts = 5,
                    .topK = 2,
                    .score = score,
                    .normalized = normalized,
                    .scale = 1.5});
    std::vector<float> x = ops::randomValues(DataType::F32, 6, 9);
    const std::vector<double> dy = convertAll<double>(ops::randomValues(DataType::F32, 6, 10));
    MoeModelGradients gradients(model);
    const std::vector<double> dx = gradients.add(model, x.data(), dy.data());
    const auto slope = [&](float &value) {
      constexpr float step = 1.0f / 1024;
      const float kept = value;
      double ends[2];
      for (int end : {0, 1}) {
        value = kept + (end ? step : -step);
        const std::vector<double> y = model.apply(x.data());
        ends[end] = std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
      }
      value = kept;
      return (ends[1] - ends[0]) / (2 * step);
    };
    const auto expectSlopes = [&](std::vector<float> &values, const std::vector<double> &expected, const char *what) {
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(slope(values[i]), expected[i], 2e-4 + 2e-3 * std::fabs(expected[i])) << what << " " << i;
    };
    expectSlopes(x, dx, "x");
    expectSlopes(model.router, gradients.router, "router");
    expectSlopes(model.up, gradients.up, "up");
    expectSlopes(model.down, gradients.down, "down");
    expectSlopes(model.sharedUp, gradients.sharedUp, "sharedUp");
    expectSlopes(model.sharedDown, gradients.sharedDown, "sharedDown");
  }
}

TEST_P(ExpertParallelMoeBackwards, EqualTheReferenceOnAnyNumberOfRanks) {
  for (const uint32_t wanted : {1u, 2u, 4u}) {
    if (ranksOnTarget(wanted) < wanted)
      continue;
    start(wanted, seeded(wanted, wanted - 1, 4));
    for (const DataType type : {DataType::F32, DataType::BF16}) {
      Trained trained = train({.dtype = type, .hidden = 40, .inner = 24, .experts = 8, .topK = 3, .maxTokens = 14});
      runCalls(trained, {{14, 0, 7, 3}, {1}, {0}}, fmt::format("{} ranks, {}", wanted, toString(type)));
      if (HasFailure())
        return;
    }
  }
}

/// Both products that meet the exchange share its launches; where their sizes do not allow it backward, they do not.
TEST_P(ExpertParallelMoeBackwards, OfFusedLayers) {
  if (GetParam() != Form::LowLatency)
    GTEST_SKIP() << "has its own plan";
  const uint32_t count = ranksOnTarget(4);
  start(count, seeded(4, count - 1));
  const auto plan = ops::parseFusedExpertParallelPlan(
      "fused 16x32x32 warps 2 stages 2 group 2 senders 2 unit 4 pace 3 combine 16x32x16 warps 2 stages 2 group 2");
  ASSERT_OK(plan);
  for (const int64_t hidden : {48, 40}) {
    Trained trained = train({.hidden = hidden,
                             .inner = 16,
                             .sharedInner = 8,
                             .experts = 2 * count,
                             .topK = 2,
                             .maxTokens = 14,
                             .fused = *plan});
    runCalls(trained, {{14, 3, 0, 5}, {0, 14, 2, 2}}, fmt::format("hidden {}", hidden));
    if (HasFailure())
      return;
  }
}

TEST_P(ExpertParallelMoeBackwards, RoutersSharedExpertsAndTypesOfGradients) {
  const uint32_t count = ranksOnTarget(4);
  start(count, seeded(2, 0));
  for (const auto &[score, normalized, adds] :
       {std::tuple(ops::RouterScore::Softmax, false, false), std::tuple(ops::RouterScore::Sigmoid, true, true),
        std::tuple(ops::RouterScore::Sigmoid, false, false)}) {
    Trained trained = train({.dtype = DataType::F32,
                             .hidden = 32,
                             .inner = 16,
                             .sharedInner = 24,
                             .experts = 2 * count,
                             .topK = 2,
                             .score = score,
                             .normalized = normalized,
                             .scale = 2.5,
                             .maxTokens = 9},
                            {.gradientType = DataType::F32, .adds = adds});
    runCalls(trained, {{9, 5, 0, 1}, {0, 2, 9, 9}}, fmt::format("{}, {}", toString(score), normalized));
    if (HasFailure())
      return;
  }
  Trained trained =
      train({.hidden = 32, .inner = 16, .sharedInner = 8, .experts = 2 * count, .topK = 2, .maxTokens = 9},
            {.gradientType = DataType::BF16, .adds = false});
  runCalls(trained, {{9, 5, 0, 1}}, "gradients of bf16");
}

/// Graphs of a step, replayed with other tokens; one rank is slow.
TEST_P(ExpertParallelMoeBackwards, StepsAreReplayed) {
  const uint32_t count = ranksOnTarget(4);
  start(count, seeded(4, count - 1, 5));
  Trained trained = train({.dtype = DataType::F32,
                           .hidden = 32,
                           .inner = 16,
                           .sharedInner = 8,
                           .experts = 2 * count,
                           .topK = 2,
                           .maxTokens = 6});
  ASSERT_TRUE(trained.backward);
  const std::vector<int64_t> tokens = {6, 0, 4, 1};
  std::vector<runtime::Graph> graphs;
  for (uint32_t id = 0; id < count; ++id) {
    ASSERT_OK(trained.made.layer->prepare(rank(id), tokens[id]));
    ASSERT_OK(trained.backward->prepare(rank(id), tokens[id]));
  }
  for (uint32_t id = 0; id < count; ++id) {
    trained.made.tokens[id] = tokens[id];
    ASSERT_OK(rank(id).stream().beginCapture());
    ASSERT_OK(enqueueBoth(trained, rank(id)));
    auto graph = rank(id).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(*graph));
  }
  for (int replay = 0; replay < (isSimulated() ? 4 : 100) && !HasFailure(); ++replay) {
    fillAll(trained, tokens);
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(me.stream().launch(graphs[me.id()]));
      return me.stream().synchronize();
    }));
    expectGradients(trained, fmt::format("replay {}", replay));
  }
}

TEST_P(ExpertParallelMoeBackwards, WhatIsRefused) {
  start(ranksOnTarget(2));
  const ops::ExpertParallelMoeOptions options = {.hidden = 32, .inner = 16, .experts = 4, .maxTokens = 4};
  Made made = make(options);
  ASSERT_TRUE(made.layer);
  EXPECT_THAT(ExpertParallelMoeBackward::create(world(), sharedJit(), *made.layer).status().message(),
              HasSubstr("without options.training"));
  Trained trained = train(options);
  ASSERT_TRUE(trained.backward);
  EXPECT_THAT(
      ExpertParallelMoeBackward::create(world(), sharedJit(), *trained.made.layer, {DataType::I32}).status().message(),
      HasSubstr("i32"));
  EXPECT_THAT(trained.backward->prepare(rank(0), 5).message(), HasSubstr("5 tokens; 0 to 4 (maxTokens)"));
  ExpertParallelMoeGradients operands = operandsOf(trained, 0);
  operands.down = {};
  EXPECT_THAT(trained.backward->enqueue(rank(0), rank(0).stream(), operands, 1).message(), HasSubstr("operand down"));
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(trained.backward->enqueue(rank(0), rank(0).stream(), operandsOf(trained, 0), 1).message(),
              HasSubstr("a call with 1 tokens was not prepared"));
  (void)rank(0).stream().endCapture();
}

} // namespace
} // namespace ditron::e2e
