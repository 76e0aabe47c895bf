//===- AsyncUnit.cpp - What runs beside the threads of a block ----------------------------------------------------===//
//
// The unit as an agent: its events, its beginning and its end, and the words for who waits for what.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/AsyncUnit.h"

#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace ditron::sim {

void AsyncUnit::reset(uint64_t sharedBytes, uint32_t threads) {
  clear();
  proxy.reset(sharedBytes);
  groups.resize(threads / 128);
  registers.resize(threads);
  copyFree = tensorFree = 0;
}

void AsyncUnit::clear() {
  events.clear();
  barriers.clear();
  namedBarriers.clear();
  copies.clear();
  groups.clear();
  proxy.clear();
}

//===- Events -----------------------------------------------------------------------------------------------------===//

void AsyncUnit::handleEvent(uint32_t kind, uint32_t index, SimTime now) {
  switch (static_cast<EventKind>(kind)) {
  case EventKind::LoadDone: finishLoad(copies[index], now); break;
  case EventKind::StoreRead: readStore(copies[index], now); break;
  case EventKind::StoreDone: finishStore(copies[index], now); break;
  case EventKind::MultiplyDone: multiplyDone(groups[index], now); break;
  }
}

bool AsyncUnit::finish() {
  for (const TensorCopy &copy : copies)
    if (copy.active && (!copy.store || copy.thread->asyncWork.storeGroups[copy.group].unread)) {
      block.engine.fail(failureAt(StatusCode::InvalidArgument, copy.site,
                                  fmt::format("{}: the block ended while the tensor {} of that line was {} shared memory",
                                              block.describe(), copy.store ? "store" : "load",
                                              copy.store ? "reading" : "writing")));
      return false;
    }
  // Stores that have read their source become visible by themselves.
  for (const EventQueue::Event &event : events.takeAll())
    if (static_cast<EventKind>(event.kind) == EventKind::StoreDone) {
      finishStore(copies[event.index], std::max(event.time, block.clock));
      block.clock = std::max(block.clock, event.time);
    }
  return true;
}

void AsyncUnit::threadFinished(Thread &thread) {
  const uint32_t index = thread.threadId / 128;
  if (index >= groups.size() || groups[index].arrived == 0)
    return;
  block.engine.fail(failureAt(StatusCode::InvalidArgument, groups[index].site,
                              fmt::format("{}: thread {} returned instead of joining the warpgroup matrix multiply",
                                          block.describe(), thread.threadId)));
}

//===- Reports ----------------------------------------------------------------------------------------------------===//

std::string AsyncUnit::barrierName(const Mbarrier &barrier) const {
  // Mbarriers of one row are set up together, with the same count, and lie side by side.
  uint32_t before = 0, after = 0;
  auto isNeighbour = [&](int64_t distance) {
    for (const Mbarrier &other : barriers)
      if (other.live && int64_t(other.offset) == int64_t(barrier.offset) + 8 * distance)
        return other.count == barrier.count && sameSite(other.site, barrier.site);
    return false;
  };
  while (isNeighbour(-int64_t(before) - 1))
    ++before;
  while (isNeighbour(after + 1))
    ++after;
  if (before + after == 0)
    return fmt::format("the mbarrier at shared offset {} (set up at {})", barrier.offset, siteText(barrier.site));
  const std::string_view role = barrier.countsBytes ? "full" : barrier.count > 1 ? "empty" : "mbarrier";
  return fmt::format("{}[{}] of the ring of {} at {} (shared offset {})", role, before, before + after + 1,
                     siteText(barrier.site), barrier.offset);
}

std::pair<std::string, std::string> AsyncUnit::describeWait(const Thread &thread) const {
  const uint32_t index = thread.asyncWork.waitIndex;
  switch (thread.state) {
  case ThreadState::AtMbarrier: {
    const Mbarrier &barrier = barriers[index];
    std::string bytes = fmt::format("{} bytes are still expected", barrier.pendingBytes);
    if (barrier.pendingBytes < 0)
      bytes = fmt::format("{} bytes came that nobody expected", -barrier.pendingBytes);
    return {"mbarrier",
            fmt::format(" for phase {} (parity {}) of {}: {} of {} arrivals are missing, {}", barrier.phase,
                        barrier.phase & 1, barrierName(barrier), barrier.pendingArrivals, barrier.count, bytes)};
  }
  case ThreadState::AtNamedBarrier: {
    const NamedBarrier &barrier = namedBarriers[index];
    return {"named barrier",
            fmt::format(" (barrier {}: {} of {} threads have arrived)", index, barrier.count, barrier.expected)};
  }
  case ThreadState::AtWarpgroup:
    return {"warpgroup matrix multiply",
            fmt::format(" ({} of 128 threads have arrived)", groups[thread.threadId / 128].arrived)};
  case ThreadState::AtWgmmaWait: return {"wait for matrix multiplies", ""};
  case ThreadState::AtStoreWait: return {"wait for tensor stores", ""};
  default: return {"", ""};
  }
}

} // namespace ditron::sim
