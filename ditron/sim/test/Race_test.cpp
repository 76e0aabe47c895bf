//===- Race_test.cpp - Data races by happens-before ---------------------------------------------------------------===//
//
// Message passing in every strength, scope and distance, and one racing and one ordered program for each way in which
// things can be ordered.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/race/Knowledge.h"
#include "ditron/sim/test/Harness.h"

#include <cstring>
#include <tuple>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

MachineOptions options(uint32_t ranks = 1) {
  MachineOptions options;
  options.ranks = ranks;
  options.detectRaces = true;
  return options;
}

void store(DitronSimThread *self, uint32_t *address, uint32_t value, const DitronSimSite *site) {
  ditron_sim_access(self, address, 4, 1, DITRON_SIM_STORE, DITRON_SIM_GENERIC, site);
  *address = value;
}

uint32_t load(DitronSimThread *self, const uint32_t *address, const DitronSimSite *site) {
  ditron_sim_access(self, address, 4, 1, DITRON_SIM_LOAD, DITRON_SIM_GENERIC, site);
  return *address;
}

//===- Message passing --------------------------------------------------------------------------------------------===//

/// Where writer and reader are.
enum class Distance { SameBlock, SameGpu, OtherRank };

struct Passing {
  uint32_t storeOrder, storeScope, loadOrder, loadScope;
  /// Fences of that scope with relaxed accesses; none: 3.
  uint32_t storeFence, loadFence;
};

/// Thread 0 of the writing warp stores data, then raises the flag; a thread of the reading warp waits for it and loads.
void passMessage(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *data = argument<uint32_t *>(arguments, 0);
  auto *flag = argument<uint64_t *>(arguments, 1);
  const Passing how = argument<Passing>(arguments, 2);
  const auto role = argument<uint32_t>(arguments, 3); // 0: by block and warp, 1: writer, 2: reader
  const uint32_t place = self->blockId[0] * 2 + self->warpId;
  if (self->laneId != 0 || (role == 0 && place != 0 && place != argument<uint32_t>(arguments, 4)))
    return;
  if (role == 1 || (role == 0 && place == 0)) {
    store(self, data, 7, AT(10));
    if (how.storeFence < 3)
      ditron_sim_fence(self, DITRON_SIM_ACQ_REL, how.storeFence, AT(11));
    ditron_sim_st(self, flag, 1, 8, how.storeOrder, how.storeScope, AT(12));
    return;
  }
  ditron_sim_wait_until(self, flag, 8, DITRON_SIM_EQ, 1, how.loadOrder, how.loadScope, AT(20));
  if (how.loadFence < 3)
    ditron_sim_fence(self, DITRON_SIM_ACQ_REL, how.loadFence, AT(21));
  load(self, data, AT(22));
}

Status passMessage(Distance distance, const Passing &how) {
  auto machine = makeMachine(options(2));
  auto *data = makeBuffer<uint32_t>(*machine, 0, 1, "data", MemoryKind::Symmetric);
  auto *flag = makeBuffer<uint64_t>(*machine, 0, 1, "flag", MemoryKind::Symmetric);
  if (distance != Distance::OtherRank) {
    const bool sameBlock = distance == Distance::SameBlock;
    return runOnce(*machine, kernel("pass", passMessage, {sameBlock ? 1u : 2u, 1, 1}, 64, 0, data, flag, how, 0u,
                                    sameBlock ? 1u : 2u));
  }
  DITRON_RETURN_IF_ERROR(
      machine->launch(makeStream(*machine, 0), kernel("pass", passMessage, {1, 1, 1}, 32, 0, data, flag, how, 1u, 0u)));
  DITRON_RETURN_IF_ERROR(
      machine->launch(makeStream(*machine, 1), kernel("pass", passMessage, {1, 1, 1}, 32, 0, data, flag, how, 2u, 0u)));
  return machine->synchronize();
}

class MessagePassing : public testing::TestWithParam<Distance> {
protected:
  bool reaches(uint32_t scope) const { return scope >= static_cast<uint32_t>(GetParam()); }
};

TEST_P(MessagePassing, NeedsReleaseAndAcquireOfSufficientScope) {
  for (uint32_t storeOrder : {DITRON_SIM_RELAXED, DITRON_SIM_RELEASE})
    for (uint32_t loadOrder : {DITRON_SIM_RELAXED, DITRON_SIM_ACQUIRE})
      for (uint32_t storeScope = 0; storeScope < 3; ++storeScope)
        for (uint32_t loadScope = 0; loadScope < 3; ++loadScope) {
          const Status result = passMessage(GetParam(), {storeOrder, storeScope, loadOrder, loadScope, 3, 3});
          const bool ordered = storeOrder == DITRON_SIM_RELEASE && loadOrder == DITRON_SIM_ACQUIRE &&
                               reaches(storeScope) && reaches(loadScope);
          const std::string what =
              testing::PrintToString(std::tuple(storeOrder, loadOrder, storeScope, loadScope)) + result.message();
          EXPECT_EQ(result.isOk(), ordered) << what;
          if (!ordered)
            EXPECT_EQ(result.code(), StatusCode::DataRace) << what;
        }
}

TEST_P(MessagePassing, OrFencesWithRelaxedAccesses) {
  for (uint32_t storeFence = 0; storeFence < 4; ++storeFence)
    for (uint32_t loadFence = 0; loadFence < 4; ++loadFence)
      for (uint32_t accessScope = 0; accessScope < 3; ++accessScope) {
        const Status result = passMessage(
            GetParam(), {DITRON_SIM_RELAXED, accessScope, DITRON_SIM_RELAXED, accessScope, storeFence, loadFence});
        const bool ordered =
            storeFence < 3 && loadFence < 3 && reaches(storeFence) && reaches(loadFence) && reaches(accessScope);
        EXPECT_EQ(result.isOk(), ordered)
            << testing::PrintToString(std::tuple(storeFence, loadFence, accessScope)) << result.message();
      }
}

INSTANTIATE_TEST_SUITE_P(Distances, MessagePassing,
                         testing::Values(Distance::SameBlock, Distance::SameGpu, Distance::OtherRank));

TEST(Race, ReportNamesBothAccessesAndWhatIsMissing) {
  Status relaxedStore = passMessage(Distance::OtherRank, {DITRON_SIM_RELAXED, 2, DITRON_SIM_ACQUIRE, 2, 3, 3});
  EXPECT_THAT(
      relaxedStore.message(),
      AllOf(
          HasSubstr("kernel.py:22:5: kernel pass, rank 1, block (0,0,0), thread 0: data race on data[0] of rank 0: "
                    "this load of "
                    "4 bytes by kernel pass, rank 1, block (0,0,0), thread 0"),
          HasSubstr("is not ordered after the store at kernel.py:10:5 by kernel pass, rank 0, block (0,0,0), thread 0"),
          HasSubstr("flag[0] was raised at kernel.py:12:5 with relaxed order, which releases nothing")));
  Status relaxedLoad = passMessage(Distance::OtherRank, {DITRON_SIM_RELEASE, 2, DITRON_SIM_RELAXED, 2, 3, 3});
  EXPECT_THAT(relaxedLoad.message(),
              HasSubstr("flag[0] was read at kernel.py:20:5 with relaxed order, which acquires nothing"));
  Status scope = passMessage(Distance::SameGpu, {DITRON_SIM_RELEASE, 1, DITRON_SIM_ACQUIRE, 1, 3, 3});
  EXPECT_OK(scope);
}

//===- Meetings ---------------------------------------------------------------------------------------------------===//

/// Every thread stores its word of shared or global memory and, after what `synchronise` does, loads its neighbour's.
using Synchronise = void (*)(DitronSimThread *);

template <Synchronise synchronise> void exchange(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *global = argument<uint32_t *>(arguments, 0);
  uint32_t *words = global ? global : reinterpret_cast<uint32_t *>(self->sharedMemory);
  store(self, words + self->threadId, self->threadId, AT(30));
  synchronise(self);
  const auto distance = argument<uint32_t>(arguments, 1);
  load(self, words + (self->threadId + distance) % self->numThreads, AT(32));
}

Status runExchange(KernelEntry entry, bool global, uint32_t distance) {
  auto machine = makeMachine(options());
  auto *words = makeBuffer<uint32_t>(*machine, 0, 128, "words");
  return runOnce(*machine, kernel("exchange", entry, {1, 1, 1}, 128, 512, global ? words : nullptr, distance));
}

void nothing(DitronSimThread *) {}
void blockBarrier(DitronSimThread *self) { ditron_sim_barrier(self, AT(31)); }
void warpBarrier(DitronSimThread *self) { ditron_sim_warp_barrier(self, AT(31)); }
void namedBarrier(DitronSimThread *self) { ditron_sim_named_barrier(self, 1, 128, DITRON_SIM_BARRIER_SYNC, AT(31)); }
void halfBarrier(DitronSimThread *self) {
  ditron_sim_named_barrier(self, 1 + self->threadId / 64, 64, DITRON_SIM_BARRIER_SYNC, AT(31));
}

TEST(Race, BarriersOrderThoseWhoMeet) {
  for (bool global : {false, true}) {
    // Lanes of a warp, then other warps.
    for (uint32_t distance : {1u, 32u}) {
      EXPECT_EQ(runExchange(exchange<nothing>, global, distance).code(), StatusCode::DataRace);
      EXPECT_OK(runExchange(exchange<blockBarrier>, global, distance));
      EXPECT_OK(runExchange(exchange<namedBarrier>, global, distance));
    }
    EXPECT_EQ(runExchange(exchange<warpBarrier>, global, 32).code(), StatusCode::DataRace);
    EXPECT_EQ(runExchange(exchange<halfBarrier>, global, 64).code(), StatusCode::DataRace);
    EXPECT_OK(runExchange(exchange<nothing>, global, 0));
  }
  EXPECT_THAT(runExchange(exchange<nothing>, true, 32).message(),
              HasSubstr("no block barrier (tl.debug_barrier()), and no other synchronisation"));
  EXPECT_THAT(runExchange(exchange<nothing>, false, 1).message(),
              AllOf(HasSubstr("data race on shared memory of the block, offset "),
                    HasSubstr("no warp barrier comes between these lanes")));
}

// Threads that wait at an mbarrier are ordered after those that arrived there, and not after others.
void meetAtMbarrier(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto arrives = argument<uint32_t>(arguments, 0);
  char *bar = self->sharedMemory;
  auto *word = reinterpret_cast<uint32_t *>(self->sharedMemory + 64);
  if (self->threadId == 0)
    ditron_sim_mbarrier_init(self, bar, 1, AT(40));
  ditron_sim_barrier(self, AT(41));
  if (self->threadId == 32)
    store(self, word, 1, AT(42));
  if (self->threadId == (arrives ? 32u : 64u))
    ditron_sim_mbarrier_arrive(self, bar, 1, 1, AT(43));
  if (self->threadId == 0) {
    ditron_sim_mbarrier_wait(self, bar, 0, AT(44));
    load(self, word, AT(45));
  }
}

TEST(Race, MbarriersOrderWaitersAfterArrivals) {
  auto run = [](uint32_t arrives) {
    auto machine = makeMachine(options());
    return runOnce(*machine, kernel("meet", meetAtMbarrier, {1, 1, 1}, 96, 128, arrives));
  };
  EXPECT_OK(run(1));
  EXPECT_EQ(run(0).code(), StatusCode::DataRace);
}

//===- Bytes and sizes --------------------------------------------------------------------------------------------===//

template <uint32_t bytes> void touchBytes(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  char *address = argument<char *>(arguments, 0) + self->threadId * argument<uint32_t>(arguments, 1);
  // Two lines: the elements of one store may meet.
  ditron_sim_access(self, address, bytes, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, self->threadId % 2 ? AT(50) : AT(51));
  std::memset(address, static_cast<int>(self->threadId + 1), bytes);
}

TEST(Race, IsExactToTheByte) {
  auto run = [](KernelEntry entry, uint32_t stride) {
    auto machine = makeMachine(options());
    auto *words = makeBuffer<char>(*machine, 0, 2048, "words");
    return runOnce(*machine, kernel("touch", entry, {1, 1, 1}, 128, 0, words, stride));
  };
  EXPECT_OK(run(touchBytes<1>, 1));
  EXPECT_OK(run(touchBytes<2>, 2)); // neighbours of fp16
  EXPECT_OK(run(touchBytes<3>, 3));
  EXPECT_OK(run(touchBytes<16>, 16));
  // Of sizes that need no alignment.
  EXPECT_EQ(run(touchBytes<3>, 2).code(), StatusCode::DataRace);
  EXPECT_EQ(run(touchBytes<5>, 4).code(), StatusCode::DataRace);
  EXPECT_EQ(run(touchBytes<15>, 14).code(), StatusCode::DataRace);
}

void mixSizes(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *word = argument<char *>(arguments, 0);
  const auto kind = argument<uint32_t>(arguments, 1);
  if (self->laneId != 0)
    return;
  if (self->blockId[0] == 0)
    ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, word, 1, 1, DITRON_SIM_RELAXED,
                          DITRON_SIM_SCOPE_GPU, AT(60));
  else if (kind == 0)
    ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, word, 1, 1, DITRON_SIM_RELAXED,
                          DITRON_SIM_SCOPE_GPU, AT(61));
  else if (kind == 1)
    ditron_sim_st(self, word, 1, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(62));
  else if (kind == 2)
    ditron_sim_ld(self, word, 8, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_BLOCK, 0, AT(63));
  else
    load(self, reinterpret_cast<uint32_t *>(word), AT(64));
}

TEST(Race, AtomicsOfOneSizeAndScopeDoNotRace) {
  auto run = [](uint32_t kind) {
    auto machine = makeMachine(options());
    auto *word = makeBuffer<uint64_t>(*machine, 0, 1, "word");
    return runOnce(*machine, kernel("mix", mixSizes, {2, 1, 1}, 32, 0, word, kind));
  };
  EXPECT_OK(run(0));
  EXPECT_THAT(run(1).message(), HasSubstr("atomic accesses of different sizes"));
  EXPECT_THAT(run(2).message(), HasSubstr("scopes do not include each other"));
  EXPECT_EQ(run(3).code(), StatusCode::DataRace);
}

void storeSame(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  store(self, argument<uint32_t *>(arguments, 0), argument<uint32_t>(arguments, 1) ? self->blockId[0] : 7, AT(66));
}

TEST(Race, StoresOfOneValueAreNone) {
  auto run = [](uint32_t differ) {
    auto machine = makeMachine(options());
    auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word");
    return runOnce(*machine, kernel("same", storeSame, {8, 1, 1}, 64, 0, word, differ));
  };
  EXPECT_OK(run(0));
  EXPECT_THAT(run(1).message(), HasSubstr("data race on word[0] of rank 0: this store of 4 bytes by kernel same"));
}

// Many readers of a word, all of whom a writer must be ordered after.
void readersThenWriter(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *word = argument<uint32_t *>(arguments, 0);
  auto *count = argument<uint32_t *>(arguments, 1);
  const auto forgotten = argument<uint32_t>(arguments, 2);
  if (self->laneId != 0)
    return;
  load(self, word, AT(70));
  const uint32_t order = self->blockId[0] == forgotten ? DITRON_SIM_RELAXED : DITRON_SIM_RELEASE;
  ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I32, count, 1, 1, order, DITRON_SIM_SCOPE_GPU, AT(71));
  if (self->blockId[0] != 0)
    return;
  ditron_sim_wait_until(self, count, 4, DITRON_SIM_EQ, self->gridDim[0], DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_GPU,
                        AT(72));
  store(self, word, 1, AT(73));
}

TEST(Race, AWriterWaitsForAllReaders) {
  auto run = [](uint32_t forgotten) {
    auto machine = makeMachine(options());
    auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word"), *count = makeBuffer<uint32_t>(*machine, 0, 1, "count");
    return runOnce(*machine, kernel("readers", readersThenWriter, {8, 1, 1}, 32, 0, word, count, forgotten));
  };
  EXPECT_OK(run(99));
  for (uint32_t block = 1; block < 8; ++block)
    EXPECT_EQ(run(block).code(), StatusCode::DataRace) << block;
}

// The lanes of a warp read the beginning of a word, all of them before one of them releases; then its second half is written.
void lanesThenWriter(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *word = argument<char *>(arguments, 0);
  auto *counts = argument<uint32_t *>(arguments, 1);
  const auto forgotten = argument<uint32_t>(arguments, 2);
  const bool isForgotten = self->laneId == forgotten;
  if (self->blockId[0] == 0) {
    ditron_sim_access(self, word, isForgotten ? argument<uint32_t>(arguments, 3) : 4, 1, DITRON_SIM_LOAD,
                      DITRON_SIM_GLOBAL, AT(75));
    ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I32, counts, 1, 1, DITRON_SIM_RELAXED,
                          DITRON_SIM_SCOPE_GPU, AT(76));
    ditron_sim_wait_until(self, counts, 4, DITRON_SIM_EQ, 32, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(77));
    ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I32, counts + 1, 1, 1,
                          isForgotten ? DITRON_SIM_RELAXED : DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_GPU, AT(78));
  } else if (self->laneId == 0) {
    ditron_sim_wait_until(self, counts + 1, 4, DITRON_SIM_EQ, 32, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_GPU, AT(79));
    ditron_sim_access(self, word + 2, 2, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(80));
    std::memset(word + 2, 1, 2);
  }
}

TEST(Race, AWriterWaitsForEachLaneThatHasReadItsBytes) {
  auto run = [](uint32_t forgotten, uint32_t bytes) {
    auto machine = makeMachine(options());
    auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word"), *counts = makeBuffer<uint32_t>(*machine, 0, 2, "counts");
    return runOnce(*machine, kernel("lanes", lanesThenWriter, {2, 1, 1}, 32, 0, word, counts, forgotten, bytes));
  };
  EXPECT_OK(run(99, 4));
  for (uint32_t lane : {0u, 1u, 17u, 31u}) {
    EXPECT_OK(run(lane, 2));
    EXPECT_THAT(run(lane, 4).message(), HasSubstr("block (0,0,0), thread " + std::to_string(lane))) << lane;
  }
}

// Three warps read a row, each lane its word, and a lane of the last writes its word. It has been told of lane 0 of the first and of all of the
// second.
void rowThenWriter(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *row = argument<uint32_t *>(arguments, 0), *counts = argument<uint32_t *>(arguments, 1);
  const uint32_t block = self->blockId[0];
  if (block == 2 && self->laneId == 0)
    for (uint32_t i = 0; i < 2; ++i)
      ditron_sim_wait_until(self, counts + i, 4, DITRON_SIM_EQ, 1, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_GPU, AT(85));
  ditron_sim_warp_barrier(self, AT(86));
  load(self, row + self->laneId, AT(87));
  if (block == 2) {
    if (self->laneId == argument<uint32_t>(arguments, 2))
      store(self, row + self->laneId, 1, AT(88));
    return;
  }
  if (block == 0) { // all have read before one releases
    ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I32, counts + 2, 1, 1, DITRON_SIM_RELAXED,
                          DITRON_SIM_SCOPE_GPU, AT(89));
    ditron_sim_wait_until(self, counts + 2, 4, DITRON_SIM_EQ, 32, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(90));
  } else {
    ditron_sim_warp_barrier(self, AT(91));
  }
  if (self->laneId == 0)
    ditron_sim_st(self, counts + block, 1, 4, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_GPU, AT(92));
}

TEST(Race, WhatIsKnownOfOneLaneIsNotKnownOfOthers) {
  auto run = [](uint32_t writer) {
    auto machine = makeMachine(options());
    auto *row = makeBuffer<uint32_t>(*machine, 0, 32, "row"), *counts = makeBuffer<uint32_t>(*machine, 0, 3, "counts");
    return runOnce(*machine, kernel("row", rowThenWriter, {3, 1, 1}, 32, 0, row, counts, writer));
  };
  EXPECT_OK(run(0));
  for (uint32_t lane : {1u, 2u, 31u})
    EXPECT_THAT(run(lane).message(), HasSubstr("block (0,0,0), thread " + std::to_string(lane))) << lane;
}

//===- Streams, copies and host code ------------------------------------------------------------------------------===//

void writeOne(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  if (self->threadId == 0)
    store(self, argument<uint32_t *>(arguments, 0), *argument<uint32_t *>(arguments, 0) + 1, AT(80));
}

TEST(Race, StreamsAreOrderedByEvents) {
  for (bool ordered : {true, false}) {
    auto machine = makeMachine(options());
    auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word");
    const StreamId a = makeStream(*machine, 0, "a"), b = makeStream(*machine, 0, "b");
    const EventId event = *machine->createEvent("between");
    ASSERT_OK(machine->launch(a, kernel("first", writeOne, {1, 1, 1}, 32, 0, word)));
    ASSERT_OK(machine->launch(a, kernel("second", writeOne, {1, 1, 1}, 32, 0, word))); // one stream: in order
    if (ordered) {
      ASSERT_OK(machine->recordEvent(a, event));
      ASSERT_OK(machine->waitEvent(b, event));
    }
    ASSERT_OK(machine->launch(b, kernel("third", writeOne, {1, 1, 1}, 32, 0, word)));
    const Status result = machine->synchronize();
    EXPECT_EQ(result.isOk(), ordered) << result.message();
    if (!ordered)
      EXPECT_THAT(result.message(), HasSubstr("the launches are on streams that no event orders"));
  }
}

TEST(Race, CopiesAndHostCodeAreOrderedBySynchronisation) {
  for (bool ordered : {true, false}) {
    auto machine = makeMachine(options());
    auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word"), *other = makeBuffer<uint32_t>(*machine, 0, 1, "other");
    const StreamId a = makeStream(*machine, 0, "a"), b = makeStream(*machine, 0, "b");
    ASSERT_OK(machine->launch(a, kernel("first", writeOne, {1, 1, 1}, 32, 0, word)));
    if (ordered)
      ASSERT_OK(machine->synchronize(a));
    ASSERT_OK(machine->copy(b, {.destination = other, .source = word, .rowBytes = 4, .name = "fetch"}));
    const Status result = ordered ? machine->synchronize(b) : machine->synchronize();
    EXPECT_EQ(result.isOk(), ordered) << result.message();
    if (!ordered)
      continue;
    EXPECT_OK(machine->hostAccess(other, 4, /*isWrite=*/false));
    ASSERT_OK(machine->launch(a, kernel("last", writeOne, {1, 1, 1}, 32, 0, other)));
    for (int i = 0; i < 4; ++i)
      ASSERT_OK(machine->launch(b, kernel("long after", writeOne, {1, 1, 1}, 32, 0, word)));
    ASSERT_OK(machine->synchronize(b)); // by then the launch has run too, but nobody has waited for it
    ASSERT_TRUE(machine->isIdle(a));
    EXPECT_EQ(machine->hostAccess(other, 4, /*isWrite=*/false).code(), StatusCode::DataRace);
    EXPECT_OK(machine->synchronize(a));
    EXPECT_OK(machine->hostAccess(other, 4, /*isWrite=*/false));
  }
}

TEST(Race, AWaitForAnEventIsForTheRecordingThatWasThere) {
  auto machine = makeMachine(options());
  auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word"), *other = makeBuffer<uint32_t>(*machine, 0, 1, "other");
  auto *gate = makeBuffer<uint64_t>(*machine, 0, 1, "gate");
  const StreamId a = makeStream(*machine, 0, "a"), b = makeStream(*machine, 0, "b"),
                 late = makeStream(*machine, 0, "late");
  const EventId event = *machine->createEvent("between");
  ASSERT_OK(machine->recordEvent(a, event));
  ASSERT_OK(machine->signalWait(b, gate, Compare::Equal, 1));
  ASSERT_OK(machine->waitEvent(b, event)); // by then the second recording is over as well
  ASSERT_OK(machine->launch(b, kernel("second", writeOne, {1, 1, 1}, 32, 0, word)));
  ASSERT_OK(machine->launch(a, kernel("first", writeOne, {1, 1, 1}, 32, 0, word)));
  ASSERT_OK(machine->recordEvent(a, event));
  for (int i = 0; i < 20; ++i)
    ASSERT_OK(machine->launch(late, kernel("between", writeOne, {1, 1, 1}, 32, 0, other)));
  ASSERT_OK(machine->signalWrite(late, gate, 1));
  EXPECT_EQ(machine->synchronize().code(), StatusCode::DataRace);
}

TEST(Race, OperationsOfStreamsNameWhereTheyWereEnqueued) {
  auto machine = makeMachine(options());
  auto *words = makeBuffer<uint32_t>(*machine, 0, 64, "words"), *other = makeBuffer<uint32_t>(*machine, 0, 64, "other");
  const StreamId a = makeStream(*machine, 0, "a"), b = makeStream(*machine, 0, "b");
  const Status result =
      machine->runHosts({{0, "", [&]() -> Status {
                            machine->hostStep({"steps.json", 3, 5});
                            DITRON_RETURN_IF_ERROR(machine->memset(a, words, 0, 256));
                            machine->hostStep({"steps.json", 4, 7});
                            DITRON_RETURN_IF_ERROR(machine->copy(
                                b, {.destination = words, .source = other, .rowBytes = 256, .name = "fill"}));
                            return machine->synchronize();
                          }}});
  EXPECT_EQ(result.code(), StatusCode::DataRace);
  ASSERT_NE(result.location(), nullptr) << result.message();
  EXPECT_EQ(result.location()->file, "steps.json");
  EXPECT_THAT(result.message(), AllOf(HasSubstr("enqueued at steps.json:3:5"), HasSubstr("enqueued at steps.json:4:7"),
                                      Not(HasSubstr("unknown line"))));
}

TEST(Race, SignalsOfStreamsReleaseWhatCameBefore) {
  for (bool ordered : {true, false}) {
    auto machine = makeMachine(options(2));
    auto *word = makeBuffer<uint32_t>(*machine, 1, 1, "word", MemoryKind::Symmetric);
    auto *flag = makeBuffer<uint64_t>(*machine, 1, 1, "flag", MemoryKind::Symmetric);
    const StreamId a = makeStream(*machine, 0, "a"), b = makeStream(*machine, 1, "b");
    if (!ordered)
      ASSERT_OK(machine->signalWrite(a, flag, 1));
    ASSERT_OK(machine->launch(a, kernel("first", writeOne, {1, 1, 1}, 32, 0, word)));
    if (ordered)
      ASSERT_OK(machine->signalWrite(a, flag, 1));
    ASSERT_OK(machine->signalWait(b, flag, Compare::Equal, 1));
    ASSERT_OK(machine->launch(b, kernel("second", writeOne, {1, 1, 1}, 32, 0, word)));
    EXPECT_EQ(machine->synchronize().code(), ordered ? StatusCode::Ok : StatusCode::DataRace);
  }
}

// A stream's wait reads the word; what comes behind it in the stream may write it, however it does.
TEST(Race, WhatFollowsASignalWaitMayWriteTheWord) {
  auto machine = makeMachine(options());
  auto *flag = makeBuffer<uint32_t>(*machine, 0, 1, "flag");
  const StreamId stream = makeStream(*machine, 0);
  ASSERT_OK(machine->signalWrite(stream, flag, 1, 4));
  ASSERT_OK(machine->signalWait(stream, flag, Compare::Equal, 1, 4));
  ASSERT_OK(machine->launch(stream, kernel("reset", writeOne, {1, 1, 1}, 32, 0, flag)));
  EXPECT_OK(machine->synchronize());
}

// What host code has waited for is forgotten when it has become much; what comes then is compared with what comes then.
TEST(Race, HistoryThatIsOverIsForgotten) {
  auto machine = makeMachine(options(2));
  auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word");
  const StreamId a = makeStream(*machine, 0, "a"), b = makeStream(*machine, 0, "b");
  auto nothingToDo = [](void **) {};
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(machine->launch(a, kernel("many", nothingToDo, {40000, 1, 1}, 1, 0)));
    ASSERT_OK(machine->launch(a, kernel("first", writeOne, {1, 1, 1}, 32, 0, word)));
    ASSERT_OK(machine->synchronize());
    EXPECT_OK(machine->hostAccess(word, 4, /*isWrite=*/true));
    ASSERT_OK(machine->launch(b, kernel("second", writeOne, {1, 1, 1}, 32, 0, word)));
    ASSERT_OK(machine->synchronize());
  }
  ASSERT_OK(machine->launch(a, kernel("third", writeOne, {1, 1, 1}, 32, 0, word)));
  ASSERT_OK(machine->launch(b, kernel("fourth", writeOne, {1, 1, 1}, 32, 0, word)));
  EXPECT_EQ(machine->synchronize().code(), StatusCode::DataRace);
}

//===- The network ------------------------------------------------------------------------------------------------===//

void putAndReuse(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  if (self->threadId != 0)
    return;
  auto *source = argument<uint32_t *>(arguments, 0), *destination = argument<uint32_t *>(arguments, 1);
  ditron_sim_shmem_put(self, destination, source, 16, 1, /*nonblocking=*/1, AT(90));
  if (argument<uint32_t>(arguments, 2))
    ditron_sim_shmem_order(self, DITRON_SIM_SHMEM_QUIET, AT(91));
  store(self, source, 5, AT(92));
}

TEST(Race, SourcesOfNonBlockingPutsStayUntilTheQuiet) {
  for (uint32_t quiet : {1u, 0u}) {
    auto machine = makeMachine(options(2));
    auto *source = makeBuffer<uint32_t>(*machine, 0, 4, "source"),
         *destination = makeBuffer<uint32_t>(*machine, 1, 4, "destination", MemoryKind::Symmetric);
    const Status result = runOnce(*machine, kernel("put", putAndReuse, {1, 1, 1}, 32, 0, source, destination, quiet));
    EXPECT_EQ(result.code(), quiet ? StatusCode::Ok : StatusCode::DataRace) << result.message();
    if (quiet)
      continue;
    EXPECT_THAT(result.message(),
                AllOf(HasSubstr("data race on source[0]"), HasSubstr("kernel.py:90:5"), HasSubstr("kernel.py:92:5")));
    EXPECT_NE(result.location(), nullptr) << "of the transfer, which is delivered when the block has ended";
  }
}

/// Two puts of the same bytes.
enum class Between : uint32_t { Nothing, Fence, Quiet, OtherRank, OtherBlock, SameBytes, OtherLine };

void putTwice(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *source = argument<uint32_t *>(arguments, 0), *destination = argument<uint32_t *>(arguments, 1);
  const auto between = argument<Between>(arguments, 2);
  const auto bytes = argument<uint64_t>(arguments, 3);
  const auto nonblocking = argument<uint32_t>(arguments, 4);
  if (self->threadId != 0)
    return;
  if (between == Between::OtherRank || between == Between::OtherBlock) {
    ditron_sim_shmem_put(self, destination, source + 16 * self->blockId[0], bytes, 1, nonblocking, AT(90));
    return;
  }
  for (uint32_t turn = 0; turn < 2; ++turn) {
    if (turn == 1 && (between == Between::Fence || between == Between::Quiet))
      ditron_sim_shmem_order(self, between == Between::Fence ? DITRON_SIM_SHMEM_FENCE : DITRON_SIM_SHMEM_QUIET, AT(91));
    const uint32_t *from = source + (between == Between::SameBytes ? 0 : 16 * turn);
    if (between == Between::OtherLine && turn == 1)
      ditron_sim_shmem_put(self, destination, from, bytes, 1, nonblocking, AT(92));
    else
      ditron_sim_shmem_put(self, destination, from, bytes, 1, nonblocking, AT(90));
  }
}

TEST(Race, PutsOfTheSameBytesAreOrderedByFenceAndQuietAlone) {
  for (uint64_t bytes : {4u, 8u, 12u, 64u})
    for (uint32_t nonblocking : {0u, 1u})
      for (uint32_t ranksPerNode : {1u, 3u})
        for (Between between : {Between::Nothing, Between::Fence, Between::Quiet, Between::OtherRank,
                                Between::OtherBlock, Between::SameBytes, Between::OtherLine}) {
          SCOPED_TRACE(std::to_string(bytes) + " bytes, case " + std::to_string(static_cast<uint32_t>(between)) +
                       ", ranks per node: " + std::to_string(ranksPerNode));
          MachineOptions machineOptions = options(3);
          machineOptions.ranksPerNode = ranksPerNode;
          auto machine = makeMachine(machineOptions);
          auto *destination = makeBuffer<uint32_t>(*machine, 1, 16, "destination", MemoryKind::Symmetric);
          for (uint32_t rank : {0u, 2u}) {
            auto *source = makeBuffer<uint32_t>(*machine, rank, 32, "source");
            for (uint32_t i = 0; i < 32; ++i)
              source[i] = 100 * rank + i + 1;
            if (rank == 0 || between == Between::OtherRank)
              ASSERT_OK(machine->launch(makeStream(*machine, rank, "stream"),
                                        kernel("put", putTwice, {between == Between::OtherBlock ? 2u : 1u, 1, 1}, 32, 0,
                                               source, destination, between, bytes, nonblocking)));
          }
          const Status result = machine->synchronize();
          const bool isOrdered =
              between == Between::Fence || between == Between::Quiet || between == Between::SameBytes;
          EXPECT_EQ(result.code(), isOrdered ? StatusCode::Ok : StatusCode::DataRace) << result.message();
          if (between == Between::OtherLine)
            EXPECT_THAT(result.message(), AllOf(HasSubstr("data race on destination[0]"), HasSubstr("kernel.py:90:5"),
                                                HasSubstr("kernel.py:92:5"), HasSubstr("arrive in any order")));
        }
}

//===- Knowledge --------------------------------------------------------------------------------------------------===//

TEST(Knowledge, JoinsAndForgetsWhatIsImplied) {
  using namespace race;
  Joiner joiner([](const Knowledge &known, const Known &entry) {
    return entry.key.kind() == KeyKind::Lane && known.upTo(Key::stream(0)) >= 1;
  });
  KnowledgeRef a = joiner.with(nullptr, {{Key::lane(3, 5), 2}, {Key::block(9), 4}});
  KnowledgeRef b = joiner.with(nullptr, {{Key::lane(3, 5), 7}, {Key::warp(1), 1}});
  KnowledgeRef both = joiner.join(a, b);
  EXPECT_EQ(both->upTo(Key::lane(3, 5)), 7u);
  EXPECT_EQ(both->upTo(Key::block(9)), 4u);
  EXPECT_EQ(both->upTo(Key::warp(1)), 1u);
  EXPECT_EQ(both->upTo(Key::warp(2)), 0u);
  EXPECT_EQ(joiner.join(both, a), both); // nothing new: the same object
  EXPECT_EQ(joiner.join(a, b), both);    // kept
  KnowledgeRef many = both;
  for (uint32_t warp = 0; warp < 100; ++warp)
    many = joiner.join(many, joiner.with(nullptr, {{Key::lane(warp + 10, 0), 1}}));
  EXPECT_GE(many->entries().size(), 100u);
  many = joiner.join(many, joiner.with(nullptr, {{Key::stream(0), 1}}));
  for (uint32_t warp = 0; warp < 200; ++warp)
    many = joiner.join(many, joiner.with(nullptr, {{Key::lane(warp + 1000, 0), 1}}));
  EXPECT_LT(many->entries().size(), 150u);
}

} // namespace
} // namespace ditron::sim
