//===- moe_test.cpp - Routing and grouped products against plain references -------------------------------------------------===//
//
// Any routing: all tokens to one expert, experts that nobody chose, slots without an expert, one token and thousands; products of the
// rows in both orders of weights, gathered or not, with swiglu, with scales of blocks, by pointers and, on the simulated Hopper,
// by descriptors; the sum of a token's rows.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "moe/MoeReference.h"
#include "ditron/jit/Jit.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/moe/GroupedGemm.h"
#include "ditron/ops/moe/Routing.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <random>

namespace ditron::e2e {
namespace {

using ops::Activation;
using ops::GroupedGemmProblem;
using ops::MatrixOrder;
using testing::HasSubstr;

/// One GPU of a target with a compiler.
struct Machine {
  std::unique_ptr<World> world;
  jit::Jit *jit = nullptr;

  explicit Machine(const std::string &target = targetUnderTest()) {
    auto made = World::local(1, target, {});
    EXPECT_OK(made);
    world = std::move(made).value();
    jit = &jitFor(world->target());
  }
  Rank &rank() { return world->rank(0); }
  Buffer allocate(DataType type, size_t count) {
    auto buffer = rank().allocate(type, std::max<size_t>(count, 1), "operand");
    EXPECT_OK(buffer);
    return std::move(buffer).value();
  }
  Buffer put(DataType type, const std::vector<float> &values) {
    Buffer buffer = allocate(type, values.size());
    if (!values.empty())
      EXPECT_OK(buffer.uploadFloats(values));
    return buffer;
  }
  Buffer put(const std::vector<int32_t> &values) {
    Buffer buffer = allocate(DataType::I32, values.size());
    if (!values.empty())
      EXPECT_OK(buffer.upload(values.data(), values.size() * sizeof(int32_t)));
    return buffer;
  }
  std::vector<int32_t> integers(Pointer pointer, size_t count) {
    std::vector<int32_t> values(count);
    EXPECT_OK(rank().device()->download(values.data(), pointer.address, count * sizeof(int32_t)));
    return values;
  }
};

TEST(MoeRouting, RowsAreASortOfTheSlotsThatHaveAnExpert) {
  Machine machine;
  std::mt19937 random(1);
  for (const auto [experts, topK, maxTokens] :
       {std::tuple(1u, 1u, 40), std::tuple(7u, 3u, 700), std::tuple(64u, 6u, 400), std::tuple(256u, 8u, 300),
        std::tuple(1000u, 2u, 64)}) {
    const uint32_t blockM = 16;
    auto routing = ops::Routing::create(machine.rank(), *machine.jit, {experts, topK, maxTokens, blockM});
    ASSERT_OK(routing);
    for (const Skew skew : skews)
      for (const int64_t tokens : {int64_t(1), int64_t(maxTokens) / 2 + 1, int64_t(maxTokens)}) {
        const std::vector<int32_t> ids = chooseIds(tokens, topK, experts, skew, random);
        Buffer idsBuffer = machine.put(ids);
        const int64_t firstToken = skew == Skew::Even ? 0 : random() % tokens;
        if (firstToken == 0) {
          ASSERT_OK(routing->enqueue(machine.rank().stream(), idsBuffer, tokens));
        } else {
          auto calls = routing->calls(idsBuffer, tokens, firstToken);
          ASSERT_OK(calls);
          for (const ops::PreparedCall &call : *calls)
            ASSERT_OK(call.enqueue(machine.rank().stream()));
        }
        ASSERT_OK(machine.world->synchronize());
        const Rows expected(ids, experts, firstToken * topK);
        const std::string what =
            fmt::format("{} tokens from {} on, top {} of {}, skew {}", tokens, firstToken, topK, experts, int(skew));
        EXPECT_EQ(machine.integers(routing->offsets(), experts + 1), expected.offsets) << what;
        EXPECT_EQ(machine.integers(routing->slotOfRow(), expected.slotOfRow.size()), expected.slotOfRow) << what;
        EXPECT_EQ(machine.integers(routing->rowOfSlot(), ids.size()), expected.rowOfSlot) << what;
        std::vector<int32_t> tiles = {0};
        for (uint32_t expert = 0; expert < experts; ++expert)
          for (int32_t row = expected.offsets[expert]; row < expected.offsets[expert + 1]; row += blockM) {
            ++tiles[0];
            tiles.push_back(static_cast<int32_t>(expert));
            tiles.push_back(row);
          }
        ASSERT_LE(tiles[0], ops::mostTilesOf(tokens * topK, experts, blockM)) << what;
        EXPECT_EQ(machine.integers(routing->tiles(), tiles.size()), tiles) << what;
      }
  }
}

TEST(MoeRouting, ReplaysFollowTheIdsOfTheMoment) {
  Machine machine;
  constexpr uint32_t experts = 32, topK = 4;
  constexpr int64_t tokens = 300;
  auto routing = ops::Routing::create(machine.rank(), *machine.jit, {experts, topK, tokens, 64});
  ASSERT_OK(routing);
  Buffer ids = machine.allocate(DataType::I32, tokens * topK);
  runtime::Stream &stream = machine.rank().stream();
  ASSERT_OK(stream.beginCapture());
  const Status unprepared = routing->enqueue(stream, ids, tokens);
  EXPECT_THAT(unprepared.message(), HasSubstr("was not prepared"));
  (void)stream.endCapture();
  ASSERT_OK(routing->prepare(tokens));
  ASSERT_OK(stream.beginCapture());
  ASSERT_OK(routing->enqueue(stream, ids, tokens));
  auto graph = stream.endCapture();
  ASSERT_OK(graph);
  std::mt19937 random(5);
  for (int replay = 0; replay < 12; ++replay) {
    const std::vector<int32_t> chosen = chooseIds(tokens, topK, experts, skews[replay % 4], random);
    ASSERT_OK(ids.upload(chosen.data(), chosen.size() * sizeof(int32_t)));
    ASSERT_OK(stream.launch(*graph));
    ASSERT_OK(machine.world->synchronize());
    const Rows expected(chosen, experts);
    EXPECT_EQ(machine.integers(routing->rowOfSlot(), chosen.size()), expected.rowOfSlot) << replay;
    EXPECT_EQ(machine.integers(routing->offsets(), experts + 1), expected.offsets) << replay;
  }
}

TEST(MoeRouting, TheRouterChoosesTheHighestScores) {
  Machine machine;
  for (const auto [sigmoid, normalized, biased] : {std::tuple(false, true, false), std::tuple(true, true, true),
                                                   std::tuple(false, false, true), std::tuple(true, false, false)})
    for (const auto [tokens, experts, topK] :
         {std::tuple(1, 8u, 2u), std::tuple(37, 60u, 4u), std::tuple(5, 256u, 8u), std::tuple(3, 5u, 5u)}) {
      std::vector<float> logits = ops::randomValues(DataType::F32, tokens * experts, 3);
      logits[1] = logits[0]; // equals: the lower number first
      const std::vector<float> bias = ops::randomValues(DataType::F32, experts, 4);
      Buffer logitsBuffer = machine.put(DataType::F32, logits), biasBuffer = machine.put(DataType::F32, bias);
      Buffer ids = machine.allocate(DataType::I32, tokens * topK),
             weights = machine.allocate(DataType::F32, tokens * topK);
      const ops::RouterProblem problem = {.tokens = tokens,
                                          .experts = experts,
                                          .topK = topK,
                                          .score = sigmoid ? ops::RouterScore::Sigmoid : ops::RouterScore::Softmax,
                                          .normalized = normalized,
                                          .scale = 2.5};
      auto call = ops::prepareRouter(*machine.jit, machine.rank(), problem, logitsBuffer,
                                     biased ? biasBuffer.pointer() : Pointer(), ids, weights);
      ASSERT_OK(call);
      ASSERT_OK(call->enqueue(machine.rank().stream()));
      ASSERT_OK(machine.world->synchronize());
      const std::vector<int32_t> chosen = machine.integers(ids.pointer(), tokens * topK);
      const std::vector<float> given = *weights.downloadFloats();
      for (int64_t token = 0; token < tokens; ++token) {
        std::vector<double> scores(experts);
        double sum = 0;
        for (uint32_t e = 0; e < experts; ++e)
          sum += scores[e] = sigmoid ? 1 / (1 + std::exp(-double(logits[token * experts + e])))
                                     : std::exp(double(logits[token * experts + e]));
        if (!sigmoid)
          for (double &score : scores)
            score /= sum;
        std::vector<uint32_t> order(experts);
        std::iota(order.begin(), order.end(), 0);
        const auto rankOf = [&](uint32_t e) { return std::pair(-(scores[e] + (biased ? bias[e] : 0)), e); };
        std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) { return rankOf(x) < rankOf(y); });
        double total = 0;
        for (uint32_t j = 0; j < topK; ++j)
          total += scores[order[j]];
        for (uint32_t j = 0; j < topK; ++j) {
          EXPECT_EQ(chosen[token * topK + j], static_cast<int32_t>(order[j])) << token << " " << j;
          EXPECT_NEAR(given[token * topK + j], 2.5 * scores[order[j]] / (normalized ? total : 1), 1e-5);
        }
      }
    }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Products
//===--------------------------------------------------------------------------------------------------------------===//

struct ProductData {
  std::vector<float> a, b, aScale, bScale;
};

std::vector<double> referenceRows(const GroupedGemmProblem &p, const Rows &rows, const ProductData &data) {
  std::vector<double> result;
  const int64_t blocksK = ops::ceilDivide(p.k, 128), blocksN = ops::ceilDivide(p.n, 128);
  for (int64_t row = 0; row < rows.count(); ++row) {
    const int64_t source = p.slots ? rows.slotOfRow[row] / p.slots : row;
    const uint32_t expert = rows.expertOf(row);
    std::vector<double> sums(p.n, 0);
    for (int64_t column = 0; column < p.n; ++column)
      for (int64_t depth = 0; depth < p.k; ++depth) {
        const int64_t place = p.order == MatrixOrder::Transposed ? column * p.k + depth : depth * p.n + column;
        double product = double(data.a[source * p.k + depth]) * data.b[expert * p.n * p.k + place];
        if (p.blockScales)
          product *= double(data.aScale[source * blocksK + depth / 128]) *
                     data.bScale[(expert * blocksN + column / 128) * blocksK + depth / 128];
        sums[column] += product;
      }
    if (p.activation == Activation::None)
      result.insert(result.end(), sums.begin(), sums.end());
    else
      for (int64_t j = 0; j < p.n / 2; ++j)
        result.push_back(sums[2 * j] / (1 + std::exp(-sums[2 * j])) * sums[2 * j + 1]);
  }
  return result;
}

void checkProduct(Machine &machine, GroupedGemmProblem problem, const std::vector<int32_t> &ids, uint32_t topK,
                  const std::optional<ops::GemmPlan> &plan, const std::string &what) {
  const Rows rows(ids, problem.experts);
  const int64_t tokens = static_cast<int64_t>(ids.size()) / topK;
  problem.maxRows = static_cast<int64_t>(ids.size());
  const ops::GemmPlan chosen = plan ? *plan : ops::chooseGroupedGemmPlan(problem, machine.world->target());
  auto routing =
      ops::Routing::create(machine.rank(), *machine.jit, {problem.experts, topK, tokens, chosen.tile.blockM});
  ASSERT_OK(routing);
  const int64_t rowsOfA = problem.slots ? tokens : std::max<int64_t>(problem.maxRows, 1);
  const int64_t blocksK = ops::ceilDivide(problem.k, 128), blocksN = ops::ceilDivide(problem.n, 128);
  ProductData data;
  data.a = ops::randomValues(problem.dtype, rowsOfA * problem.k, 21);
  data.b = ops::randomValues(problem.dtype, int64_t(problem.experts) * problem.n * problem.k, 22);
  if (problem.blockScales) {
    data.aScale = ops::randomValues(DataType::F32, rowsOfA * blocksK, 23);
    data.bScale = ops::randomValues(DataType::F32, int64_t(problem.experts) * blocksN * blocksK, 24);
  }
  Buffer idsBuffer = machine.put(ids), a = machine.put(problem.dtype, data.a), b = machine.put(problem.dtype, data.b);
  Buffer aScale = machine.put(DataType::F32, data.aScale), bScale = machine.put(DataType::F32, data.bScale);
  // An element that is not written, or written where no row is, shows.
  const int64_t columns = problem.resultColumns();
  Buffer c = machine.put(problem.resultType,
                         std::vector<float>(problem.maxRows * columns, std::numeric_limits<float>::quiet_NaN()));
  auto call = ops::prepareGroupedGemm(
      *machine.jit, machine.rank(), problem,
      {a, b, c, routing->offsets(), routing->tiles(), routing->slotOfRow(), aScale, bScale}, chosen);
  ASSERT_OK(call);
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_OK(routing->enqueue(machine.rank().stream(), idsBuffer, tokens));
    ASSERT_OK(call->enqueue(machine.rank().stream()));
  }
  const Status ran = machine.world->synchronize();
  ASSERT_TRUE(ran.isOk()) << what << ": " << ran.message();
  std::vector<float> all = *c.downloadFloats();
  EXPECT_TRUE(std::all_of(all.begin() + rows.count() * columns, all.end(), [](float x) { return std::isnan(x); }))
      << what;
  all.resize(rows.count() * columns);
  const ops::Comparison comparison =
      ops::compare(all, referenceRows(problem, rows, data), ops::toleranceFor(problem.resultType, problem.precision));
  EXPECT_TRUE(comparison.passed()) << what << ": element " << comparison.worstIndex << " is off by "
                                   << comparison.worstRatio << " of its tolerance";
}

std::string describe(const GroupedGemmProblem &p, int64_t tokens, uint32_t topK, Skew skew) {
  return fmt::format("{} tokens, top {} of {}, skew {}, N={} K={} {} {} {}{}{}", tokens, topK, p.experts, int(skew),
                     p.n, p.k, toString(p.dtype), p.order == MatrixOrder::Plain ? "plain" : "transposed",
                     toString(p.activation), p.slots ? " gathered" : "", p.blockScales ? " block scales" : "");
}

TEST(GroupedGemm, AnyRowsByPointers) {
  Machine machine;
  std::mt19937 random(7);
  for (int trial = 0; trial < 24; ++trial) {
    const uint32_t experts = 1 + random() % 12, topK = 1 + random() % std::min(experts, 4u);
    const int64_t tokens = trial % 3 == 0 ? 1 : 1 + random() % 60;
    const Skew skew = skews[trial % 4];
    GroupedGemmProblem problem;
    problem.experts = experts;
    problem.n = 2 * (1 + random() % 60);
    problem.k = 1 + random() % 90;
    problem.dtype = std::array{DataType::BF16, DataType::F16, DataType::F32}[trial % 3];
    problem.resultType = trial % 5 == 0 ? DataType::F32 : problem.dtype;
    problem.precision = ops::MultiplyPrecision::Ieee;
    problem.order = random() % 2 ? MatrixOrder::Plain : MatrixOrder::Transposed;
    problem.activation = random() % 2 ? Activation::SwiGlu : Activation::None;
    problem.slots = random() % 2 ? topK : 0;
    checkProduct(machine, problem, chooseIds(tokens, topK, experts, skew, random), topK, std::nullopt,
                 describe(problem, tokens, topK, skew));
  }
}

TEST(GroupedGemm, BlockScales) {
  Machine machine;
  std::mt19937 random(9);
  for (int trial = 0; trial < 6; ++trial) {
    GroupedGemmProblem problem;
    problem.experts = 3;
    problem.n = std::array{128, 96, 200}[trial % 3];
    problem.k = std::array{128, 272, 100}[trial % 3];
    problem.dtype = DataType::F8E4NV;
    problem.blockScales = true;
    problem.order = trial % 2 ? MatrixOrder::Plain : MatrixOrder::Transposed;
    problem.slots = trial < 3 ? 2 : 0;
    checkProduct(machine, problem, chooseIds(20, 2, 3, skews[trial % 4], random), 2, std::nullopt,
                 describe(problem, 20, 2, skews[trial % 4]));
  }
}

TEST(GroupedGemm, ByDescriptorsOnHopper) {
  if (!isSimulated() && targetUnderTest() != "cuda")
    GTEST_SKIP() << "needs tensor copies";
  Machine machine(isSimulated() ? "sim:sm_90a" : targetUnderTest());
  std::mt19937 random(11);
  for (int trial = 0; trial < 10; ++trial) {
    const bool fullTiles = trial >= 8; // gathered without masks
    const uint32_t experts = fullTiles ? 2 : 1 + random() % 6,
                   topK = fullTiles ? 2 : 1 + random() % std::min(experts, 3u);
    const int64_t tokens = fullTiles ? 130 + random() % 60 : trial % 4 == 0 ? 1 : 1 + random() % 120;
    const Skew skew = skews[trial % 4];
    GroupedGemmProblem problem;
    problem.experts = experts;
    problem.n = 8 * (1 + random() % (fullTiles ? 12 : 40));
    problem.k = trial % 2 ? 64 * (1 + random() % 3) : 8 * (1 + random() % 30);
    problem.dtype = problem.resultType = trial % 3 ? DataType::BF16 : DataType::F16;
    problem.order = trial % 2 ? MatrixOrder::Plain : MatrixOrder::Transposed;
    problem.activation = trial % 3 == 1 ? Activation::SwiGlu : Activation::None;
    auto plan = ops::parseGemmPlan(trial % 2 || fullTiles ? "descriptors 64x128x64 warps 4 stages 3"
                                                          : "descriptors 128x128x64 warps 8 stages 3",
                                   {});
    ASSERT_OK(plan);
    checkProduct(machine, problem, chooseIds(tokens, topK, experts, skew, random), topK, *plan,
                 describe(problem, tokens, topK, skew));
  }
}

TEST(GroupedGemm, BlockScalesByDescriptorsOnHopper) {
  if (!isSimulated() && targetUnderTest() != "cuda")
    GTEST_SKIP() << "needs tensor copies";
  Machine machine(isSimulated() ? "sim:sm_90a" : targetUnderTest());
  std::mt19937 random(15);
  for (int trial = 0; trial < 6; ++trial) {
    const uint32_t experts = 1 + random() % 5, topK = 1 + random() % std::min(experts, 3u);
    const int64_t tokens = trial == 0 ? 1 : 1 + random() % 90;
    const Skew skew = skews[trial % 4];
    GroupedGemmProblem problem;
    problem.experts = experts;
    problem.n = 16 * (1 + random() % 20);
    problem.k = 16 * (1 + random() % 24);
    problem.dtype = DataType::F8E4NV;
    problem.blockScales = true;
    auto plan = ops::parseGemmPlan(
        trial % 2 ? "descriptors 64x128x64 warps 4 stages 3" : "descriptors 128x128x128 warps 8 stages 2", {});
    ASSERT_OK(plan);
    checkProduct(machine, problem, chooseIds(tokens, topK, experts, skew, random), topK, *plan,
                 describe(problem, tokens, topK, skew));
  }
}

/// Experts with room for as many rows each, of which some are there: none, all, and counts that are too many.
TEST(GroupedGemm, RowsWithACapacity) {
  for (const bool hopper : {false, true}) {
    if (hopper && !isSimulated() && targetUnderTest() != "cuda")
      continue;
    Machine machine(hopper && isSimulated() ? "sim:sm_90a" : targetUnderTest());
    std::mt19937 random(19);
    for (int trial = 0; trial < 6; ++trial) {
      const uint32_t experts = 1 + random() % 9;
      const int64_t capacity = 1 + random() % 100;
      GroupedGemmProblem problem;
      problem.experts = experts;
      problem.maxRows = experts * capacity;
      problem.n = 8 * (1 + random() % 16);
      problem.k = 8 * (1 + random() % 16);
      problem.activation = trial % 2 ? Activation::SwiGlu : Activation::None;
      const ops::GemmPlan plan = ops::chooseGroupedGemmPlan(problem, machine.world->target());
      const std::vector<float> a = ops::randomValues(problem.dtype, problem.maxRows * problem.k, 41),
                               b = ops::randomValues(problem.dtype, experts * problem.n * problem.k, 42);
      Buffer aBuffer = machine.put(problem.dtype, a), bBuffer = machine.put(problem.dtype, b);
      Buffer counts = machine.allocate(DataType::I32, experts), offsets = machine.allocate(DataType::I32, experts + 1);
      Buffer tiles =
          machine.allocate(DataType::I32, 1 + 2 * ops::mostTilesOf(problem.maxRows, experts, plan.tile.blockM));
      const int64_t columns = problem.resultColumns();
      Buffer c = machine.allocate(problem.resultType, problem.maxRows * columns);
      auto cut = ops::prepareCapacityTiles(*machine.jit, machine.rank(), experts, capacity, plan.tile.blockM, counts,
                                           offsets, tiles);
      ASSERT_OK(cut);
      auto product = ops::prepareGroupedGemm(*machine.jit, machine.rank(), problem,
                                             {aBuffer, bBuffer, c, offsets, tiles, {}, {}, {}, {}}, plan);
      ASSERT_OK(product);
      for (int call = 0; call < 3; ++call) {
        std::vector<int32_t> given;
        for (uint32_t expert = 0; expert < experts; ++expert)
          given.push_back(std::array<int32_t, 5>{0, static_cast<int32_t>(capacity), static_cast<int32_t>(capacity) + 7,
                                                 -3, static_cast<int32_t>(random() % (capacity + 1))}[random() % 5]);
        ASSERT_OK(counts.upload(given.data(), given.size() * sizeof(int32_t)));
        ASSERT_OK(c.uploadFloats(std::vector<float>(c.count(), std::numeric_limits<float>::quiet_NaN())));
        ASSERT_OK(cut->enqueue(machine.rank().stream()));
        ASSERT_OK(product->enqueue(machine.rank().stream()));
        ASSERT_OK(machine.world->synchronize());
        const std::vector<float> all = *c.downloadFloats();
        std::vector<float> actual;
        std::vector<double> expected;
        for (uint32_t expert = 0; expert < experts; ++expert)
          for (int64_t i = 0; i < capacity; ++i) {
            const int64_t row = expert * capacity + i;
            const auto begin = all.begin() + row * columns;
            if (i >= std::clamp<int64_t>(given[expert], 0, capacity)) {
              EXPECT_TRUE(std::all_of(begin, begin + columns, [](float x) { return std::isnan(x); }))
                  << "row " << i << " of expert " << expert << ", which has " << given[expert];
              continue;
            }
            actual.insert(actual.end(), begin, begin + columns);
            std::vector<double> sums(problem.n);
            for (int64_t column = 0; column < problem.n; ++column)
              for (int64_t depth = 0; depth < problem.k; ++depth)
                sums[column] +=
                    double(a[row * problem.k + depth]) * b[(expert * problem.n + column) * problem.k + depth];
            for (int64_t j = 0; j < columns; ++j)
              expected.push_back(problem.activation == Activation::None
                                     ? sums[j]
                                     : sums[2 * j] / (1 + std::exp(-sums[2 * j])) * sums[2 * j + 1]);
          }
        const ops::Comparison comparison =
            ops::compare(actual, expected, ops::toleranceFor(problem.resultType, problem.precision));
        EXPECT_TRUE(comparison.passed()) << "trial " << trial << ", call " << call << ": " << comparison.worstRatio;
      }
    }
  }
}

TEST(GroupedGemm, WhatIsRefused) {
  Machine machine;
  Buffer words = machine.allocate(DataType::I32, 64), values = machine.allocate(DataType::BF16, 4096);
  GroupedGemmProblem problem;
  problem.maxRows = 16;
  problem.experts = 2;
  problem.n = problem.k = 32;
  const ops::GroupedGemmOperands operands = {values, values, values, words, words, {}, {}, {}};
  const auto messageOf = [&](const GroupedGemmProblem &given, const std::optional<ops::GemmPlan> &plan = std::nullopt) {
    return ops::prepareGroupedGemm(*machine.jit, machine.rank(), given, operands, plan).status().message();
  };
  EXPECT_EQ(messageOf(problem), "");
  GroupedGemmProblem wrong = problem;
  wrong.experts = 5000;
  EXPECT_THAT(messageOf(wrong), HasSubstr("5000 experts; 1 to 1024 are accepted"));
  wrong = problem;
  wrong.slots = 2;
  EXPECT_THAT(messageOf(wrong), HasSubstr("slotOfRow"));
  wrong = problem;
  wrong.activation = Activation::SwiGlu;
  wrong.n = 31;
  EXPECT_THAT(messageOf(wrong), HasSubstr("swiglu needs pairs of columns; N=31"));
  wrong = problem;
  wrong.blockScales = true;
  EXPECT_THAT(messageOf(wrong), HasSubstr("operands with block scales are"));
  wrong = problem;
  EXPECT_THAT(ops::prepareCapacityTiles(*machine.jit, machine.rank(), 4, 0, 16, words, words, words).status().message(),
              HasSubstr("capacity is 0; 1 to 536870911 are accepted for 4 experts"));
  wrong.order = MatrixOrder::Plain;
  wrong.k = 40;
  EXPECT_THAT(messageOf(wrong, *ops::parseGemmPlan("descriptors 64x64x32 warps 4 stages 2", {})),
              HasSubstr("K=40; choose pointers"));
}

TEST(MoeSum, RowsOfATokenAreAddedInTheirOrder) {
  Machine machine;
  std::mt19937 random(13);
  for (const auto [tokens, columns, topK] : {std::tuple(1, 16, 1u), std::tuple(50, 100, 4u), std::tuple(9, 2100, 8u)})
    for (const bool weighted : {false, true})
      for (const DataType type : {DataType::BF16, DataType::F32}) {
        const std::vector<int32_t> ids = chooseIds(tokens, topK, 10, Skew::SomeNowhere, random);
        const Rows rows(ids, 10);
        const std::vector<float> values = ops::randomValues(type, std::max<int64_t>(rows.count(), 1) * columns, 31),
                                 weights = ops::randomValues(DataType::F32, tokens * topK, 32);
        Buffer valuesBuffer = machine.put(type, values), weightsBuffer = machine.put(DataType::F32, weights);
        Buffer rowsBuffer = machine.put(rows.rowOfSlot), out = machine.allocate(type, tokens * columns);
        auto call = ops::prepareSlotSum(*machine.jit, machine.rank(), {tokens, columns, topK}, valuesBuffer, rowsBuffer,
                                        weighted ? weightsBuffer.pointer() : Pointer(), out);
        ASSERT_OK(call);
        ASSERT_OK(call->enqueue(machine.rank().stream()));
        ASSERT_OK(machine.world->synchronize());
        std::vector<double> expected(tokens * columns, 0);
        for (int64_t slot = 0; slot < tokens * topK; ++slot)
          for (int64_t column = 0; column < columns && rows.rowOfSlot[slot] >= 0; ++column)
            expected[slot / topK * columns + column] +=
                double(values[rows.rowOfSlot[slot] * columns + column]) * (weighted ? weights[slot] : 1.0f);
        const ops::Comparison comparison =
            ops::compare(*out.downloadFloats(), expected, ops::toleranceFor(type, ops::MultiplyPrecision::Ieee));
        EXPECT_TRUE(comparison.passed()) << tokens << "x" << columns << " top " << topK << ": "
                                         << comparison.worstRatio;
      }
}

} // namespace
} // namespace ditron::e2e
