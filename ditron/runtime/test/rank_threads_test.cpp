//===- rank_threads_test.cpp - Host code of every rank ------------------------------------------------------------===//
#include "ditron/runtime/RankThreads.h"

#include <atomic>
#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::runtime;

namespace {

TEST(RankThreads, BarriersKeepStep) {
  RankThreads threads;
  std::atomic<uint32_t> entered = 0;
  std::atomic<bool> wrong = false;
  EXPECT_TRUE(threads
                  .run({0, 1, 2, 3},
                       [&](uint32_t rank) {
                         EXPECT_EQ(threads.currentRank(), rank);
                         for (uint32_t round = 1; round <= 200; ++round) {
                           ++entered;
                           if (!threads.barrier().isOk() || entered != 4 * round)
                             wrong = true;
                           if (!threads.barrier().isOk())
                             wrong = true;
                         }
                         return Status::ok();
                       })
                  .isOk());
  EXPECT_FALSE(wrong);
  EXPECT_EQ(threads.currentRank(), std::nullopt);
}

TEST(RankThreads, TheCauseComesBeforeItsConsequences) {
  RankThreads threads;
  const Status status = threads.run(
      {0, 1, 2}, [&](uint32_t rank) -> Status { return rank == 2 ? notFound("the file") : threads.barrier(); });
  EXPECT_EQ(status.message(), "the file");
}

TEST(RankThreads, ReturningEarlyWithoutErrorIsNamed) {
  RankThreads threads;
  const Status status =
      threads.run({0, 1}, [&](uint32_t rank) -> Status { return rank == 1 ? Status::ok() : threads.barrier(); });
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(status.message(),
              testing::AllOf(testing::HasSubstr("rank 0 waits"), testing::HasSubstr("rank 1 has returned")));
}

TEST(RankThreads, SeveralThreadsOfARankMeetByKey) {
  RankThreads threads;
  std::atomic<uint32_t> entered = 0;
  auto code = [&]() -> Status {
    for (uint32_t round = 1; round <= 100; ++round) {
      ++entered;
      if (Status met = threads.meet("all", 3, "the others"); !met.isOk() || entered < 3 * round)
        return internalError("out of step");
      if (Status met = threads.meet("all", 3, "the others"); !met.isOk())
        return met;
    }
    return Status::ok();
  };
  EXPECT_TRUE(threads.run({{0, "a", code}, {0, "b", code}, {1, "", code}}).isOk());
}

TEST(RankThreads, MeetingsThatNobodyCompletesEnd) {
  RankThreads threads;
  const Status status = threads.run({{0, "", [&] { return threads.meet("x", 2, "the meeting x"); }},
                                     {1, "", [&] { return threads.meet("y", 2, "the meeting y"); }},
                                     {2, "", [] { return Status::ok(); }}});
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(status.message(), testing::AllOf(testing::HasSubstr("rank 0 waits for the meeting x"),
                                               testing::HasSubstr("rank 1 waits for the meeting y"),
                                               testing::HasSubstr("rank 2 has returned")));
}

TEST(RankThreads, NoBarrierOutside) {
  RankThreads threads;
  EXPECT_EQ(threads.barrier().code(), StatusCode::InvalidArgument);
}

} // namespace
