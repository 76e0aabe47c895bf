//===- tensor_parallel_attention_test.cpp - The layer of attention whose heads are dealt out to the ranks --------------------===//
//
// Prefill of sequences of different lengths, one behind keys that are there, then steps of decoding that are captured once and replayed, some without
// one of the sequences, against plain loops over whole sequences: caches with pages and without, grouped heads, ranks that share a head of
// K and V, norm, rotation, bias, tokens dealt out and replicated; what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "attention/AttentionLayerModel.h"
#include "ditron/ops/layers/TensorParallelAttention.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::AttentionTokens;
using ops::RowShards;
using ops::TensorParallelAttention;
using testing::HasSubstr;
using Options = ops::TensorParallelAttentionOptions;

constexpr int64_t sequences = 3;

struct LayerCase {
  const char *name;
  uint32_t ranks;
  int64_t heads, kvHeads;
  AttentionTokens tokens = AttentionTokens::Replicated;
  int64_t pageSize = 0;
  ops::RotaryEmbedding rotary = {};
  std::optional<double> normEpsilon = std::nullopt;
  bool bias = false;
  std::optional<double> scale = std::nullopt;
  ops::Schedule schedule = ops::Schedule::Overlapped;
  DataType dtype = DataType::F16;
  int64_t scaled = 1; ///< By how much sequences are longer than in other cases; then heads are wider, too.
};
void PrintTo(const LayerCase &p, std::ostream *stream) { *stream << p.name; }

Options optionsOf(const LayerCase &p) {
  Options options;
  options.dtype = p.dtype;
  options.hidden = 48;
  options.heads = p.heads;
  options.kvHeads = p.kvHeads;
  options.headDim = p.scaled > 1 ? 64 : 16;
  options.scale = p.scale;
  options.rotary = p.rotary;
  options.normEpsilon = p.normEpsilon;
  options.qkvBias = p.bias;
  options.tokens = p.tokens;
  options.maxTokens = 24 * p.scaled;
  options.maxBatch = sequences;
  options.maxKeys = 40 * p.scaled;
  options.pageSize = p.pageSize;
  options.pages = p.pageSize ? 10 : 0;
  options.schedule = p.schedule;
  return options;
}

class TensorParallelAttentionTest : public KernelTest {
protected:
  /// A rank's memory.
  struct PerRank {
    Buffer qkv, out, bias, qNorm, kNorm, rotary, keys, values, lengths, offsets, table, x, y;
  };

  void makeLayer(const AttentionLayerModel &model, const Options &o) {
    const uint32_t ranks = world().numRanks();
    std::vector<ops::TensorParallelAttentionWeights> weights(ranks);
    for (uint32_t r = 0; r < ranks; ++r) {
      std::vector<float> qkv, bias, out;
      for (int64_t row : TensorParallelAttention::qkvRows(o, ranks, r)) {
        qkv.insert(qkv.end(), model.qkv.begin() + row * o.hidden, model.qkv.begin() + (row + 1) * o.hidden);
        bias.push_back(model.bias[row]);
      }
      const int64_t part = model.width() / ranks;
      for (int64_t row = 0; row < o.hidden; ++row) {
        const auto first = model.out.begin() + row * model.width() + r * part;
        out.insert(out.end(), first, first + part);
      }
      const std::vector<int32_t> pages = {7, 2, 9, 0, 4, 8, 1, 6, 3};
      memory.push_back({.qkv = putAs(o.dtype, qkv, "qkv", r),
                        .out = putAs(o.dtype, out, "out", r),
                        .bias = putAs(o.dtype, bias, "bias", r),
                        .qNorm = putAs(o.dtype, model.qNorm, "q_norm", r),
                        .kNorm = putAs(o.dtype, model.kNorm, "k_norm", r),
                        .lengths = zeros(DataType::I32, sequences, "lengths", r),
                        .offsets = zeros(DataType::I32, sequences + 1, "offsets", r),
                        .table = put(pages, "table", r)});
      PerRank &own = memory.back();
      if (o.rotary.dim)
        own.rotary = putAs(DataType::F32, model.angles, "rotary", r);
      weights[r] = {.qkv = own.qkv, .out = own.out};
      if (o.qkvBias)
        weights[r].qkvBias = own.bias;
      if (o.normEpsilon)
        weights[r].qNorm = own.qNorm, weights[r].kNorm = own.kNorm;
      if (o.rotary.dim)
        weights[r].rotary = own.rotary;
    }
    auto made = TensorParallelAttention::create(world(), sharedJit(), o, weights);
    ASSERT_OK(made);
    layer.emplace(std::move(made).value());
    for (uint32_t r = 0; r < ranks; ++r) {
      // What no key is yet must not count.
      const std::vector<float> filled(layer->cacheElements(), 9);
      memory[r].keys = putAs(o.dtype, filled, "keys", r);
      memory[r].values = putAs(o.dtype, filled, "values", r);
      memory[r].x = zeros(o.dtype, o.maxTokens * o.hidden, "x", r);
      memory[r].y = zeros(o.dtype, o.maxTokens * o.hidden, "y", r);
    }
  }
  ops::TensorParallelAttentionOperands operandsOf(uint32_t r, int64_t tokens) {
    const PerRank &own = memory[r];
    const bool isEmpty =
        layer->options().tokens == AttentionTokens::Dealt && RowShards(tokens, world().numRanks()).rowsOf(r) == 0;
    return {.x = isEmpty ? Pointer() : own.x,
            .y = isEmpty ? Pointer() : own.y,
            .keys = own.keys,
            .values = own.values,
            .lengths = own.lengths,
            .offsets = own.offsets,
            .table = own.table};
  }
  /// The rows of a rank.
  template <typename T> std::vector<T> ownRows(const std::vector<T> &all, int64_t tokens, uint32_t r) {
    const Options &o = layer->options();
    if (o.tokens == AttentionTokens::Replicated)
      return all;
    const RowShards shards(tokens, world().numRanks());
    const auto first = all.begin() + shards.firstRowOf(r) * o.hidden;
    return {first, first + shards.rowsOf(r) * o.hidden};
  }
  void give(const std::vector<float> &x, const std::vector<int32_t> &lengths, const std::vector<int32_t> &offsets,
            int64_t tokens) {
    const Options &o = layer->options();
    for (uint32_t r = 0; r < world().numRanks(); ++r) {
      std::vector<float> own = ownRows(x, tokens, r);
      own.resize(o.maxTokens * o.hidden);
      ASSERT_OK(memory[r].x.uploadFloats(own));
      ASSERT_OK(memory[r].y.uploadFloats(std::vector<float>(own.size(), std::nanf(""))));
      ASSERT_OK(memory[r].lengths.upload(lengths.data(), lengths.size() * sizeof(int32_t)));
      ASSERT_OK(memory[r].offsets.upload(offsets.data(), offsets.size() * sizeof(int32_t)));
    }
  }
  /// y of the first `rows` of so many tokens, on every rank.
  void expectRows(const std::vector<double> &expected, int64_t tokens, const std::string &what) {
    const Options &o = layer->options();
    std::vector<double> all = expected;
    all.resize(tokens * o.hidden, std::nan("")); // of rows that are any numbers
    for (uint32_t r = 0; r < world().numRanks(); ++r) {
      std::vector<double> wanted = ownRows(all, tokens, r);
      while (!wanted.empty() && std::isnan(wanted.back()))
        wanted.pop_back();
      if (wanted.empty())
        continue;
      std::vector<float> found = getFloats(memory[r].y);
      found.resize(wanted.size());
      const ops::Comparison comparison = ops::compare(found, wanted, {o.dtype == DataType::BF16 ? 4e-2 : 1e-2});
      EXPECT_TRUE(comparison.passed()) << what << ", rank " << r << ": element " << comparison.worstIndex << " is "
                                       << found[comparison.worstIndex] << ", expected "
                                       << wanted[comparison.worstIndex];
    }
  }

  std::vector<PerRank> memory;
  std::optional<TensorParallelAttention> layer;
};

class TensorParallelAttentionCases : public TensorParallelAttentionTest,
                                     public testing::WithParamInterface<LayerCase> {};

TEST_P(TensorParallelAttentionCases, PrefillThenReplayedSteps) {
  const LayerCase &p = GetParam();
  REQUIRE_RANKS(p.ranks);
  start(p.ranks, seeded(p.ranks, p.ranks - 1));
  const Options options = optionsOf(p);
  AttentionLayerModel model = {.dtype = p.dtype, .hidden = options.hidden, .heads = p.heads, .kvHeads = p.kvHeads};
  model.headDim = options.headDim;
  model.scale = p.scale;
  model.rotary = p.rotary;
  model.normEpsilon = p.normEpsilon;
  model.hasBias = p.bias;
  model.draw(options.maxKeys);
  makeLayer(model, options);
  if (HasFatalFailure())
    return;
  const int64_t hidden = model.hidden;
  std::vector<std::vector<float>> x;
  std::vector<std::vector<double>> y;
  for (int64_t s = 0; s < sequences; ++s) {
    x.push_back(randomFloats((24 * p.scaled + 4) * hidden, 20 + s, -1, 1, p.dtype));
    y.push_back(model(x[s]));
  }
  std::vector<int32_t> lengths(sequences, 0);
  /// Puts the next so many tokens of each sequence together.
  const auto next = [&](const std::vector<int32_t> &counts, std::vector<float> &given, std::vector<double> &expected,
                        std::vector<int32_t> &offsets) {
    offsets = {0};
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t first = lengths[s] * hidden, last = first + counts[s] * hidden;
      given.insert(given.end(), x[s].begin() + first, x[s].begin() + last);
      expected.insert(expected.end(), y[s].begin() + first, y[s].begin() + last);
      lengths[s] += counts[s];
      offsets.push_back(offsets.back() + counts[s]);
    }
  };
  for (auto [counts, tokens, longest] : {std::tuple(std::vector<int32_t>{5, 1, 12}, int64_t{20}, int64_t{12}),
                                         std::tuple(std::vector<int32_t>{4, 3, 0}, int64_t{7}, int64_t{5})}) {
    for (int32_t &count : counts)
      count *= static_cast<int32_t>(p.scaled);
    tokens *= p.scaled;
    longest *= p.scaled;
    std::vector<float> given;
    std::vector<double> expected;
    std::vector<int32_t> offsets;
    next(counts, given, expected, offsets);
    given.resize(tokens * hidden, 3); // tokens that are nobody's
    give(given, lengths, offsets, tokens);
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK(layer->preparePrefill(rank(r), tokens, sequences, longest));
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK(layer->prefill(rank(r), rank(r).stream(), operandsOf(r, tokens), tokens, sequences, longest));
    ASSERT_OK(world().synchronize());
    expectRows(expected, tokens, fmt::format("prefill of {} tokens", tokens));
  }
  for (uint32_t r = 0; r < p.ranks; ++r)
    ASSERT_OK(layer->prepareDecode(rank(r), sequences));
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < p.ranks; ++r) {
    ASSERT_OK(rank(r).stream().beginCapture());
    ASSERT_OK(layer->decode(rank(r), rank(r).stream(), operandsOf(r, sequences), sequences));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(graph).value());
  }
  for (int step = 0; step < 4; ++step) {
    const bool isOneAbsent = step == 1;
    std::vector<float> given;
    std::vector<double> expected;
    std::vector<int32_t> offsets, seen;
    if (isOneAbsent) { // its token must leave its keys as they are
      std::vector<int32_t> kept = lengths;
      next({1, 1, 1}, given, expected, offsets);
      lengths[1] = kept[1];
      std::fill_n(expected.begin() + hidden, hidden, 0.0);
      seen = lengths;
      seen[1] = 0;
    } else {
      next({1, 1, 1}, given, expected, offsets);
      seen = lengths;
    }
    give(given, seen, offsets, sequences);
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK(rank(r).stream().launch(graphs[r]));
    ASSERT_OK(world().synchronize());
    expectRows(expected, sequences, fmt::format("step {}", step));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, TensorParallelAttentionCases,
    testing::Values(
        LayerCase{"one_rank", 1, 4, 2, AttentionTokens::Dealt, 16, {.dim = 16}},
        LayerCase{"two_ranks_with_everything",
                  2,
                  8,
                  4,
                  AttentionTokens::Replicated,
                  16,
                  {.dim = 16},
                  1e-5,
                  true,
                  0.5,
                  ops::Schedule::Overlapped,
                  DataType::BF16},
        LayerCase{"two_ranks_bias_dealt", 2, 4, 2, AttentionTokens::Dealt, 16, {}, 1e-5, true},
        // On Hopper by descriptors.
        LayerCase{"two_ranks_long",
                  2,
                  4,
                  2,
                  AttentionTokens::Replicated,
                  128,
                  {.dim = 64},
                  std::nullopt,
                  false,
                  std::nullopt,
                  ops::Schedule::Overlapped,
                  DataType::F16,
                  8},
        LayerCase{
            "three_ranks_some_columns_turned", 3, 6, 3, AttentionTokens::Dealt, 0, {.dim = 8, .interleaved = true}},
        LayerCase{"four_ranks_share_heads", 4, 8, 2, AttentionTokens::Replicated, 16, {.dim = 16}},
        LayerCase{"four_ranks_unfused",
                  4,
                  4,
                  1,
                  AttentionTokens::Dealt,
                  0,
                  {},
                  std::nullopt,
                  false,
                  std::nullopt,
                  ops::Schedule::Unfused}),
    [](const auto &info) { return info.param.name; });

TEST_F(TensorParallelAttentionTest, QkvRowsOfRanksThatShareHeads) {
  Options options;
  options.heads = 8, options.kvHeads = 2, options.headDim = 2;
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(TensorParallelAttention::qkvRows(options, 4, 1), (Rows{4, 5, 6, 7, 16, 17, 20, 21}));
  EXPECT_EQ(TensorParallelAttention::qkvRows(options, 4, 2), (Rows{8, 9, 10, 11, 18, 19, 22, 23}));
  EXPECT_EQ(TensorParallelAttention::qkvRows(options, 2, 1), (Rows{8, 9, 10, 11, 12, 13, 14, 15, 18, 19, 22, 23}));
}

TEST_F(TensorParallelAttentionTest, RefusesWhatItCannotDo) {
  const uint32_t ranks = ranksOnTarget(2);
  start(ranks);
  const Options good = optionsOf({"good", ranks, 4, 2});
  Buffer data = zeros(good.dtype, 1 << 14), words = zeros(DataType::I32, 16);
  const std::vector<ops::TensorParallelAttentionWeights> weights(ranks, {.qkv = data, .out = data});
  const auto message = [&](auto change) {
    Options options = good;
    auto given = weights;
    change(options, given);
    return statusOf(TensorParallelAttention::create(world(), sharedJit(), options, given)).message();
  };
  if (ranks == 2) {
    EXPECT_THAT(message([](Options &o, auto &) { o.heads = o.kvHeads = 3; }), HasSubstr("3 heads over 2 ranks"));
    EXPECT_THAT(message([](Options &o, auto &) { o.heads = 6, o.kvHeads = 3; }),
                HasSubstr("3 heads of K and V over 2 ranks"));
  }
  EXPECT_THAT(message([](Options &o, auto &) { o.headDim = 96; }), HasSubstr("heads of 96 elements"));
  EXPECT_THAT(message([](Options &o, auto &) { o.rotary.dim = 5; }),
              HasSubstr("5 columns of a head are turned by its position; even numbers up to 16"));
  EXPECT_THAT(message([](Options &o, auto &) { o.pageSize = 24; }), HasSubstr("0 pages of 24 keys"));
  EXPECT_THAT(message([](Options &o, auto &) { o.maxKeys = 0; }),
              HasSubstr("maxKeys is 0; 1 to 2147483647 are accepted"));
  EXPECT_THAT(message([](Options &o, auto &) { o.dtype = DataType::F32; }), HasSubstr("bf16 and fp16 are accepted"));
  EXPECT_THAT(message([](Options &o, auto &) { o.normEpsilon = -1e-5; }),
              HasSubstr("the epsilon -1e-05 of a norm; finite ones from 0 on"));
  EXPECT_THAT(message([](Options &o, auto &) { o.normEpsilon = std::nan(""); }), HasSubstr("the epsilon nan"));
  EXPECT_THAT(message([](Options &o, auto &) { o.normEpsilon = 1e-5; }), HasSubstr("operand qNorm is a null pointer"));
  EXPECT_THAT(message([&](Options &, auto &w) { w[0].qkvBias = data; }),
              HasSubstr("weight qkvBias is given; the options have none"));
  EXPECT_THAT(message([](Options &, auto &w) { w.pop_back(); }), HasSubstr("weights of"));
  auto made = TensorParallelAttention::create(world(), sharedJit(), good, weights);
  ASSERT_OK(made);
  const ops::TensorParallelAttentionOperands operands = {
      .x = data, .y = data, .keys = data, .values = data, .lengths = words};
  const auto call = [&](int64_t tokens, int64_t batch, int64_t longest) {
    return made->prefill(rank(), rank().stream(), operands, tokens, batch, longest).message();
  };
  EXPECT_THAT(call(25, 1, 1), HasSubstr("25 tokens; 1 to 24 (maxTokens)"));
  EXPECT_THAT(call(8, 4, 1), HasSubstr("4 sequences; 1 to 3 (maxBatch)"));
  EXPECT_THAT(call(8, 1, 9), HasSubstr("9 tokens of the longest sequence; 1 to 8"));
  EXPECT_THAT(call(8, 1, 8), HasSubstr("operand offsets is a null pointer"));
  ASSERT_OK(rank().stream().beginCapture());
  EXPECT_THAT(made->decode(rank(), rank().stream(), operands, 2).message(), HasSubstr("was not prepared"));
  EXPECT_OK(rank().stream().endCapture());
}

} // namespace
} // namespace ditron::e2e
