//===- Mbarrier_test.cpp - Mbarriers, named barriers, registers ---------------------------------------------------===//

#include "ditron/sim/test/Harness.h"

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Warp 0 produces, warp 1 consumes through one slot: full and empty mbarriers, phases alternating.
void slotKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *out = argument<uint32_t *>(arguments, 0);
  char *full = self->sharedMemory, *empty = self->sharedMemory + 8;
  auto *slot = reinterpret_cast<uint32_t *>(self->sharedMemory + 64);
  if (self->threadId == 0) {
    ditron_sim_mbarrier_init(self, full, 32, AT(1));
    ditron_sim_mbarrier_init(self, empty, 32, AT(2));
  }
  ditron_sim_barrier(self, AT(3));
  for (uint32_t i = 0; i < 10; ++i)
    if (self->warpId == 0) {
      ditron_sim_mbarrier_wait(self, empty, (i & 1) ^ 1, AT(4)); // passes at once at first
      slot[self->laneId] = 100 * i + self->laneId;
      ditron_sim_mbarrier_arrive(self, full, 1, 1, AT(5));
    } else {
      ditron_sim_mbarrier_wait(self, full, i & 1, AT(6));
      out[self->laneId] += slot[31 - self->laneId];
      ditron_sim_mbarrier_arrive(self, empty, 1, 1, AT(7));
      ditron_sim_mbarrier_arrive(self, empty, 1, 0, AT(7)); // no effect
    }
  ditron_sim_barrier(self, AT(8));
  if (self->threadId == 0) {
    ditron_sim_mbarrier_invalidate(self, full, AT(9));
    ditron_sim_mbarrier_invalidate(self, empty, AT(9));
  }
}

TEST(Mbarrier, AlternatesPhasesBetweenProducerAndConsumer) {
  auto machine = makeMachine(MachineOptions::sm90());
  auto *out = makeBuffer<uint32_t>(*machine, 0, 32, "out");
  ASSERT_OK(runOnce(*machine, kernel("slot", slotKernel, {3, 1, 1}, 64, 256, out)));
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], 3 * (4500 + 10 * (31 - i)));
  EXPECT_EQ(machine->counters().mbarrierWaits, 3u * 20u);
}

Status runBarrier(KernelEntry entry, uint32_t threads = 32) {
  auto machine = makeMachine(MachineOptions::sm90());
  return runOnce(*machine, kernel("bars", entry, {1, 1, 1}, threads, 256));
}

TEST(Mbarrier, ADeadlockNamesThePhaseAndWhatIsMissing) {
  Status status = runBarrier([](void **) {
    DitronSimThread *self = ditron_sim_self();
    if (self->threadId == 0) {
      ditron_sim_mbarrier_init(self, self->sharedMemory + 16, 3, AT(11));
      ditron_sim_mbarrier_expect_tx(self, self->sharedMemory + 16, 4096, 1, AT(12));
    }
    ditron_sim_barrier(self, AT(13));
    ditron_sim_mbarrier_wait(self, self->sharedMemory + 16, 0, AT(14));
  });
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(
      status.message(),
      AllOf(HasSubstr("threads 0..31 wait at the mbarrier kernel.py:14:5 for phase 0 (parity 0) of the mbarrier "
                      "at shared offset 16 (set up at kernel.py:11:5)"),
            HasSubstr("2 of 3 arrivals are missing, 4096 bytes are still expected")));
}

TEST(Mbarrier, RefusesMisuse) {
  EXPECT_THAT(runBarrier([](void **) {
                DitronSimThread *self = ditron_sim_self();
                ditron_sim_mbarrier_wait(self, self->sharedMemory, 0, AT(21));
              }).message(),
              HasSubstr("kernel.py:21:5: kernel bars, rank 0, block (0,0,0), thread 0: use of the mbarrier at shared "
                        "offset 0, which is no mbarrier"));
  EXPECT_THAT(runBarrier([](void **) {
                DitronSimThread *self = ditron_sim_self();
                ditron_sim_mbarrier_init(self, self->sharedMemory, 1, AT(22));
                *reinterpret_cast<int *>(self->sharedMemory) = 7;
                ditron_sim_mbarrier_arrive(self, self->sharedMemory, 1, 1, AT(23));
              }).message(),
              HasSubstr("whose word was overwritten since it was set up at kernel.py:22:5"));
  EXPECT_THAT(
      runBarrier([](void **) {
        DitronSimThread *self = ditron_sim_self();
        ditron_sim_mbarrier_init(self, self->sharedMemory, 2, AT(22));
        ditron_sim_mbarrier_expect_tx(self, self->sharedMemory, 64, 1, AT(23));
        ditron_sim_mbarrier_arrive(self, self->sharedMemory, 2, 1, AT(24));
      }).message(),
      HasSubstr("2 arrivals at the mbarrier at shared offset 0 (set up at kernel.py:22:5), whose phase 0 has 1 of "
                "2 left"));
  EXPECT_THAT(runBarrier([](void **) {
                DitronSimThread *self = ditron_sim_self();
                ditron_sim_mbarrier_init(self, self->sharedMemory + 4, 2, AT(22));
              }).message(),
              HasSubstr("needs 8 bytes, aligned to 8"));
  EXPECT_THAT(runBarrier([](void **) {
                DitronSimThread *self = ditron_sim_self();
                ditron_sim_mbarrier_init(self, self->sharedMemory, 2, AT(22));
                ditron_sim_mbarrier_expect_tx(self, self->sharedMemory, 1 << 20, 1, AT(23));
              }).message(),
              HasSubstr("expects 1048576 bytes; it can count 1048575"));
}

// Warps 1 and 2 hand over to warp 0 through a barrier at which warp 1 only arrives.
TEST(NamedBarrier, SynchronisesSomeWarps) {
  auto machine = makeMachine(MachineOptions::sm90());
  auto *out = makeBuffer<uint32_t>(*machine, 0, 128, "out");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    auto *shared = reinterpret_cast<uint32_t *>(self->sharedMemory);
    if (self->warpId == 3)
      return;
    for (uint32_t round = 0; round < 3; ++round) {
      if (self->warpId == 1)
        shared[self->laneId] = 10 * round + 1;
      ditron_sim_named_barrier(self, 1, 96, self->warpId == 1 ? DITRON_SIM_BARRIER_ARRIVE : DITRON_SIM_BARRIER_SYNC,
                               AT(31));
      if (self->warpId != 1)
        argument<uint32_t *>(arguments, 0)[self->threadId] += shared[31 - self->laneId];
      ditron_sim_named_barrier(self, 2, 96, DITRON_SIM_BARRIER_SYNC, AT(32));
    }
    ditron_sim_setmaxnreg(self, 240, 1, AT(33));
  };
  ASSERT_OK(runOnce(*machine, kernel("named", entry, {1, 1, 1}, 128, 256, out)));
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(out[i], i / 32 == 0 || i / 32 == 2 ? 33u : 0u);
}

TEST(NamedBarrier, RefusesMisuseAndReportsDeadlock) {
  Status status = runBarrier(
      [](void **) {
        DitronSimThread *self = ditron_sim_self();
        if (self->warpId == 0)
          ditron_sim_named_barrier(self, 3, 64, DITRON_SIM_BARRIER_SYNC, AT(41));
      },
      64);
  EXPECT_THAT(status.message(), HasSubstr("threads 0..31 wait at the named barrier kernel.py:41:5 (barrier 3: 32 of 64 "
                                          "threads have arrived)"));
  status = runBarrier(
      [](void **) {
        DitronSimThread *self = ditron_sim_self();
        ditron_sim_named_barrier(self, 3, self->warpId ? 64 : 32, DITRON_SIM_BARRIER_ARRIVE,
                                 self->warpId ? AT(42) : AT(43));
        ditron_sim_named_barrier(self, 3, 64, DITRON_SIM_BARRIER_ARRIVE, AT(44));
      },
      64);
  EXPECT_THAT(status.message(), HasSubstr("named barrier 3 of 64 threads here and of 32 threads at kernel.py:43:5"));
  status = runBarrier(
      [](void **) {
        DitronSimThread *self = ditron_sim_self();
        for (int i = 0; i < 2; ++i)
          ditron_sim_named_barrier(self, 3, 64, DITRON_SIM_BARRIER_ARRIVE, AT(44));
      },
      64);
  EXPECT_THAT(status.message(), HasSubstr("the thread arrives twice at named barrier 3 before the others have"));
  EXPECT_THAT(runBarrier([](void **) {
                ditron_sim_named_barrier(ditron_sim_self(), 0, 32, DITRON_SIM_BARRIER_SYNC, AT(45));
              }).message(),
              HasSubstr("named barrier 0; accepted is 1 to 15"));
  EXPECT_THAT(runBarrier([](void **) { ditron_sim_setmaxnreg(ditron_sim_self(), 100, 0, AT(46)); }).message(),
              HasSubstr("decrease of the registers to 100 per thread"));
}

/// Three mbarriers of one place; the second expects bytes that never come, and one of two arrivals at its empty twin is missing.
void stuckRingKernel(void **) {
  DitronSimThread *self = ditron_sim_self();
  char *full = self->sharedMemory, *empty = full + 24;
  for (uint32_t slot = 0; self->threadId == 0 && slot < 3; ++slot) {
    ditron_sim_mbarrier_init(self, full + 8 * slot, 1, AT(40));
    ditron_sim_mbarrier_init(self, empty + 8 * slot, 2, AT(40));
  }
  ditron_sim_barrier(self, AT(41));
  if (self->warpId == 0) {
    ditron_sim_mbarrier_expect_tx(self, full + 8, 128, self->laneId == 0, AT(42));
    ditron_sim_mbarrier_wait(self, full + 8, 0, AT(43));
  } else {
    ditron_sim_mbarrier_wait(self, empty + 16, 0, AT(44));
  }
}

TEST(Mbarrier, DeadlocksNameTheSlotOfTheRing) {
  auto machine = makeMachine(MachineOptions::sm90());
  Status status = runOnce(*machine, kernel("stuck", stuckRingKernel, {1, 1, 1}, 64, 64));
  EXPECT_THAT(status.message(),
              HasSubstr("full[1] of the ring of 3 at kernel.py:40:5 (shared offset 8): 0 of 1 arrivals "
                        "are missing, 128 bytes are still expected"));
  EXPECT_THAT(status.message(), HasSubstr("empty[2] of the ring of 3 at kernel.py:40:5"));
}

} // namespace
} // namespace ditron::sim
