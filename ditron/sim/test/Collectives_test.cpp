//===- Collectives_test.cpp - Barriers, shuffles, ballots, misuse -------------------------------------------------===//

#include "ditron/sim/test/Harness.h"

#include <numeric>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Every thread writes shared memory, and after the barrier reads what its neighbour wrote; many rounds.
void neighbourKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *out = argument<uint32_t *>(arguments, 0);
  auto *shared = reinterpret_cast<uint32_t *>(self->sharedMemory);
  uint32_t sum = 0;
  for (uint32_t round = 0; round < 10; ++round) {
    shared[self->threadId] = round * 1000 + self->threadId;
    ditron_sim_barrier(self, AT(1));
    sum += shared[(self->threadId + 1) % self->numThreads];
    ditron_sim_barrier(self, AT(2));
  }
  out[self->blockId[0] * self->numThreads + self->threadId] = sum;
}

TEST(Barrier, OrdersSharedMemoryForAnyBlockSize) {
  for (uint32_t threads : {1u, 7u, 32u, 33u, 128u, 1000u}) {
    auto machine = makeMachine();
    auto *out = makeBuffer<uint32_t>(*machine, 0, 20 * threads, "out");
    ASSERT_OK(runOnce(*machine, kernel("neighbour", neighbourKernel, {20, 1, 1}, threads, threads * 4, out)));
    for (uint32_t i = 0; i < 20 * threads; ++i)
      ASSERT_EQ(out[i], 45000 + 10 * ((i % threads + 1) % threads)) << threads << " threads, element " << i;
  }
}

void exitingKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  if (self->threadId % 3 == 0)
    return;
  ditron_sim_barrier(self, AT(1));
  argument<uint32_t *>(arguments, 0)[self->threadId] = 1;
}

TEST(Barrier, CountsReturnedThreadsAsArrived) {
  auto machine = makeMachine();
  auto *out = makeBuffer<uint32_t>(*machine, 0, 64, "out");
  ASSERT_OK(runOnce(*machine, kernel("exiting", exitingKernel, {1, 1, 1}, 64, 0, out)));
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i % 3 != 0);
}

TEST(Launch, GivesEveryThreadItsIndices) {
  auto machine = makeMachine();
  auto *out = makeBuffer<uint32_t>(*machine, 0, 3 * 4 * 5 * 40, "out");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    uint32_t block = (self->blockId[2] * self->gridDim[1] + self->blockId[1]) * self->gridDim[0] + self->blockId[0];
    argument<uint32_t *>(arguments, 0)[block * self->numThreads + self->threadId] =
        block * 10000 + self->warpId * 100 + self->laneId + argument<uint16_t>(arguments, 1) +
        argument<double>(arguments, 2);
  };
  ASSERT_OK(runOnce(*machine, kernel("indices", entry, {3, 4, 5}, 40, 0, out, uint16_t(7), 5.0)));
  for (uint32_t i = 0; i < 3 * 4 * 5 * 40; ++i)
    ASSERT_EQ(out[i], i / 40 * 10000 + i % 40 / 32 * 100 + i % 40 % 32 + 12);
  EXPECT_EQ(machine->counters().blocksRun, 60u);
}

struct ShuffleCase {
  uint32_t kind, operand;
};

void shuffleKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  uint64_t mine = uint64_t(self->threadId) << 40 | 0x123;
  argument<uint64_t *>(arguments, 0)[self->threadId] = ditron_sim_shuffle(
      self, argument<uint32_t>(arguments, 1), mine, argument<uint32_t>(arguments, 2), ~uint64_t(0), AT(3));
}

TEST(Shuffle, MovesValuesOfAllKinds) {
  for (uint32_t warpSize : {32u, 64u}) {
    MachineOptions options;
    options.warpSize = warpSize;
    auto machine = makeMachine(options);
    auto *out = makeBuffer<uint64_t>(*machine, 0, 128, "out");
    const int w = static_cast<int>(warpSize);
    for (uint32_t operand : {0u, 1u, 3u, 16u, 31u, 40u})
      for (uint32_t kind :
           {DITRON_SIM_SHUFFLE_INDEX, DITRON_SIM_SHUFFLE_UP, DITRON_SIM_SHUFFLE_DOWN, DITRON_SIM_SHUFFLE_BUTTERFLY}) {
        ASSERT_OK(runOnce(*machine, kernel("shuffle", shuffleKernel, {1, 1, 1}, 128, 0, out, kind, operand)));
        for (int i = 0; i < 128; ++i) {
          int lane = i % w, from = lane, o = static_cast<int>(operand);
          if (kind == DITRON_SIM_SHUFFLE_INDEX)
            from = o % w;
          else if (kind == DITRON_SIM_SHUFFLE_UP)
            from = lane - o < 0 ? lane : lane - o;
          else if (kind == DITRON_SIM_SHUFFLE_DOWN)
            from = lane + o >= w ? lane : lane + o;
          else if ((lane ^ o) < w)
            from = lane ^ o;
          ASSERT_EQ(out[i], uint64_t(i - lane + from) << 40 | 0x123)
              << "kind " << kind << " operand " << operand << " thread " << i;
        }
      }
  }
}

TEST(Shuffle, DisjointMasksMeetSeparately) {
  auto machine = makeMachine();
  auto *out = makeBuffer<uint64_t>(*machine, 0, 32, "out");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    bool odd = self->laneId & 1;
    uint64_t value = self->laneId;
    // The odd lanes meet twice while the even ones meet once.
    if (odd) {
      value = ditron_sim_shuffle(self, DITRON_SIM_SHUFFLE_BUTTERFLY, value, 2, 0xaaaaaaaa, AT(4));
      value = ditron_sim_shuffle(self, DITRON_SIM_SHUFFLE_BUTTERFLY, value, 4, 0xaaaaaaaa, AT(5));
    } else {
      value = ditron_sim_shuffle(self, DITRON_SIM_SHUFFLE_BUTTERFLY, value, 8, 0x55555555, AT(6));
    }
    argument<uint64_t *>(arguments, 0)[self->threadId] = value;
  };
  ASSERT_OK(runOnce(*machine, kernel("masks", entry, {1, 1, 1}, 32, 0, out)));
  for (uint64_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], i & 1 ? i ^ 6 : i ^ 8);
}

TEST(Ballot, CollectsPredicatesOfTheMask) {
  auto machine = makeMachine();
  auto *out = makeBuffer<uint64_t>(*machine, 0, 64, "out");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    if (self->laneId < 4)
      return; // returned lanes count as 0
    argument<uint64_t *>(arguments, 0)[self->threadId] =
        ditron_sim_ballot(self, 0xffffffff, self->laneId % 3 == 0, AT(7));
  };
  ASSERT_OK(runOnce(*machine, kernel("ballot", entry, {1, 1, 1}, 64, 0, out)));
  uint64_t expected = 0;
  for (uint32_t lane = 4; lane < 32; ++lane)
    if (lane % 3 == 0)
      expected |= uint64_t(1) << lane;
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i % 32 < 4 ? 0 : expected);
}

TEST(Ballot, CompletesWhenTheMissingLanesReturn) {
  auto machine = makeMachine();
  auto *out = makeBuffer<uint64_t>(*machine, 0, 32, "out");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    if (self->laneId >= 28) // the others have arrived by then
      return;
    argument<uint64_t *>(arguments, 0)[self->threadId] = ditron_sim_ballot(self, 0xffffffff, 1, AT(8));
  };
  ASSERT_OK(runOnce(*machine, kernel("ballot", entry, {1, 1, 1}, 32, 0, out)));
  for (uint32_t i = 0; i < 28; ++i)
    EXPECT_EQ(out[i], 0x0fffffffu);
}

TEST(Misuse, LanesAtDifferentCollectives) {
  auto machine = makeMachine();
  auto entry = [](void **) {
    DitronSimThread *self = ditron_sim_self();
    if (self->laneId == 5)
      ditron_sim_ballot(self, ~uint64_t(0), 1, AT(20));
    else
      ditron_sim_shuffle(self, DITRON_SIM_SHUFFLE_UP, 0, 1, ~uint64_t(0), AT(10));
  };
  Status status = runOnce(*machine, kernel("diverged", entry, {1, 1, 1}, 32, 0));
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(status.message(),
            "kernel.py:20:5: kernel diverged, rank 0, block (0,0,0), thread 5: threads of warp 0 meet at different "
            "collectives: lane 0 at the warp shuffle kernel.py:10:5, lane 5 at the ballot kernel.py:20:5");
}

TEST(Misuse, BarrierUnderDivergence) {
  auto machine = makeMachine();
  auto entry = [](void **) {
    DitronSimThread *self = ditron_sim_self();
    if (self->threadId < 40)
      ditron_sim_barrier(self, AT(11));
    else
      ditron_sim_shuffle(self, DITRON_SIM_SHUFFLE_UP, 0, 1, ~uint64_t(0), AT(12));
  };
  Status status = runOnce(*machine, kernel("stuck", entry, {1, 1, 1}, 64, 0));
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("kernel stuck, rank 0, block (0,0,0)"),
                                      HasSubstr("threads 0..39 wait at the block barrier kernel.py:11:5"),
                                      HasSubstr("threads 40..63 wait at the warp shuffle kernel.py:12:5")));
}

TEST(Misuse, DifferentBarriersWithinOneWarp) {
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    if (self->threadId < argument<uint32_t>(arguments, 0))
      ditron_sim_barrier(self, AT(11));
    else
      ditron_sim_barrier(self, AT(12));
  };
  {
    auto machine = makeMachine(); // whole warps may
    EXPECT_OK(runOnce(*machine, kernel("split", entry, {1, 1, 1}, 64, 0, uint32_t(32))));
  }
  auto machine = makeMachine();
  Status status = runOnce(*machine, kernel("split", entry, {1, 1, 1}, 64, 0, uint32_t(40)));
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("threads of warp 1 meet at different block barriers: thread 32 at kernel.py:11:5, thread "
                        "40 at kernel.py:12:5"));
}

TEST(Misuse, MaskWithoutTheCallingLane) {
  auto machine = makeMachine();
  auto entry = [](void **) { ditron_sim_ballot(ditron_sim_self(), 0xfffffffe, 1, AT(9)); };
  Status status = runOnce(*machine, kernel("mask", entry, {1, 1, 1}, 32, 0));
  EXPECT_THAT(status.message(), HasSubstr("lane 0 calls a ballot whose mask 0xfffffffe does not name it"));
}

TEST(Trap, EndsTheRunAndTheMachine) {
  auto machine = makeMachine();
  auto entry = [](void **) {
    DitronSimThread *self = ditron_sim_self();
    if (self->blockId[0] == 3 && self->threadId == 2)
      ditron_sim_trap(self, "expected K > 0", AT(30));
    ditron_sim_barrier(self, AT(31));
  };
  Status status = runOnce(*machine, kernel("asserting", entry, {8, 1, 1}, 32, 0));
  EXPECT_EQ(status.message(),
            "kernel.py:30:5: kernel asserting, rank 0, block (3,0,0), thread 2: trap: expected K > 0");
  EXPECT_EQ(machine->status().message(), status.message());
  // The machine refuses everything with the same error.
  EXPECT_EQ(machine->synchronize().message(), status.message());
  StreamId stream = makeStream(*machine, 0);
  EXPECT_EQ(machine->launch(stream, kernel("again", entry, {1, 1, 1}, 32, 0)).message(), status.message());
}

} // namespace
} // namespace ditron::sim
