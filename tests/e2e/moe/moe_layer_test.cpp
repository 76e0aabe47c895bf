//===- moe_layer_test.cpp - TensorParallelMoe against a plain reference -----------------------------------------------------===//
#include "moe/TensorParallelMoeTest.h"
#include "ditron/jit/Jit.h"

namespace ditron::e2e {
namespace {

using ops::TensorParallelMoe;
using ops::TensorParallelMoeOptions;
using ops::TensorParallelMoeWeights;
using testing::HasSubstr;

class MoeLayerSchedules : public MoeLayer, public testing::WithParamInterface<ops::Schedule> {};
INSTANTIATE_TEST_SUITE_P(Both, MoeLayerSchedules, testing::Values(ops::Schedule::Overlapped, ops::Schedule::Unfused),
                         [](const auto &info) { return std::string(toString(info.param)); });

TEST_P(MoeLayerSchedules, EqualsTheReferenceOnAnyNumberOfRanks) {
  const ops::Schedule schedule = GetParam();
  for (const uint32_t wanted : {1u, 2u, 4u}) {
    const uint32_t ranks = ranksOnTarget(wanted);
    if (ranks < wanted)
      continue;
    start(ranks, seeded(wanted));
    for (const DataType type : {DataType::F32, DataType::BF16}) {
      TensorParallelMoeOptions options;
      options.dtype = type;
      options.hidden = 48;
      options.inner = 32;
      options.experts = 6;
      options.topK = 2;
      options.maxTokensPerRank = 20;
      options.schedule = schedule;
      const SlicedMoeModel model(options);
      const Weights weights = weightsOf(model);
      auto layer = TensorParallelMoe::create(world(), sharedJit(), options, weights.of);
      ASSERT_OK(layer);
      for (const int64_t tokens : {int64_t(1), int64_t(20), int64_t(7)}) {
        std::vector<Buffer> x, y;
        std::vector<float> given = ops::randomValues(type, tokens * ranks * options.hidden, 9 + tokens);
        for (float &value : given)
          value *= 4; // so that experts differ
        for (uint32_t id = 0; id < ranks; ++id) {
          const auto begin = given.begin() + id * tokens * options.hidden;
          x.push_back(values(type, {begin, begin + tokens * options.hidden}, id));
          y.push_back(zeros(type, tokens * options.hidden, "y", id));
          ASSERT_OK(layer->prepare(rank(id), tokens));
        }
        for (int call = 0; call < 2; ++call)
          for (uint32_t id = 0; id < ranks; ++id)
            ASSERT_OK(layer->enqueue(rank(id), rank(id).stream(), x[id], y[id], tokens));
        ASSERT_OK(world().synchronize());
        for (uint32_t id = 0; id < ranks; ++id) {
          std::vector<double> expected;
          for (int64_t t = 0; t < tokens; ++t) {
            const std::vector<double> one = model.apply(&given[(id * tokens + t) * options.hidden]);
            expected.insert(expected.end(), one.begin(), one.end());
          }
          // Gathered rows, inner columns, rows and sums are rounded one after the other.
          const ops::Tolerance tolerance = {3 * ops::toleranceFor(type, ops::MultiplyPrecision::Ieee).relative};
          const ops::Comparison comparison = ops::compare(*y[id].downloadFloats(), expected, tolerance);
          EXPECT_TRUE(comparison.passed()) << ranks << " ranks, " << tokens << " tokens, " << toString(type)
                                           << ", rank " << id << ": " << comparison.worstRatio;
        }
      }
    }
  }
}

TEST_P(MoeLayerSchedules, ReplaysFollowTheTokens) {
  const uint32_t ranks = ranksOnTarget(2);
  REQUIRE_RANKS(2);
  start(ranks, seeded(3, 1));
  TensorParallelMoeOptions options;
  options.dtype = DataType::F32;
  options.hidden = 32;
  options.inner = 16;
  options.experts = 5;
  options.topK = 3;
  options.maxTokensPerRank = 9;
  options.schedule = GetParam();
  const SlicedMoeModel model(options);
  const Weights weights = weightsOf(model);
  std::vector<Buffer> x, y;
  for (uint32_t id = 0; id < ranks; ++id) {
    x.push_back(zeros(options.dtype, 9 * options.hidden, "x", id));
    y.push_back(zeros(options.dtype, 9 * options.hidden, "y", id));
  }
  auto layer = TensorParallelMoe::create(world(), sharedJit(), options, weights.of);
  ASSERT_OK(layer);
  std::vector<runtime::Graph> graphs(ranks);
  for (uint32_t id = 0; id < ranks; ++id)
    ASSERT_OK(layer->prepare(rank(id), 9));
  for (uint32_t id = 0; id < ranks; ++id) {
    ASSERT_OK(rank(id).stream().beginCapture());
    ASSERT_OK(layer->enqueue(rank(id), rank(id).stream(), x[id], y[id], 9));
    auto graph = rank(id).stream().endCapture();
    ASSERT_OK(graph);
    graphs[id] = std::move(*graph);
  }
  for (int replay = 0; replay < 6; ++replay) {
    const std::vector<float> given = ops::randomValues(options.dtype, ranks * 9 * options.hidden, 50 + replay);
    for (uint32_t id = 0; id < ranks; ++id)
      ASSERT_OK(x[id].uploadFloats(std::span(given).subspan(id * 9 * options.hidden, 9 * options.hidden)));
    for (uint32_t id = 0; id < ranks; ++id)
      ASSERT_OK(rank(id).stream().launch(graphs[id]));
    ASSERT_OK(world().synchronize());
    for (uint32_t id = 0; id < ranks; ++id) {
      std::vector<double> expected;
      for (int64_t t = 0; t < 9; ++t) {
        const std::vector<double> one = model.apply(&given[(id * 9 + t) * options.hidden]);
        expected.insert(expected.end(), one.begin(), one.end());
      }
      const ops::Comparison comparison = ops::compare(*y[id].downloadFloats(), expected,
                                                      ops::toleranceFor(options.dtype, ops::MultiplyPrecision::Ieee));
      EXPECT_TRUE(comparison.passed()) << "replay " << replay << ", rank " << id << ": " << comparison.worstRatio;
    }
  }
}

TEST_P(MoeLayerSchedules, TokensThatAllRanksHave) {
  for (const uint32_t wanted : {1u, 2u, 4u}) {
    const uint32_t ranks = ranksOnTarget(wanted);
    if (ranks < wanted)
      continue;
    start(ranks, seeded(wanted, ranks - 1));
    TensorParallelMoeOptions options;
    options.dtype = DataType::BF16;
    options.hidden = 40;
    options.inner = 32;
    options.experts = 6;
    options.topK = 2;
    options.tokens = ops::MoeTokens::Replicated;
    options.maxTokensPerRank = 37;
    options.schedule = GetParam();
    const SlicedMoeModel model(options);
    const Weights weights = weightsOf(model);
    auto layer = TensorParallelMoe::create(world(), sharedJit(), options, weights.of);
    ASSERT_OK(layer);
    for (const int64_t tokens : {int64_t(1), int64_t(37), int64_t(6)}) {
      for (uint32_t id = 0; id < ranks; ++id)
        ASSERT_OK(layer->prepare(rank(id), tokens));
      for (int call = 0; call < 2; ++call) {
        std::vector<float> given = ops::randomValues(options.dtype, tokens * options.hidden, 9 + tokens + 100 * call);
        for (float &value : given)
          value *= 4;          // so that experts differ
        std::vector<Buffer> x; // and y: in place
        for (uint32_t id = 0; id < ranks; ++id)
          x.push_back(values(options.dtype, given, id));
        for (uint32_t id = 0; id < ranks; ++id)
          ASSERT_OK(layer->enqueue(rank(id), rank(id).stream(), x[id], x[id], tokens));
        ASSERT_OK(world().synchronize());
        std::vector<double> expected;
        for (int64_t t = 0; t < tokens; ++t) {
          const std::vector<double> one = model.apply(&given[t * options.hidden]);
          expected.insert(expected.end(), one.begin(), one.end());
        }
        const ops::Tolerance tolerance = {3 * ops::toleranceFor(options.dtype, ops::MultiplyPrecision::Ieee).relative};
        for (uint32_t id = 0; id < ranks; ++id) {
          const ops::Comparison comparison = ops::compare(*x[id].downloadFloats(), expected, tolerance);
          EXPECT_TRUE(comparison.passed())
              << ranks << " ranks, " << tokens << " tokens, rank " << id << ": " << comparison.worstRatio;
          EXPECT_EQ(*x[id].downloadFloats(), *x[0].downloadFloats()) << "ranks 0 and " << id << " differ";
        }
      }
    }
    EXPECT_THAT(layer->prepare(rank(0), 4, 3).message(), HasSubstr("3 own tokens of 4; 4 to 4 are accepted"));
  }
}

TEST_F(MoeLayer, RanksMayHaveFewerTokens) {
  REQUIRE_RANKS(2);
  const uint32_t ranks = ranksOnTarget(4) < 4 ? 2 : 4;
  start(ranks, seeded(9, 0));
  TensorParallelMoeOptions options;
  options.dtype = DataType::F32;
  options.hidden = 32;
  options.inner = 16;
  options.experts = 5;
  options.topK = 2;
  options.maxTokensPerRank = 12;
  const SlicedMoeModel model(options);
  const Weights weights = weightsOf(model);
  auto layer = TensorParallelMoe::create(world(), sharedJit(), options, weights.of);
  ASSERT_OK(layer);
  for (const std::vector<int64_t> &counts : {std::vector<int64_t>{0, 12, 3, 1}, std::vector<int64_t>{7, 0, 0, 0},
                                             std::vector<int64_t>{0, 0, 0, 0}, std::vector<int64_t>{0, 12, 3, 1}}) {
    std::vector<Buffer> x, y;
    std::vector<std::vector<float>> given;
    for (uint32_t id = 0; id < ranks; ++id) {
      given.push_back(ops::randomValues(options.dtype, std::max<int64_t>(counts[id], 1) * options.hidden, 70 + id));
      x.push_back(values(options.dtype, given[id], id));
      y.push_back(values(options.dtype, std::vector<float>(12 * options.hidden, 5), id));
      ASSERT_OK(layer->prepare(rank(id), 12, counts[id]));
    }
    for (uint32_t id = 0; id < ranks; ++id)
      ASSERT_OK(layer->enqueue(rank(id), rank(id).stream(), x[id], y[id], 12, counts[id]));
    ASSERT_OK(world().synchronize());
    for (uint32_t id = 0; id < ranks; ++id) {
      std::vector<double> expected;
      for (int64_t t = 0; t < counts[id]; ++t) {
        const std::vector<double> one = model.apply(&given[id][t * options.hidden]);
        expected.insert(expected.end(), one.begin(), one.end());
      }
      expected.resize(12 * options.hidden, 0);
      const ops::Comparison comparison = ops::compare(*y[id].downloadFloats(), expected,
                                                      ops::toleranceFor(options.dtype, ops::MultiplyPrecision::Ieee));
      EXPECT_TRUE(comparison.passed()) << counts[id] << " tokens, rank " << id << ": " << comparison.worstRatio;
    }
  }
  options.schedule = ops::Schedule::Unfused;
  auto unfused = TensorParallelMoe::create(world(), sharedJit(), options, weights.of);
  ASSERT_OK(unfused);
  EXPECT_THAT(unfused->prepare(rank(0), 12, 3).message(),
              HasSubstr("3 own tokens of 12; 12 to 12 are accepted by the unfused schedule"));
}

TEST_F(MoeLayer, WhatIsRefused) {
  REQUIRE_RANKS(3u);
  start(3);
  TensorParallelMoeOptions options;
  options.hidden = options.inner = 32;
  options.experts = 4;
  options.maxTokensPerRank = 4;
  EXPECT_THAT(TensorParallelMoe::create(world(), sharedJit(), options, std::vector<TensorParallelMoeWeights>(3))
                  .status()
                  .message(),
              HasSubstr("32 inner columns over 3 ranks, which must divide them"));
  options.topK = 5;
  EXPECT_THAT(TensorParallelMoe::create(world(), sharedJit(), options, {}).status().message(),
              HasSubstr("topK is 5 of 4 experts"));
  options.topK = 1;
  options.inner = 33;
  EXPECT_THAT(TensorParallelMoe::create(world(), sharedJit(), options, {}).status().message(),
              HasSubstr("weights of 0 ranks are given; there are 3"));
}

} // namespace
} // namespace ditron::e2e
