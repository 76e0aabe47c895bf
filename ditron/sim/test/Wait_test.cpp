//===- Wait_test.cpp - Waiting for words, deadlocks and their text ------------------------------------------------===//

#include "ditron/sim/test/Harness.h"

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

MachineOptions ranks(uint32_t count, uint64_t seed = 0) {
  MachineOptions options;
  options.ranks = count;
  options.seed = seed;
  return options;
}

template <typename T> T *at(Machine &machine, uint32_t rank, uint64_t offset) {
  return reinterpret_cast<T *>(static_cast<char *>(machine.symmetricBase(rank)) + offset);
}

void waitFor(DitronSimThread *self, const void *address, uint64_t value, const DitronSimSite *site,
             uint32_t compare = DITRON_SIM_GE) {
  ditron_sim_wait_until(self, address, 8, compare, value, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM, site);
}

// A ring: each rank stores data and a flag at its right neighbour, then waits for its own flag; ten rounds with new
// data.
void ringKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *mine = argument<uint64_t *>(arguments, 0), *right = argument<uint64_t *>(arguments, 1);
  auto *out = argument<uint64_t *>(arguments, 2);
  auto rank = argument<uint64_t>(arguments, 3);
  for (uint64_t round = 1; round <= 10; ++round) {
    uint64_t *slot = right + 32 * (1 + round % 2);
    ditron_sim_access(self, slot + self->threadId, 8, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(70));
    slot[self->threadId] = round * 1000 + rank * 100 + self->threadId;
    ditron_sim_barrier(self, AT(71));
    if (self->threadId == 0) {
      ditron_sim_fence(self, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_SYSTEM, AT(72));
      ditron_sim_st(self, right, round, 8, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_SYSTEM, AT(72));
      waitFor(self, mine, round, AT(73));
    }
    ditron_sim_barrier(self, AT(74));
    out[self->threadId] += mine[32 * (1 + round % 2) + self->threadId];
    ditron_sim_barrier(self, AT(75));
    if (self->threadId == 0) { // tell the left one that its data is read
      ditron_sim_st(self, mine + 1, round, 8, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_SYSTEM, AT(76));
      waitFor(self, right + 1, round, AT(77));
    }
    ditron_sim_barrier(self, AT(78));
  }
}

TEST(Wait, RanksExchangeDataInARing) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    MachineOptions options = ranks(4, seed);
    options.slowRanks[seed % 4] = 5;
    auto machine = makeMachine(options);
    Expected<uint64_t> offset = machine->allocateSymmetric(96 * 8, "ring", 8);
    ASSERT_TRUE(offset.isOk());
    std::vector<uint64_t *> outs;
    for (uint32_t r = 0; r < 4; ++r) {
      outs.push_back(makeBuffer<uint64_t>(*machine, r, 32, "out"));
      ASSERT_OK(machine->launch(makeStream(*machine, r),
                                kernel("ring", ringKernel, {1, 1, 1}, 32, 0, at<uint64_t>(*machine, r, *offset),
                                       at<uint64_t>(*machine, (r + 1) % 4, *offset), outs[r], uint64_t(r))));
    }
    ASSERT_OK(machine->synchronize());
    for (uint32_t r = 0; r < 4; ++r)
      for (uint32_t t = 0; t < 32; ++t)
        ASSERT_EQ(outs[r][t], 55000 + 10 * ((r + 3) % 4 * 100 + t));
  }
}

// A native store, announced only by ditron_sim_access (or, unchecked, by nothing), wakes a waiter too.
TEST(Wait, NativeStoresWakeWaiters) {
  for (bool checked : {true, false}) {
    MachineOptions options = ranks(2);
    options.checkBounds = checked;
    options.detectRaces = false; // an ordinary store is no flag
    auto machine = makeMachine(options);
    auto *flag = makeBuffer<uint64_t>(*machine, 0, 1, "flag", MemoryKind::Symmetric);
    auto waiter = [](void **arguments) { waitFor(ditron_sim_self(), argument<uint64_t *>(arguments, 0), 1, AT(80)); };
    auto storer = [](void **arguments) {
      DitronSimThread *self = ditron_sim_self();
      auto *flag = argument<uint64_t *>(arguments, 0);
      ditron_sim_access(self, flag, 8, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(81));
      *flag = 1;
    };
    ASSERT_OK(machine->launch(makeStream(*machine, 0), kernel("waiter", waiter, {1, 1, 1}, 32, 0, flag)));
    ASSERT_OK(machine->launch(makeStream(*machine, 1), kernel("storer", storer, {1, 1, 1}, 1, 0, flag)));
    EXPECT_OK(machine->synchronize());
  }
}

TEST(Wait, SharedMemoryFlagsWork) {
  auto machine = makeMachine();
  auto entry = [](void **) {
    DitronSimThread *self = ditron_sim_self();
    auto *flag = reinterpret_cast<uint64_t *>(self->sharedMemory);
    if (self->threadId == 0)
      *flag = 0;
    ditron_sim_barrier(self, AT(82));
    if (self->threadId == 5)
      waitFor(self, flag, 3, AT(83), DITRON_SIM_EQ);
    if (self->threadId == 40)
      *flag = 3;
  };
  EXPECT_OK(runOnce(*machine, kernel("flags", entry, {3, 1, 1}, 64, 8)));
}

TEST(Wait, SpinLoopsSleepAndWake) {
  for (uint32_t spin : {0u, 1u}) {
    auto machine = makeMachine(ranks(2));
    auto *flag = makeBuffer<uint32_t>(*machine, 1, 1, "flag", MemoryKind::Symmetric);
    auto poller = [](void **arguments) {
      DitronSimThread *self = ditron_sim_self();
      // Twice the same loop in a row: the second is entered with the value that ended the first.
      for (int i = 0; i < 2; ++i)
        while (ditron_sim_ld(self, argument<uint32_t *>(arguments, 0), 4, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM,
                             argument<uint32_t>(arguments, 1), AT(84)) != 7) {
        }
    };
    auto storer = [](void **arguments) {
      DitronSimThread *self = ditron_sim_self();
      for (uint32_t value = 1; value <= 7; ++value)
        ditron_sim_st(self, argument<uint32_t *>(arguments, 0), value, 4, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_SYSTEM,
                      AT(85));
    };
    ASSERT_OK(machine->launch(makeStream(*machine, 0), kernel("poller", poller, {2, 1, 1}, 1, 0, flag, spin)));
    ASSERT_OK(machine->launch(makeStream(*machine, 1), kernel("storer", storer, {1, 1, 1}, 1, 0, flag)));
    EXPECT_OK(machine->synchronize());
  }
}

// Threads of one block that poll each other through shared memory: the poller must let the others run.
TEST(Wait, PollingSharedMemoryLetsTheBlockRun) {
  auto machine = makeMachine();
  auto *out = makeBuffer<uint32_t>(*machine, 0, 1, "out");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    auto *words = reinterpret_cast<uint32_t *>(self->sharedMemory);
    if (self->threadId == 0)
      words[0] = words[1] = words[2] = 0;
    ditron_sim_barrier(self, AT(87));
    if (self->threadId == 0) {
      while (ditron_sim_ld(self, words, 4, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_BLOCK, 0, AT(88)) == 0) {
      }
      while (ditron_sim_atomic_cas(self, words + 1, 1, 2, 4, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_BLOCK, AT(88)) != 1) {
      }
      while (ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I32, words + 2, 0, 1, DITRON_SIM_ACQUIRE,
                                   DITRON_SIM_SCOPE_BLOCK, AT(88)) == 0) {
      }
      *argument<uint32_t *>(arguments, 0) = words[1];
    }
    if (self->threadId == 63) {
      words[0] = words[2] = 1;
      ditron_sim_st(self, words + 1, 1, 4, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_BLOCK, AT(89));
    }
  };
  ASSERT_OK(runOnce(*machine, kernel("poll", entry, {2, 1, 1}, 64, 16, out)));
  EXPECT_EQ(*out, 2u);
}

TEST(Deadlock, SpinLoopsAreFoundToo) {
  for (uint32_t spin : {0u, 1u}) {
    auto machine = makeMachine();
    auto *flag = makeBuffer<uint32_t>(*machine, 0, 4, "flag");
    auto poller = [](void **arguments) {
      DitronSimThread *self = ditron_sim_self();
      while (ditron_sim_ld(self, argument<uint32_t *>(arguments, 0) + 2, 4, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM,
                           argument<uint32_t>(arguments, 1), AT(84)) == 0) {
      }
    };
    Status status = runOnce(*machine, kernel("poller", poller, {1, 1, 1}, 1, 0, flag, spin));
    EXPECT_EQ(status.code(), StatusCode::Deadlock);
    EXPECT_THAT(
        status.message(),
        HasSubstr("rank 0, kernel poller at kernel.py:84:5, block (0,0,0), thread 0\n"
                  "    waits for flag[2] on rank 0: has 0, polls it in a loop until it changes; never written"));
  }
}

TEST(Deadlock, ALockThatIsNeverReleased) {
  auto machine = makeMachine();
  auto *lock = makeBuffer<uint32_t>(*machine, 0, 1, "lock");
  auto entry = [](void **arguments) {
    while (ditron_sim_atomic_cas(ditron_sim_self(), argument<uint32_t *>(arguments, 0), 0, 1, 4, DITRON_SIM_ACQUIRE,
                                 DITRON_SIM_SCOPE_GPU, AT(86)) != 0) {
    }
  };
  Status status = runOnce(*machine, kernel("locker", entry, {3, 1, 1}, 1, 0, lock));
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("waits for lock[0] on rank 0: has 1"),
                                      HasSubstr("last written by rank 0, kernel locker, block (")));
}

TEST(Deadlock, TextNamesEverything) {
  MachineOptions options = ranks(2);
  options.jitter = 0;
  auto machine = makeMachine(options);
  Expected<uint64_t> offset = machine->allocateSymmetric(8 * 8, "ag_signal", 8);
  ASSERT_TRUE(offset.isOk());
  auto consumer = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    if (self->threadId == 0)
      waitFor(self, argument<uint64_t *>(arguments, 0) + 3, 2, AT(31));
    ditron_sim_barrier(self, AT(33));
  };
  auto producer = [](void **arguments) {
    ditron_sim_st(ditron_sim_self(), argument<uint64_t *>(arguments, 0) + 3, 1, 8, DITRON_SIM_RELEASE,
                  DITRON_SIM_SCOPE_SYSTEM, AT(40));
  };
  StreamId main0 = makeStream(*machine, 0), comm0 = makeStream(*machine, 0, "comm"), main1 = makeStream(*machine, 1);
  ASSERT_OK(machine->launch(main0, kernel("gemm", consumer, {20, 1, 1}, 64, 0, at<uint64_t>(*machine, 0, *offset))));
  ASSERT_OK(machine->launch(main0, kernel("epilogue", producer, {1, 1, 1}, 1, 0, at<uint64_t>(*machine, 0, *offset))));
  ASSERT_OK(machine->signalWait(comm0, at<uint64_t>(*machine, 0, *offset) + 5, Compare::GreaterEqual, 1));
  ASSERT_OK(machine->signalWrite(comm0, at<uint64_t>(*machine, 1, *offset), 1));
  ASSERT_OK(machine->launch(main1, kernel("producer", producer, {1, 1, 1}, 1, 0, at<uint64_t>(*machine, 0, *offset))));
  Status status = machine->synchronize();
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  // The virtual times depend on the cost model; everything else is fixed.
  EXPECT_THAT(
      status.message(),
      testing::MatchesRegex(
          "deadlock at virtual time [0-9.]+ us: nothing can run and nothing is in flight\n"
          "waiting:\n"
          "  rank 0, kernel gemm at kernel.py:31:5, blocks 0..7, thread 0\n"
          "    waits for ag_signal\\[3\\] on rank 0: has 1, wants >= 2; last written by rank 1, kernel producer, "
          "block \\(0,0,0\\), kernel.py:40:5 at [0-9.]+ us\n"
          "    could still raise it: kernel gemm on rank 0, which waits itself; 12 blocks of it have not started; "
          "kernel epilogue on "
          "rank 0, which is queued on stream main\n"
          "    in the same block: threads 1..63 wait at the block barrier kernel.py:33:5\n"
          "  rank 0, stream comm, signal wait\n"
          "    waits for ag_signal\\[5\\] on rank 0: has 0, wants >= 1; never written\n"
          "    could still raise it: kernel gemm on rank 0, which waits itself; 12 blocks of it have not started; "
          "kernel epilogue on "
          "rank 0, which is queued on stream main\n"
          "what the ranks are doing:\n"
          "  rank 0:\n"
          "    stream main runs kernel gemm: 0 of 20 blocks finished, 8 resident, 12 not started; 1 operation queued "
          "behind it\n"
          "    stream comm is held by the signal wait above; 1 operation queued behind it\n"
          "    12 blocks of kernel gemm never started: all 8 SM slots are held by waiting blocks; if its own blocks "
          "wait for each "
          "other, as in a barrier of the grid, at most 8 can be launched; a cooperative launch refuses more\n"
          "  rank 1:\n"
          "    idle"));
}

// Blocks that wait for blocks of a later id: fine while all are resident, a deadlock beyond.
void reverseKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *flags = argument<uint64_t *>(arguments, 0);
  if (self->blockId[0] + 1 < self->gridDim[0])
    waitFor(self, flags + self->blockId[0] + 1, 1, AT(90));
  ditron_sim_st(self, flags + self->blockId[0], 1, 8, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_GPU, AT(91));
}

TEST(Residency, BlocksThatWaitForLaterOnesNeedToBeResident) {
  for (uint32_t grid : {8u, 9u}) {
    auto machine = makeMachine();
    auto *flags = makeBuffer<uint64_t>(*machine, 0, 16, "flags");
    Status status = runOnce(*machine, kernel("reverse", reverseKernel, {grid, 1, 1}, 1, 0, flags));
    if (grid == 8) {
      EXPECT_OK(status);
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::Deadlock);
    EXPECT_THAT(status.message(),
                HasSubstr("1 block of kernel reverse never started: all 8 SM slots are held by waiting blocks"));
  }
  // Two blocks per SM make room; a cooperative launch is refused beforehand.
  MachineOptions options;
  options.blocksPerSm = 2;
  auto machine = makeMachine(options);
  auto *flags = makeBuffer<uint64_t>(*machine, 0, 32, "flags");
  EXPECT_OK(runOnce(*machine, kernel("reverse", reverseKernel, {16, 1, 1}, 1, 0, flags)));
  LaunchDescription launch = kernel("reverse", reverseKernel, {17, 1, 1}, 1, 0, flags);
  launch.cooperative = true;
  EXPECT_EQ(runOnce(*machine, launch).message(),
            "launch of kernel reverse on rank 0: a cooperative launch of 17 blocks needs as many resident "
            "at once; the device has room for 16");
}

TEST(Residency, TwoGridsCompeteForSlots) {
  // The waiting grid fills the machine before the grid that would release it starts (bug zoo Z14).
  auto waiter = [](void **arguments) { waitFor(ditron_sim_self(), argument<uint64_t *>(arguments, 0), 1, AT(92)); };
  auto setter = [](void **arguments) {
    ditron_sim_st(ditron_sim_self(), argument<uint64_t *>(arguments, 0), 1, 8, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_GPU,
                  AT(93));
  };
  for (uint32_t blocks : {7u, 8u}) {
    auto machine = makeMachine();
    auto *flag = makeBuffer<uint64_t>(*machine, 0, 1, "flag");
    StreamId first = makeStream(*machine, 0, "first"), second = makeStream(*machine, 0, "second");
    ASSERT_OK(machine->launch(first, kernel("waiter", waiter, {blocks, 1, 1}, 32, 0, flag)));
    ASSERT_OK(machine->launch(second, kernel("setter", setter, {1, 1, 1}, 1, 0, flag)));
    Status status = machine->synchronize();
    if (blocks == 7) {
      EXPECT_OK(status);
    } else {
      EXPECT_EQ(status.code(), StatusCode::Deadlock);
      EXPECT_THAT(status.message(),
                  HasSubstr("1 block of kernel setter never started: all 8 SM slots are held by waiting blocks"));
    }
  }
}

TEST(Residency, FreeSlotsGoToTheHigherPriorityFirst) {
  for (int priority : {0, 1}) {
    MachineOptions options;
    options.recordTrace = true;
    auto machine = makeMachine(options);
    Expected<StreamId> urgent = machine->createStream(0, "urgent", priority);
    ASSERT_TRUE(urgent.isOk());
    auto entry = [](void **) {
      for (int i = 0; i < 100; ++i)
        ditron_sim_barrier(ditron_sim_self(), AT(94));
    };
    ASSERT_OK(machine->launch(makeStream(*machine, 0), kernel("long", entry, {100, 1, 1}, 32, 0)));
    ASSERT_OK(machine->launch(*urgent, kernel("short", entry, {8, 1, 1}, 32, 0)));
    ASSERT_OK(machine->synchronize());
    const LaunchRecord &first = machine->launches()[0], &second = machine->launches()[1];
    ASSERT_EQ(second.name, "short");
    // With equal priority the older grid hands out all its blocks first.
    if (priority == 0)
      EXPECT_GE(second.blocks[0].start, first.blocks[92].start);
    else
      EXPECT_LT(second.blocks[7].start, first.blocks[40].start);
  }
}

// What blocks do to each other happens in the order of virtual time, though each runs undisturbed in between.
TEST(Order, TicketsAreTakenInVirtualTime) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    MachineOptions options;
    options.schedule = Schedule{.seed = seed}; // nobody comes late, and nobody has priority
    auto machine = makeMachine(options);
    auto *tickets = makeBuffer<uint64_t>(*machine, 0, 9, "tickets");
    auto entry = [](void **arguments) {
      DitronSimThread *self = ditron_sim_self();
      // The first block works longest.
      for (uint32_t i = 0; i < 100 * (8 - self->blockId[0]); ++i)
        ditron_sim_barrier(self, AT(95));
      if (self->threadId != 0)
        return;
      auto *tickets = argument<uint64_t *>(arguments, 0);
      uint64_t ticket = ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, tickets, 1, 1,
                                              DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(96));
      tickets[1 + ticket] = self->blockId[0];
    };
    ASSERT_OK(runOnce(*machine, kernel("tickets", entry, {8, 1, 1}, 32, 0, tickets)));
    EXPECT_EQ(std::vector<uint64_t>(tickets + 1, tickets + 9), (std::vector<uint64_t>{7, 6, 5, 4, 3, 2, 1, 0}));
  }
}

// The site of a write may be gone, with its code, when the report is made.
TEST(Deadlock, TextSurvivesUnloadedCode) {
  struct Code {
    std::string file = "unloaded.py";
    DitronSimSite site{file.c_str(), 7, 9};
  };
  auto machine = makeMachine();
  auto *flag = makeBuffer<uint64_t>(*machine, 0, 1, "flag");
  auto code = std::make_shared<Code>();
  auto entry = [](void **arguments) {
    ditron_sim_st(ditron_sim_self(), argument<uint64_t *>(arguments, 0), 4, 8, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_GPU,
                  argument<const DitronSimSite *>(arguments, 1));
  };
  const DitronSimSite *site = &code->site;
  LaunchDescription launch = kernel("store", entry, {1, 1, 1}, 1, 0, flag, site);
  launch.keepAlive = std::move(code);
  StreamId stream = makeStream(*machine, 0);
  ASSERT_OK(machine->launch(stream, std::move(launch)));
  ASSERT_OK(machine->synchronize());
  ASSERT_OK(machine->signalWait(stream, flag, Compare::Equal, 5));
  EXPECT_THAT(machine->synchronize().message(), HasSubstr("kernel store, block (0,0,0), unloaded.py:7:9 at"));
}

TEST(Deadlock, TextNamesTheCopyThatWroteTheWord) {
  auto machine = makeMachine();
  auto *words = makeBuffer<uint32_t>(*machine, 0, 8, "words"), *source = makeBuffer<uint32_t>(*machine, 0, 8, "source");
  source[3] = 5;
  StreamId stream = makeStream(*machine, 0);
  ASSERT_OK(machine->copy(stream, {.destination = words, .source = source, .rowBytes = 32, .name = "shard 3"}));
  ASSERT_OK(machine->signalWait(stream, words + 3, Compare::Greater, 5, 4));
  EXPECT_THAT(
      machine->synchronize().message(),
      testing::ContainsRegex("waits for words.3. on rank 0: has 5, wants > 5; last written by rank 0, copy shard "
                             "3 at [0-9.]+ us"));
}

} // namespace
} // namespace ditron::sim
