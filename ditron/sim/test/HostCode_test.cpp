//===- HostCode_test.cpp - Several host codes, and what they wait for ---------------------------------------------===//
#include "Harness.h"

using testing::AllOf;
using testing::HasSubstr;

namespace ditron::sim {
namespace {

MachineOptions ranks(uint32_t count) {
  MachineOptions options;
  options.ranks = count;
  return options;
}

TEST(HostCode, SeveralOfARankMeetByKey) {
  auto machine = makeMachine(ranks(2));
  std::string order;
  auto side = [&](const char *name) {
    return [&, name]() -> Status {
      for (int round = 0; round < 3; ++round) {
        order += name;
        DITRON_RETURN_IF_ERROR(machine->hostMeet("side", 2, "the other"));
      }
      return Status::ok();
    };
  };
  ASSERT_OK(machine->runHosts({{0, "a", side("a")}, {0, "b", side("b")}, {1, "", [] { return Status::ok(); }}}));
  for (int round = 0; round < 3; ++round)
    EXPECT_NE(order[2 * round], order[2 * round + 1]) << order;
}

TEST(HostCode, MeetingsThatNobodyCompletesAreExplained) {
  auto machine = makeMachine(ranks(2));
  const Status status = machine->runHosts({{0, "loader", [&] { return machine->hostMeet("x", 3, "the meeting"); }},
                                           {0, "main", [&] { return machine->hostMeet("x", 3, "the meeting"); }},
                                           {1, "", [] { return Status::ok(); }}});
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("host code loader: waits for the meeting: 2 of 3 are there\n"),
                                      HasSubstr("host code main: waits for the meeting: 2 of 3 are there\n"),
                                      HasSubstr("rank 1:\n    host code: has returned")));
}

TEST(HostCode, TheFirstErrorNamesItsThread) {
  auto machine = makeMachine();
  const Status status =
      machine->runHosts({{0, "", [] { return Status::ok(); }}, {0, "loader", [] { return notFound("the file"); }}});
  EXPECT_EQ(status.message(), "rank 0, loader: the file");
  EXPECT_THAT(machine->runHosts({{7, "", [] { return Status::ok(); }}}).message(),
              HasSubstr("rank 7, which does not exist"));
}

TEST(HostCode, AccessesOfTwoRaceUnlessTheyMeet) {
  for (bool meet : {true, false}) {
    auto machine = makeMachine(ranks(2));
    auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word");
    auto code = [&](bool first) {
      return [&, first]() -> Status {
        if (meet && !first)
          DITRON_RETURN_IF_ERROR(machine->hostMeet("m", 2, "the other"));
        DITRON_RETURN_IF_ERROR(machine->hostAccess(word, 4, /*isWrite=*/true));
        return meet && first ? machine->hostMeet("m", 2, "the other") : Status::ok();
      };
    };
    const Status status = machine->runHosts({{0, "", code(true)}, {1, "", code(false)}});
    EXPECT_EQ(status.isOk(), meet) << status.message();
    if (!meet)
      EXPECT_THAT(status.message(), AllOf(HasSubstr("data race on word[0]"), HasSubstr("host code of rank 0"),
                                          HasSubstr("host code of rank 1")));
  }
}

// What a meeting gives is what the others had done when they came, not what they do after it.
TEST(HostCode, AMeetingOrdersNothingThatComesAfterIt) {
  auto machine = makeMachine(ranks(2));
  auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word");
  auto code = [&]() -> Status {
    DITRON_RETURN_IF_ERROR(machine->hostMeet("m", 2, "the other"));
    return machine->hostAccess(word, 4, /*isWrite=*/true);
  };
  EXPECT_EQ(machine->runHosts({{0, "", code}, {1, "", code}}).code(), StatusCode::DataRace);
}

void spinUntilRaised(void **arguments) {
  ditron_sim_wait_until(ditron_sim_self(), argument<void *>(arguments, 0), 4, DITRON_SIM_GE, 1, DITRON_SIM_ACQUIRE,
                        DITRON_SIM_SCOPE_SYSTEM, AT(7));
}

TEST(HostCode, MappingMayWaitForTheWorkOfOthers) {
  for (bool enqueuedFirst : {true, false}) {
    auto machine = makeMachine(ranks(2));
    auto *flag = makeBuffer<uint32_t>(*machine, 0, 1, "flag");
    const StreamId spinning = makeStream(*machine, 0), raising = makeStream(*machine, 1);
    ASSERT_OK(machine->launch(spinning, kernel("spin", spinUntilRaised, {1, 1, 1}, 1, 0, flag)));
    EXPECT_EQ(machine->pendingUse(flag), "kernel spin on stream main of rank 0");
    const Status status =
        machine->runHosts({{1, "", [&]() -> Status {
                              if (enqueuedFirst)
                                DITRON_RETURN_IF_ERROR(machine->signalWrite(raising, flag, 1, 4));
                              DITRON_RETURN_IF_ERROR(machine->hostWaitForWork(std::nullopt, "the allocation of x"));
                              return machine->signalWrite(raising, flag, 1, 4);
                            }}});
    EXPECT_EQ(status.isOk(), enqueuedFirst) << status.message();
    if (!enqueuedFirst)
      EXPECT_THAT(status.message(), AllOf(HasSubstr("deadlock"), HasSubstr("waits for the allocation of x"),
                                          HasSubstr("kernel spin at kernel.py:7:5")));
    EXPECT_EQ(machine->pendingUse(flag),
              enqueuedFirst ? "signal write on stream main of rank 1" : "kernel spin on stream main of rank 0");
  }
}

TEST(HostCode, PendingUsesOfSymmetricMemoryAreThoseOfAllRanks) {
  auto machine = makeMachine(ranks(2));
  auto *zero = makeBuffer<uint32_t>(*machine, 0, 4, "data", MemoryKind::Symmetric);
  auto *one = makeBuffer<uint32_t>(*machine, 1, 4, "data", MemoryKind::Symmetric);
  auto *other = makeBuffer<uint32_t>(*machine, 1, 8, "other");
  const StreamId stream = makeStream(*machine, 1);
  ASSERT_OK(machine->copy(stream, {.destination = other, .source = one + 3, .rowBytes = 4, .name = "fetch"}));
  EXPECT_EQ(machine->pendingUse(zero), "fetch on stream main of rank 1");
  EXPECT_EQ(machine->pendingUse(other), "fetch on stream main of rank 1");
  ASSERT_OK(machine->synchronize());
  EXPECT_EQ(machine->pendingUse(zero), "");
}

} // namespace
} // namespace ditron::sim
