//===- Mbarrier.cpp - Mbarriers and named barriers ----------------------------------------------------------------===//
//
// Threads arrive, tensor loads count bytes, and threads sleep until the phase that they wait for is over. Named barriers
// are the simpler sort: so many threads, with or without waiting.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

#include <cstring>

namespace ditron::sim {

namespace {
/// In the upper half of an mbarrier's word; the lower half is its index.
constexpr uint64_t barrierTag = 0xdb7a5a5b;
constexpr int64_t maxPendingBytes = (int64_t(1) << 20) - 1;
constexpr uint32_t maxArrivals = (1u << 20) - 1;

uint64_t loadWord(const void *address) {
  uint64_t word;
  std::memcpy(&word, address, 8);
  return word;
}
} // namespace

void AsyncUnit::initBarrier(Thread &thread, void *bar, uint32_t count, const DitronSimSite *site) {
  const uint64_t offset = static_cast<char *>(bar) - thread.sharedMemory;
  if (offset > thread.sharedBytes || thread.sharedBytes - offset < 8 || offset % 8 != 0)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("an mbarrier at shared offset {}: it needs 8 bytes, aligned to 8, of the block's {}",
                                 static_cast<int64_t>(offset), thread.sharedBytes),
                     site);
  if (count < 1 || count > maxArrivals)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("an mbarrier of {} arrivals; accepted is 1 to {}", count, maxArrivals), site);
  uint32_t index = 0;
  for (; index < barriers.size(); ++index)
    if (barriers[index].offset == offset)
      break;
  if (index == barriers.size())
    barriers.emplace_back();
  Mbarrier &barrier = barriers[index];
  if (barrier.live && (!barrier.waiters.empty() || barrier.inFlight))
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("the mbarrier at shared offset {} is set up again while in use", offset), site);
  barrier = {};
  barrier.offset = static_cast<uint32_t>(offset);
  barrier.count = barrier.pendingArrivals = count;
  barrier.live = true;
  barrier.site = site;
  block.noteAccess(thread, nullptr, bar, 8, DITRON_SIM_STORE, site);
  const uint64_t word = barrierTag << 32 | index;
  std::memcpy(bar, &word, 8);
}

Mbarrier &AsyncUnit::barrierAt(Thread &thread, const void *bar, const DitronSimSite *site) {
  const uint64_t offset = static_cast<const char *>(bar) - thread.sharedMemory;
  if (offset <= thread.sharedBytes && thread.sharedBytes - offset >= 8) {
    const uint64_t word = loadWord(bar), index = word & 0xffffffff;
    if (word >> 32 == barrierTag && index < barriers.size() && barriers[index].live && barriers[index].offset == offset)
      return barriers[index];
  }
  std::string why = "which is no mbarrier: it was never set up, or was invalidated";
  for (const Mbarrier &barrier : barriers)
    if (barrier.live && barrier.offset == offset)
      why = fmt::format("whose word was overwritten since it was set up at {}", siteText(barrier.site));
  block.failThread(thread, StatusCode::InvalidArgument,
                   fmt::format("use of the mbarrier at shared offset {}, {}", static_cast<int64_t>(offset), why), site);
}

void AsyncUnit::invalidateBarrier(Thread &thread, void *bar, const DitronSimSite *site) {
  Mbarrier &barrier = barrierAt(thread, bar, site);
  if (!barrier.waiters.empty() || barrier.inFlight)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("the mbarrier at shared offset {} is invalidated while {}", barrier.offset,
                                 barrier.inFlight ? "a tensor load is in flight" : "threads wait for it"),
                     site);
  barrier.live = false;
  std::memset(bar, 0, 8);
}

void AsyncUnit::advance(Mbarrier &barrier, const SimTime *when) {
  if (barrier.pendingArrivals || barrier.pendingBytes)
    return;
  ++barrier.phase;
  barrier.pendingArrivals = barrier.count;
  if (block.engine.races)
    block.engine.races->complete(barrier.order);
  ++block.engine.progress;
  proxy.noteMeeting();
  for (Thread *waiter : barrier.waiters)
    if (when)
      block.wakeAt(*waiter, *when);
    else
      block.makeReady(*waiter);
  barrier.waiters.clear();
}

void AsyncUnit::arrive(Thread &thread, Mbarrier &barrier, uint32_t count, const DitronSimSite *site) {
  if (count < 1 || count > barrier.pendingArrivals)
    block.failThread(
        thread, StatusCode::InvalidArgument,
        fmt::format("{} arrivals at the mbarrier at shared offset {} (set up at {}), whose phase {} has {} "
                    "of {} left",
                    count, barrier.offset, siteText(barrier.site), barrier.phase, barrier.pendingArrivals,
                    barrier.count),
        site);
  barrier.pendingArrivals -= count;
  if (block.engine.races)
    block.engine.races->arrive(thread, barrier.order);
  advance(barrier, nullptr);
}

void AsyncUnit::expect(Thread &thread, Mbarrier &barrier, uint32_t bytes, const DitronSimSite *site, bool arrives) {
  barrier.pendingBytes += bytes;
  barrier.countsBytes = true;
  if (barrier.pendingBytes > maxPendingBytes)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("the mbarrier at shared offset {} expects {} bytes; it can count {}", barrier.offset,
                                 barrier.pendingBytes, maxPendingBytes),
                     site);
  if (arrives)
    arrive(thread, barrier, 1, site);
}

void AsyncUnit::waitBarrier(Thread &thread, Mbarrier &barrier, uint32_t parity, const DitronSimSite *site) {
  if (parity > 1)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("wait for parity {} of an mbarrier; accepted is 0 and 1", parity), site);
  if (thread.laneId == 0) {
    block.clocks += block.engine.options.cost.shuffleClocks;
    ++block.engine.counters.mbarrierWaits;
  }
  const auto index = static_cast<uint32_t>(&barrier - barriers.data());
  if ((barrier.phase & 1) == parity) {
    thread.site = site;
    thread.state = ThreadState::AtMbarrier;
    thread.asyncWork.waitIndex = index;
    barrier.waiters.push_back(&thread);
    block.park(thread);
  }
  if (block.engine.races)
    block.engine.races->acquire(thread, barriers[index].order);
}

void AsyncUnit::namedBarrier(Thread &thread, uint32_t id, uint32_t count, bool wait, const DitronSimSite *site) {
  if (id < 1 || id >= 16)
    block.failThread(thread, StatusCode::InvalidArgument, fmt::format("named barrier {}; accepted is 1 to 15", id),
                     site);
  const uint32_t warpSize = block.engine.options.warpSize;
  if (count == 0 || count % warpSize != 0 || count > thread.numThreads)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("named barrier {} of {} threads; accepted is a multiple of {} up to the block's {}",
                                 id, count, warpSize, thread.numThreads),
                     site);
  namedBarriers.resize(16);
  NamedBarrier &barrier = namedBarriers[id];
  if (barrier.count == 0) {
    barrier.expected = count;
    barrier.site = site;
  } else if (barrier.expected != count) {
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("named barrier {} of {} threads here and of {} threads at {}", id, count,
                                 barrier.expected, siteText(barrier.site)),
                     site);
  }
  if (barrier.arrived[thread.threadId])
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("the thread arrives twice at named barrier {} before the others have", id), site);
  barrier.arrived[thread.threadId] = true;
  race::Detector *races = block.engine.races.get();
  if (races)
    races->arrive(thread, barrier.order);
  if (++barrier.count == barrier.expected) {
    block.clocks += block.engine.options.cost.barrierClocks;
    if (races) {
      races->complete(barrier.order);
      for (Thread *waiter : barrier.waiters)
        races->acquire(*waiter, barrier.order);
      if (wait)
        races->acquire(thread, barrier.order);
    }
    for (Thread *waiter : barrier.waiters)
      block.makeReady(*waiter);
    barrier = {};
    proxy.noteMeeting();
    return;
  }
  if (!wait)
    return;
  barrier.waiters.push_back(&thread);
  thread.site = site;
  thread.state = ThreadState::AtNamedBarrier;
  thread.asyncWork.waitIndex = id;
  block.park(thread);
}

} // namespace ditron::sim

//===- The ABI ----------------------------------------------------------------------------------------------------===//

using namespace ditron;
using namespace ditron::sim;

extern "C" {

void ditron_sim_mbarrier_init(DitronSimThread *self, void *bar, uint32_t count, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.initBarrier(thread, bar, count, site);
}

void ditron_sim_mbarrier_invalidate(DitronSimThread *self, void *bar, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.invalidateBarrier(thread, bar, site);
}

void ditron_sim_mbarrier_expect_tx(DitronSimThread *self, void *bar, uint32_t bytes, uint32_t predicate,
                                   const DitronSimSite *site) {
  if (!predicate)
    return;
  Thread &thread = asThread(self);
  AsyncUnit &unit = thread.block->asyncUnit;
  unit.expect(thread, unit.barrierAt(thread, bar, site), bytes, site);
}

void ditron_sim_mbarrier_arrive(DitronSimThread *self, void *bar, uint32_t count, uint32_t predicate,
                                const DitronSimSite *site) {
  if (!predicate)
    return;
  Thread &thread = asThread(self);
  AsyncUnit &unit = thread.block->asyncUnit;
  unit.arrive(thread, unit.barrierAt(thread, bar, site), count, site);
}

void ditron_sim_mbarrier_wait(DitronSimThread *self, void *bar, uint32_t parity, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  AsyncUnit &unit = thread.block->asyncUnit;
  unit.waitBarrier(thread, unit.barrierAt(thread, bar, site), parity, site);
}

void ditron_sim_named_barrier(DitronSimThread *self, uint32_t id, uint32_t threads, uint32_t kind,
                              const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.namedBarrier(thread, id, threads, kind == DITRON_SIM_BARRIER_SYNC, site);
}

void ditron_sim_setmaxnreg(DitronSimThread *self, uint32_t n, uint32_t increase, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  if (n < 24 || n > 256 || n % 8 != 0)
    thread.block->failThread(
        thread, StatusCode::InvalidArgument,
        fmt::format("{} of the registers to {} per thread; accepted is a multiple of 8 from 24 to 256",
                    increase ? "increase" : "decrease", n),
        site);
}

} // extern "C"
