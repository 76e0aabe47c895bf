//===- sequence_parallel_attention_test.cpp - The layer of attention over tokens of several ranks ----------------------------===//
//
// Projections, attention by heads and both exchanges against plain loops: grouped heads, several sequences, tokens that nothing divides; captured and
// replayed with a slow rank; normed and rotated heads; steps of decoding with keys of all ranks; what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "attention/AttentionLayerModel.h"
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

AttentionLayerModel modelOf(const ops::SequenceParallelAttentionOptions &o, int64_t positions) {
  AttentionLayerModel model = {.dtype = o.dtype, .hidden = o.hidden, .heads = o.heads, .kvHeads = o.kvHeads};
  model.headDim = o.headDim;
  model.causal = o.causal;
  model.rotary = o.rotary;
  model.normEpsilon = o.normEpsilon;
  model.draw(positions);
  return model;
}

/// [batch, tokens, hidden]: the first tokens of each sequence.
template <typename T>
std::vector<T> firstTokens(const std::vector<std::vector<T>> &sequences, int64_t tokens, int64_t hidden) {
  std::vector<T> all;
  for (const std::vector<T> &each : sequences)
    all.insert(all.end(), each.begin(), each.begin() + tokens * hidden);
  return all;
}

/// A rank's memory.
struct LayerMemory {
  Buffer x, y, qkv, out, qNorm, kNorm, rotary;

  SequenceParallelAttention::Weights weights() const {
    SequenceParallelAttention::Weights given = {.qkv = qkv, .out = out};
    if (qNorm.isValid())
      given.qNorm = qNorm, given.kNorm = kNorm;
    if (rotary.isValid())
      given.rotary = rotary;
    return given;
  }
};

class SequenceParallelAttentionTest : public KernelTest {
protected:
  uint32_t startRanks() {
    const uint32_t ranks = ranksOnTarget(4) == 3 ? 2 : ranksOnTarget(4);
    start(ranks, seeded(2, ranks - 1));
    return ranks;
  }
  /// With x of the largest number of tokens.
  LayerMemory memoryOf(const ops::SequenceParallelAttentionOptions &o, const AttentionLayerModel &model, uint32_t r) {
    const uint32_t ranks = world().numRanks();
    std::vector<float> arranged;
    for (int64_t row : SequenceParallelAttention::qkvRows(o, ranks))
      arranged.insert(arranged.end(), model.qkv.begin() + row * o.hidden, model.qkv.begin() + (row + 1) * o.hidden);
    const int64_t most = o.batch * RowShards(o.maxTokens, ranks).rowsPerRank * o.hidden;
    LayerMemory made = {.x = zeros(o.dtype, most, "x", r),
                        .y = zeros(o.dtype, most, "y", r),
                        .qkv = putAs(o.dtype, arranged, "qkv", r),
                        .out = putAs(o.dtype, model.out, "out", r)};
    if (o.normEpsilon) {
      made.qNorm = putAs(o.dtype, model.qNorm, "q_norm", r);
      made.kNorm = putAs(o.dtype, model.kNorm, "k_norm", r);
    }
    if (o.rotary.dim)
      made.rotary = putAs(DataType::F32, model.angles, "rotary", r);
    return made;
  }
  /// Of [batch, tokens, hidden] the rank's rows.
  template <typename T>
  std::vector<T> own(const ops::SequenceParallelAttentionOptions &o, const std::vector<T> &all, int64_t tokens,
                     uint32_t r) {
    const RowShards shards(tokens, world().numRanks());
    std::vector<T> part;
    for (int64_t s = 0; s < o.batch; ++s) {
      const auto first = all.begin() + (s * tokens + shards.firstRowOf(r)) * o.hidden;
      part.insert(part.end(), first, first + shards.rowsOf(r) * o.hidden);
    }
    return part;
  }
  void give(LayerMemory &memory, std::vector<float> x) {
    x.resize(memory.x.count());
    ASSERT_OK(memory.x.uploadFloats(x));
    ASSERT_OK(memory.y.uploadFloats(std::vector<float>(memory.y.count(), std::nanf(""))));
  }
  void expectRows(const LayerMemory &memory, const std::vector<double> &expected, const std::string &what) {
    std::vector<float> actual = getFloats(memory.y);
    actual.resize(expected.size());
    if (expected.empty())
      return;
    const ops::Comparison comparison = ops::compare(actual, expected, {1e-2});
    EXPECT_TRUE(comparison.passed()) << what << ": element " << comparison.worstIndex << " is "
                                     << actual[comparison.worstIndex] << ", expected "
                                     << expected[comparison.worstIndex];
  }
  template <typename Enqueue> runtime::Graph captured(uint32_t r, const Enqueue &enqueue) {
    EXPECT_OK(rank(r).stream().beginCapture());
    EXPECT_OK(enqueue(rank(r).stream()));
    auto graph = rank(r).stream().endCapture();
    EXPECT_OK(graph);
    return std::move(graph).value();
  }
};

TEST_F(SequenceParallelAttentionTest, AgainstLoops) {
  const uint32_t ranks = startRanks();
  for (bool changesHeads : {false, true}) {
    ops::SequenceParallelAttentionOptions options = smallLayer();
    if (changesHeads) {
      options.rotary = {.dim = 8};
      options.normEpsilon = 1e-5;
    }
    auto layer = SequenceParallelAttention::create(world(), sharedJit(), options);
    ASSERT_OK(layer);
    const AttentionLayerModel model = modelOf(options, options.maxTokens);
    std::vector<std::vector<float>> x;
    for (int64_t s = 0; s < options.batch; ++s)
      x.push_back(randomFloats(50 * options.hidden, s, -1, 1, options.dtype));
    std::vector<std::vector<double>> y;
    for (const std::vector<float> &each : x)
      y.push_back(model(each)); // causal: of fewer tokens the same
    std::vector<LayerMemory> memory;
    for (uint32_t r = 0; r < ranks; ++r)
      memory.push_back(memoryOf(options, model, r));
    for (int64_t tokens : {50, 37, 2}) {
      for (uint32_t r = 0; r < ranks; ++r) {
        ASSERT_OK(layer->prepare(rank(r), tokens));
        give(memory[r], own(options, firstTokens(x, tokens, options.hidden), tokens, r));
      }
      std::vector<runtime::Graph> graphs;
      for (uint32_t r = 0; r < ranks; ++r)
        graphs.push_back(captured(r, [&](runtime::Stream &stream) {
          const bool isEmpty = RowShards(tokens, ranks).rowsOf(r) == 0;
          return layer->enqueue(rank(r), stream, isEmpty ? Pointer() : memory[r].x, memory[r].weights(),
                                isEmpty ? Pointer() : memory[r].y, tokens);
        }));
      for (int turn = 0; turn < 2; ++turn)
        for (uint32_t r = 0; r < ranks; ++r)
          ASSERT_OK(rank(r).stream().launch(graphs[r]));
      ASSERT_OK(world().synchronize());
      for (uint32_t r = 0; r < ranks; ++r)
        expectRows(memory[r], own(options, firstTokens(y, tokens, options.hidden), tokens, r),
                   fmt::format("{} tokens, rank {}, {}", tokens, r, changesHeads ? "normed and rotated" : "plain"));
    }
  }
}

/// A prefill, and then steps whose keys are dealt to the ranks by turns, captured once.
TEST_F(SequenceParallelAttentionTest, DecodesWithKeysOfAllRanks) {
  const uint32_t ranks = startRanks();
  for (int64_t pageSize : {0, 16}) {
    ops::SequenceParallelAttentionOptions options = smallLayer();
    options.rotary = {.dim = 16};
    options.normEpsilon = 1e-5;
    constexpr int64_t tokens = 37, steps = 5;
    options.cache = ops::SpreadKeyCache{.maxBatch = 3, .maxKeys = 48, .pageSize = pageSize, .pages = pageSize ? 7 : 0};
    auto layer = SequenceParallelAttention::create(world(), sharedJit(), options);
    ASSERT_OK(layer);
    const AttentionLayerModel model = modelOf(options, tokens + steps);
    std::vector<std::vector<float>> x;
    std::vector<std::vector<double>> y;
    for (int64_t s = 0; s < options.batch; ++s) {
      x.push_back(randomFloats((tokens + steps) * options.hidden, s, -1, 1, options.dtype));
      y.push_back(model(x[s]));
    }
    std::vector<LayerMemory> memory;
    std::vector<SequenceParallelAttention::Cache> caches;
    std::vector<Buffer> keys, values, tables, lengths, places, positions;
    const RowShards shards(tokens, ranks);
    std::vector<std::vector<int32_t>> counts(ranks);
    for (uint32_t r = 0; r < ranks; ++r) {
      const std::vector<float> filled(layer->cacheElements(), 9);
      memory.push_back(memoryOf(options, model, r));
      keys.push_back(putAs(options.dtype, filled, "keys", r));
      values.push_back(putAs(options.dtype, filled, "values", r));
      tables.push_back(put<int32_t>({6, 2, 4, 1, 0, 5}, "table", r));
      lengths.push_back(zeros(DataType::I32, 2, "lengths", r));
      places.push_back(zeros(DataType::I32, 2, "places", r));
      positions.push_back(zeros(DataType::I32, 2, "positions", r));
      caches.push_back({.keys = keys[r], .values = values[r], .table = tables[r]});
      counts[r].assign(options.batch, static_cast<int32_t>(shards.rowsOf(r)));
      give(memory[r], own(options, firstTokens(x, tokens, options.hidden), tokens, r));
    }
    for (uint32_t r = 0; r < ranks; ++r) {
      ASSERT_OK(layer->prepare(rank(r), tokens));
      ASSERT_OK(layer->prepareDecode(rank(r), options.batch));
    }
    for (uint32_t r = 0; r < ranks; ++r)
      ASSERT_OK(
          layer->enqueue(rank(r), rank(r).stream(), memory[r].x, memory[r].weights(), memory[r].y, tokens, caches[r]));
    ASSERT_OK(world().synchronize());
    for (uint32_t r = 0; r < ranks; ++r)
      expectRows(memory[r], own(options, firstTokens(y, tokens, options.hidden), tokens, r), "prefill");
    std::vector<runtime::Graph> graphs;
    for (uint32_t r = 0; r < ranks; ++r)
      graphs.push_back(captured(r, [&](runtime::Stream &stream) {
        return layer->decode(rank(r), stream, memory[r].weights(),
                             {.x = memory[r].x,
                              .y = memory[r].y,
                              .cache = caches[r],
                              .lengths = lengths[r],
                              .places = places[r],
                              .positions = positions[r]},
                             options.batch);
      }));
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<float> given;
      std::vector<double> expected;
      const int64_t token = (tokens + step) * options.hidden;
      for (int64_t s = 0; s < options.batch; ++s) {
        given.insert(given.end(), x[s].begin() + token, x[s].begin() + token + options.hidden);
        expected.insert(expected.end(), y[s].begin() + token, y[s].begin() + token + options.hidden);
      }
      for (uint32_t r = 0; r < ranks; ++r) {
        std::vector<int32_t> place(options.batch, -1);
        for (int64_t s = 0; s < options.batch; ++s)
          if ((step + s) % ranks == r)
            place[s] = counts[r][s]++;
        const std::vector<int32_t> position(options.batch, static_cast<int32_t>(tokens + step));
        ASSERT_OK(places[r].upload(place.data(), place.size() * sizeof(int32_t)));
        ASSERT_OK(positions[r].upload(position.data(), position.size() * sizeof(int32_t)));
        ASSERT_OK(lengths[r].upload(counts[r].data(), counts[r].size() * sizeof(int32_t)));
        give(memory[r], given);
      }
      for (uint32_t r = 0; r < ranks; ++r)
        ASSERT_OK(rank(r).stream().launch(graphs[r]));
      ASSERT_OK(world().synchronize());
      const std::vector<float> first = getFloats(memory[0].y);
      for (uint32_t r = 0; r < ranks; ++r) {
        expectRows(memory[r], expected, fmt::format("step {}, rank {}, pages of {}", step, r, pageSize));
        expectSame(
            std::vector<float>(first.begin(), first.begin() + expected.size()),
            [&] {
              std::vector<float> found = getFloats(memory[r].y);
              found.resize(expected.size());
              return found;
            }(),
            "all ranks");
      }
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
  EXPECT_THAT(layer->prepareDecode(rank(), 1).message(), HasSubstr("the layer was made without a cache"));
  options.rotary.dim = 32;
  EXPECT_THAT(statusOf(SequenceParallelAttention::create(world(), sharedJit(), options)).message(),
              HasSubstr("even numbers up to 16"));
  options.rotary.dim = 0;
  options.normEpsilon = 1e-5;
  options.cache = ops::SpreadKeyCache{};
  EXPECT_THAT(statusOf(SequenceParallelAttention::create(world(), sharedJit(), options)).message(),
              HasSubstr("maxKeys is 0; 1 to 2147483647 are accepted"));
  options.cache->maxKeys = 4;
  auto other = SequenceParallelAttention::create(world(), sharedJit(), options);
  ASSERT_OK(other);
  EXPECT_THAT(other->enqueue(rank(), rank().stream(), data, {.qkv = data, .out = data}, data, 8).message(),
              HasSubstr("operand qNorm is a null pointer"));
  const SequenceParallelAttention::Weights weights = {.qkv = data, .out = data, .qNorm = data, .kNorm = data};
  const SequenceParallelAttention::Cache cache = {.keys = data, .values = data};
  EXPECT_THAT(other->enqueue(rank(), rank().stream(), data, weights, data, 8, cache).message(),
              HasSubstr("of 2 sequences for a rank's cache; up to 4 (maxKeys) of 1 (maxBatch)"));
  EXPECT_THAT(other->decode(rank(), rank().stream(), weights, {.x = data, .y = data, .cache = cache}, 2).message(),
              HasSubstr("2 sequences; 1 to 1 (maxBatch)"));
  EXPECT_THAT(other->decode(rank(), rank().stream(), weights, {.x = data, .y = data, .cache = cache}, 1).message(),
              HasSubstr("operand lengths is a null pointer"));
}

} // namespace
} // namespace ditron::e2e
