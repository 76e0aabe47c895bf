//===- fused_expert_parallel_test.cpp - Products of experts beside the exchange of their tokens -----------------------------===//
//
// Operands are small integers, so that every sum is exact: plain loops say each bit of what both launches leave, whatever the routing, the types, the
// orders of the weights, the plan, the schedule, and what came before.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "expert_parallel/ExpertChoice.h"
#include "expert_parallel/ExpertParallelMoeTest.h"
#include "ditron/ops/expert_parallel/FusedExpertParallel.h"

#include <cstdlib>
#include <fstream>
#include <functional>

namespace ditron::e2e {
namespace {

using ops::FusedExpertParallel;
using ops::FusedExpertParallelOptions;
using ops::MatrixOrder;
using testing::HasSubstr;

class FusedExpertParallels : public Transfers {
public:
  static ops::FusedExpertParallelPlan smallPlan() {
    return planOf(
        "fused 16x32x16 warps 2 stages 2 group 2 senders 2 unit 4 pace 3 combine 16x32x16 warps 2 stages 2 group 2");
  }

protected:
  /// Kernels of the same sizes serve several tests.
  static FusedExpertParallelOptions optionsFor(uint32_t numRanks) {
    return {.hidden = 48,
            .columns = 40,
            .depth = 24,
            .experts = 2 * numRanks,
            .topK = 3,
            .maxTokens = 20,
            .addend = true,
            .plan = smallPlan()};
  }
  /// Memory of all ranks for calls of an operator, and what must be in it.
  struct Call {
    std::vector<int64_t> tokens;
    std::vector<Buffer> x, ids, weights, up, c, a, down, out, addend;
    std::vector<std::vector<float>> xOf, upOf, aOf, downOf; ///< By rank.
    std::vector<std::vector<float>> expectedC, expectedOut;
    bool drops = false;
  };

  static ops::FusedExpertParallelPlan planOf(std::string_view text) {
    auto plan = ops::parseFusedExpertParallelPlan(text);
    EXPECT_OK(plan);
    return plan.isOk() ? *plan : ops::FusedExpertParallelPlan();
  }
  std::vector<float> drawValues(int64_t count, int64_t most) {
    std::vector<float> values(count);
    for (float &value : values)
      value = static_cast<float>(draw(-most, most));
    return values;
  }

  Call makeCall(const FusedExpertParallel &op) {
    const FusedExpertParallelOptions &options = op.options();
    const int64_t local = options.experts / ranks(), elements = options.maxTokens * options.hidden,
                  slots = options.maxTokens * options.topK;
    Call call;
    for (uint32_t r = 0; r < ranks(); ++r) {
      const auto matrix = [&](std::vector<Buffer> &buffers, int64_t count, std::string_view name) {
        buffers.push_back(zeros(options.dtype, count, name, r));
      };
      call.tokens.push_back(0);
      matrix(call.x, elements, "x");
      matrix(call.out, elements, "out");
      matrix(call.addend, elements, "addend");
      matrix(call.up, local * options.columns * options.hidden, "up");
      matrix(call.down, local * options.hidden * options.depth, "down");
      matrix(call.c, op.maxRows() * options.columns, "c");
      matrix(call.a, op.maxRows() * options.depth, "a");
      call.ids.push_back(zeros(DataType::I32, slots, "ids", r));
      call.weights.push_back(zeros(DataType::F32, slots, "weights", r));
      call.upOf.push_back(drawValues(local * options.columns * options.hidden, 1));
      call.downOf.push_back(drawValues(local * options.hidden * options.depth, 1));
      EXPECT_OK(call.up[r].uploadFloats(call.upOf[r]));
      EXPECT_OK(call.down[r].uploadFloats(call.downOf[r]));
    }
    return call;
  }

  /// A row times an expert's weights.
  static void multiply(std::vector<float> &result, const float *row, const std::vector<float> &weights, int64_t expert,
                       int64_t n, int64_t k, MatrixOrder order) {
    for (int64_t column = 0; column < n; ++column) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += row[i] * weights[expert * n * k + (order == MatrixOrder::Transposed ? column * k + i : i * n + column)];
      result.push_back(sum);
    }
  }

  /// Draws a call, and says what must come of it.
  void fill(const FusedExpertParallel &op, Call &call, ExpertChoice choice, bool weighted,
            std::optional<int64_t> tokensOfAll = std::nullopt) {
    const FusedExpertParallelOptions &options = op.options();
    const int64_t hidden = options.hidden, local = options.experts / ranks();
    struct Row {
      uint32_t source;
      int64_t slot;
    };
    std::vector<std::vector<std::vector<Row>>> rowsOf(ranks(), std::vector<std::vector<Row>>(local));
    std::vector<std::vector<float>> weights(ranks()), addends(ranks());
    call.drops = false;
    call.xOf.resize(ranks());
    for (uint32_t r = 0; r < ranks(); ++r) {
      call.tokens[r] = tokensOfAll       ? *tokensOfAll
                       : draw(0, 3) == 0 ? draw(0, 1) * options.maxTokens
                                         : draw(0, options.maxTokens);
      const std::vector<int32_t> ids = drawExperts(options, ranks(), call.tokens[r], choice, random);
      call.xOf[r] = drawValues(options.maxTokens * hidden, 2);
      addends[r] = drawValues(options.maxTokens * hidden, 4);
      weights[r].assign(options.maxTokens * options.topK, 1.0f);
      if (weighted)
        for (float &weight : weights[r])
          weight = static_cast<float>(draw(0, 8)) / 4;
      EXPECT_OK(call.x[r].uploadFloats(call.xOf[r]));
      EXPECT_OK(call.addend[r].uploadFloats(addends[r]));
      EXPECT_OK(call.weights[r].uploadFloats(weights[r]));
      if (!ids.empty())
        EXPECT_OK(call.ids[r].upload(ids.data(), ids.size() * sizeof(int32_t)));
      std::vector<int64_t> sent(options.experts, 0);
      for (size_t slot = 0; slot < ids.size(); ++slot)
        if (ids[slot] >= 0 && ids[slot] < static_cast<int32_t>(options.experts)) {
          if (sent[ids[slot]]++ < options.capacity)
            rowsOf[ids[slot] / local][ids[slot] % local].push_back({r, static_cast<int64_t>(slot)});
          else
            call.drops = true;
        }
    }
    std::vector<std::vector<std::vector<float>>> returned(ranks()); // [rank][slot]
    for (uint32_t r = 0; r < ranks(); ++r)
      returned[r].resize(options.maxTokens * options.topK);
    for (auto *expected : {&call.expectedC, &call.expectedOut})
      expected->assign(ranks(), {});
    call.aOf.resize(ranks());
    for (uint32_t r = 0; r < ranks(); ++r) {
      call.aOf[r] = drawValues(op.maxRows() * options.depth, 2);
      EXPECT_OK(call.a[r].uploadFloats(call.aOf[r]));
      int64_t came = 0;
      for (int64_t expert = 0; expert < local; ++expert)
        for (const Row &row : rowsOf[r][expert]) {
          const int64_t at = came++;
          if (at >= op.maxRows()) {
            call.drops = true;
            continue;
          }
          const float *from = &call.xOf[row.source][row.slot / options.topK * hidden];
          multiply(call.expectedC[r], from, call.upOf[r], expert, options.columns, hidden, options.dispatchOrder);
          multiply(returned[row.source][row.slot], &call.aOf[r][at * options.depth], call.downOf[r], expert, hidden,
                   options.depth, options.combineOrder);
        }
    }
    for (uint32_t r = 0; r < ranks(); ++r) {
      for (int64_t i = 0; i < call.tokens[r] * hidden; ++i) {
        float sum = options.addend ? addends[r][i] : 0;
        for (uint32_t j = 0; j < options.topK; ++j) {
          const int64_t slot = i / hidden * options.topK + j;
          if (!returned[r][slot].empty())
            sum += returned[r][slot][i % hidden] * weights[r][slot];
        }
        call.expectedOut[r].push_back(sum);
      }
      // What is not written, and what is written too much, shows.
      for (Buffer *buffer : {&call.c[r], &call.out[r]}) {
        const Bytes other(buffer->bytes(), std::byte{0x5a});
        EXPECT_OK(buffer->upload(other.data(), other.size()));
      }
    }
  }

  Status dispatch(FusedExpertParallel &op, Rank &me, const Call &call) {
    const uint32_t r = me.id();
    return op.dispatchGemm(
        me, me.stream(),
        {.x = call.x[r], .tokens = call.tokens[r], .ids = call.ids[r], .b = call.up[r], .c = call.c[r]});
  }
  Status combine(FusedExpertParallel &op, Rank &me, const Call &call, bool weighted) {
    const uint32_t r = me.id();
    return op.gemmCombine(me, me.stream(),
                          {.a = call.a[r],
                           .b = call.down[r],
                           .out = call.out[r],
                           .tokens = call.tokens[r],
                           .weights = weighted ? call.weights[r].pointer() : Pointer(),
                           .addend = call.addend[r]});
  }
  Status enqueue(FusedExpertParallel &op, Rank &me, const Call &call, bool weighted) {
    DITRON_RETURN_IF_ERROR(dispatch(op, me, call));
    return combine(op, me, call, weighted);
  }

  /// The first elements of a buffer, as rounded once, and that the others are as they were.
  static void expectFloats(const Buffer &buffer, std::vector<float> expected, const std::string &what) {
    const DataType type = buffer.type();
    Bytes bytes(buffer.bytes());
    ASSERT_OK(buffer.download(bytes.data(), bytes.size()));
    std::vector<float> actual = toFloats(type, bytes.data(), buffer.count());
    ASSERT_LE(expected.size(), actual.size()) << what;
    for (size_t i = expected.size() * sizeOf(type); i < bytes.size(); ++i)
      ASSERT_EQ(bytes[i], std::byte{0x5a}) << what << ": byte " << i << " is no result and was written";
    actual.resize(expected.size());
    expected = toFloats(type, fromFloats(type, expected.data(), expected.size()).data(), expected.size());
    expectSame(actual, expected, what);
  }
  void expectResults(FusedExpertParallel &op, const Call &call, const std::string &what) {
    bool told = false;
    for (uint32_t r = 0; r < ranks(); ++r) {
      const std::string where = fmt::format("{}, rank {}", what, r);
      told |= !op.check(rank(r)).isOk();
      expectFloats(call.c[r], call.expectedC[r], where + ", c");
      expectFloats(call.out[r], call.expectedOut[r], where + ", out");
      if (HasFailure())
        return;
    }
    EXPECT_EQ(told, call.drops) << what;
  }

  void runCalls(const FusedExpertParallelOptions &options, int calls, const std::string &what) {
    auto op = FusedExpertParallel::create(world(), sharedJit(), options);
    ASSERT_OK(op);
    for (uint32_t r = 0; r < ranks(); ++r)
      ASSERT_OK(op->prepare(rank(r)));
    Call call = makeCall(*op);
    for (int i = 0; i < calls; ++i) {
      const ExpertChoice choice = expertChoices[draw(0, std::size(expertChoices) - 1)];
      const bool weighted = draw(0, 3) > 0;
      fill(*op, call, choice, weighted);
      const std::string which = fmt::format("{}, call {}, choice {}", what, i, static_cast<int>(choice));
      const Status ran = world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(enqueue(*op, me, call, weighted));
        return me.stream().synchronize();
      });
      ASSERT_TRUE(ran.isOk()) << which << ": " << ran.message();
      expectResults(*op, call, which);
      if (HasFailure())
        return;
    }
  }
};

TEST_F(FusedExpertParallels, AnyRoutingOnAnyNumberOfRanks) {
  for (uint32_t wanted : {1u, 3u, 4u}) {
    if (ranksOnTarget(wanted) != wanted)
      continue;
    start(wanted, seeded(wanted, wanted - 1, 5));
    runCalls(optionsFor(wanted), 6, fmt::format("{} ranks", wanted));
    if (HasFailure())
      return;
  }
}

/// Weights that lie the other way, as gradients need them, and the tensor cores of a Hopper.
TEST_F(FusedExpertParallels, TypesOrdersAndTiles) {
  start(ranksOnTarget(2), seeded(3));
  FusedExpertParallelOptions options = optionsFor(ranks());
  options.dtype = DataType::F16;
  options.addend = false;
  options.dispatchOrder = options.combineOrder = MatrixOrder::Plain;
  options.hidden = 64, options.columns = 72, options.depth = 32, options.maxTokens = 70;
  options.plan = planOf(
      "fused 64x64x32 warps 4 stages 2 group 2 senders 3 unit 8 pace 2 combine 64x64x16 warps 4 stages 3 group 8");
  runCalls(options, 2, "fp16, plain");
  options.dtype = DataType::F32;
  options.dispatchOrder = MatrixOrder::Transposed;
  options.plan = planOf(
      "fused 32x16x16 warps 2 stages 2 group 1 senders 1 unit 1 pace 100 combine 32x32x32 warps 2 stages 2 group 8");
  options.precision = ops::MultiplyPrecision::Ieee;
  runCalls(options, 1, "fp32");
  // Rows that bulk copies move in two parts.
  options = optionsFor(ranks());
  options.hidden = 3600, options.columns = options.depth = 16, options.maxTokens = 3;
  runCalls(options, 1, "long rows");
}

/// As ExpertParallel does it: what there is no room for is dropped, told, and adds nothing; the next call is right again.
TEST_F(FusedExpertParallels, WhatIsTooMuchIsDropped) {
  start(ranksOnTarget(4), seeded(5));
  for (const auto &[capacity, maxRows] : {std::pair(1, 0), std::pair(0, 21), std::pair(3, 40)}) {
    FusedExpertParallelOptions options = optionsFor(ranks());
    options.capacity = capacity;
    options.maxRows = maxRows;
    runCalls(options, 4, fmt::format("capacity {}, at most {} rows", capacity, maxRows));
    if (HasFailure())
      return;
  }
}

/// Under schedules in which ranks, blocks and threads come in other orders and stores come late, with the race detector watching: the bits of sums
/// of fractions, which another order would make others, are the same.
TEST_F(FusedExpertParallels, AnySchedule) {
  if (!isSimulated())
    GTEST_SKIP() << "the simulator draws schedules";
  std::vector<std::vector<float>> first;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    start(4, seeded(seed, seed % 4, 4));
    random.seed(11);
    auto op = FusedExpertParallel::create(world(), sharedJit(), optionsFor(4));
    ASSERT_OK(op);
    Call call = makeCall(*op);
    fill(*op, call, ExpertChoice::Even, true);
    for (uint32_t r = 0; r < 4; ++r)
      for (Buffer *buffer : {&call.a[r], &call.down[r], &call.weights[r], &call.addend[r]})
        ASSERT_OK(
            buffer->uploadFloats(ops::randomValues(buffer->type(), static_cast<int64_t>(buffer->count()), r + 1)));
    for (int again = 0; again < 2; ++again)
      ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(enqueue(*op, me, call, true));
        return me.stream().synchronize();
      }));
    for (uint32_t r = 0; r < 4; ++r) {
      expectFloats(call.c[r], call.expectedC[r], fmt::format("seed {}, rank {}, c", seed, r));
      std::vector<float> out = getFloats(call.out[r]);
      out.resize(call.expectedOut[r].size());
      if (seed == 1)
        first.push_back(out);
      expectSame(out, first[r], fmt::format("seed {}, rank {}, out", seed, r));
    }
    if (HasFailure())
      return;
  }
}

/// A graph of both launches, and a graph of each, replayed with other routings between eager calls, and calls of which nothing comes back; one rank is slow. The number of
/// tokens of the graphs is the capture's.
TEST_F(FusedExpertParallels, ReplaysFollowTheRouting) {
  const uint32_t count = ranksOnTarget(4);
  start(count, seeded(8, count - 1, 5));
  auto op = FusedExpertParallel::create(world(), sharedJit(), optionsFor(count));
  ASSERT_OK(op);
  Call call = makeCall(*op);
  constexpr int64_t tokens = 11;
  fill(*op, call, ExpertChoice::Even, true, tokens);
  const auto capture = [&](const std::function<Status(Rank &)> &enqueued) {
    std::vector<runtime::Graph> graphs;
    for (uint32_t r = 0; r < count; ++r) {
      EXPECT_OK(rank(r).stream().beginCapture());
      EXPECT_OK(enqueued(rank(r)));
      auto graph = rank(r).stream().endCapture();
      EXPECT_OK(graph);
      graphs.push_back(std::move(*graph));
    }
    return graphs;
  };
  EXPECT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(dispatch(*op, rank(0), call).message(), HasSubstr("was not prepared, and the stream is being captured"));
  EXPECT_OK(rank(0).stream().endCapture());
  for (uint32_t r = 0; r < count; ++r)
    ASSERT_OK(op->prepare(rank(r)));
  const std::vector<runtime::Graph> both = capture([&](Rank &me) { return enqueue(*op, me, call, true); }),
                                    dispatches = capture([&](Rank &me) { return dispatch(*op, me, call); }),
                                    combines = capture([&](Rank &me) { return combine(*op, me, call, true); });
  const int replays = isSimulated() ? 8 : 1000;
  for (int replay = 0; replay < replays && !HasFailure(); ++replay) {
    const ExpertChoice choice = expertChoices[draw(0, std::size(expertChoices) - 1)];
    fill(*op, call, choice, true, tokens);
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      if (replay % 4 == 1) {
        DITRON_RETURN_IF_ERROR(dispatch(*op, me, call));
        DITRON_RETURN_IF_ERROR(op->skipCombine(me, me.stream()));
        DITRON_RETURN_IF_ERROR(enqueue(*op, me, call, true));
      } else if (replay % 4 == 2) {
        DITRON_RETURN_IF_ERROR(me.stream().launch(dispatches[me.id()]));
        DITRON_RETURN_IF_ERROR(me.stream().launch(combines[me.id()]));
      } else {
        DITRON_RETURN_IF_ERROR(me.stream().launch(both[me.id()]));
      }
      return me.stream().synchronize();
    }));
    expectResults(*op, call, fmt::format("replay {}, choice {}", replay, static_cast<int>(choice)));
  }
}

TEST_F(FusedExpertParallels, WhatIsRefused) {
  start(ranksOnTarget(2));
  const auto error = [&](auto change) {
    FusedExpertParallelOptions options = optionsFor(ranks());
    change(options);
    return FusedExpertParallel::create(world(), sharedJit(), options).status().message();
  };
  EXPECT_THAT(error([](auto &options) { options.experts = 3; }), HasSubstr("experts is 3; multiples of the"));
  EXPECT_THAT(error([](auto &options) { options.topK = 65; }), HasSubstr("topK is 65; 1 to 64"));
  EXPECT_THAT(error([](auto &options) { options.maxTokens = 0; }), HasSubstr("maxTokens is 0; 1 to"));
  EXPECT_THAT(error([](auto &options) { options.capacity = -1; }), HasSubstr("capacity is -1; 1 to"));
  EXPECT_THAT(error([](auto &options) { options.maxRows = -1; }), HasSubstr("maxRows is -1"));
  EXPECT_THAT(error([](auto &options) { options.concurrentCalls = 0; }), HasSubstr("concurrentCalls is 0"));
  EXPECT_THAT(error([](auto &options) { options.concurrentCalls = 1000; }), HasSubstr("must find a place"));
  EXPECT_THAT(error([](auto &options) { options.hidden = 42; }), HasSubstr("multiples of 8; N="));
  EXPECT_THAT(error([](auto &options) { options.dispatchOrder = MatrixOrder::Plain, options.hidden = 40; }),
              HasSubstr("a multiple of 16 (blockK)"));
  EXPECT_THAT(error([](auto &options) { options.dtype = DataType::I32; }), HasSubstr("i32"));
  for (const auto &[plan, message] :
       {std::pair("fused senders 2", "is not understood; one is written like 'fused 64x64x32"),
        std::pair("fused 64x64x32 warps 4", "is not understood"),
        std::pair("fused 64x64x32 unit 3 combine 64x64x32", "unit 3; powers of two are accepted"),
        std::pair("fused 64x64x32 combine 32x64x32", "tiles of 64 and of 32 rows"),
        std::pair("fused 64x64x32 speed 3 combine 64x64x32", "'speed'")})
    EXPECT_THAT(ops::parseFusedExpertParallelPlan(plan).status().message(), HasSubstr(message)) << plan;
  auto op = FusedExpertParallel::create(world(), sharedJit(), optionsFor(ranks()));
  ASSERT_OK(op);
  EXPECT_EQ(planOf(op->plan().text()), op->plan());
  Call call = makeCall(*op);
  fill(*op, call, ExpertChoice::Even, true, 3);
  EXPECT_THAT(combine(*op, rank(0), call, true).message(), HasSubstr("nothing was dispatched that is not combined"));
  EXPECT_THAT(op->skipCombine(rank(0), rank(0).stream()).message(), HasSubstr("nothing was dispatched"));
  call.tokens[0] = 400;
  EXPECT_THAT(dispatch(*op, rank(0), call).message(), HasSubstr("400 tokens; 0 to"));
  call.tokens[0] = 3;
  ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
    DITRON_RETURN_IF_ERROR(dispatch(*op, me, call));
    EXPECT_THAT(dispatch(*op, me, call).message(), HasSubstr("the one before was not combined yet"));
    DITRON_RETURN_IF_ERROR(combine(*op, me, call, true));
    return me.stream().synchronize();
  }));
  expectResults(*op, call, "after refusals");
}

/// The layer with both launches, against its model in double precision.
class FusedLayer : public ExpertParallelMoeTest {};

TEST_F(FusedLayer, EqualsTheReference) {
  const uint32_t count = ranksOnTarget(4);
  start(count, seeded(3, 0));
  for (bool inPlace : {false, true}) {
    Made made = make({.hidden = 40,
                      .inner = 16,
                      .sharedInner = 24,
                      .experts = 2 * count,
                      .topK = 2,
                      .maxTokens = 18,
                      .fused = FusedExpertParallels::smallPlan()});
    runCalls(made, {{18, 5, 0, 1}, {0, 2, 18, 18}}, inPlace ? "in place" : "shared", inPlace);
    ASSERT_FALSE(HasFailure());
    EXPECT_TRUE(made.layer->isFused());
  }
}

TEST_F(FusedLayer, TablesAndRefusals) {
  start(ranksOnTarget(2));
  const auto created = [&](const ops::ExpertParallelMoeOptions &options) {
    const std::vector<ops::ExpertParallelMoeWeights> weights(ranks());
    return ops::ExpertParallelMoe::create(world(), sharedJit(), options, weights).status().message();
  };
  ops::ExpertParallelMoeOptions options = {
      .hidden = 32, .inner = 16, .experts = 2 * ranks(), .maxTokens = 4, .fused = FusedExpertParallels::smallPlan()};
  options.fp8 = true;
  EXPECT_THAT(created(options), HasSubstr("fused with fp8"));
  options.fp8 = false;
  options.plan = ops::ExpertParallelPlan();
  EXPECT_THAT(created(options), HasSubstr("both a fused plan and one of an exchange"));
  options.plan.reset();
  options.inner = 15;
  EXPECT_THAT(created(options), HasSubstr("multiples of 8; N="));

  // By a table, where the layer can have it.
  const std::string file = testing::TempDir() + "fused.plans";
  std::ofstream(file) << "expert_parallel_moe * * * tokens<=8 : " << FusedExpertParallels::smallPlan().text() << "\n";
  ASSERT_EQ(setenv("DITRON_PLANS", file.c_str(), 1), 0);
  const auto isFused = [&](ops::ExpertParallelMoeOptions wanted) {
    wanted.experts = 2 * ranks();
    std::vector<Buffer> kept;
    std::vector<ops::ExpertParallelMoeWeights> weights;
    for (uint32_t r = 0; r < ranks(); ++r) {
      kept.push_back(zeros(DataType::BF16, 4096, "weights", r));
      const Pointer any = kept.back().pointer();
      weights.push_back({.router = any, .up = any, .down = any});
      if (wanted.fp8)
        weights.back() = {.router = any,
                          .up = any.as(DataType::F8E4NV),
                          .down = any.as(DataType::F8E4NV),
                          .upScale = any.as(DataType::F32),
                          .downScale = any.as(DataType::F32)};
    }
    auto layer = ops::ExpertParallelMoe::create(world(), sharedJit(), wanted, weights);
    EXPECT_OK(layer);
    return layer.isOk() && layer->isFused();
  };
  EXPECT_TRUE(isFused({.hidden = 32, .inner = 16, .maxTokens = 8}));
  EXPECT_FALSE(isFused({.hidden = 32, .inner = 16, .maxTokens = 9}));
  EXPECT_FALSE(isFused({.hidden = 32, .inner = 15, .maxTokens = 8}));
  EXPECT_FALSE(isFused({.hidden = 32, .inner = 16, .maxTokens = 8, .fp8 = true}));
  EXPECT_FALSE(isFused({.hidden = 32, .inner = 16, .maxTokens = 8, .plan = ops::ExpertParallelPlan()}));
  unsetenv("DITRON_PLANS");
}

} // namespace
} // namespace ditron::e2e
