//===- Mbarrier.cpp - Barriers in shared memory that also count bytes ---------------------------------------------===//
//
// The table: mbarriers by the words in shared memory that stand for them, who arrives, who waits.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/Mbarrier.h"

#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ditron::sim {

namespace {
/// In the upper half of an mbarrier's word. The lower half is its index, and above that the lowest bits of its phase, for those who
/// poll it.
constexpr uint64_t barrierTag = 0xdb7a5a5b;
constexpr uint32_t indexBits = 16;

uint64_t wordOf(uint32_t index, uint32_t phase) {
  return barrierTag << 32 | uint64_t(phase << indexBits) % (uint64_t(1) << 32) | index;
}
constexpr int64_t maxPendingBytes = (int64_t(1) << 20) - 1;
constexpr uint32_t maxArrivals = (1u << 20) - 1;

uint64_t loadWord(const void *address) {
  uint64_t word;
  std::memcpy(&word, address, 8);
  return word;
}

/// What is wrong with setting one up; empty when nothing is.
std::string checkInit(uint64_t offset, uint64_t sharedBytes, uint32_t count) {
  if (offset > sharedBytes || sharedBytes - offset < 8 || offset % 8 != 0)
    return fmt::format("an mbarrier at shared offset {}: it needs 8 bytes, aligned to 8, of the block's {}",
                       static_cast<int64_t>(offset), sharedBytes);
  if (count < 1 || count > maxArrivals)
    return fmt::format("an mbarrier of {} arrivals; accepted is 1 to {}", count, maxArrivals);
  return {};
}
} // namespace

bool Mbarrier::advance() {
  if (pendingArrivals || pendingBytes)
    return false;
  ++phase;
  pendingArrivals = count;
  return true;
}

//===- Words and mbarriers ----------------------------------------------------------------------------------------===//

void MbarrierTable::init(Thread &thread, void *bar, uint32_t count, const DitronSimSite *site) {
  const uint64_t offset = static_cast<char *>(bar) - thread.sharedMemory;
  if (std::string problem = checkInit(offset, thread.sharedBytes, count); !problem.empty())
    block.failThread(thread, StatusCode::InvalidArgument, problem, site);
  auto place =
      std::find_if(barriers.begin(), barriers.end(), [&](const Mbarrier &barrier) { return barrier.offset == offset; });
  Mbarrier &barrier = place == barriers.end() ? barriers.emplace_back() : *place;
  if (barrier.live && barrier.isUsed())
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("the mbarrier at shared offset {} is set up again while in use", offset), site);
  barrier = {};
  barrier.offset = static_cast<uint32_t>(offset);
  barrier.count = barrier.pendingArrivals = count;
  barrier.live = true;
  barrier.site = site;
  block.noteAccess(thread, nullptr, bar, 8, DITRON_SIM_STORE, site);
  const uint64_t word = wordOf(indexOf(barrier), 0);
  std::memcpy(bar, &word, 8);
}

Mbarrier &MbarrierTable::at(Thread &thread, const void *bar, const DitronSimSite *site) {
  const uint64_t offset = static_cast<const char *>(bar) - thread.sharedMemory;
  if (offset <= thread.sharedBytes && thread.sharedBytes - offset >= 8) {
    const uint64_t word = loadWord(bar), index = word & ((1u << indexBits) - 1);
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

void MbarrierTable::invalidate(Thread &thread, void *bar, const DitronSimSite *site) {
  Mbarrier &barrier = at(thread, bar, site);
  if (barrier.isUsed())
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("the mbarrier at shared offset {} is invalidated while {}", barrier.offset,
                                 barrier.inFlight ? "a tensor load is in flight" : "threads wait for it"),
                     site);
  barrier.live = false;
  std::memset(bar, 0, 8);
}

//===- Phases -----------------------------------------------------------------------------------------------------===//

void MbarrierTable::advance(Mbarrier &barrier, const SimTime *when) {
  if (!barrier.advance())
    return;
  char *bar = block.sharedMemory() + barrier.offset;
  const uint64_t word = wordOf(indexOf(barrier), barrier.phase);
  std::memcpy(bar, &word, 8);
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
  block.engine.wordChanged(bar, 8, when);
}

void MbarrierTable::arrive(Thread &thread, Mbarrier &barrier, uint32_t count, const DitronSimSite *site) {
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

void MbarrierTable::expect(Thread &thread, Mbarrier &barrier, uint32_t bytes, const DitronSimSite *site) {
  barrier.pendingBytes += bytes;
  barrier.countsBytes = true;
  if (barrier.pendingBytes > maxPendingBytes)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("the mbarrier at shared offset {} expects {} bytes; it can count {}", barrier.offset,
                                 barrier.pendingBytes, maxPendingBytes),
                     site);
}

uint32_t MbarrierTable::beginLoad(Mbarrier &barrier) {
  ++barrier.inFlight;
  return indexOf(barrier);
}

void MbarrierTable::endLoad(uint32_t index, uint32_t bytes, SimTime now) {
  Mbarrier &barrier = barriers[index];
  --barrier.inFlight;
  if (race::Detector *races = block.engine.races.get())
    barrier.order.arrived = races->withLane(barrier.order.arrived, barrier.order.copies, barrier.phase + 1);
  barrier.pendingBytes -= bytes;
  advance(barrier, &now);
}

//===- Waiting ----------------------------------------------------------------------------------------------------===//

void MbarrierTable::wait(Thread &thread, Mbarrier &barrier, uint32_t parity, const DitronSimSite *site) {
  if (parity > 1)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("wait for parity {} of an mbarrier; accepted is 0 and 1", parity), site);
  if (thread.laneId == 0) {
    block.clocks += block.engine.options.cost.shuffleClocks;
    ++block.engine.counters.mbarrierWaits;
  }
  const uint32_t index = indexOf(barrier); // others may be set up meanwhile
  if (!barrier.isOver(parity)) {
    thread.site = site;
    thread.state = ThreadState::AtMbarrier;
    thread.asyncWork.barrier = index;
    barrier.waiters.push_back(&thread);
    block.park(thread);
  }
  if (block.engine.races)
    block.engine.races->acquire(thread, barriers[index].order);
}

bool MbarrierTable::test(Thread &thread, const void *bar, uint32_t parity, const char *frame,
                         const DitronSimSite *site) {
  if (parity > 1)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("test of parity {} of an mbarrier; accepted is 0 and 1", parity), site);
  auto isOver = [&] {
    const Mbarrier &barrier = at(thread, bar, site);
    const bool over = barrier.isOver(parity);
    if (over && block.engine.races)
      block.engine.races->acquire(thread, barrier.order);
    return over;
  };
  if (isOver())
    return true;
  // The hardware gives up after a while: the other threads of the block have their turn, then copies that are due.
  const uint64_t word = loadWord(bar);
  if (!poll(thread, {bar, sizeof word, word, /*isKnownLoop=*/false, frame, site}).othersActed)
    block.letOthersAct(thread);
  return isOver();
}

//===- Reports ----------------------------------------------------------------------------------------------------===//

bool MbarrierTable::hasNeighbour(const Mbarrier &barrier, int64_t distance) const {
  for (const Mbarrier &other : barriers)
    if (other.live && int64_t(other.offset) == int64_t(barrier.offset) + 8 * distance)
      return other.count == barrier.count && sameSite(other.site, barrier.site);
  return false;
}

std::string MbarrierTable::name(const Mbarrier &barrier) const {
  // Mbarriers of one row are set up together, with the same count, and lie side by side.
  uint32_t before = 0, after = 0;
  while (hasNeighbour(barrier, -int64_t(before) - 1))
    ++before;
  while (hasNeighbour(barrier, after + 1))
    ++after;
  if (before + after == 0)
    return fmt::format("the mbarrier at shared offset {} (set up at {})", barrier.offset, siteText(barrier.site));
  const std::string_view role = barrier.countsBytes ? "full" : barrier.count > 1 ? "empty" : "mbarrier";
  return fmt::format("{}[{}] of the ring of {} at {} (shared offset {})", role, before, before + after + 1,
                     siteText(barrier.site), barrier.offset);
}

std::string MbarrierTable::nameAt(const Thread &thread, const void *address) const {
  const int64_t offset = static_cast<const char *>(address) - thread.sharedMemory;
  for (const Mbarrier &barrier : barriers)
    if (barrier.live && barrier.offset == offset)
      return fmt::format("{}, whose phase {} has {} of {} arrivals and {} bytes to come", name(barrier), barrier.phase,
                         barrier.pendingArrivals, barrier.count, barrier.pendingBytes);
  return {};
}

std::string MbarrierTable::describeWait(uint32_t index) const {
  const Mbarrier &barrier = barriers[index];
  std::string bytes = fmt::format("{} bytes are still expected", barrier.pendingBytes);
  if (barrier.pendingBytes < 0)
    bytes = fmt::format("{} bytes came that nobody expected", -barrier.pendingBytes);
  return fmt::format(" for phase {} (parity {}) of {}: {} of {} arrivals are missing, {}", barrier.phase,
                     barrier.phase & 1, name(barrier), barrier.pendingArrivals, barrier.count, bytes);
}

} // namespace ditron::sim

//===- The ABI ----------------------------------------------------------------------------------------------------===//

using namespace ditron::sim;

extern "C" {

void ditron_sim_mbarrier_init(DitronSimThread *self, void *bar, uint32_t count, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.mbarriers.init(thread, bar, count, site);
}

void ditron_sim_mbarrier_invalidate(DitronSimThread *self, void *bar, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.mbarriers.invalidate(thread, bar, site);
}

void ditron_sim_mbarrier_expect_tx(DitronSimThread *self, void *bar, uint32_t bytes, uint32_t predicate,
                                   const DitronSimSite *site) {
  if (!predicate)
    return;
  Thread &thread = asThread(self);
  MbarrierTable &mbarriers = thread.block->asyncUnit.mbarriers;
  Mbarrier &barrier = mbarriers.at(thread, bar, site);
  mbarriers.expect(thread, barrier, bytes, site);
  mbarriers.arrive(thread, barrier, 1, site);
}

void ditron_sim_mbarrier_transaction(DitronSimThread *self, void *bar, uint32_t bytes, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  MbarrierTable &mbarriers = thread.block->asyncUnit.mbarriers;
  mbarriers.expect(thread, mbarriers.at(thread, bar, site), bytes, site);
}

void ditron_sim_mbarrier_arrive(DitronSimThread *self, void *bar, uint32_t count, uint32_t predicate,
                                const DitronSimSite *site) {
  if (!predicate)
    return;
  Thread &thread = asThread(self);
  MbarrierTable &mbarriers = thread.block->asyncUnit.mbarriers;
  mbarriers.arrive(thread, mbarriers.at(thread, bar, site), count, site);
}

void ditron_sim_mbarrier_wait(DitronSimThread *self, void *bar, uint32_t parity, const DitronSimSite *site) {
  Thread &thread = asMeeting(self);
  const FrameGuard guard(thread, kernelFrame());
  MbarrierTable &mbarriers = thread.block->asyncUnit.mbarriers;
  mbarriers.wait(thread, mbarriers.at(thread, bar, site), parity, site);
}

uint32_t ditron_sim_mbarrier_test(DitronSimThread *self, void *bar, uint32_t parity, const DitronSimSite *site) {
  const char *frame = kernelFrame();
  return asMeeting(self).block->asyncUnit.mbarriers.test(asReader(self), bar, parity, frame, site);
}

} // extern "C"
