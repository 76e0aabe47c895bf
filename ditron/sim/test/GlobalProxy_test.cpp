//===- GlobalProxy_test.cpp - Ordinary stores to global memory, and tensor copies of them -------------------------===//
//
// One message between two blocks with the proxy fence at every place where it may stand, right or wrong.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/test/Harness.h"

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

enum Place : uint32_t {
  Nowhere,
  BeforeTheStores,
  BehindTheStores,      // by every thread that has stored
  BehindMostStores,     // not by thread 5
  BehindWritersBarrier, // by the thread that releases
  BeforeTheAcquire,     // by the thread that acquires
  BehindTheAcquire,     // by the thread that acquires, which is not the one that copies
  BehindReadersBarrier, // by the thread that copies
  ByAnotherAtTheEnd,    // by a thread that nothing orders before the copy
  BetweenTwoStores,     // by every thread; the second store is to the other half
  BehindStoresOfALane,  // lane 1 stores, the warp meets, lane 0 fences and releases
  OfSharedMemory,       // the other fence
};

void write(DitronSimThread *self, uint32_t *address, const DitronSimSite *site) {
  ditron_sim_access(self, address, 4, 1, DITRON_SIM_STORE, DITRON_SIM_GENERIC, site);
  *address = self->threadId + 1;
}

void fence(DitronSimThread *self, Place is, Place wanted) {
  if (is == wanted)
    ditron_sim_fence_async_global(self, AT(50));
}

/// 128 threads of block 0 store 512 bytes and raise a flag; block 1 waits for it and copies them.
void message(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *data = argument<uint32_t *>(arguments, 0);
  auto *flag = argument<uint32_t *>(arguments, 1);
  const auto place = static_cast<Place>(argument<uint32_t>(arguments, 2));
  const uint32_t thread = self->threadId;
  if (self->blockId[0] == 0) {
    fence(self, place, BeforeTheStores);
    if (place != BehindStoresOfALane || thread == 1)
      write(self, data + thread, AT(10));
    fence(self, place, BehindTheStores);
    fence(self, place, BetweenTwoStores);
    if (thread != 5)
      fence(self, place, BehindMostStores);
    if (place == OfSharedMemory)
      ditron_sim_fence_async(self, AT(51));
    if (place == BetweenTwoStores)
      write(self, data + 128 + thread, AT(11));
    if (place == BehindStoresOfALane)
      ditron_sim_warp_barrier(self, AT(12));
    else
      ditron_sim_barrier(self, AT(13));
    if (thread == 0) {
      fence(self, place, BehindWritersBarrier);
      fence(self, place, BehindStoresOfALane);
      ditron_sim_st(self, flag, 1, 4, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_GPU, AT(14));
    }
    return;
  }
  char *bar = self->sharedMemory + 1024;
  if (thread == 32) {
    fence(self, place, BeforeTheAcquire);
    ditron_sim_wait_until(self, flag, 4, DITRON_SIM_EQ, 1, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_GPU, AT(20));
    fence(self, place, BehindTheAcquire);
  }
  ditron_sim_barrier(self, AT(21));
  if (thread == 64)
    fence(self, place, ByAnotherAtTheEnd);
  if (thread == 0) {
    fence(self, place, BehindReadersBarrier);
    ditron_sim_mbarrier_init(self, bar, 1, AT(22));
    ditron_sim_mbarrier_expect_tx(self, bar, 1024, 1, AT(23));
    ditron_sim_bulk_copy(self, data, self->sharedMemory, 1024, bar, AT(24));
    ditron_sim_mbarrier_wait(self, bar, 0, AT(25));
  }
}

MachineOptions options() {
  MachineOptions options = MachineOptions::sm90();
  options.detectRaces = true;
  return options;
}

Status pass(Place place) {
  auto machine = makeMachine(options());
  auto *data = makeBuffer<uint32_t>(*machine, 0, 256, "data");
  auto *flag = makeBuffer<uint32_t>(*machine, 0, 1, "flag");
  return runOnce(*machine, kernel("pass", message, {2, 1, 1}, 128, 1040, data, flag, static_cast<uint32_t>(place)));
}

TEST(GlobalProxy, AFenceOnTheWayIsEnough) {
  for (Place place :
       {BehindTheStores, BehindWritersBarrier, BehindTheAcquire, BehindReadersBarrier, BehindStoresOfALane})
    EXPECT_TRUE(pass(place).isOk()) << place << ": " << pass(place).message();
}

TEST(GlobalProxy, AMissingFenceIsReportedWithBothLines) {
  EXPECT_THAT(pass(Nowhere).message(),
              AllOf(HasSubstr("kernel.py:24:5"),
                    HasSubstr("data race by proxy on data[0] of rank 0: this bulk load (a tensor load of kernel pass, "
                              "rank 0, block (1,0,0), at"),
                    HasSubstr("what the store by kernel pass, rank 0, block (0,0,0), thread 0, at"),
                    HasSubstr("no fence.proxy.async stands between the store at kernel.py:10:5 and the bulk load at "
                              "kernel.py:24:5")));
  EXPECT_THAT(pass(BehindMostStores).message(), HasSubstr("data race by proxy on data[5] of rank 0"));
  EXPECT_THAT(pass(BetweenTwoStores).message(), AllOf(HasSubstr("data race by proxy on data[128] of rank 0"),
                                                      HasSubstr("between the store at kernel.py:11:5")));
}

TEST(GlobalProxy, AFenceBesideTheWayIsNot) {
  for (Place place : {BeforeTheStores, BeforeTheAcquire, ByAnotherAtTheEnd, OfSharedMemory})
    EXPECT_THAT(pass(place).message(), HasSubstr("data race by proxy on data[0]")) << place;
}

/// 128 threads overwrite what they have stored by a copy; with a flaw not fenced.
void overwrite(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *data = argument<uint32_t *>(arguments, 0);
  write(self, data + self->threadId, AT(30));
  ditron_sim_fence_async(self, AT(31));
  if (argument<uint32_t>(arguments, 1) == 0)
    ditron_sim_fence_async_global(self, AT(32));
  ditron_sim_barrier(self, AT(33));
  if (self->threadId == 0) {
    ditron_sim_bulk_copy(self, data, self->sharedMemory, 512, nullptr, AT(34));
    ditron_sim_tma_store_commit(self, AT(35));
    ditron_sim_tma_store_wait(self, 0, 0, AT(36));
  }
}

TEST(GlobalProxy, WhatACopyOverwritesNeedsAFenceToo) {
  for (uint32_t flaw : {0, 1}) {
    auto machine = makeMachine(options());
    auto *data = makeBuffer<uint32_t>(*machine, 0, 128, "data");
    const Status status = runOnce(*machine, kernel("overwrite", overwrite, {1, 1, 1}, 128, 512, data, flaw));
    if (flaw)
      EXPECT_THAT(status.message(), HasSubstr("overwrites through the asynchronous proxy what the store by"));
    else
      EXPECT_OK(status);
  }
}

void fill(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  write(self, argument<uint32_t *>(arguments, 0) + self->threadId, AT(40));
}

void fetch(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  char *bar = self->sharedMemory + 512;
  if (self->threadId != 0)
    return;
  ditron_sim_mbarrier_init(self, bar, 1, AT(41));
  ditron_sim_mbarrier_expect_tx(self, bar, 512, 1, AT(42));
  ditron_sim_bulk_copy(self, argument<uint32_t *>(arguments, 0), self->sharedMemory, 512, bar, AT(43));
  ditron_sim_mbarrier_wait(self, bar, 0, AT(44));
}

TEST(GlobalProxy, TheEndOfAKernelIsAFence) {
  auto machine = makeMachine(options());
  auto *data = makeBuffer<uint32_t>(*machine, 0, 128, "data");
  const StreamId stream = makeStream(*machine, 0);
  EXPECT_OK(machine->launch(stream, kernel("fill", fill, {1, 1, 1}, 128, 0, data)));
  EXPECT_OK(machine->launch(stream, kernel("fetch", fetch, {1, 1, 1}, 128, 528, data)));
  EXPECT_OK(machine->synchronize());
}

} // namespace
} // namespace ditron::sim
