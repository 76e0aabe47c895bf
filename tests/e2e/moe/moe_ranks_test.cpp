//===- moe_ranks_test.cpp - Mixtures of experts over the ranks against plain references --------------------------------------===//
//
// AllGatherMoe and MoeReduction: any number of ranks, tokens and experts; routing that changes with every call and every replay, all tokens
// to one expert, none to most, slots without an expert; ranks with fewer tokens than others, or none; one slow rank, other interleavings.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "moe/MoeReference.h"
#include "ditron/jit/Jit.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/moe/AllGatherMoe.h"
#include "ditron/ops/moe/MoeReduction.h"
#include "ditron/runtime/Timeline.h"

#include <fmt/format.h>
#include <random>

namespace ditron::e2e {
namespace {

using ops::Activation;
using ops::AllGatherMoe;
using ops::AllGatherMoeOperands;
using ops::AllGatherMoeOptions;
using ops::MatrixOrder;
using ops::MoeReduction;
using ops::MoeReductionOptions;
using ops::MoeResult;
using testing::HasSubstr;

/// One rank's part of a call.
struct RankTokens {
  int64_t count = 0;
  std::vector<float> tokens, weights, tokenScales;
  std::vector<int32_t> ids;
};

class MoeRanks : public KernelTest {};

/// An AllGatherMoe, its operands on all ranks, and what must come out.
class GatherCalls {
public:
  GatherCalls(World &world, const AllGatherMoeOptions &options, int64_t tokensPerRank)
      : world(world), options(options), tokensPerRank(tokensPerRank), scales(ops::ceilDivide(options.hidden, 128)) {}

  void create() {
    auto made = AllGatherMoe::create(world, sharedJit(), options);
    ASSERT_OK(made);
    op = std::make_unique<AllGatherMoe>(std::move(made).value());
    const uint32_t ranks = world.numRanks();
    const int64_t weightCount = int64_t(options.experts) * options.columns * options.hidden;
    operands.resize(ranks);
    for (uint32_t id = 0; id < ranks; ++id) {
      const auto allocate = [&](DataType type, int64_t count) {
        buffers.push_back(*world.rank(id).allocate(type, std::max<int64_t>(count, 1), "operand"));
        return buffers.back().pointer();
      };
      weights.push_back(ops::randomValues(options.dtype, weightCount, 100 + id));
      operands[id].tokens = allocate(options.dtype, tokensPerRank * options.hidden);
      operands[id].ids = allocate(DataType::I32, tokensPerRank * options.topK);
      operands[id].slotWeights = allocate(DataType::F32, tokensPerRank * options.topK);
      operands[id].weights = allocate(options.dtype, weightCount);
      EXPECT_OK(buffers.back().uploadFloats(weights.back()));
      operands[id].rows = allocate(options.resultType, op->mostRows(tokensPerRank) * resultColumns());
      results.push_back(std::move(buffers.back()));
      buffers.pop_back();
      if (options.blockScales) {
        operands[id].tokenScales = allocate(DataType::F32, tokensPerRank * scales);
        const int64_t count = options.experts * ops::ceilDivide(options.columns, 128) * scales;
        weightScales.push_back(ops::randomValues(DataType::F32, count, 200 + id));
        operands[id].weightScales = allocate(DataType::F32, count);
        EXPECT_OK(buffers.back().uploadFloats(weightScales.back()));
      }
    }
  }

  int64_t resultColumns() const {
    return options.activation == Activation::SwiGlu ? options.columns / 2 : options.columns;
  }

  /// New data on all ranks: tokens, routing, and how many tokens each has.
  void draw(uint64_t seed, Skew skew, const std::vector<int64_t> &counts) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    given.clear();
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
      RankTokens own;
      own.count = counts[id];
      own.tokens = ops::randomValues(options.dtype, own.count * options.hidden, seed * 16 + id);
      own.weights = ops::randomValues(DataType::F32, own.count * options.topK, seed * 16 + id + 8);
      own.ids = chooseIds(own.count, options.topK, options.experts, skew, random);
      if (options.blockScales)
        own.tokenScales = ops::randomValues(DataType::F32, own.count * scales, seed * 16 + id + 12);
      given.push_back(std::move(own));
      RankTokens &data = given.back();
      runtime::Device &device = *world.rank(id).device();
      const auto upload = [&](Pointer to, DataType type, const std::vector<float> &from) {
        std::vector<std::byte> bytes(from.size() * sizeOf(type));
        for (size_t i = 0; i < from.size(); ++i)
          storeElement(type, &bytes[i * sizeOf(type)], from[i]);
        if (!bytes.empty())
          EXPECT_OK(device.upload(to.address, bytes.data(), bytes.size()));
      };
      upload(operands[id].tokens, options.dtype, data.tokens);
      upload(operands[id].slotWeights, DataType::F32, data.weights);
      if (options.blockScales)
        upload(operands[id].tokenScales, DataType::F32, data.tokenScales);
      if (!data.ids.empty())
        EXPECT_OK(device.upload(operands[id].ids.address, data.ids.data(), data.ids.size() * sizeof(int32_t)));
      // An element that is not written, or written where no row is, shows.
      EXPECT_OK(
          results[id].uploadFloats(std::vector<float>(results[id].count(), std::numeric_limits<float>::quiet_NaN())));
    }
  }

  /// The choices of all ranks, -1 for tokens that are not there.
  std::vector<int32_t> allIds() const {
    std::vector<int32_t> ids;
    for (const RankTokens &own : given) {
      ids.insert(ids.end(), own.ids.begin(), own.ids.end());
      ids.insert(ids.end(), (tokensPerRank - own.count) * options.topK, -1);
    }
    return ids;
  }

  Status prepare(uint32_t id, std::optional<int64_t> own = {}) {
    return op->prepare(world.rank(id), tokensPerRank, own);
  }
  Status enqueue(uint32_t id, std::optional<int64_t> own = {}) {
    return op->enqueue(world.rank(id), world.rank(id).stream(), operands[id], tokensPerRank, own);
  }

  void check(const std::string &what) {
    const std::vector<int32_t> ids = allIds();
    const int64_t k = options.hidden, n = options.columns;
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
      const Rows rows(ids, options.experts, id * tokensPerRank * options.topK);
      std::vector<double> expected;
      for (int64_t row = 0; row < rows.count(); ++row) {
        const int64_t token = rows.slotOfRow[row] / options.topK;
        const RankTokens &source = given[token / tokensPerRank];
        const int64_t local = token % tokensPerRank;
        const uint32_t expert = rows.expertOf(row);
        std::vector<double> sums(n, 0);
        for (int64_t column = 0; column < n; ++column)
          for (int64_t depth = 0; depth < k; ++depth) {
            const int64_t place =
                options.weightOrder == MatrixOrder::Transposed ? column * k + depth : depth * n + column;
            double product = double(source.tokens[local * k + depth]) * weights[id][expert * n * k + place];
            if (options.blockScales)
              product *= double(source.tokenScales[local * scales + depth / 128]) *
                         weightScales[id][(expert * ops::ceilDivide(n, 128) + column / 128) * scales + depth / 128];
            sums[column] += product;
          }
        if (options.activation == Activation::SwiGlu)
          for (int64_t j = 0; j < n / 2; ++j)
            expected.push_back(sums[2 * j] / (1 + std::exp(-sums[2 * j])) * sums[2 * j + 1]);
        else
          expected.insert(expected.end(), sums.begin(), sums.end());
      }
      std::vector<float> actual = *results[id].downloadFloats();
      EXPECT_TRUE(std::all_of(actual.begin() + expected.size(), actual.end(), [](float x) { return std::isnan(x); }))
          << what << ", rank " << id << ": rows beyond the last are written";
      actual.resize(expected.size());
      const ops::Comparison comparison =
          ops::compare(actual, expected, ops::toleranceFor(options.resultType, options.precision));
      EXPECT_TRUE(comparison.passed()) << what << ", rank " << id << ": element " << comparison.worstIndex
                                       << " is off by " << comparison.worstRatio << " of its tolerance";
      std::vector<float> gathered(ids.size());
      EXPECT_OK(world.rank(id).device()->download(gathered.data(), op->rows(id).slotWeights.address,
                                                  gathered.size() * sizeof(float)));
      for (size_t slot = 0; slot < ids.size(); ++slot) {
        const RankTokens &source = given[slot / options.topK / tokensPerRank];
        const size_t local = slot % (tokensPerRank * options.topK);
        EXPECT_EQ(gathered[slot], local < source.weights.size() ? source.weights[local] : 0) << what << " " << slot;
      }
    }
  }

  World &world;
  AllGatherMoeOptions options;
  int64_t tokensPerRank, scales;
  std::unique_ptr<AllGatherMoe> op;
  std::vector<AllGatherMoeOperands> operands;
  std::vector<Buffer> buffers, results;
  std::vector<RankTokens> given;
  std::vector<std::vector<float>> weights, weightScales;
};

AllGatherMoeOptions drawnOptions(std::mt19937 &random, int trial) {
  AllGatherMoeOptions options;
  options.dtype = std::array{DataType::F32, DataType::BF16, DataType::F16}[trial % 3];
  options.resultType = trial % 4 == 0 ? DataType::F32 : options.dtype;
  options.precision = ops::MultiplyPrecision::Ieee;
  options.hidden = 8 * (1 + random() % 12);
  options.columns = 2 * (1 + random() % 40);
  options.experts = 1 + random() % 9;
  options.topK = 1 + random() % std::min(options.experts, 3u);
  options.activation = random() % 2 ? Activation::SwiGlu : Activation::None;
  options.weightOrder = random() % 2 ? MatrixOrder::Plain : MatrixOrder::Transposed;
  options.chunksPerRank = 1 + random() % 3;
  options.schedule = trial % 5 == 4 ? ops::Schedule::Unfused : ops::Schedule::Overlapped;
  return options;
}

TEST_F(MoeRanks, GatheredProductsOfAnyShape) {
  std::mt19937 random(3);
  for (int trial = 0; trial < casesWanted("DITRON_MOE_CASES", 16); ++trial) {
    const uint32_t ranks = ranksOnTarget(std::array{1u, 2u, 3u, 4u, 8u}[trial % 5]);
    start(ranks, seeded(trial));
    AllGatherMoeOptions options = drawnOptions(random, trial);
    options.maxTokensPerRank = 40;
    const int64_t tokens = trial % 4 == 3 ? 1 : 1 + random() % 40;
    GatherCalls calls(world(), options, tokens);
    calls.create();
    std::vector<int64_t> counts(ranks, tokens);
    if (trial % 2)
      for (int64_t &count : counts)
        count = random() % (tokens + 1);
    for (uint32_t id = 0; id < ranks; ++id)
      ASSERT_OK(calls.prepare(id, counts[id]));
    for (int call = 0; call < 2; ++call) {
      calls.draw(trial * 10 + call, skews[(trial + call) % 4], counts);
      for (uint32_t id = 0; id < ranks; ++id)
        ASSERT_OK(calls.enqueue(id, counts[id]));
      ASSERT_OK(world().synchronize());
      calls.check(fmt::format("trial {}, call {}: {} ranks, {} tokens of each, top {} of {}, {}", trial, call, ranks,
                              tokens, options.topK, options.experts, toString(options.dtype)));
    }
  }
}

TEST_F(MoeRanks, GatheredProductsOfBlockScales) {
  for (const auto [ranks, hidden, columns] : {std::tuple(2u, 272, 96), std::tuple(3u, 128, 200)}) {
    if (ranksOnTarget(ranks) < ranks)
      continue;
    start(ranks, seeded(ranks));
    AllGatherMoeOptions options;
    options.dtype = DataType::F8E4NV;
    options.blockScales = true;
    options.hidden = hidden;
    options.columns = columns;
    options.experts = 4;
    options.topK = 2;
    options.maxTokensPerRank = 24;
    GatherCalls calls(world(), options, 17);
    calls.create();
    for (int call = 0; call < 2; ++call) {
      calls.draw(call + 1, skews[call], std::vector<int64_t>(ranks, 17));
      for (uint32_t id = 0; id < ranks; ++id)
        ASSERT_OK(calls.enqueue(id));
      ASSERT_OK(world().synchronize());
      calls.check(fmt::format("{} ranks, call {}", ranks, call));
    }
  }
}

TEST_F(MoeRanks, GatheredReplaysFollowTheRouting) {
  REQUIRE_RANKS(2);
  const uint32_t ranks = ranksOnTarget(4) < 4 ? 2 : 4;
  start(ranks, seeded(5, 1));
  AllGatherMoeOptions options;
  options.dtype = options.resultType = DataType::F32;
  options.precision = ops::MultiplyPrecision::Ieee;
  options.hidden = 32;
  options.columns = 24;
  options.experts = 7;
  options.topK = 2;
  options.maxTokensPerRank = 30;
  GatherCalls calls(world(), options, 30);
  calls.create();
  std::vector<runtime::Graph> graphs(ranks);
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(calls.enqueue(0).message(), HasSubstr("was not prepared"));
  (void)rank(0).stream().endCapture();
  for (uint32_t id = 0; id < ranks; ++id)
    ASSERT_OK(calls.prepare(id));
  for (uint32_t id = 0; id < ranks; ++id) {
    ASSERT_OK(rank(id).stream().beginCapture());
    ASSERT_OK(calls.enqueue(id));
    auto graph = rank(id).stream().endCapture();
    ASSERT_OK(graph);
    graphs[id] = std::move(*graph);
  }
  const std::vector<int64_t> counts(ranks, 30);
  for (int replay = 0; replay < 8; ++replay) {
    calls.draw(60 + replay, skews[replay % 4], counts);
    for (uint32_t id = 0; id < ranks; ++id)
      ASSERT_OK(replay % 3 == 2 ? calls.enqueue(id) : rank(id).stream().launch(graphs[id]));
    ASSERT_OK(world().synchronize());
    calls.check(fmt::format("replay {}", replay));
  }
}

TEST_F(MoeRanks, WhatAGatheredProductRefuses) {
  start(ranksOnTarget(2));
  AllGatherMoeOptions options;
  options.hidden = options.columns = 32;
  options.experts = 4;
  options.topK = 2;
  options.maxTokensPerRank = 8;
  const auto messageOf = [&](AllGatherMoeOptions wrong) {
    return AllGatherMoe::create(world(), sharedJit(), wrong).status().message();
  };
  AllGatherMoeOptions wrong = options;
  wrong.columns = 0;
  EXPECT_THAT(messageOf(wrong), HasSubstr("columns is 0; 1 to"));
  wrong = options;
  wrong.chunksPerRank = 65;
  EXPECT_THAT(messageOf(wrong), HasSubstr("65 chunks per rank; 1 to 64 are accepted"));
  wrong = options;
  wrong.experts = 2000;
  EXPECT_THAT(messageOf(wrong), HasSubstr("2000 experts; 1 to 1024 are accepted"));
  wrong = options;
  wrong.topK = 0;
  EXPECT_THAT(messageOf(wrong), HasSubstr("topK is 0; 1 to 64 are accepted"));
  wrong = options;
  wrong.blockScales = true;
  EXPECT_THAT(messageOf(wrong), HasSubstr("operands with block scales are"));
  auto op = AllGatherMoe::create(world(), sharedJit(), options);
  ASSERT_OK(op);
  EXPECT_THAT(op->prepare(rank(0), 9).message(),
              HasSubstr("9 tokens of each rank; 1 to 8 (maxTokensPerRank) are accepted"));
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), {}, 4, 5).message(),
              HasSubstr("5 own tokens; 0 to 4 (tokensPerRank) are accepted"));
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), {}, 4).message(), HasSubstr("tokens"));
}

/// A MoeReduction behind a routing, its operands on all ranks, and what must come out.
class ReductionCalls {
public:
  ReductionCalls(World &world, const MoeReductionOptions &options, uint32_t experts, uint32_t topK, int64_t tokens,
                 bool ownFirst)
      : world(world), options(options), experts(experts), topK(topK), tokens(tokens), ownFirst(ownFirst) {}

  void create() {
    const uint32_t ranks = world.numRanks();
    const ops::RowShards shards(tokens, ranks);
    blocks = ops::ceilDivide(options.depth, 128);
    std::vector<ops::MoeRows> rows;
    for (uint32_t id = 0; id < ranks; ++id) {
      auto made = ops::Routing::create(world.rank(id), sharedJit(), {experts, topK, options.maxTokens, blockM});
      ASSERT_OK(made);
      routings.push_back(std::make_unique<ops::Routing>(std::move(made).value()));
      const auto allocate = [&](DataType type, int64_t count) {
        return *world.rank(id).allocate(type, std::max<int64_t>(count, 1), "operand");
      };
      const int64_t weightCount = int64_t(experts) * options.hidden * options.depth;
      ids.push_back(allocate(DataType::I32, tokens * topK));
      slotWeights.push_back(allocate(DataType::F32, tokens * topK));
      rowsOf.push_back(allocate(options.dtype, tokens * topK * options.depth));
      weights.push_back(allocate(options.dtype, weightCount));
      results.push_back(allocate(options.resultType, (isScattered() ? shards.rowsOf(id) : tokens) * options.hidden));
      weightValues.push_back(ops::randomValues(options.dtype, weightCount, 300 + id));
      EXPECT_OK(weights[id].uploadFloats(weightValues[id]));
      if (options.blockScales) {
        const int64_t count = experts * ops::ceilDivide(options.hidden, 128) * blocks;
        rowScales.push_back(allocate(DataType::F32, tokens * topK * blocks));
        weightScales.push_back(allocate(DataType::F32, count));
        weightScaleValues.push_back(ops::randomValues(DataType::F32, count, 400 + id));
        EXPECT_OK(weightScales[id].uploadFloats(weightScaleValues[id]));
      }
      const int64_t firstToken = ownFirst && shards.rowsOf(id) > 0 ? shards.firstRowOf(id) : 0;
      auto sorting = routings[id]->calls(ids[id], tokens, firstToken);
      ASSERT_OK(sorting);
      sortings.push_back(std::move(*sorting));
      rows.push_back(ops::MoeRows::of(*routings[id], slotWeights[id].pointer(), ownFirst ? id : 0));
    }
    auto made = MoeReduction::create(world, sharedJit(), options, rows);
    ASSERT_OK(made);
    op = std::make_unique<MoeReduction>(std::move(made).value());
  }
  bool isScattered() const { return options.result == MoeResult::Scattered; }

  void draw(uint64_t seed, Skew skew) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    chosen = chooseIds(tokens, topK, experts, skew, random);
    slotValues = ops::randomValues(DataType::F32, tokens * topK, seed * 16);
    rowValues.clear();
    rowScaleValues.clear();
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
      rowValues.push_back(ops::randomValues(options.dtype, tokens * topK * options.depth, seed * 16 + id + 1));
      EXPECT_OK(ids[id].upload(chosen.data(), chosen.size() * sizeof(int32_t)));
      EXPECT_OK(slotWeights[id].uploadFloats(slotValues));
      EXPECT_OK(rowsOf[id].uploadFloats(rowValues[id]));
      if (options.blockScales) {
        rowScaleValues.push_back(ops::randomValues(DataType::F32, tokens * topK * blocks, seed * 16 + id + 9));
        EXPECT_OK(rowScales[id].uploadFloats(rowScaleValues[id]));
      }
      EXPECT_OK(
          results[id].uploadFloats(std::vector<float>(results[id].count(), std::numeric_limits<float>::quiet_NaN())));
    }
  }
  Status enqueue(uint32_t id) {
    runtime::Stream &stream = world.rank(id).stream();
    for (const ops::PreparedCall &call : sortings[id])
      DITRON_RETURN_IF_ERROR(call.enqueue(stream));
    ops::MoeReductionOperands operands = {rowsOf[id], weights[id], results[id], {}, {}};
    if (options.blockScales) {
      operands.rowScales = rowScales[id];
      operands.weightScales = weightScales[id];
    }
    return op->enqueue(world.rank(id), stream, operands, tokens);
  }

  void check(const std::string &what) {
    const uint32_t ranks = world.numRanks();
    const ops::RowShards shards(tokens, ranks);
    const int64_t n = options.hidden, k = options.depth;
    std::vector<double> sums(tokens * n, 0);
    for (uint32_t id = 0; id < ranks; ++id) {
      const int64_t firstToken = ownFirst && shards.rowsOf(id) > 0 ? shards.firstRowOf(id) : 0;
      const Rows rows(chosen, experts, firstToken * topK);
      for (int64_t row = 0; row < rows.count(); ++row) {
        const int32_t slot = rows.slotOfRow[row];
        const uint32_t expert = rows.expertOf(row);
        for (int64_t column = 0; column < n; ++column) {
          double sum = 0;
          for (int64_t depth = 0; depth < k; ++depth) {
            const bool transposed = options.weightOrder == MatrixOrder::Transposed;
            const int64_t place = transposed ? column * k + depth : depth * n + column;
            double product = double(rowValues[id][row * k + depth]) * weightValues[id][expert * n * k + place];
            if (options.blockScales)
              product *=
                  double(rowScaleValues[id][row * blocks + depth / 128]) *
                  weightScaleValues[id][(expert * ops::ceilDivide(n, 128) + column / 128) * blocks + depth / 128];
            sum += product;
          }
          sums[slot / topK * n + column] += sum * slotValues[slot];
        }
      }
    }
    std::vector<std::vector<float>> all;
    for (uint32_t id = 0; id < ranks; ++id) {
      std::vector<float> actual = *results[id].downloadFloats();
      const int64_t first = isScattered() ? shards.firstRowOf(id) : 0,
                    count = isScattered() ? shards.rowsOf(id) : tokens;
      actual.resize(count * n);
      const std::vector<double> expected(sums.begin() + first * n, sums.begin() + (first + count) * n);
      // Rows of the product, sums and the result are rounded one after the other.
      const ops::Tolerance tolerance = {3 * ops::toleranceFor(options.resultType, options.precision).relative};
      const ops::Comparison comparison = ops::compare(actual, expected, tolerance);
      EXPECT_TRUE(comparison.passed()) << what << ", rank " << id << ": element " << comparison.worstIndex
                                       << " is off by " << comparison.worstRatio << " of its tolerance";
      all.push_back(std::move(actual));
    }
    for (uint32_t id = 1; id < ranks && !isScattered(); ++id)
      EXPECT_EQ(all[id], all[0]) << what << ": ranks 0 and " << id << " differ";
  }

  static constexpr uint32_t blockM = 64;
  World &world;
  MoeReductionOptions options;
  uint32_t experts, topK;
  int64_t tokens;
  bool ownFirst;
  std::unique_ptr<MoeReduction> op;
  std::vector<std::unique_ptr<ops::Routing>> routings;
  std::vector<std::vector<ops::PreparedCall>> sortings;
  std::vector<Buffer> ids, slotWeights, rowsOf, weights, results, rowScales, weightScales;
  int64_t blocks = 0; ///< Of a row, that have one scale.
  std::vector<std::vector<float>> rowScaleValues, weightScaleValues;
  std::vector<int32_t> chosen;
  std::vector<float> slotValues;
  std::vector<std::vector<float>> rowValues, weightValues;
};

TEST_F(MoeRanks, ReductionsOfAnyShape) {
  std::mt19937 random(17);
  for (int trial = 0; trial < casesWanted("DITRON_MOE_CASES", 20); ++trial) {
    const uint32_t ranks = ranksOnTarget(std::array{1u, 2u, 3u, 4u, 8u}[trial % 5]);
    start(ranks, trial % 3 == 2 ? seeded(trial, ranks - 1) : seeded(trial));
    MoeReductionOptions options;
    options.result = trial % 2 ? MoeResult::Everywhere : MoeResult::Scattered;
    options.dtype = std::array{DataType::F32, DataType::BF16, DataType::F16}[trial % 3];
    options.resultType = trial % 4 == 0 ? DataType::F32 : options.dtype;
    if (trial % 4 == 1)
      options.partialType = DataType::F32;
    options.precision = ops::MultiplyPrecision::Ieee;
    options.hidden = 8 * (1 + random() % 30);
    options.depth = 8 * (1 + random() % 8);
    options.maxTokens = 150;
    options.weightOrder = random() % 2 ? MatrixOrder::Plain : MatrixOrder::Transposed;
    options.schedule = trial % 5 == 4 ? ops::Schedule::Unfused : ops::Schedule::Overlapped;
    const uint32_t experts = 1 + random() % 9, topK = 1 + random() % std::min(experts, 3u);
    const int64_t tokens = trial % 4 == 3 ? 1 + random() % 4 : 1 + random() % 150;
    ReductionCalls calls(world(), options, experts, topK, tokens, random() % 2);
    calls.create();
    const std::string what = fmt::format("trial {}: {}, {} ranks, {} tokens, top {} of {}, N={} K={} {}{}", trial,
                                         toString(options.result), ranks, tokens, topK, experts, options.hidden,
                                         options.depth, toString(options.dtype), calls.ownFirst ? ", own first" : "");
    for (uint32_t id = 0; id < ranks; ++id)
      ASSERT_OK(calls.op->prepare(rank(id), tokens));
    for (int call = 0; call < 2; ++call) {
      calls.draw(trial * 10 + call, skews[(trial + call) % 4]);
      for (uint32_t id = 0; id < ranks; ++id)
        ASSERT_OK(calls.enqueue(id));
      const Status ran = world().synchronize();
      ASSERT_TRUE(ran.isOk()) << what << ": " << ran.message();
      calls.check(what);
    }
  }
}

TEST_F(MoeRanks, ReductionsOfBlockScales) {
  for (const MoeResult result : {MoeResult::Scattered, MoeResult::Everywhere}) {
    const uint32_t ranks = ranksOnTarget(3);
    start(ranks, seeded(8));
    MoeReductionOptions options;
    options.result = result;
    options.dtype = DataType::F8E4NV;
    options.blockScales = true;
    options.hidden = 160;
    options.depth = 208;
    options.maxTokens = 70;
    ReductionCalls calls(world(), options, 4, 2, 70, result == MoeResult::Scattered);
    calls.create();
    for (int call = 0; call < 2; ++call) {
      calls.draw(90 + call, skews[call]);
      for (uint32_t id = 0; id < ranks; ++id)
        ASSERT_OK(calls.enqueue(id));
      ASSERT_OK(world().synchronize());
      calls.check(fmt::format("{} call {}", toString(result), call));
    }
  }
}

TEST_F(MoeRanks, ReductionReplaysFollowTheRouting) {
  REQUIRE_RANKS(2);
  const uint32_t ranks = ranksOnTarget(4) < 4 ? 2 : 4;
  for (const MoeResult result : {MoeResult::Scattered, MoeResult::Everywhere}) {
    start(ranks, seeded(6, 2 % ranks));
    MoeReductionOptions options;
    options.result = result;
    options.dtype = options.resultType = DataType::F32;
    options.precision = ops::MultiplyPrecision::Ieee;
    options.hidden = 40;
    options.depth = 16;
    options.maxTokens = 101;
    ReductionCalls calls(world(), options, 6, 2, 101, true);
    calls.create();
    std::vector<runtime::Graph> graphs(ranks);
    ASSERT_OK(rank(0).stream().beginCapture());
    EXPECT_THAT(
        calls.op->enqueue(rank(0), rank(0).stream(), {calls.rowsOf[0], calls.weights[0], calls.results[0], {}, {}}, 101)
            .message(),
        HasSubstr("was not prepared"));
    (void)rank(0).stream().endCapture();
    for (uint32_t id = 0; id < ranks; ++id)
      ASSERT_OK(calls.op->prepare(rank(id), 101));
    for (uint32_t id = 0; id < ranks; ++id) {
      ASSERT_OK(rank(id).stream().beginCapture());
      ASSERT_OK(calls.enqueue(id));
      auto graph = rank(id).stream().endCapture();
      ASSERT_OK(graph);
      graphs[id] = std::move(*graph);
    }
    for (int replay = 0; replay < 8; ++replay) {
      calls.draw(80 + replay, skews[replay % 4]);
      for (uint32_t id = 0; id < ranks; ++id)
        ASSERT_OK(replay % 3 == 2 ? calls.enqueue(id) : rank(id).stream().launch(graphs[id]));
      ASSERT_OK(world().synchronize());
      calls.check(fmt::format("{}, replay {}", toString(result), replay));
    }
  }
}

/// A rank's tiles in the order of their turns, of tables that the host makes.
TEST_F(MoeRanks, TilesGoInTheOrderOfTheRanks) {
  std::mt19937 random(23);
  for (const uint32_t wanted : {1u, 2u, 3u, 8u}) {
    const uint32_t ranks = ranksOnTarget(wanted);
    if (ranks < wanted)
      continue;
    start(ranks);
    for (int trial = 0; trial < 8; ++trial) {
      const uint32_t experts = 1 + random() % 40, topK = 1 + random() % std::min(experts, 4u), blockM = 16;
      const int64_t tokensPerRank = 1 + random() % 90, tokens = tokensPerRank * ranks;
      const uint32_t id = random() % ranks, firstRank = trial % 2 ? id : 0,
                     chunks = trial % 4 < 2 ? 1 : 1 + random() % 4;
      const auto by = trial % 3 == 0 && chunks == 1 ? ops::TileOrder::By::Departure : ops::TileOrder::By::Arrival;
      const bool departs = by == ops::TileOrder::By::Departure;
      const std::vector<int32_t> chosen = chooseIds(tokens, topK, experts, skews[trial % 4], random);
      const Rows rows(chosen, experts, firstRank * tokensPerRank * topK);
      auto routing = ops::Routing::create(rank(id), sharedJit(), {experts, topK, tokens, blockM});
      ASSERT_OK(routing);
      auto order = ops::TileOrder::create(rank(id), "order", tokens * topK, experts, blockM);
      ASSERT_OK(order);
      Buffer ids = put(chosen, "ids", id), gates = zeros(DataType::I64, ranks, "gates", id);
      auto sorting = routing->calls(ids, tokens, firstRank * tokensPerRank);
      ASSERT_OK(sorting);
      auto call = order->prepare(sharedJit(), rank(id), ops::MoeRows::of(*routing, {}, firstRank), by, tokensPerRank,
                                 chunks, gates);
      ASSERT_OK(call);
      for (const ops::PreparedCall &each : *sorting)
        ASSERT_OK(each.enqueue(rank(id).stream()));
      ASSERT_OK(call->enqueue(rank(id).stream()));
      ASSERT_OK(world().synchronize());
      const auto integers = [&](Pointer pointer, size_t count) {
        std::vector<int32_t> values(count);
        EXPECT_OK(rank(id).device()->download(values.data(), pointer.address, count * sizeof(int32_t)));
        return values;
      };
      // By turn, and as they were within one.
      struct Tile {
        uint32_t turn, expert;
        int32_t row, first, last;
      };
      std::vector<Tile> expected;
      std::vector<int32_t> users(ranks, 0);
      for (uint32_t expert = 0; expert < experts; ++expert)
        for (int32_t row = rows.offsets[expert]; row < rows.offsets[expert + 1]; row += blockM) {
          std::vector<uint32_t> turns;
          std::vector<int32_t> ofChunks;
          std::vector<bool> uses(ranks, false);
          for (int32_t each = row; each < std::min<int32_t>(row + blockM, rows.offsets[expert + 1]); ++each) {
            const int64_t token = rows.slotOfRow[each] / topK, source = token / tokensPerRank;
            turns.push_back(static_cast<uint32_t>((source + 2 * ranks - id - (departs ? 1 : 0)) % ranks));
            ofChunks.push_back(static_cast<int32_t>((source + ranks - firstRank) % ranks * chunks +
                                                    token % tokensPerRank / ops::ceilDivide(tokensPerRank, chunks)));
          }
          const auto [first, last] = std::minmax_element(ofChunks.begin(), ofChunks.end());
          // The span's ranks, also those between that have no rows here.
          for (int32_t stage = *first / static_cast<int32_t>(chunks); stage <= *last / static_cast<int32_t>(chunks);
               ++stage)
            uses[(firstRank + stage) % ranks] = true;
          uint32_t turn = departs ? ranks : 0;
          for (uint32_t source = 0; source < ranks; ++source)
            if (uses[source]) {
              ++users[source];
              const uint32_t of = (source + 2 * ranks - id - (departs ? 1 : 0)) % ranks;
              turn = departs ? std::min(turn, of) : std::max(turn, of);
            }
          expected.push_back({turn, expert, row, *first, *last});
        }
      std::ranges::sort(expected, {}, [](const Tile &tile) { return std::tuple(tile.turn, tile.expert, tile.row); });
      const std::string what = fmt::format("{} ranks, trial {}", ranks, trial);
      const std::vector<int32_t> tiles = integers(order->tiles(), 1 + 2 * expected.size()),
                                 spans = integers(order->spans(), 2 * expected.size());
      ASSERT_EQ(tiles[0], static_cast<int32_t>(expected.size())) << what;
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(tiles[1 + 2 * i], static_cast<int32_t>(expected[i].expert)) << what << ", tile " << i;
        EXPECT_EQ(tiles[2 + 2 * i], expected[i].row) << what << ", tile " << i;
        EXPECT_EQ(spans[2 * i], expected[i].first) << what << ", tile " << i;
        EXPECT_EQ(spans[2 * i + 1], expected[i].last) << what << ", tile " << i;
      }
      if (!departs)
        continue;
      EXPECT_EQ(integers(order->segmentTiles(), ranks), users) << what;
      const std::vector<int64_t> opened = get<int64_t>(gates);
      for (uint32_t source = 0; source < ranks; ++source)
        EXPECT_EQ(opened[source], users[source] == 0) << what << ", gate " << source;
    }
  }
}

/// Tiles of the tokens that are there are computed while others are on their way.
TEST_F(MoeRanks, TilesDoNotWaitForTokensOfOthers) {
  if (!isSimulated())
    GTEST_SKIP() << "asks the simulator's timeline";
  const std::string_view product = targetUnderTest().ends_with("sm_90a") ? "grouped_gemm" : "grouped_gemm_pointers";
  for (const ops::Schedule schedule : {ops::Schedule::Overlapped, ops::Schedule::Unfused}) {
    WorldOptions machine = seeded(0);
    machine.trace = true;
    start(4, machine);
    AllGatherMoeOptions options;
    options.hidden = 4096;
    options.columns = 16;
    options.experts = 2;
    options.topK = 1;
    options.maxTokensPerRank = 256;
    options.schedule = schedule;
    GatherCalls calls(world(), options, 256);
    calls.create();
    calls.draw(1, Skew::Even, std::vector<int64_t>(4, 256));
    for (uint32_t id = 0; id < 4; ++id)
      ASSERT_OK(calls.enqueue(id));
    ASSERT_OK(world().synchronize());
    calls.check(std::string(toString(schedule)));
    for (uint32_t id = 0; id < 3; ++id) {
      const auto overlap =
          runtime::overlapWithCopies(world(), id, product, runtime::CopyDirection::Incoming, AllGatherMoe::copyName);
      ASSERT_OK(overlap);
      EXPECT_EQ(overlap->copies, 3u);
      if (schedule == ops::Schedule::Overlapped)
        EXPECT_GT(overlap->finishedBeforeLastCopy, 0u)
            << "rank " << id << ": blocks from " << overlap->kernelStart << " to " << overlap->kernelEnd
            << ", copies end from " << overlap->firstCopyEnd << " to " << overlap->lastCopyEnd;
    }
  }
}

/// Sums of the first ranks are on their way while tiles of the others are computed.
TEST_F(MoeRanks, SumsLeaveBeforeTheLastTile) {
  if (!isSimulated())
    GTEST_SKIP() << "asks the simulator's timeline";
  const std::string_view product = targetUnderTest().ends_with("sm_90a") ? "grouped_gemm" : "grouped_gemm_pointers";
  for (const ops::Schedule schedule : {ops::Schedule::Overlapped, ops::Schedule::Unfused}) {
    WorldOptions machine = seeded(0);
    machine.trace = true;
    start(4, machine);
    MoeReductionOptions options;
    options.hidden = 128;
    options.depth = 1024;
    options.maxTokens = 1024;
    options.schedule = schedule;
    ReductionCalls calls(world(), options, 2, 1, 1024, true);
    calls.create();
    calls.draw(1, Skew::Even);
    for (uint32_t id = 0; id < 4; ++id)
      ASSERT_OK(calls.enqueue(id));
    ASSERT_OK(world().synchronize());
    calls.check(std::string(toString(schedule)));
    for (uint32_t id = 0; id < 4; ++id) {
      const auto overlap =
          runtime::overlapWithCopies(world(), id, product, runtime::CopyDirection::Outgoing, "moe_rs_arrived");
      ASSERT_OK(overlap);
      EXPECT_EQ(overlap->copies, 3u);
      EXPECT_EQ(overlap->firstCopyEnd < overlap->kernelEnd, schedule == ops::Schedule::Overlapped)
          << "rank " << id << ": blocks from " << overlap->kernelStart << " to " << overlap->kernelEnd
          << ", copies end from " << overlap->firstCopyEnd << " to " << overlap->lastCopyEnd;
    }
  }
}

TEST_F(MoeRanks, WhatAReductionRefuses) {
  start(ranksOnTarget(2));
  MoeReductionOptions options;
  options.hidden = options.depth = 32;
  options.maxTokens = 8;
  std::vector<ops::MoeRows> rows(world().numRanks());
  for (ops::MoeRows &each : rows) {
    each.experts = 4;
    each.topK = 2;
    each.blockM = 16;
  }
  const auto messageOf = [&](const MoeReductionOptions &given, const std::vector<ops::MoeRows> &of) {
    return MoeReduction::create(world(), sharedJit(), given, of).status().message();
  };
  EXPECT_EQ(messageOf(options, rows), "");
  EXPECT_THAT(messageOf(options, {}), HasSubstr("rows of 0 ranks are given"));
  MoeReductionOptions wrong = options;
  wrong.depth = -1;
  EXPECT_THAT(messageOf(wrong, rows), HasSubstr("depth is -1"));
  wrong = options;
  wrong.partialType = DataType::F16;
  EXPECT_THAT(messageOf(wrong, rows), HasSubstr("partial results of type fp16; bf16 and fp32 are accepted"));
  wrong = options;
  wrong.plan = ops::chooseGroupedGemmPlan({}, world().target());
  wrong.plan->tile.blockM = 32;
  EXPECT_THAT(messageOf(wrong, rows), HasSubstr("tiles of 32 rows; the rows are cut into tiles of 16"));
  std::vector<ops::MoeRows> others = rows;
  others.back().firstRank = 9;
  EXPECT_THAT(messageOf(options, others), HasSubstr("from rank 9 on"));
  auto op = MoeReduction::create(world(), sharedJit(), options, rows);
  ASSERT_OK(op);
  EXPECT_THAT(op->prepare(rank(0), 9).message(), HasSubstr("9 tokens; 1 to 8 (maxTokens) are accepted"));
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), {}, 4).message(), HasSubstr("rows"));
}

} // namespace
} // namespace ditron::e2e
