//===- expert_parallel_moe_test.cpp - ExpertParallelMoe against a plain reference -------------------------------------------===//
#include "expert_parallel/ExpertParallelMoeTest.h"

namespace ditron::e2e {
namespace {

using ops::ExpertParallelMoe;
using ops::ExpertParallelMoeOptions;
using ops::ExpertParallelMoeWeights;
using Form = ops::ExpertParallelForm;
using testing::HasSubstr;

class ExpertParallelMoes : public ExpertParallelMoeTest, public testing::WithParamInterface<Form> {
protected:
  void SetUp() override { form = GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Forms, ExpertParallelMoes, testing::Values(Form::LowLatency, Form::HighThroughput),
                         [](const auto &info) {
                           return info.param == Form::LowLatency ? "LowLatency" : "HighThroughput";
                         });

TEST_P(ExpertParallelMoes, EqualsTheReferenceOnAnyNumberOfRanks) {
  for (const uint32_t wanted : {1u, 2u, 4u}) {
    if (ranksOnTarget(wanted) < wanted)
      continue;
    start(wanted, seeded(wanted, wanted - 1, 4));
    for (const DataType type : {DataType::F32, DataType::BF16, DataType::F16}) {
      Made made = make({.dtype = type, .hidden = 48, .inner = 24, .experts = 8, .topK = 3, .maxTokens = 20});
      runCalls(made, {{1}, {20, 0, 7, 3}, {0}, {0, 0, 13, 0}}, fmt::format("{} ranks, {}", wanted, toString(type)));
      if (HasFailure())
        return;
    }
  }
}

TEST_P(ExpertParallelMoes, SharedExpertsAndOtherRouters) {
  const uint32_t count = ranksOnTarget(4);
  start(count, seeded(3, 0));
  for (bool inPlace : {false, true}) {
    Made made = make({.hidden = 40,
                      .inner = 16,
                      .sharedInner = 24,
                      .experts = 2 * count,
                      .topK = 2,
                      .score = ops::RouterScore::Sigmoid,
                      .normalized = inPlace,
                      .scale = 2.5,
                      .maxTokens = 18});
    runCalls(made, {{18, 5, 0, 1}, {0, 2, 18, 18}}, inPlace ? "in place" : "shared", inPlace);
    if (HasFailure())
      return;
  }
}

/// Rows, weights and what comes between the products are fp8, with scales; sizes that are no multiples of a block.
TEST_P(ExpertParallelMoes, Fp8WithBlockScales) {
  const uint32_t count = ranksOnTarget(4);
  start(count, seeded(5, count - 1));
  for (const auto &[hidden, inner, shared] : {std::tuple(256, 128, 0), std::tuple(144, 80, 32)}) {
    Made made = make({.hidden = hidden,
                      .inner = inner,
                      .sharedInner = shared,
                      .experts = std::max(count, 2u),
                      .topK = 2,
                      .maxTokens = 10,
                      .fp8 = true});
    runCalls(made, {{10, 0, 3, 7}}, fmt::format("hidden {}, inner {}", hidden, inner));
    if (HasFailure())
      return;
  }
}

/// All tokens to the experts that a bias prefers, none to the others.
TEST_P(ExpertParallelMoes, SkewedRouting) {
  const uint32_t count = ranksOnTarget(4);
  start(count, seeded(6, count > 1 ? 1 : 0));
  std::vector<float> bias(4 * count, 0.0f);
  bias[1] = bias[4 * count - 1] = 10;
  Made made = make({.hidden = 32, .inner = 16, .experts = 4 * count, .topK = 2, .maxTokens = 40}, bias);
  runCalls(made, {{40}, {0, 40, 0, 0}}, "two experts");
  for (uint32_t id = 0; id < count && !HasFailure(); ++id)
    for (int64_t t = 0; t < made.tokens[id]; ++t) {
      std::vector<uint32_t> ids = made.model->choose(&made.given[id][t * 32]).ids;
      std::ranges::sort(ids);
      ASSERT_EQ(ids, (std::vector<uint32_t>{1, 4 * count - 1}));
    }
}

/// What an expert has no room for is dropped, told, and adds nothing.
TEST_P(ExpertParallelMoes, CapacityDropsTheLastTokens) {
  const uint32_t count = ranksOnTarget(2);
  start(count, seeded(7));
  std::vector<float> bias(2 * count, 0.0f);
  bias[0] = 10;
  Made made =
      make({.hidden = 32, .inner = 16, .sharedInner = 8, .experts = 2 * count, .maxTokens = 9, .capacity = 4}, bias);
  ASSERT_TRUE(made.layer);
  fill(made, {9, 3});
  ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
    DITRON_RETURN_IF_ERROR(enqueue(made, me));
    return me.stream().synchronize();
  }));
  EXPECT_THAT(made.layer->check(rank(0)).message(), HasSubstr("9 of its slots chose expert 0; the first 4"));
  EXPECT_OK(made.layer->check(rank(0)));
  for (uint32_t id = 0; id < count; ++id)
    for (int64_t t = 0; t < made.tokens[id]; ++t) {
      const float *x = &made.given[id][t * 32];
      const std::vector<double> expected = t < 4 ? made.model->apply(x) : made.model->shared(x);
      std::vector<float> got = getFloats(made.y[id]);
      got = {got.begin() + t * 32, got.begin() + (t + 1) * 32};
      EXPECT_TRUE(ops::compare(got, expected, {toleranceOf(made.options)}).passed())
          << "rank " << id << ", token " << t;
    }
}

/// Graphs of other numbers of tokens on each rank, replayed with other tokens, between eager calls; one rank is slow.
TEST_P(ExpertParallelMoes, ReplaysFollowTheTokens) {
  const uint32_t count = ranksOnTarget(4);
  start(count, seeded(8, count - 1, 5));
  Made made = make({.dtype = DataType::F32,
                    .hidden = 32,
                    .inner = 16,
                    .sharedInner = 8,
                    .experts = 4 * count,
                    .topK = 3,
                    .maxTokens = 9});
  ASSERT_TRUE(made.layer);
  const std::vector<int64_t> captured = {9, 0, 4, 1}, eager = {2, 9, 0, 3};
  for (uint32_t id = 0; id < count; ++id)
    for (const std::vector<int64_t> &tokens : {captured, eager})
      ASSERT_OK(made.layer->prepare(rank(id), tokens[id]));
  std::vector<runtime::Graph> graphs;
  for (uint32_t id = 0; id < count; ++id) {
    made.tokens[id] = captured[id];
    ASSERT_OK(rank(id).stream().beginCapture());
    ASSERT_OK(enqueue(made, rank(id)));
    auto graph = rank(id).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(*graph));
  }
  const int replays = isSimulated() ? 8 : 1000;
  for (int replay = 0; replay < replays && !HasFailure(); ++replay) {
    const bool isEager = replay % 4 == 1;
    fill(made, isEager ? eager : captured);
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(isEager ? enqueue(made, me) : me.stream().launch(graphs[me.id()]));
      return me.stream().synchronize();
    }));
    expectResults(made, fmt::format("replay {}", replay));
  }
}

/// The same bits under every schedule; the race detector watches.
TEST_P(ExpertParallelMoes, AnySchedule) {
  if (!isSimulated())
    GTEST_SKIP() << "the simulator draws schedules";
  std::vector<std::vector<float>> first;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    start(4, seeded(seed, seed % 4, 3));
    random.seed(1);
    Made made = make({.hidden = 40, .inner = 16, .sharedInner = 8, .experts = 8, .topK = 2, .maxTokens = 7});
    runCalls(made, {{7, 2, 0, 5}}, fmt::format("seed {}", seed));
    for (uint32_t id = 0; id < 4; ++id) {
      const std::vector<float> got = getFloats(made.y[id]);
      if (seed == 1)
        first.push_back(got);
      expectSame(got, first[id], fmt::format("seed {}, rank {}", seed, id));
    }
    if (HasFailure())
      return;
  }
}

TEST_P(ExpertParallelMoes, BetweenNodes) {
  if (!isSimulated() || GetParam() != Form::LowLatency)
    GTEST_SKIP() << "needs simulated nodes";
  for (const Form each : {Form::LowLatency, Form::TwoLevel}) {
    WorldOptions nodes = seeded(9, 3, 3);
    nodes.ranksPerNode = 2;
    start(4, nodes);
    Made made = make({.hidden = 40,
                      .inner = 16,
                      .sharedInner = 8,
                      .experts = 8,
                      .topK = 3,
                      .maxTokens = 6,
                      .plan = ops::ExpertParallelPlan{each, 4, 2, 4, 2}});
    runCalls(made, {{6, 0, 3, 1}, {2}}, fmt::format("two nodes, {}", toString(each)));
    if (HasFailure())
      return;
  }
}

TEST_P(ExpertParallelMoes, WhatIsRefused) {
  start(ranksOnTarget(2));
  const auto error = [&](const ExpertParallelMoeOptions &options, size_t weights) {
    return ExpertParallelMoe::create(world(), sharedJit(), options, std::vector<ExpertParallelMoeWeights>(weights))
        .status()
        .message();
  };
  ExpertParallelMoeOptions good = {.hidden = 32, .inner = 16, .experts = 4, .topK = 2, .maxTokens = 4};
  EXPECT_THAT(error(good, 5), HasSubstr(fmt::format("weights of 5 ranks are given; there are {}", ranks())));
  EXPECT_THAT(error(good, ranks()), HasSubstr("ExpertParallelMoe: operand router"));
  ExpertParallelMoeOptions bad = good;
  bad.inner = 0;
  EXPECT_THAT(error(bad, ranks()), HasSubstr("inner is 0; 1 to"));
  bad = good;
  bad.topK = 5;
  EXPECT_THAT(error(bad, ranks()), HasSubstr("topK is 5 of 4 experts"));
  bad = good;
  bad.dtype = DataType::I32;
  EXPECT_THAT(error(bad, ranks()), HasSubstr("i32"));
  Made made = make(good);
  ASSERT_TRUE(made.layer);
  ExpertParallelMoe &layer = *made.layer;
  EXPECT_THAT(layer.prepare(rank(0), 5).message(), HasSubstr("5 tokens; 0 to 4 (maxTokens) are accepted"));
  EXPECT_THAT(layer.enqueue(rank(0), rank(0).stream(), made.x[0], made.y[0], -1).message(), HasSubstr("-1 tokens"));
  EXPECT_THAT(layer.enqueue(rank(0), rank(0).stream(), made.x[0].pointer() + 1, made.y[0], 1).message(),
              HasSubstr("multiple"));
  ASSERT_OK(layer.prepare(rank(0), 4));
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(layer.enqueue(rank(0), rank(0).stream(), made.x[0], made.y[0], 3).message(),
              HasSubstr("a call with 3 tokens was not prepared, and the stream is being captured"));
  ASSERT_OK(layer.enqueue(rank(0), rank(0).stream(), made.x[0], made.y[0], 4));
  ASSERT_OK(rank(0).stream().endCapture());
}

} // namespace
} // namespace ditron::e2e
