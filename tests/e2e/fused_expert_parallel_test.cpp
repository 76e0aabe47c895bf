//===- fused_expert_parallel_test.cpp - Products of experts beside the exchange of their tokens -----------------------------===//
//
// Operands are small integers, so that every sum is exact: plain loops say each bit of what both launches leave, whatever the routing, the types, the
// orders of the weights, the plan, the schedule, and what came before.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "MoeReference.h"
#include "TransferTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/expert_parallel/FusedExpertParallel.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::FusedExpertParallel;
using ops::FusedExpertParallelOptions;
using ops::MatrixOrder;
using testing::HasSubstr;

/// How tokens choose, besides MoeReference.h's ways.
enum class Choice { Even, OneExpert, OneRank, SomeNowhere, Nowhere, Twice };
constexpr Choice choices[] = {Choice::Even,        Choice::OneExpert, Choice::OneRank,
                              Choice::SomeNowhere, Choice::Nowhere,   Choice::Twice};

class FusedExpertParallels : public Transfers {
protected:
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
  std::vector<int32_t> drawIds(const FusedExpertParallelOptions &options, int64_t tokens, Choice choice) {
    const auto experts = static_cast<int32_t>(options.experts);
    std::vector<int32_t> ids, all(experts);
    std::iota(all.begin(), all.end(), 0);
    for (int64_t token = 0; token < tokens; ++token) {
      std::ranges::shuffle(all, random);
      for (uint32_t j = 0; j < options.topK; ++j) {
        int32_t id = all[j % experts];
        if (choice == Choice::OneExpert)
          id = j == 0 ? experts - 1 : -1;
        if (choice == Choice::OneRank)
          id %= experts / static_cast<int32_t>(ranks());
        if (choice == Choice::SomeNowhere && draw(0, 2) == 0)
          id = draw(0, 1) ? -1 : static_cast<int32_t>(draw(experts, experts + 3));
        if (choice == Choice::Nowhere)
          id = -1;
        if (choice == Choice::Twice)
          id = all[0];
        ids.push_back(id);
      }
    }
    return ids;
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
  void fill(const FusedExpertParallel &op, Call &call, Choice choice, bool weighted,
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
      const std::vector<int32_t> ids = drawIds(options, call.tokens[r], choice);
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

  Status enqueue(FusedExpertParallel &op, Rank &me, const Call &call, bool weighted) {
    const uint32_t r = me.id();
    DITRON_RETURN_IF_ERROR(op.dispatchGemm(
        me, me.stream(),
        {.x = call.x[r], .tokens = call.tokens[r], .ids = call.ids[r], .b = call.up[r], .c = call.c[r]}));
    return op.gemmCombine(me, me.stream(),
                          {.a = call.a[r],
                           .b = call.down[r],
                           .out = call.out[r],
                           .tokens = call.tokens[r],
                           .weights = weighted ? call.weights[r].pointer() : Pointer(),
                           .addend = call.addend[r]});
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
      const Choice choice = choices[draw(0, std::size(choices) - 1)];
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
  for (uint32_t wanted : {1u, 2u, 3u, 4u, 8u}) {
    if (ranksOnTarget(wanted) != wanted)
      continue;
    start(wanted, seeded(wanted, wanted - 1, 5));
    for (const auto &[local, topK, tokens] : {std::tuple(1u, 1u, 7), std::tuple(3u, 2u, 20), std::tuple(4u, 5u, 5)}) {
      runCalls({.hidden = 48, .columns = 40, .depth = 24, .experts = local * wanted, .topK = topK, .maxTokens = tokens},
               2, fmt::format("{} ranks, top {} of {}", wanted, topK, local * wanted));
      if (HasFailure())
        return;
    }
  }
}

} // namespace
} // namespace ditron::e2e
