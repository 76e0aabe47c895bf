//===- sequence_parallel_attention_test.cpp - The layer of attention over tokens of several ranks ----------------------------===//
//
// Projections, attention by heads and both exchanges against plain loops: grouped heads, several sequences, tokens that nothing divides; captured and
// replayed with a slow rank; what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/attention/AttentionReference.h"
#include "ditron/ops/layers/SequenceParallelAttention.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::RowShards;
using ops::SequenceParallelAttention;
using testing::HasSubstr;

ops::SequenceParallelAttentionOptions smallLayer() {
  ops::SequenceParallelAttentionOptions options;
  options.batch = 2;
  options.hidden = 48;
  options.heads = 8;
  options.kvHeads = 4;
  options.headDim = 16;
  options.dtype = DataType::F16;
  options.maxTokens = 50;
  options.chunks = 2;
  options.tile = {.blockM = 32, .blockN = 32, .blockK = 32, .groupM = 2, .numWarps = 4, .numStages = 2};
  options.attentionTile = {.blockM = 32, .blockN = 32, .numWarps = 4, .numStages = 2};
  return options;
}

std::vector<float> rounded(DataType type, const std::vector<double> &values) {
  std::vector<float> result;
  for (double value : values) {
    std::byte bytes[8];
    storeElement(type, bytes, value);
    result.push_back(static_cast<float>(loadElement(type, bytes)));
  }
  return result;
}

/// y [batch, tokens, hidden] of x; weights as torch has them: qkv [(heads + 2 kvHeads) headDim, hidden], out [hidden, heads * headDim].
std::vector<double> expectedLayer(const ops::SequenceParallelAttentionOptions &o, int64_t tokens,
                                  const std::vector<float> &x, const std::vector<float> &qkv,
                                  const std::vector<float> &out) {
  const auto turned = [](const std::vector<float> &b, int64_t n, int64_t k) {
    std::vector<float> result(b.size());
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < k; ++i)
        result[i * n + j] = b[j * k + i];
    return result;
  };
  const int64_t columns = (o.heads + 2 * o.kvHeads) * o.headDim, width = o.heads * o.headDim;
  const std::vector<float> projected =
      rounded(o.dtype, ops::referenceProduct(x, turned(qkv, columns, o.hidden), o.batch * tokens, columns, o.hidden));
  const auto element = [&](int64_t firstHead) {
    return [&, firstHead](int64_t batch, int64_t head, int64_t token, int64_t column) -> double {
      return projected[(batch * tokens + token) * columns + (firstHead + head) * o.headDim + column];
    };
  };
  const ops::AttentionReference plain({.batch = o.batch,
                                       .heads = o.heads,
                                       .kvHeads = o.kvHeads,
                                       .queries = tokens,
                                       .keys = tokens,
                                       .headDim = o.headDim,
                                       .causal = o.causal},
                                      element(0), element(o.heads), element(o.heads + o.kvHeads));
  std::vector<double> attended;
  for (int64_t s = 0; s < o.batch; ++s)
    for (int64_t query = 0; query < tokens; ++query)
      for (int64_t head = 0; head < o.heads; ++head) {
        const std::vector<double> row = plain.row(s, head, query).out;
        attended.insert(attended.end(), row.begin(), row.end());
      }
  return ops::referenceProduct(rounded(o.dtype, attended), turned(out, o.hidden, width), o.batch * tokens, o.hidden,
                               width);
}

class SequenceParallelAttentionTest : public KernelTest {};

TEST_F(SequenceParallelAttentionTest, AgainstLoops) {
  const uint32_t ranks = ranksOnTarget(4) == 3 ? 2 : ranksOnTarget(4);
  start(ranks, seeded(2, ranks - 1));
  const ops::SequenceParallelAttentionOptions options = smallLayer();
  auto layer = SequenceParallelAttention::create(world(), sharedJit(), options);
  ASSERT_OK(layer);
  const int64_t columns = (options.heads + 2 * options.kvHeads) * options.headDim,
                width = options.heads * options.headDim;
  const std::vector<float> qkv = randomFloats(columns * options.hidden, 1, -0.5, 0.5, options.dtype),
                           out = randomFloats(options.hidden * width, 2, -0.5, 0.5, options.dtype);
  std::vector<float> arranged;
  for (int64_t row : SequenceParallelAttention::qkvRows(options, ranks))
    arranged.insert(arranged.end(), qkv.begin() + row * options.hidden, qkv.begin() + (row + 1) * options.hidden);
  for (int64_t tokens : {50, 37}) {
    const std::vector<float> x = randomFloats(options.batch * tokens * options.hidden, tokens, -1, 1, options.dtype);
    const std::vector<double> expected = expectedLayer(options, tokens, x, qkv, out);
    const RowShards shards(tokens, ranks);
    const auto own = [&](const auto &all, uint32_t r) {
      std::remove_cvref_t<decltype(all)> part;
      for (int64_t s = 0; s < options.batch; ++s) {
        const auto first = all.begin() + (s * tokens + shards.firstRowOf(r)) * options.hidden;
        part.insert(part.end(), first, first + shards.rowsOf(r) * options.hidden);
      }
      return part;
    };
    std::vector<Buffer> given, weights, back, result;
    std::vector<runtime::Graph> graphs;
    for (uint32_t r = 0; r < ranks; ++r) {
      ASSERT_OK(layer->prepare(rank(r), tokens));
      given.push_back(putAs(options.dtype, own(x, r), "x", r));
      weights.push_back(putAs(options.dtype, arranged, "qkv", r));
      back.push_back(putAs(options.dtype, out, "out", r));
      result.push_back(putAs(options.dtype, std::vector<float>(given[r].count(), std::nanf("")), "y", r));
    }
    for (uint32_t r = 0; r < ranks; ++r) {
      ASSERT_OK(rank(r).stream().beginCapture());
      ASSERT_OK(
          layer->enqueue(rank(r), rank(r).stream(), given[r], {.qkv = weights[r], .out = back[r]}, result[r], tokens));
      auto graph = rank(r).stream().endCapture();
      ASSERT_OK(graph);
      graphs.push_back(std::move(graph).value());
    }
    for (int turn = 0; turn < 2; ++turn)
      for (uint32_t r = 0; r < ranks; ++r)
        ASSERT_OK(rank(r).stream().launch(graphs[r]));
    ASSERT_OK(world().synchronize());
    for (uint32_t r = 0; r < ranks; ++r) {
      const std::vector<float> actual = getFloats(result[r]);
      const ops::Comparison comparison = ops::compare(actual, own(expected, r), {1e-2});
      EXPECT_TRUE(comparison.passed()) << tokens << " tokens, rank " << r << ": element " << comparison.worstIndex
                                       << " is " << actual[comparison.worstIndex];
    }
  }
}

TEST_F(SequenceParallelAttentionTest, RefusesWhatItCannotDo) {
  const uint32_t ranks = ranksOnTarget(2);
  start(ranks);
  ops::SequenceParallelAttentionOptions options = smallLayer();
  if (ranks == 2) {
    options.kvHeads = 1;
    EXPECT_THAT(statusOf(SequenceParallelAttention::create(world(), sharedJit(), options)).message(),
                HasSubstr("8 heads and 1 of K and V over 2 ranks"));
    options = smallLayer();
  }
  auto layer = SequenceParallelAttention::create(world(), sharedJit(), options);
  ASSERT_OK(layer);
  Buffer data = zeros(options.dtype, 1 << 15);
  ASSERT_OK(rank().stream().beginCapture());
  EXPECT_THAT(layer->enqueue(rank(), rank().stream(), data, {.qkv = data, .out = data}, data, 8).message(),
              HasSubstr("was not prepared"));
  EXPECT_OK(rank().stream().endCapture());
}

} // namespace
} // namespace ditron::e2e
