//===- transfers_test.cpp - Uneven all-to-all, messages and barrier through the interface ------------------------===//
#include "ditron/api/test/ApiTest.h"
#include "ditron/api/test/CppRanks.h"

#include <numeric>

namespace ditron::api::test {
namespace {

using testing::HasSubstr;

/// Arrays that the ranks' kernels may touch where they lie.
class CppTransfers : public CppRanks {};

struct Exchange {
  std::vector<float> in = std::vector<float>(40), out = std::vector<float>(40, -1);
  std::vector<int64_t> sendCounts, sendOffsets = {0, 10}, receiveCounts = {-1, -1}, receiveOffsets = {-1, -1};

  AllToAllV::Operands operands() {
    return {in.data(),  20, sendCounts.data(),    sendOffsets.data(),
            out.data(), 20, receiveCounts.data(), receiveOffsets.data()};
  }
};

TEST_F(CppTransfers, AllToAllVPacksWhatArrivesAndTellsWhatCannotBe) {
  AllToAllV::Options options;
  options.dtype = DITRON_F32;
  options.rowElements = 2;
  options.maxRows = 10;
  options.packed = true;
  AllToAllV exchange = context->createAllToAllV(options).value();
  ASSERT_TRUE(exchange.prepare().ok());
  Exchange each[ranks];
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::iota(each[rank].in.begin(), each[rank].in.end(), 100.0f * static_cast<float>(rank));
    each[rank].sendCounts = rank == 0 ? std::vector<int64_t>{3, 0} : std::vector<int64_t>{2, 10};
    lend(rank, each[rank].in);
    lend(rank, each[rank].out);
    for (auto *words :
         {&each[rank].sendCounts, &each[rank].sendOffsets, &each[rank].receiveCounts, &each[rank].receiveOffsets})
      lend(rank, *words);
  }
  for (uint32_t rank = 0; rank < ranks; ++rank)
    ASSERT_TRUE(exchange.enqueue(streams[rank], each[rank].operands()).ok());
  for (uint32_t rank = 0; rank < ranks; ++rank)
    EXPECT_TRUE(exchange.check(streams[rank]).ok());
  EXPECT_EQ(each[0].receiveCounts, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(each[0].receiveOffsets, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(each[1].receiveCounts, (std::vector<int64_t>{0, 10}));
  EXPECT_EQ(std::vector<float>(each[0].out.begin(), each[0].out.begin() + 11),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 100, 101, 102, 103, -1}));
  EXPECT_EQ(each[1].out[0], 120.0f);
  EXPECT_EQ(each[1].out[19], 139.0f);

  each[0].sendCounts[1] = 11;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    ASSERT_TRUE(exchange.enqueue(streams[rank], each[rank].operands()).ok());
  EXPECT_THAT(exchange.check(streams[0]).message(), HasSubstr("its count for rank 1 is 11; 0 to 10 rows are accepted"));
  EXPECT_THAT(exchange.check(streams[1]).message(), HasSubstr("rank 0 has a count of 11 for it"));
  EXPECT_TRUE(exchange.check(streams[1]).ok());
  EXPECT_EQ(each[1].receiveCounts, (std::vector<int64_t>{0, 10}));

  options.maxRows = 0;
  EXPECT_THAT(context->createAllToAllV(options).status().message(), HasSubstr("maxRows is 0"));
}

TEST_F(CppTransfers, MessagesOfAGroup) {
  SendReceive pairs = context->createSendReceive(DITRON_F32).value();
  ASSERT_TRUE(pairs.prepare().ok());
  std::vector<float> x[ranks], y[ranks];
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    x[rank].assign(1000, 1.0f + static_cast<float>(rank));
    y[rank].assign(1000, 0);
    lend(rank, x[rank]);
    lend(rank, y[rank]);
  }
  for (uint32_t rank = 0; rank < ranks; ++rank)
    ASSERT_TRUE(
        pairs.enqueue(streams[rank], {{1 - rank, x[rank].data(), 999}}, {{1 - rank, y[rank].data(), 999}}).ok());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(pairs.check(streams[rank]).ok());
    EXPECT_EQ(std::count(y[rank].begin(), y[rank].end(), x[1 - rank][0]), 999);
    EXPECT_EQ(y[rank][999], 0);
  }
  // Another size than was sent.
  ASSERT_TRUE(pairs.enqueue(streams[0], {{1, x[0].data(), 10}}, {}).ok());
  ASSERT_TRUE(pairs.enqueue(streams[1], {}, {{0, y[1].data(), 11}}).ok());
  EXPECT_THAT(pairs.check(streams[1]).message(), HasSubstr("rank 0 has sent 10 elements, and 11 were to be received"));
  EXPECT_THAT(pairs.enqueue(streams[0], {{7, x[0].data(), 10}}, {}).message(),
              HasSubstr("a send to rank 7; 0 to 1 are accepted"));
}

TEST_F(CppTransfers, BarrierIsOneCallOnEachStream) {
  Barrier barrier = context->createBarrier().value();
  ASSERT_TRUE(barrier.prepare().ok());
  for (int call = 0; call < 3; ++call)
    for (uint32_t rank = 0; rank < ranks; ++rank)
      ASSERT_TRUE(barrier.enqueue(streams[rank]).ok());
  EXPECT_TRUE(context->synchronize().ok());
  ASSERT_TRUE(barrier.enqueue(streams[0]).ok());
  EXPECT_THAT(context->synchronize().message(), HasSubstr("barrier_entered[1] on rank 0: has 3, wants >= 4"));
}

TEST_F(CppTransfers, WhatIsMissingIsNamed) {
  ditron_all_to_all_v_h exchange = nullptr;
  EXPECT_EQ(ditron_all_to_all_v_create(nullptr, nullptr, &exchange), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_all_to_all_v_enqueue(nullptr, streams[0].get(), nullptr), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_send_receive_prepare(nullptr), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_barrier_enqueue(nullptr, streams[0].get()), DITRON_INVALID_ARGUMENT);
  Barrier barrier = context->createBarrier().value();
  EXPECT_EQ(ditron_barrier_enqueue(barrier.get(), nullptr), DITRON_INVALID_ARGUMENT);
  SendReceive pairs = context->createSendReceive(DITRON_BF16).value();
  EXPECT_EQ(ditron_send_receive_enqueue(pairs.get(), streams[0].get(), nullptr, 1, nullptr, 0),
            DITRON_INVALID_ARGUMENT);
  Context::Options options;
  options.target = "sim:sm_80";
  Context other = Context::create(options).value();
  Stream stream = other.stream(0).value();
  EXPECT_THAT(barrier.enqueue(stream).message(), HasSubstr("the barrier and the stream are of different contexts"));
  ditron_all_to_all_v_destroy(nullptr);
  ditron_send_receive_destroy(nullptr);
  ditron_barrier_destroy(nullptr);
}

/// Two tokens of each rank to two experts each; the experts give back what they get.
TEST_F(CppTransfers, ExpertParallelBringsTokensToTheirExpertsAndBack) {
  constexpr int64_t hidden = 3, tokens = 2;
  ExpertParallel::Options options;
  options.dtype = DITRON_F32;
  options.hidden = hidden;
  options.experts = 4;
  options.topK = 2;
  options.maxTokens = tokens;
  ExpertParallel experts = context->createExpertParallel(options).value();
  ASSERT_EQ(experts.maxRows(), 8);
  ASSERT_TRUE(experts.prepare(true).ok());
  struct Own {
    std::vector<float> x, weights = {1, 2, 0.5f, 4}, rows, out = std::vector<float>(tokens * hidden, -1);
    std::vector<int32_t> ids, offsets = std::vector<int32_t>(3, -1), handle;
  };
  Own each[ranks];
  each[0].ids = {0, 3, 3, -1};
  each[1].ids = {1, 3, 2, 1};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Own &own = each[rank];
    own.x.resize(tokens * hidden);
    std::iota(own.x.begin(), own.x.end(), 10.0f * static_cast<float>(rank));
    own.rows.resize(experts.maxRows() * hidden, -1);
    own.handle.resize(experts.handleElements());
    lend(rank, own.x), lend(rank, own.weights), lend(rank, own.rows), lend(rank, own.out);
    lend(rank, own.ids), lend(rank, own.offsets), lend(rank, own.handle);
  }
  const std::vector<float> wanted[ranks] = {{0, 3, 6, 1.5f, 2, 2.5f}, {30, 33, 36, 58.5f, 63, 67.5f}};
  for (bool parts : {false, true}) {
    for (ditron_call_part_t part :
         parts ? std::vector{DITRON_CALL_SEND, DITRON_CALL_RECEIVE} : std::vector{DITRON_CALL_WHOLE})
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        Own &own = each[rank];
        const Status status = experts.dispatch(streams[rank],
                                               {own.x.data(), tokens, own.ids.data(), own.weights.data(),
                                                own.rows.data(), nullptr, own.offsets.data(), own.handle.data()},
                                               part);
        ASSERT_TRUE(status.ok()) << status.message();
      }
    for (uint32_t rank = 0; rank < ranks; ++rank)
      ASSERT_TRUE(
          experts
              .combine(streams[rank], {each[rank].rows.data(), each[rank].out.data(), tokens, each[rank].handle.data()})
              .ok());
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const Status status = experts.check(streams[rank]);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    EXPECT_EQ(each[0].offsets, (std::vector<int32_t>{0, 1, 3}));
    EXPECT_EQ(each[1].offsets, (std::vector<int32_t>{0, 1, 4}));
    const std::vector<float> ofExpert3 = {0, 1, 2, 3, 4, 5, 10, 11, 12};
    EXPECT_TRUE(std::equal(ofExpert3.begin(), ofExpert3.end(), each[1].rows.begin() + hidden));
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(each[rank].out, wanted[rank]) << rank;
      std::fill(each[rank].out.begin(), each[rank].out.end(), -1.0f);
    }
  }
  EXPECT_THAT(experts.dispatch(streams[0], {}, DITRON_CALL_RECEIVE).message(), HasSubstr("operand rows"));
  options.experts = 3;
  EXPECT_THAT(context->createExpertParallel(options).status().message(),
              HasSubstr("experts is 3; multiples of the 2 ranks"));
}

} // namespace
} // namespace ditron::api::test
