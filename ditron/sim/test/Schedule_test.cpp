//===- Schedule_test.cpp - What is drawn, and that it is ----------------------------------------------------------===//

#include "ditron/sim/explore/Schedule.h"
#include "ditron/sim/test/Harness.h"

#include <set>

namespace ditron::sim {
namespace {

using testing::HasSubstr;

TEST(Schedule, ZeroLeavesNothingToChance) {
  EXPECT_EQ(Schedule::draw(0, 4, 8), Schedule());
  EXPECT_EQ(Schedule().toJson(), "{\"seed\":0}");
  EXPECT_TRUE(Schedule().drawnKnobs().empty());
}

TEST(Schedule, IsWrittenAndReadBack) {
  std::set<std::string> knobs;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Schedule drawn = Schedule::draw(seed, 4, 8);
    Expected<Schedule> read = Schedule::fromJson(drawn.toJson());
    ASSERT_OK(read.status());
    EXPECT_EQ(*read, drawn) << drawn.toJson();
    for (const std::string &knob : drawn.drawnKnobs())
      knobs.insert(knob);
  }
  EXPECT_EQ(knobs.size(), 16u); // every one is drawn sometimes
}

TEST(Schedule, BadTextIsRefusedByName) {
  EXPECT_THAT(Schedule::fromJson("[]").status().message(), HasSubstr("not a JSON object"));
  EXPECT_THAT(Schedule::fromJson("{\"late_store\":1}").status().message(),
              HasSubstr("'late_store' is no part of it; did you mean 'late_stores'"));
  EXPECT_THAT(Schedule::fromJson("{\"late_stores\":2}").status().message(),
              HasSubstr("late_stores is 2; accepted is a number from 0 to 1"));
  EXPECT_THAT(Schedule::fromJson("{\"by_priority\":1}").status().message(), HasSubstr("accepted is true or false"));
  EXPECT_THAT(Schedule::fromJson("{\"seed\":-1}").status().message(), HasSubstr("seed is -1"));
}

TEST(Schedule, BecomesSimplerKnobByKnob) {
  Schedule schedule = Schedule::draw(1, 4, 8);
  schedule.byPriority = true;
  schedule.priorityChanges = 2;
  EXPECT_EQ(schedule.without("priority_changes").priorityChanges, 1u);
  EXPECT_EQ(schedule.without("by_priority").priorityChanges, 0u);
  for (uint32_t round = 0; round < 3; ++round)
    for (const std::string &knob : schedule.drawnKnobs())
      schedule = schedule.without(knob);
  EXPECT_TRUE(schedule.drawnKnobs().empty());
}

//===- Orders -----------------------------------------------------------------------------------------------------===//

/// The first thread of every warp of every block of every rank takes a ticket.
void takeTicket(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  if (self->laneId != 0)
    return;
  auto *counter = argument<uint64_t *>(arguments, 0);
  const uint32_t who = (argument<uint32_t>(arguments, 2) * 2 + self->blockId[0]) * 2 + self->warpId;
  argument<uint64_t *>(arguments, 1)[who] = ditron_sim_atomic_rmw(
      self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, counter, 1, 1, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM, AT(1));
}

std::array<uint64_t, 8> ticketsOf(uint64_t seed) {
  MachineOptions options;
  options.ranks = 2;
  options.seed = seed;
  auto machine = makeMachine(options);
  auto *counter = makeBuffer<uint64_t>(*machine, 0, 1, "counter", MemoryKind::Symmetric);
  std::array<uint64_t, 8> tickets = {};
  for (uint32_t rank = 0; rank < 2; ++rank)
    EXPECT_OK(machine->launch(makeStream(*machine, rank),
                              kernel("ticket", takeTicket, {2, 1, 1}, 64, 0, counter, tickets.data(), rank)));
  EXPECT_OK(machine->synchronize());
  return tickets;
}

TEST(Schedule, AnyRankBlockAndWarpMayComeFirst) {
  uint32_t first[8][8] = {};
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const auto tickets = ticketsOf(seed);
    EXPECT_EQ(tickets, ticketsOf(seed)) << "the same seed gives the same run";
    for (uint32_t a = 0; a < 8; ++a)
      for (uint32_t b = 0; b < 8; ++b)
        first[a][b] += tickets[a] < tickets[b];
  }
  for (uint32_t a = 0; a < 8; ++a)
    for (uint32_t b = 0; b < 8; ++b)
      EXPECT_TRUE(a == b || first[a][b] > 5) << a << " before " << b << " in " << first[a][b] << " of 60";
}

//===- Priorities (PCT) -------------------------------------------------------------------------------------------===//

/// Block 0 takes `steps` steps and then sets a word; block 1 reads it at its first step and again after `steps`. A bug of depth 2: only if block 0
/// sets it in between do the reads differ.
void readTwice(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *word = argument<uint32_t *>(arguments, 0);
  auto *idle = argument<uint32_t *>(arguments, 1) + 16 * self->blockId[0];
  auto *differs = argument<uint32_t *>(arguments, 2);
  const auto read = [&](uint32_t *address) {
    return ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I32, address, 0, 1, DITRON_SIM_RELAXED,
                                 DITRON_SIM_SCOPE_GPU, AT(1));
  };
  const uint64_t before = self->blockId[0] ? read(word) : 0;
  for (uint32_t i = 0; i < 8; ++i)
    ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I32, idle, 1, 1, DITRON_SIM_RELAXED,
                          DITRON_SIM_SCOPE_GPU, AT(2));
  if (self->blockId[0] == 0)
    ditron_sim_st(self, word, 1, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(3));
  else if (read(word) != before)
    *differs = 1;
}

TEST(Schedule, PrioritiesFindWhatNeedsTwoStepsInOneOrder) {
  constexpr uint64_t runs = 2000, steps = 32;
  uint64_t found = 0;
  for (uint64_t seed = 1; seed <= runs; ++seed) {
    MachineOptions options;
    options.memoryPerRank = uint64_t(1) << 20;
    options.schedule = Schedule{.seed = seed, .byPriority = true, .priorityChanges = 1, .expectedSteps = steps};
    auto machine = makeMachine(options);
    auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word"), *idle = makeBuffer<uint32_t>(*machine, 0, 32, "idle");
    uint32_t differs = 0;
    ASSERT_OK(runOnce(*machine, kernel("read", readTwice, {2, 1, 1}, 1, 0, word, idle, &differs)));
    found += differs;
  }
  // Three agents: two blocks and the stream.
  EXPECT_GE(found, runs / (3 * steps)) << "the guarantee of the method";
  EXPECT_LT(found, runs / 2) << "the bug is not there in every run";
}

} // namespace
} // namespace ditron::sim
