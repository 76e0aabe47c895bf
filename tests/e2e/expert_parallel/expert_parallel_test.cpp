//===- expert_parallel_test.cpp - Tokens to the ranks of their experts, and back -----------------------------------------===//
//
// A plain reference says which row lies where on every rank, bit by bit, and what comes back for every token. Any routing, on one to eight
// ranks whose numbers of tokens differ; capacities that are too small; calls after each other with other routings, also replayed from
// graphs; sending and receiving apart; any schedule.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "expert_parallel/ExpertChoice.h"
#include "collectives/TransferTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/expert_parallel/ExpertParallel.h"
#include "ditron/sim/Machine.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace ditron::e2e {
namespace {

using ops::ExpertParallel;
using ops::ExpertParallelOptions;
using Form = ops::ExpertParallelForm;
using Part = ops::ExpertParallel::Part;
using testing::HasSubstr;

class ExpertParallels : public Transfers, public testing::WithParamInterface<Form> {
protected:
  void SetUp() override {
    if (isTwoLevel() && !isSimulated())
      GTEST_SKIP() << "needs simulated nodes";
  }
  static bool isTwoLevel() { return GetParam() == Form::TwoLevel; }
  /// On two nodes, or more, where the form is for several.
  void start(uint32_t count, WorldOptions options = {}) {
    if (isTwoLevel() && options.ranksPerNode == 0)
      options.ranksPerNode = count % 2 == 0 ? count / 2 : 1;
    Transfers::start(count, options);
  }
  /// By the form under test, with windows that few tokens fill.
  Expected<ExpertParallel> create(World &in, ExpertParallelOptions options) {
    if (!options.plan && !isByTables)
      options.plan = ops::ExpertParallelPlan{GetParam(), 4, 2, 6, 1, 2};
    return ExpertParallel::create(in, sharedJit(), options);
  }
  bool isByTables = false;
  /// One call's memory on all ranks, and what must be in it.
  struct Call {
    std::vector<int64_t> tokens;
    std::vector<Buffer> x, ids, weights, rows, scales, offsets, handle, results, out;
    // Of the reference, by rank.
    std::vector<std::vector<float>> expectedRows, expectedScales, expectedOut;
    std::vector<std::vector<int32_t>> expectedOffsets;
    std::vector<int64_t> came;           ///< Rows, with those that are dropped.
    std::vector<int64_t> droppedOfSlots; ///< Slots of a rank.
  };

  Call makeCall(const ExpertParallel &op, int64_t shift = 0) {
    const ExpertParallelOptions &options = op.options();
    const DataType rowType = options.fp8 ? DataType::F8E4NV : options.dtype;
    const int64_t slots = options.maxTokens * options.topK;
    Call call;
    for (uint32_t r = 0; r < ranks(); ++r) {
      call.tokens.push_back(0);
      call.x.push_back(zeros(options.dtype, options.maxTokens * options.hidden + shift, "x", r));
      call.ids.push_back(zeros(DataType::I32, slots, "ids", r));
      call.weights.push_back(zeros(DataType::F32, slots, "weights", r));
      call.rows.push_back(zeros(rowType, op.maxRows() * options.hidden + shift, "rows", r));
      call.scales.push_back(zeros(DataType::F32, std::max<int64_t>(op.maxRows() * op.scalesOfRow(), 1), "scales", r));
      call.offsets.push_back(zeros(DataType::I32, options.experts / ranks() + 1, "offsets", r));
      call.handle.push_back(zeros(DataType::I32, op.handleElements(), "handle", r));
      call.results.push_back(zeros(options.dtype, op.maxRows() * options.hidden + shift, "results", r));
      call.out.push_back(zeros(options.dtype, options.maxTokens * options.hidden + shift, "out", r));
    }
    return call;
  }

  /// Small integers, and quarters as weights: every sum is exact. `fractions`: values of any kind.
  std::vector<float> drawValues(DataType type, int64_t count, bool fractions) {
    std::vector<float> values(count);
    for (float &value : values)
      value = fractions ? std::uniform_real_distribution<float>(-2, 2)(random) : static_cast<float>(draw(-8, 8));
    return rounded(type, values);
  }
  static std::vector<float> rounded(DataType type, const std::vector<float> &values) {
    return toFloats(type, fromFloats(type, values.data(), values.size()).data(), values.size());
  }

  /// A row as fp8 with its scales.
  static void quantize(const float *row, int64_t hidden, std::vector<float> &values, std::vector<float> &scales) {
    for (int64_t begin = 0; begin < hidden; begin += 128) {
      const int64_t end = std::min(hidden, begin + 128);
      float most = 0;
      for (int64_t i = begin; i < end; ++i)
        most = std::max(most, std::fabs(row[i]));
      const float scale = most > 0 ? most / 448.0f : 1.0f;
      scales.push_back(scale);
      for (int64_t i = begin; i < end; ++i)
        values.push_back(float8E4NVToFloat(floatToFloat8E4NV(row[i] / scale)));
    }
  }

  /// Draws a call and says what must come of it. `weighted`: else weights are ones.
  void fill(const ExpertParallel &op, Call &call, ExpertChoice choice, bool weighted = true, bool fractions = false,
            int64_t shift = 0) {
    const ExpertParallelOptions &options = op.options();
    const int64_t hidden = options.hidden, local = options.experts / ranks();
    struct Row {
      uint32_t source;
      int64_t slot;
    };
    std::vector<std::vector<std::vector<Row>>> rowsOf(ranks(), std::vector<std::vector<Row>>(local));
    std::vector<std::vector<float>> x(ranks()), weights(ranks());
    std::vector<std::vector<int32_t>> chosen(ranks());
    call.droppedOfSlots.assign(ranks(), 0);
    for (uint32_t r = 0; r < ranks(); ++r) {
      const int64_t tokens = call.tokens[r] =
          draw(0, 3) == 0 ? draw(0, 1) * options.maxTokens : draw(0, options.maxTokens);
      const std::vector<int32_t> &ids = chosen[r] = drawExperts(options, ranks(), tokens, choice, random);
      x[r] = drawValues(options.dtype, tokens * hidden, options.fp8 || fractions);
      for (size_t i = 0; i < ids.size(); ++i)
        weights[r].push_back(!weighted   ? 1.0f
                             : fractions ? std::uniform_real_distribution<float>(0, 1)(random)
                                         : static_cast<float>(draw(1, 8)) / 4);
      upload(call.x[r], options.dtype, x[r], shift);
      if (!ids.empty()) {
        EXPECT_OK(call.ids[r].upload(ids.data(), ids.size() * sizeof(int32_t)));
        EXPECT_OK(call.weights[r].upload(weights[r].data(), weights[r].size() * sizeof(float)));
      }
      std::vector<int64_t> sent(options.experts, 0);
      for (size_t slot = 0; slot < ids.size(); ++slot)
        if (ids[slot] >= 0 && ids[slot] < static_cast<int32_t>(options.experts)) {
          if (sent[ids[slot]]++ < options.capacity)
            rowsOf[ids[slot] / local][ids[slot] % local].push_back({r, static_cast<int64_t>(slot)});
          else
            ++call.droppedOfSlots[r];
        }
    }
    for (auto *expected : {&call.expectedRows, &call.expectedScales, &call.expectedOut})
      expected->assign(ranks(), {});
    call.expectedOffsets.assign(ranks(), {0});
    call.came.assign(ranks(), 0);
    std::vector<std::vector<std::vector<float>>> returned(ranks()); // [rank][slot]
    for (uint32_t r = 0; r < ranks(); ++r)
      returned[r].resize(call.tokens[r] * options.topK);
    for (uint32_t r = 0; r < ranks(); ++r) {
      const std::vector<float> results = drawValues(options.dtype, op.maxRows() * hidden, fractions);
      upload(call.results[r], options.dtype, results, shift);
      for (int64_t expert = 0; expert < local; ++expert) {
        for (const Row &row : rowsOf[r][expert]) {
          const int64_t at = call.came[r]++;
          if (at >= op.maxRows())
            continue;
          const float *from = x[row.source].data() + row.slot / options.topK * hidden;
          if (options.fp8)
            quantize(from, hidden, call.expectedRows[r], call.expectedScales[r]);
          else
            call.expectedRows[r].insert(call.expectedRows[r].end(), from, from + hidden);
          returned[row.source][row.slot].assign(results.begin() + at * hidden, results.begin() + (at + 1) * hidden);
        }
        call.expectedOffsets[r].push_back(static_cast<int32_t>(std::min(call.came[r], op.maxRows())));
      }
    }
    for (uint32_t r = 0; r < ranks(); ++r) {
      // What a rank, or a node, adds up it rounds before it sends.
      const bool hasSums = op.plan().form != Form::LowLatency;
      const int64_t ofSum = local * (op.plan().form == Form::TwoLevel ? world().ranksPerNode() : 1); // experts
      const auto ownNode = op.plan().form == Form::TwoLevel ? std::optional(world().nodeOf(r)) : std::nullopt;
      for (int64_t i = 0; i < call.tokens[r] * hidden; ++i) {
        float sum = 0;
        std::vector<float> sums(ranks(), 0.0f);
        for (uint32_t j = 0; j < options.topK; ++j) {
          const int64_t slot = i / hidden * options.topK + j;
          if (!returned[r][slot].empty())
            (hasSums ? sums[chosen[r][slot] / ofSum] : sum) += returned[r][slot][i % hidden] * weights[r][slot];
        }
        const std::vector<float> sent = rounded(options.dtype, sums);
        for (uint32_t part = 0; part < sums.size(); ++part)
          sum += part == ownNode ? sums[part] : sent[part];
        call.expectedOut[r].push_back(sum);
      }
      call.expectedOut[r] = rounded(options.dtype, call.expectedOut[r]);
      // What is not written, and what is written too much, shows.
      for (Buffer *buffer : {&call.rows[r], &call.scales[r], &call.offsets[r], &call.handle[r], &call.out[r]}) {
        const Bytes other(buffer->bytes(), std::byte{0x5a});
        EXPECT_OK(buffer->upload(other.data(), other.size()));
      }
    }
  }
  static void upload(Buffer &buffer, DataType type, const std::vector<float> &values, int64_t shift) {
    std::vector<float> all(buffer.count(), 0.0f);
    std::ranges::copy(values, all.begin() + shift);
    const std::vector<std::byte> bytes = fromFloats(type, all.data(), all.size());
    EXPECT_OK(buffer.upload(bytes.data(), bytes.size()));
  }

  Status dispatch(ExpertParallel &op, Rank &me, const Call &call, bool weighted = true, Part part = Part::Whole,
                  int64_t shift = 0) {
    const uint32_t r = me.id();
    return op.dispatch(me, me.stream(),
                       {.x = call.x[r].pointer() + shift,
                        .tokens = call.tokens[r],
                        .ids = call.ids[r],
                        .weights = weighted ? call.weights[r].pointer() : Pointer(),
                        .rows = call.rows[r].pointer() + shift,
                        .scales = op.options().fp8 ? call.scales[r].pointer() : Pointer(),
                        .offsets = call.offsets[r],
                        .handle = call.handle[r]},
                       part);
  }
  Status combine(ExpertParallel &op, Rank &me, const Call &call, Part part = Part::Whole, int64_t shift = 0) {
    const uint32_t r = me.id();
    return op.combine(me, me.stream(),
                      {.rows = call.results[r].pointer() + shift,
                       .out = call.out[r].pointer() + shift,
                       .tokens = call.tokens[r],
                       .handle = call.handle[r]},
                      part);
  }

  /// The first elements of a buffer, and that the others are as they were.
  void expectFloats(const Buffer &buffer, DataType type, const std::vector<float> &expected, int64_t shift,
                    double tolerance, const std::string &what) {
    Bytes bytes(buffer.bytes());
    EXPECT_OK(buffer.download(bytes.data(), bytes.size()));
    std::vector<float> actual = toFloats(type, bytes.data(), buffer.count());
    const size_t first = shift * sizeOf(type), last = first + expected.size() * sizeOf(type);
    ASSERT_LE(last, bytes.size()) << what;
    for (size_t i = 0; i < bytes.size(); ++i)
      if (i < first || i >= last)
        ASSERT_EQ(bytes[i], std::byte{0x5a}) << what << ": byte " << i << " is no result and was written";
    actual = std::vector<float>(actual.begin() + shift, actual.begin() + shift + expected.size());
    if (tolerance == 0)
      expectSame(actual, expected, what);
    else
      expectClose(actual, convertAll<double>(expected), tolerance, tolerance, what);
  }

  void expectResults(ExpertParallel &op, const Call &call, const std::string &what, bool combined = true,
                     double tolerance = 0, int64_t shift = 0) {
    const ExpertParallelOptions &options = op.options();
    for (uint32_t r = 0; r < ranks(); ++r) {
      const std::string where = fmt::format("{}, rank {}", what, r);
      const bool drops = call.droppedOfSlots[r] > 0 || call.came[r] > op.maxRows();
      EXPECT_EQ(op.check(rank(r)).isOk(), !drops) << where;
      expectSame(get<int32_t>(call.offsets[r]), call.expectedOffsets[r], where + ", offsets");
      expectFloats(call.rows[r], options.fp8 ? DataType::F8E4NV : options.dtype, call.expectedRows[r], shift, 0,
                   where + ", rows");
      if (options.fp8)
        expectFloats(call.scales[r], DataType::F32, call.expectedScales[r], 0, 0, where + ", scales");
      if (combined)
        expectFloats(call.out[r], options.dtype, call.expectedOut[r], shift, tolerance, where + ", out");
      if (HasFailure())
        return;
    }
  }

  /// Calls after each other with other routings, of one operator.
  void runCalls(const ExpertParallelOptions &options, int calls, const std::string &what, int64_t shift = 0) {
    auto op = create(world(), options);
    ASSERT_OK(op);
    for (uint32_t r = 0; r < ranks(); ++r)
      ASSERT_OK(op->prepare(rank(r)));
    Call call = makeCall(*op, shift);
    for (int i = 0; i < calls; ++i) {
      const ExpertChoice choice = expertChoices[draw(0, std::size(expertChoices) - 1)];
      const bool weighted = draw(0, 3) > 0;
      fill(*op, call, choice, weighted, false, shift);
      const std::string which = fmt::format("{}, call {}, choice {}", what, i, static_cast<int>(choice));
      const Status ran = world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(dispatch(*op, me, call, weighted, Part::Whole, shift));
        DITRON_RETURN_IF_ERROR(combine(*op, me, call, Part::Whole, shift));
        return me.stream().synchronize();
      });
      ASSERT_TRUE(ran.isOk()) << which << ": " << ran.message();
      expectResults(*op, call, which, true, 0, shift);
      if (HasFailure())
        return;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Forms, ExpertParallels,
                         testing::Values(Form::LowLatency, Form::HighThroughput, Form::TwoLevel), [](const auto &info) {
                           return info.param == Form::LowLatency       ? "LowLatency"
                                  : info.param == Form::HighThroughput ? "HighThroughput"
                                                                       : "TwoLevel";
                         });

TEST_P(ExpertParallels, AnyRoutingOnOneToEightRanks) {
  for (uint32_t wanted = 1; wanted <= 8; ++wanted) {
    if (ranksOnTarget(wanted) != wanted || (isTwoLevel() && wanted == 1))
      continue;
    start(wanted, seeded(wanted, wanted - 1, 5));
    for (const auto &[local, topK, tokens, hidden] :
         {std::tuple(1u, 1u, 7, 40), std::tuple(3u, 2u, 12, 16), std::tuple(4u, 5u, 5, 131)}) {
      const ExpertParallelOptions options{
          .hidden = hidden, .experts = local * wanted, .topK = topK, .maxTokens = tokens};
      runCalls(options, 3, fmt::format("{} ranks, top {} of {}, rows of {}", wanted, topK, options.experts, hidden));
      if (HasFatalFailure() || HasFailure())
        return;
    }
  }
}

TEST_P(ExpertParallels, TypesAndAlignments) {
  start(ranksOnTarget(2), seeded(3));
  // The types take turns: each meets every other choice.
  constexpr DataType types[] = {DataType::BF16, DataType::F16, DataType::F32};
  size_t number = 0;
  for (bool fp8 : {false, true})
    for (int64_t hidden : {1, 128, 200, 1040})
      for (int64_t shift : {0, 1}) {
        const DataType dtype = types[number++ % std::size(types)];
        runCalls({.hidden = hidden, .experts = 6, .topK = 3, .maxTokens = 6, .dtype = dtype, .fp8 = fp8}, 2,
                 fmt::format("{}{}, rows of {}, shifted by {}", toString(dtype), fp8 ? " as fp8" : "", hidden, shift),
                 shift);
        if (HasFatalFailure() || HasFailure())
          return;
      }
}

/// What is more than there is room for is dropped, told, and adds nothing; all else of the call is right, and the next call too.
TEST_P(ExpertParallels, WhatIsTooMuchIsDropped) {
  start(ranksOnTarget(4), seeded(5));
  for (const auto &[capacity, maxRows] : {std::pair(1, 0), std::pair(3, 0), std::pair(0, 5), std::pair(2, 9)}) {
    runCalls({.hidden = 24, .experts = 8, .topK = 3, .maxTokens = 10, .capacity = capacity, .maxRows = maxRows}, 8,
             fmt::format("capacity {}, at most {} rows", capacity, maxRows));
    if (HasFatalFailure() || HasFailure())
      return;
  }
  auto op = create(world(), {.hidden = 8, .experts = 4, .maxTokens = 5, .capacity = 3, .maxRows = 2});
  ASSERT_OK(op);
  Call call = makeCall(*op);
  // Five tokens of rank 0 to expert 1, none of the others.
  for (uint32_t r = 0; r < ranks(); ++r)
    call.tokens[r] = r == 0 ? 5 : 0;
  const std::vector<int32_t> ids(5, 1);
  ASSERT_OK(call.ids[0].upload(ids.data(), ids.size() * sizeof(int32_t)));
  ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
    DITRON_RETURN_IF_ERROR(dispatch(*op, me, call, false));
    DITRON_RETURN_IF_ERROR(combine(*op, me, call));
    return me.stream().synchronize();
  }));
  const uint32_t receiver = 1 / (4 / ranks());
  if (receiver != 0)
    EXPECT_THAT(op->check(rank(0)).message(),
                HasSubstr("expert_parallel on rank 0: 5 of its slots chose expert 1; the first 3"));
  EXPECT_THAT(op->check(rank(receiver)).message(),
              receiver != 0 ? HasSubstr("3 rows came for its experts; the first 2 (maxRows)") : HasSubstr("first"));
  EXPECT_OK(op->check(rank(receiver)));
}

/// Under schedules in which ranks, blocks and threads come in other orders and stores come late; the race detector watches.
TEST_P(ExpertParallels, AnySchedule) {
  if (!isSimulated())
    GTEST_SKIP() << "the simulator draws schedules";
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    start(4, seeded(seed, seed % 4, 3));
    runCalls({.hidden = 48, .experts = 8, .topK = 2, .maxTokens = 9, .fp8 = seed % 3 == 0}, 3,
             fmt::format("seed {}", seed));
    if (HasFatalFailure() || HasFailure())
      return;
  }
}

/// Many more tokens than rings have room for, from ranks of which some have none and one is slow: whoever is ahead waits.
TEST_P(ExpertParallels, RingsThatFill) {
  if (GetParam() != Form::HighThroughput)
    GTEST_SKIP() << "has no rings";
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const uint32_t count = ranksOnTarget(4);
    start(count, seeded(seed, seed % count, 6));
    runCalls({.hidden = 24,
              .experts = 2 * count,
              .topK = 2,
              .maxTokens = 60,
              .plan = ops::ExpertParallelPlan{Form::HighThroughput, 2, 1, seed % 2 ? 2u : 4u, 2, seed % 3 ? 1u : 3u}},
             3, fmt::format("seed {}", seed));
    if (HasFatalFailure() || HasFailure())
      return;
  }
}

/// Fractions, whose sum is another in another order: the bits are the same whatever the schedule.
TEST_P(ExpertParallels, SlotsAreAddedInTheirOrder) {
  const ExpertParallelOptions options{.hidden = 64, .experts = 8, .topK = 8, .maxTokens = 4, .dtype = DataType::F32};
  std::vector<std::vector<float>> first;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    start(ranksOnTarget(4), seeded(seed, seed % ranksOnTarget(4), 4));
    auto op = create(world(), options);
    ASSERT_OK(op);
    random.seed(11);
    Call call = makeCall(*op);
    fill(*op, call, ExpertChoice::Even, true, true);
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(dispatch(*op, me, call));
      DITRON_RETURN_IF_ERROR(combine(*op, me, call));
      return me.stream().synchronize();
    }));
    expectResults(*op, call, fmt::format("seed {}", seed), true, 1e-5);
    std::vector<std::vector<float>> got;
    for (const Buffer &out : call.out)
      got.push_back(getFloats(out));
    if (seed == 1)
      first = got;
    for (uint32_t r = 0; r < ranks(); ++r) {
      got[r].resize(call.tokens[r] * options.hidden);
      first[r].resize(call.tokens[r] * options.hidden);
      expectSame(got[r], first[r], fmt::format("seed {}, rank {}", seed, r));
    }
    if (HasFailure())
      return;
  }
}

/// With what the library chooses, at sizes that use it.
TEST_P(ExpertParallels, LibraryPlan) {
  start(ranksOnTarget(4));
  isByTables = true;
  const bool isFew = GetParam() == Form::LowLatency;
  const int64_t tokens = isSimulated() ? (isFew ? 32 : 70) : (isFew ? 128 : 4096);
  const auto op = create(world(), {.hidden = 8, .experts = 8, .maxTokens = tokens});
  ASSERT_OK(op);
  EXPECT_EQ(op->plan().form, GetParam());
  for (bool fp8 : {false, true}) {
    runCalls({.hidden = isSimulated() ? 512 : 7168,
              .experts = isSimulated() ? 64u : 256u,
              .topK = 8,
              .maxTokens = tokens,
              .fp8 = fp8},
             2, fp8 ? "fp8" : "bf16");
    if (HasFatalFailure() || HasFailure())
      return;
  }
}

/// Two dispatches and their combines in one graph, replayed with other ids and other values each time, between eager calls; one rank is slow.
/// The numbers of tokens are those of the capture, so ids of -1 stand for tokens that are not there.
TEST_P(ExpertParallels, GraphsWhoseRoutingChanges) {
  start(ranksOnTarget(4), seeded(6, ranksOnTarget(4) - 1, 3));
  const ExpertParallelOptions options{.hidden = 32, .experts = 8, .topK = 2, .maxTokens = 6, .capacity = 12};
  auto op = create(world(), options);
  ASSERT_OK(op);
  Call first = makeCall(*op), second = makeCall(*op);
  for (uint32_t r = 0; r < ranks(); ++r)
    ASSERT_OK(op->prepare(rank(r)));
  const auto callBoth = [&](Rank &me) -> Status {
    DITRON_RETURN_IF_ERROR(dispatch(*op, me, first));
    DITRON_RETURN_IF_ERROR(dispatch(*op, me, second));
    DITRON_RETURN_IF_ERROR(combine(*op, me, second));
    return combine(*op, me, first);
  };
  const auto fillAll = [&](Call &call) {
    fill(*op, call, expertChoices[draw(0, std::size(expertChoices) - 1)]);
    // The graph's number of tokens is the most there can be.
    for (uint32_t r = 0; r < ranks(); ++r) {
      std::vector<int32_t> ids = get<int32_t>(call.ids[r]);
      std::fill(ids.begin() + call.tokens[r] * options.topK, ids.end(), -1);
      ASSERT_OK(call.ids[r].upload(ids.data(), call.ids[r].bytes()));
      call.expectedOut[r].resize(options.maxTokens * options.hidden, 0.0f);
      call.tokens[r] = options.maxTokens;
    }
  };
  std::vector<runtime::Graph> graphs;
  fillAll(first), fillAll(second);
  for (uint32_t r = 0; r < ranks(); ++r) {
    ASSERT_OK(rank(r).stream().beginCapture());
    ASSERT_OK(callBoth(rank(r)));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(*graph);
  }
  const int replays = isSimulated() ? 12 : 1000;
  for (int replay = 0; replay < replays; ++replay) {
    fillAll(first), fillAll(second);
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(me.stream().launch(graphs[me.id()]));
      if (replay % 3 == 0)
        DITRON_RETURN_IF_ERROR(callBoth(me));
      return me.stream().synchronize();
    }));
    expectResults(*op, first, fmt::format("replay {}, first", replay));
    expectResults(*op, second, fmt::format("replay {}, second", replay));
    if (HasFailure())
      return;
  }
}

/// Sending, then the work of the call before, then receiving: two calls are on their way at once. Also captured.
TEST_P(ExpertParallels, SendNowReceiveLater) {
  if (!hasParts(GetParam()))
    GTEST_SKIP() << "sends and receives in one launch";
  for (uint64_t seed : {1, 2, 3, 4}) {
    const uint32_t count = ranksOnTarget(4);
    start(count, seeded(seed, seed % count, 4));
    auto op = create(world(), {.hidden = 40, .experts = 2 * count, .topK = 3, .maxTokens = 8});
    ASSERT_OK(op);
    for (uint32_t r = 0; r < ranks(); ++r)
      ASSERT_OK(op->prepare(rank(r), true));
    std::vector<Call> calls;
    for (int i = 0; i < 5; ++i) {
      calls.push_back(makeCall(*op));
      fill(*op, calls.back(), i % 2 ? ExpertChoice::SomeNowhere : ExpertChoice::Even);
    }
    const auto enqueue = [&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(dispatch(*op, me, calls[0], true, Part::Send));
      for (size_t i = 0; i < calls.size(); ++i) {
        DITRON_RETURN_IF_ERROR(dispatch(*op, me, calls[i], true, Part::Receive));
        if (i + 1 < calls.size())
          DITRON_RETURN_IF_ERROR(dispatch(*op, me, calls[i + 1], true, Part::Send));
        if (i > 0)
          DITRON_RETURN_IF_ERROR(combine(*op, me, calls[i - 1], Part::Receive));
        DITRON_RETURN_IF_ERROR(combine(*op, me, calls[i], Part::Send));
      }
      return combine(*op, me, calls.back(), Part::Receive);
    };
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(enqueue(me));
      return me.stream().synchronize();
    }));
    for (size_t i = 0; i < calls.size(); ++i)
      expectResults(*op, calls[i], fmt::format("seed {}, call {}", seed, i));
    std::vector<runtime::Graph> graphs;
    for (uint32_t r = 0; r < ranks(); ++r) {
      ASSERT_OK(rank(r).stream().beginCapture());
      ASSERT_OK(enqueue(rank(r)));
      auto graph = rank(r).stream().endCapture();
      ASSERT_OK(graph);
      graphs.push_back(*graph);
    }
    for (int replay = 0; replay < 2; ++replay) {
      ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(me.stream().launch(graphs[me.id()]));
        return me.stream().synchronize();
      }));
      for (size_t i = 0; i < calls.size(); ++i)
        expectResults(*op, calls[i], fmt::format("seed {}, replay {}, call {}", seed, replay, i));
    }
    if (HasFailure())
      return;
  }
}

/// Whoever dispatches without combining, or combines more often than it dispatches, is as right.
TEST_P(ExpertParallels, DispatchesWithoutCombines) {
  start(ranksOnTarget(4), seeded(9, 0, 6));
  auto op = create(world(), {.hidden = 16, .experts = 8, .topK = 2, .maxTokens = 5});
  ASSERT_OK(op);
  std::vector<Call> calls;
  for (int i = 0; i < 6; ++i) {
    calls.push_back(makeCall(*op));
    fill(*op, calls.back(), ExpertChoice::Even);
  }
  // Without a pause, so that fast ranks run ahead as far as they may.
  ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
    for (const Call &call : calls)
      DITRON_RETURN_IF_ERROR(dispatch(*op, me, call));
    for (int twice = 0; twice < 2; ++twice)
      for (const Call &call : calls)
        DITRON_RETURN_IF_ERROR(combine(*op, me, call));
    return me.stream().synchronize();
  }));
  for (size_t i = 0; i < calls.size(); ++i)
    expectResults(*op, calls[i], fmt::format("call {}", i));
}

/// Ranks on several nodes, between which puts overtake each other.
TEST_P(ExpertParallels, BetweenNodes) {
  if (!isSimulated())
    GTEST_SKIP() << "needs simulated nodes";
  for (const auto &[count, ofNode] :
       {std::pair(2u, 1u), std::pair(4u, 2u), std::pair(6u, 3u), std::pair(6u, 2u), std::pair(8u, 2u)})
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      WorldOptions nodes = seeded(seed, seed % count, 3);
      nodes.ranksPerNode = ofNode;
      start(count, nodes);
      if (GetParam() == Form::HighThroughput) {
        EXPECT_THAT(create(world(), {.hidden = 8, .experts = 8, .maxTokens = 4}).status().message(),
                    HasSubstr("expert_parallel by high_throughput on 2 nodes"));
        return;
      }
      for (bool fp8 : {false, true}) {
        runCalls(
            {.hidden = 131, .experts = 2 * count, .topK = 3, .maxTokens = 7, .fp8 = fp8, .maxRows = seed % 2 ? 0 : 20},
            3, fmt::format("{} ranks, {} of a node, seed {}{}", count, ofNode, seed, fp8 ? ", fp8" : ""));
        if (HasFatalFailure() || HasFailure())
          return;
      }
    }
}

/// Two and four nodes of up to 16 ranks.
TEST_P(ExpertParallels, ManyRanksBetweenNodes) {
  if (!isTwoLevel())
    GTEST_SKIP() << "a form of one node";
  for (const auto &[count, ofNode] :
       {std::pair(16u, 8u), std::pair(16u, 4u), std::pair(32u, 8u), std::pair(64u, 16u)}) {
    WorldOptions nodes = seeded(count + ofNode, 3, 3);
    nodes.ranksPerNode = ofNode;
    start(count, nodes);
    runCalls({.hidden = 40,
              .experts = 2 * count,
              .topK = 4,
              .maxTokens = 5,
              .plan = ops::ExpertParallelPlan{Form::TwoLevel, 2, 1, 2, 1}},
             2, fmt::format("{} ranks, {} of a node", count, ofNode));
    if (HasFatalFailure() || HasFailure())
      return;
  }
}

/// By two_level a token goes to another node once, and one sum comes back, however many of its experts are there; by low_latency to each rank of them once,
/// and all their results come back.
TEST_P(ExpertParallels, WhatGoesOverTheWire) {
  if (!isSimulated() || GetParam() == Form::HighThroughput)
    GTEST_SKIP() << "needs simulated nodes";
  WorldOptions nodes = seeded(0);
  nodes.ranksPerNode = 2;
  start(4, nodes);
  constexpr int64_t hidden = 1024, tokens = 6;
  auto op = create(world(), {.hidden = hidden, .experts = 16, .topK = 4, .maxTokens = tokens});
  ASSERT_OK(op);
  Call call = makeCall(*op);
  // All four experts of each token of rank 0 are on the other node, two on each of its ranks; the other ranks have none.
  fill(*op, call, ExpertChoice::Nowhere);
  call.tokens.assign(4, 0);
  call.tokens[0] = tokens;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < tokens * 4; ++i)
    ids.push_back(8 + (i / 4 + 2 * i) % 8);
  ASSERT_OK(call.ids[0].upload(ids.data(), ids.size() * sizeof(int32_t)));
  ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
    DITRON_RETURN_IF_ERROR(dispatch(*op, me, call, false));
    DITRON_RETURN_IF_ERROR(combine(*op, me, call));
    return me.stream().synchronize();
  }));
  const uint64_t row = hidden * sizeOf(DataType::BF16), bytes = world().machine()->counters().networkBytes;
  const uint64_t rows = isTwoLevel() ? 2 * tokens : (2 + 4) * tokens;
  EXPECT_GE(bytes, rows * row);
  EXPECT_LT(bytes, (rows + 2) * row) << "more than the rows and what is told of them";
}

/// Two groups that share ranks, each on streams of its own.
TEST_P(ExpertParallels, GroupsOnOverlappingRanks) {
  REQUIRE_RANKS(4);
  for (uint64_t seed : {1, 2}) {
    start(isTwoLevel() ? 8 : 4, seeded(seed, static_cast<uint32_t>(seed)));
    const std::vector<std::vector<uint32_t>> members =
        isTwoLevel() ? std::vector<std::vector<uint32_t>>{{0, 1, 4, 5}, {1, 2, 5, 6}}
                     : std::vector<std::vector<uint32_t>>{{0, 1, 2}, {2, 3, 1}};
    std::vector<std::unique_ptr<World>> groups;
    std::vector<ExpertParallel> operators;
    std::vector<std::vector<runtime::Stream>> streams(members.size());
    std::vector<std::vector<Buffer>> x(members.size()), ids(members.size()), rows(members.size()),
        offsets(members.size()), handles(members.size()), out(members.size());
    const ExpertParallelOptions options{
        .hidden = 16, .experts = 12, .topK = 2, .maxTokens = 7, .dtype = DataType::F32, .concurrentCalls = 2};
    for (size_t g = 0; g < members.size(); ++g) {
      auto group = world().group(members[g]);
      ASSERT_OK(group);
      groups.push_back(std::move(*group));
      auto op = create(*groups[g], options);
      ASSERT_OK(op);
      operators.push_back(std::move(*op));
      for (uint32_t r = 0; r < members[g].size(); ++r) {
        ASSERT_OK(operators[g].prepare(groups[g]->rank(r)));
        auto stream = groups[g]->rank(r).createStream("group");
        ASSERT_OK(stream);
        streams[g].push_back(std::move(*stream));
        const uint32_t id = members[g][r];
        x[g].push_back(
            putAs(DataType::F32, drawValues(DataType::F32, options.maxTokens * options.hidden, false), "x", id));
        ids[g].push_back(
            put<int32_t>(convertAll<int32_t>(randomIntegers(options.maxTokens * 2, seed + r, 0, 11)), "ids", id));
        rows[g].push_back(zeros(DataType::F32, operators[g].maxRows() * options.hidden, "rows", id));
        offsets[g].push_back(zeros(DataType::I32, 5, "offsets", id));
        handles[g].push_back(zeros(DataType::I32, operators[g].handleElements(), "handle", id));
        out[g].push_back(zeros(DataType::F32, options.maxTokens * options.hidden, "out", id));
      }
    }
    for (int calls = 0; calls < 3; ++calls)
      for (uint32_t r = 0; r < members[0].size(); ++r)
        for (size_t turn = 0; turn < members.size(); ++turn) {
          const size_t g = (turn + r) % members.size();
          Rank &me = groups[g]->rank(r);
          ASSERT_OK(operators[g].dispatch(
              me, streams[g][r],
              {x[g][r], options.maxTokens, ids[g][r], {}, rows[g][r], {}, offsets[g][r], handles[g][r]}));
          ASSERT_OK(operators[g].combine(me, streams[g][r], {rows[g][r], out[g][r], options.maxTokens, handles[g][r]}));
        }
    ASSERT_OK(world().synchronize());
    // Experts that give back what they get: each token twice.
    for (size_t g = 0; g < members.size(); ++g)
      for (uint32_t r = 0; r < members[g].size(); ++r) {
        std::vector<float> expected = getFloats(x[g][r]);
        for (float &value : expected)
          value *= 2;
        expectSame(getFloats(out[g][r]), expected, fmt::format("seed {}, group {}, rank {}", seed, g, r));
      }
    if (HasFailure())
      return;
  }
}

TEST_P(ExpertParallels, Refusals) {
  start(ranksOnTarget(2));
  const auto error = [&](const ExpertParallelOptions &options) {
    auto made = create(world(), options);
    return made.isOk() ? std::string() : std::string(made.status().message());
  };
  ExpertParallelOptions good{.hidden = 8, .experts = 4, .topK = 2, .maxTokens = 4};
  const auto with = [&](auto change) {
    ExpertParallelOptions options = good;
    change(options);
    return error(options);
  };
  EXPECT_EQ(error(good), "");
  EXPECT_THAT(with([](auto &o) { o.hidden = 0; }), HasSubstr("expert_parallel: hidden is 0; 1 to"));
  if (ranks() == 2)
    EXPECT_THAT(with([](auto &o) { o.experts = 5; }), HasSubstr("experts is 5; multiples of the 2 ranks up to 1024"));
  EXPECT_THAT(with([](auto &o) { o.experts = 2048; }), HasSubstr("experts is 2048"));
  EXPECT_THAT(with([](auto &o) { o.topK = 0; }), HasSubstr("topK is 0; 1 to 64"));
  EXPECT_THAT(with([](auto &o) { o.maxTokens = 0; }), HasSubstr("maxTokens is 0; 1 to"));
  EXPECT_THAT(with([](auto &o) { o.capacity = 9; }), HasSubstr("capacity is 9; 1 to 8 (maxTokens * topK)"));
  EXPECT_THAT(with([](auto &o) { o.maxRows = -1; }), HasSubstr("maxRows is -1"));
  EXPECT_THAT(with([](auto &o) { o.concurrentCalls = 0; }), HasSubstr("concurrentCalls is 0"));
  EXPECT_THAT(with([](auto &o) { o.dtype = DataType::I32; }), HasSubstr("i32"));
  EXPECT_THAT(with([](auto &o) { o.plan = ops::ExpertParallelPlan{Form::HighThroughput, 3}; }),
              HasSubstr("3 blocks; high_throughput has two for each channel"));
  EXPECT_THAT(with([](auto &o) { o.plan = ops::ExpertParallelPlan{.numWarps = 3}; }),
              HasSubstr("3 warps; powers of two"));
  auto op = create(world(), good);
  ASSERT_OK(op);
  Call call = makeCall(*op);
  fill(*op, call, ExpertChoice::Nowhere);
  call.tokens[0] = 5;
  EXPECT_THAT(dispatch(*op, rank(0), call).message(), HasSubstr("dispatch: 5 tokens; 0 to 4 (maxTokens) are accepted"));
  call.tokens[0] = 4;
  EXPECT_THAT(op->dispatch(rank(0), rank(0).stream(),
                           {call.ids[0], 1, call.ids[0], {}, call.rows[0], {}, call.offsets[0], call.handle[0]})
                  .message(),
              HasSubstr("operand x is of type i32"));
  EXPECT_THAT(op->combine(rank(0), rank(0).stream(), {call.rows[0], call.out[0], 1, {}}).message(),
              HasSubstr("handle"));
  const bool parts = hasParts(GetParam());
  const auto refused = HasSubstr(parts ? "a Receive, but nothing was sent" : "low_latency has Send and Receive");
  EXPECT_THAT(dispatch(*op, rank(0), call, true, Part::Receive).message(), refused);
  EXPECT_THAT(combine(*op, rank(0), call, Part::Receive).message(), refused);
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(dispatch(*op, rank(0), call).message(), HasSubstr("call prepare"));
  EXPECT_THAT(combine(*op, rank(0), call).message(), HasSubstr("call prepare"));
  (void)rank(0).stream().endCapture();
  if (!parts)
    return;
  ASSERT_OK(op->prepare(rank(0)));
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(dispatch(*op, rank(0), call, true, Part::Send).message(),
              HasSubstr("Send, x at multiples of 16 bytes was not prepared"));
  (void)rank(0).stream().endCapture();
  // Refused before anything is enqueued: the calls above have changed nothing.
  for (uint32_t r = 0; r < ranks(); ++r)
    ASSERT_OK(dispatch(*op, rank(r), call, true, Part::Send));
  EXPECT_THAT(dispatch(*op, rank(0), call).message(),
              HasSubstr("sent and not received yet; enqueue its Receive first"));
  for (uint32_t r = 0; r < ranks(); ++r)
    ASSERT_OK(dispatch(*op, rank(r), call, true, Part::Receive));
  ASSERT_OK(world().synchronize());
  expectResults(*op, call, "after refusals", false);
}

} // namespace
} // namespace ditron::e2e
