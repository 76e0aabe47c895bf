//===- mixture_test.cpp - Routing, grouped products and layers of experts through the interface ------------------===//
#include "ditron/api/test/ApiTest.h"
#include "ditron/api/test/CppRanks.h"

#include <cmath>
#include <random>

namespace ditron::api::test {
namespace {

using testing::HasSubstr;

constexpr uint32_t experts = 4, topK = 2;
constexpr int64_t hidden = 16, inner = 8, tokens = 6;

std::vector<float> drawn(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float &value : values)
    value = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

/// A small model, of which both layers and the pieces on one rank must make the same.
class CppMixture : public CppRanks {
protected:
  /// By sorting, two grouped products and a sum, on a rank.
  std::vector<float> byPieces(uint32_t rank, std::vector<float> x) {
    std::vector<float> logits(tokens * experts, 0.0f);
    for (int64_t t = 0; t < tokens; ++t)
      for (uint32_t e = 0; e < experts; ++e)
        for (int64_t h = 0; h < hidden; ++h)
          logits[t * experts + e] += x[t * hidden + h] * router[e * hidden + h];
    Routing::Options routed;
    routed.experts = experts, routed.topK = topK, routed.maxTokens = tokens;
    routed.hidden = hidden, routed.dtype = DITRON_F32;
    Routing routing = context->createRouting(routed).value();
    EXPECT_TRUE(routing.prepare(tokens).ok());
    GroupedGemm::Options product;
    product.maxRows = tokens * topK, product.experts = experts, product.dtype = DITRON_F32;
    product.n = 2 * inner, product.k = hidden, product.slots = topK;
    product.activation = DITRON_ACTIVATION_SWIGLU;
    GroupedGemm first = context->createGroupedGemm(product).value();
    product.n = hidden, product.k = inner, product.slots = 0;
    product.activation = DITRON_ACTIVATION_NONE;
    GroupedGemm second = context->createGroupedGemm(product).value();
    std::vector<int32_t> ids(tokens * topK), offsets(experts + 1), slotOfRow(tokens * topK), rowOfSlot(tokens * topK);
    std::vector<float> weights(tokens * topK), rows(tokens * topK * inner), results(tokens * topK * hidden),
        y(tokens * hidden, -1), upOfAll = up, downOfAll = down;
    for (std::vector<int32_t> *each : {&ids, &offsets, &slotOfRow, &rowOfSlot})
      lend(rank, *each);
    for (std::vector<float> *each : {&x, &logits, &weights, &rows, &results, &y, &upOfAll, &downOfAll})
      lend(rank, *each);
    Stream &stream = streams[rank];
    for (const Status &status :
         {first.prepare(), second.prepare(),
          routing.choose(stream, logits.data(), nullptr, ids.data(), weights.data(), tokens),
          routing.sort(stream, ids.data(), offsets.data(), slotOfRow.data(), rowOfSlot.data(), tokens),
          first.enqueue(stream, {x.data(), upOfAll.data(), rows.data(), offsets.data(), slotOfRow.data()}),
          second.enqueue(stream, {rows.data(), downOfAll.data(), results.data(), offsets.data()}),
          routing.sum(stream, results.data(), rowOfSlot.data(), weights.data(), y.data(), tokens),
          stream.synchronize()})
      EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(offsets.back(), tokens * topK);
    lent.clear();
    return y;
  }
  static void expectClose(const std::vector<float> &got, const std::vector<float> &wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 1e-2) << i; // the products' operands are rounded to tf32
  }
  std::vector<float> router = drawn(experts * hidden, 1), up = drawn(experts * 2 * inner * hidden, 2),
                     down = drawn(experts * hidden * inner, 3);
};

TEST_F(CppMixture, ExpertParallelMoeIsItsPieces) {
  ExpertParallelMoe::Options options;
  options.dtype = DITRON_F32;
  options.hidden = hidden, options.inner = inner, options.experts = experts, options.topK = topK;
  options.maxTokens = tokens;
  std::vector<MoeWeights> weights(ranks);
  std::vector<float> x[ranks], y[ranks], wanted[ranks], own[ranks][3];
  for (uint32_t rank = 0; rank < ranks; ++rank)
    wanted[rank] = byPieces(rank, drawn(tokens * hidden, 10 + rank));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    x[rank] = drawn(tokens * hidden, 10 + rank);
    y[rank].assign(tokens * hidden, -1);
    const auto half = [&](const std::vector<float> &all) {
      const auto count = static_cast<ptrdiff_t>(all.size() / ranks);
      return std::vector<float>(all.begin() + rank * count, all.begin() + (rank + 1) * count);
    };
    own[rank][0] = router, own[rank][1] = half(up), own[rank][2] = half(down);
    weights[rank].router = lend(rank, own[rank][0]);
    weights[rank].up = lend(rank, own[rank][1]);
    weights[rank].down = lend(rank, own[rank][2]);
    lend(rank, x[rank]), lend(rank, y[rank]);
  }
  ExpertParallelMoe layer = context->createExpertParallelMoe(options, weights).value();
  const int64_t counts[ranks] = {tokens, 2};
  for (int64_t count : counts)
    ASSERT_TRUE(layer.prepare(count).ok());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const Status status = layer.enqueue(streams[rank], x[rank].data(), y[rank].data(), counts[rank]);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(layer.check(streams[rank]).ok());
    std::fill(wanted[rank].begin() + counts[rank] * hidden, wanted[rank].end(), -1.0f);
    expectClose(y[rank], wanted[rank]);
  }
  EXPECT_THAT(layer.prepare(7).message(), HasSubstr("7 tokens; 0 to 6 (maxTokens) are accepted"));
  weights.pop_back();
  EXPECT_THAT(context->createExpertParallelMoe(options, weights).status().message(),
              HasSubstr("weights of 1 ranks are given; there are 2"));
  weights.resize(ranks);
  EXPECT_THAT(context->createExpertParallelMoe(options, weights).status().message(), HasSubstr("operand router"));
}

TEST_F(CppMixture, TensorParallelMoeIsItsPieces) {
  TensorParallelMoe::Options options;
  options.dtype = DITRON_F32;
  options.hidden = hidden, options.inner = inner, options.experts = experts, options.topK = topK;
  options.maxTokensPerRank = tokens;
  std::vector<float> x[ranks], y[ranks], wanted[ranks], own[ranks][3];
  for (uint32_t rank = 0; rank < ranks; ++rank)
    wanted[rank] = byPieces(rank, drawn(tokens * hidden, 20 + rank));
  std::vector<MoeWeights> weights(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    x[rank] = drawn(tokens * hidden, 20 + rank);
    y[rank].assign(tokens * hidden, -1);
    own[rank][0] = router;
    constexpr int64_t part = inner / ranks;
    for (uint32_t e = 0; e < experts; ++e) {
      const auto begin = up.begin() + (e * inner + rank * part) * 2 * hidden;
      own[rank][1].insert(own[rank][1].end(), begin, begin + 2 * part * hidden);
    }
    for (size_t row = 0; row < experts * hidden; ++row) {
      const auto begin = down.begin() + static_cast<ptrdiff_t>(row * inner + rank * part);
      own[rank][2].insert(own[rank][2].end(), begin, begin + part);
    }
    weights[rank].router = lend(rank, own[rank][0]);
    weights[rank].up = lend(rank, own[rank][1]);
    weights[rank].down = lend(rank, own[rank][2]);
    lend(rank, x[rank]), lend(rank, y[rank]);
  }
  for (bool unfused : {false, true}) {
    options.unfused = unfused;
    TensorParallelMoe layer = context->createTensorParallelMoe(options, weights).value();
    ASSERT_TRUE(layer.prepare(tokens).ok());
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      std::fill(y[rank].begin(), y[rank].end(), -1.0f);
      ASSERT_TRUE(layer.enqueue(streams[rank], x[rank].data(), y[rank].data(), tokens).ok());
    }
    ASSERT_TRUE(context->synchronize().ok());
    for (uint32_t rank = 0; rank < ranks; ++rank)
      expectClose(y[rank], wanted[rank]);
  }
}

/// Both layers are the same function of the same tokens, and so are their gradients.
TEST_F(CppMixture, GradientsOfBothLayersAgree) {
  struct Own {
    std::vector<float> router, up, down, ofRouter, ofUp, ofDown;
  };
  std::vector<float> x[ranks], y[ranks], dy[ranks], dx[2][ranks];
  Own own[2][ranks];
  constexpr int64_t part = inner / ranks;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    x[rank] = drawn(tokens * hidden, 30 + rank), dy[rank] = drawn(tokens * hidden, 40 + rank);
    y[rank].assign(tokens * hidden, 0);
    const auto half = [&](const std::vector<float> &all) {
      const auto count = static_cast<ptrdiff_t>(all.size() / ranks);
      return std::vector<float>(all.begin() + rank * count, all.begin() + (rank + 1) * count);
    };
    own[0][rank] = {router, half(up), half(down), {}, {}, {}};
    own[1][rank].router = router;
    for (uint32_t e = 0; e < experts; ++e) {
      const auto begin = up.begin() + (e * inner + rank * part) * 2 * hidden;
      own[1][rank].up.insert(own[1][rank].up.end(), begin, begin + 2 * part * hidden);
    }
    for (size_t row = 0; row < experts * hidden; ++row) {
      const auto begin = down.begin() + static_cast<ptrdiff_t>(row * inner + rank * part);
      own[1][rank].down.insert(own[1][rank].down.end(), begin, begin + part);
    }
    lend(rank, x[rank]), lend(rank, y[rank]), lend(rank, dy[rank]);
    for (int layer : {0, 1}) {
      Own &each = own[layer][rank];
      dx[layer][rank].assign(tokens * hidden, 0);
      each.ofRouter.assign(each.router.size(), 1), each.ofUp.assign(each.up.size(), 1);
      each.ofDown.assign(each.down.size(), 1);
      lend(rank, dx[layer][rank]);
      for (std::vector<float> *values : {&each.router, &each.up, &each.down, &each.ofRouter, &each.ofUp, &each.ofDown})
        lend(rank, *values);
    }
  }
  const auto weightsOf = [&](int layer) {
    std::vector<MoeWeights> weights(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      weights[rank].router = own[layer][rank].router.data();
      weights[rank].up = own[layer][rank].up.data();
      weights[rank].down = own[layer][rank].down.data();
    }
    return weights;
  };
  const auto gradientsOf = [&](int layer, uint32_t rank) {
    MoeGradients gradients;
    gradients.x = x[rank].data(), gradients.dy = dy[rank].data(), gradients.dx = dx[layer][rank].data();
    gradients.router = own[layer][rank].ofRouter.data(), gradients.up = own[layer][rank].ofUp.data();
    gradients.down = own[layer][rank].ofDown.data();
    return gradients;
  };
  ExpertParallelMoe::Options options;
  options.dtype = DITRON_F32;
  options.hidden = hidden, options.inner = inner, options.experts = experts, options.topK = topK;
  options.maxTokens = tokens, options.training = true;
  ExpertParallelMoe byExpert = context->createExpertParallelMoe(options, weightsOf(0)).value();
  TensorParallelMoe::Options spread;
  spread.dtype = DITRON_F32;
  spread.hidden = hidden, spread.inner = inner, spread.experts = experts, spread.topK = topK;
  spread.maxTokensPerRank = tokens, spread.training = true;
  TensorParallelMoe bySlice = context->createTensorParallelMoe(spread, weightsOf(1)).value();
  for (const Status &status : {byExpert.prepare(tokens), bySlice.prepare(tokens)})
    ASSERT_TRUE(status.ok()) << status.message();
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (const Status &status : {byExpert.enqueue(streams[rank], x[rank].data(), y[rank].data(), tokens),
                                 byExpert.backward(streams[rank], gradientsOf(0, rank), tokens),
                                 bySlice.backward(streams[rank], gradientsOf(1, rank), tokens)})
      ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(context->synchronize().ok());
  double size = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    expectClose(dx[0][rank], dx[1][rank]);
    expectClose(own[0][rank].ofRouter, own[1][rank].ofRouter);
    for (float value : dx[0][rank])
      size += std::fabs(value);
    const int64_t local = experts / ranks;
    for (uint32_t e = 0; e < experts; ++e) {
      const auto begin = own[0][e / local].ofUp.begin() + ((e % local) * inner + rank * part) * 2 * hidden;
      const auto slice = own[1][rank].ofUp.begin() + e * 2 * part * hidden;
      expectClose({begin, begin + 2 * part * hidden}, {slice, slice + 2 * part * hidden});
    }
  }
  EXPECT_GT(size, 1);
  options.training = false;
  ExpertParallelMoe forward = context->createExpertParallelMoe(options, weightsOf(0)).value();
  EXPECT_THAT(forward.backward(streams[0], gradientsOf(0, 0), tokens).message(), HasSubstr("without `training`"));
}

TEST_F(CppMixture, WhatIsWrongIsNamed) {
  Routing::Options routed;
  routed.experts = 4, routed.topK = 5, routed.maxTokens = 1;
  EXPECT_THAT(context->createRouting(routed).status().message(), HasSubstr("topK is 5; 1 to 4 are accepted"));
  routed.topK = 1;
  Routing routing = context->createRouting(routed).value();
  EXPECT_THAT(routing.prepare(2).message(), HasSubstr("2 tokens; 1 to 1 (maxTokens) are accepted"));
  EXPECT_THAT(routing.sum(streams[0], nullptr, nullptr, nullptr, nullptr, 1).message(), HasSubstr("hidden is 0"));
  EXPECT_THAT(routing.sort(streams[0], nullptr, nullptr, nullptr, nullptr, 1).message(), HasSubstr("operand ids"));
  routed.score = static_cast<ditron_router_score_t>(3);
  EXPECT_THAT(context->createRouting(routed).status().message(), HasSubstr("score is 3; 0 (softmax) and 1 (sigmoid)"));
  GroupedGemm::Options product;
  product.experts = 2, product.n = product.k = 16;
  EXPECT_FALSE(context->createGroupedGemm(product).ok());
  product.maxRows = 4, product.activation = DITRON_ACTIVATION_GELU;
  EXPECT_THAT(context->createGroupedGemm(product).status().message(), HasSubstr("0 (none) and 4 (swiglu)"));
  product.activation = DITRON_ACTIVATION_NONE;
  GroupedGemm made = context->createGroupedGemm(product).value();
  EXPECT_THAT(made.enqueue(streams[0], {}).message(), HasSubstr("operand a"));
  EXPECT_EQ(ditron_routing_prepare(nullptr, 1), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_grouped_gemm_enqueue(nullptr, streams[0].get(), nullptr), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_expert_parallel_moe_check(nullptr, streams[0].get()), DITRON_INVALID_ARGUMENT);
  ditron_routing_destroy(nullptr);
  ditron_grouped_gemm_destroy(nullptr);
  ditron_tensor_parallel_moe_destroy(nullptr);
  ditron_expert_parallel_moe_destroy(nullptr);
}

} // namespace
} // namespace ditron::api::test
