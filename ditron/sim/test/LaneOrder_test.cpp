//===- LaneOrder_test.cpp - Lanes of a warp that must not run ahead, and the order of threads ---------------------===//

#include "ditron/sim/test/Harness.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace ditron::sim {
namespace {

MachineOptions seeded(uint64_t seed) {
  MachineOptions options;
  options.seed = seed;
  return options;
}

// Each warp turns its 32 words round, many times.
void turnRound(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *words = argument<uint32_t *>(arguments, 0) + self->warpId * 32;
  for (uint32_t turn = 0; turn < argument<uint32_t>(arguments, 1); ++turn) {
    uint32_t value = words[31 - self->laneId];
    ditron_sim_order_lanes(self, nullptr, 0, nullptr, 0, AT(1));
    words[self->laneId] = value + 100;
    ditron_sim_order_lanes(self, nullptr, 0, nullptr, 0, AT(2));
  }
}

TEST(LaneOrder, ReadsComeBeforeLaterWritesWithEverySeed) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    auto machine = makeMachine(seeded(seed));
    auto *words = makeBuffer<uint32_t>(*machine, 0, 96, "words");
    std::iota(words, words + 96, 0);
    ASSERT_OK(runOnce(*machine, kernel("turn", turnRound, {1, 1, 1}, 96, 0, words, uint32_t(5))));
    for (uint32_t i = 0; i < 96; ++i)
      ASSERT_EQ(words[i], (i / 32 * 32 + 31 - i % 32) + 500) << "word " << i << ", seed " << seed;
  }
}

// Lanes meet only if the addresses lie in one allocation.
void copyWords(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *from = argument<uint32_t *>(arguments, 0), *to = argument<uint32_t *>(arguments, 1);
  const void *earlier[] = {from}, *later[] = {to};
  for (uint32_t turn = 0; turn < 10; ++turn) {
    uint32_t value = from[self->laneId];
    ditron_sim_order_lanes(self, later, 1, earlier, 1, AT(1));
    to[self->laneId] = value;
    ditron_sim_order_lanes(self, earlier, 1, later, 1, AT(2));
  }
}

TEST(LaneOrder, CostsNoSwitchWhereObjectsAreApart) {
  auto machine = makeMachine();
  auto *from = makeBuffer<uint32_t>(*machine, 0, 64, "from"), *to = makeBuffer<uint32_t>(*machine, 0, 64, "to");
  std::iota(from, from + 64, 0);
  ASSERT_OK(runOnce(*machine, kernel("copy", copyWords, {1, 1, 1}, 32, 0, from, to)));
  const uint64_t apart = machine->counters().fiberSwitches;
  EXPECT_LT(apart, 40u);
  EXPECT_TRUE(std::equal(from, from + 32, to));
  // One allocation: word 32 of it begins to be word 0, turn by turn.
  ASSERT_OK(runOnce(*machine, kernel("copy", copyWords, {1, 1, 1}, 32, 0, from, from + 1)));
  EXPECT_GT(machine->counters().fiberSwitches - apart, 600u);
  for (uint32_t i = 0; i < 33; ++i)
    EXPECT_EQ(from[i], i < 10 ? 0 : i - 10);
  // What was allocated later at the same place is asked about again.
  EXPECT_OK(machine->free(to));
  EXPECT_OK(runOnce(*machine, kernel("copy", copyWords, {1, 1, 1}, 32, 0, from, from + 1)));
}

// Lanes of another branch do not come. The others go on when nothing else can, and one of them lets those go on that wait.
void partingLanes(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *flag = argument<uint32_t *>(arguments, 0);
  if (self->laneId < 8) {
    ditron_sim_wait_until(self, flag, 4, DITRON_SIM_EQ, 1, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_GPU, AT(1));
  } else if (self->laneId < 30) {
    ditron_sim_order_lanes(self, nullptr, 0, nullptr, 0, AT(2));
    if (self->laneId == 20)
      ditron_sim_st(self, flag, 1, 4, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_GPU, AT(3));
  }
  if (self->laneId < 30)
    ditron_sim_barrier(self, AT(4));
}

TEST(LaneOrder, IsNoBarrier) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    auto machine = makeMachine(seeded(seed));
    auto *flag = makeBuffer<uint32_t>(*machine, 0, 1, "flag");
    EXPECT_OK(runOnce(*machine, kernel("parting", partingLanes, {1, 1, 1}, 64, 0, flag)));
  }
}

// Each thread draws a number, before and after a meeting.
void arrive(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *out = argument<uint32_t *>(arguments, 0), *counter = out + 2 * self->numThreads;
  for (uint32_t round = 0; round < 2; ++round) {
    out[round * self->numThreads + self->threadId] = (*counter)++;
    ditron_sim_warp_barrier(self, AT(1));
  }
}

TEST(LaneOrder, OfThreadsIsDrawnFromTheSeed) {
  for (uint32_t threads : {96u, 128u}) {
    std::set<std::vector<uint32_t>> first, second;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<uint32_t> orders[2];
      for (std::vector<uint32_t> &order : orders) {
        auto machine = makeMachine(seeded(seed));
        auto *out = makeBuffer<uint32_t>(*machine, 0, 2 * threads + 1, "out");
        ASSERT_OK(runOnce(*machine, kernel("arrive", arrive, {1, 1, 1}, threads, 0, out)));
        order.assign(out, out + 2 * threads);
        EXPECT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 2 * threads);
      }
      EXPECT_EQ(orders[0], orders[1]) << "seed " << seed;
      if (seed == 0)
        EXPECT_TRUE(std::is_sorted(orders[0].begin(), orders[0].begin() + threads));
      first.insert({orders[0].begin(), orders[0].begin() + threads});
      second.insert({orders[0].begin() + threads, orders[0].end()});
    }
    EXPECT_GT(first.size(), 5u);
    EXPECT_GT(second.size(), 5u);
  }
}

} // namespace
} // namespace ditron::sim
