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
  mbarriers.clear();
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

std::pair<std::string, std::string> AsyncUnit::describeWait(const Thread &thread) const {
  switch (thread.state) {
  case ThreadState::AtMbarrier: return {"mbarrier", mbarriers.describeWait(thread.asyncWork.barrier)};
  case ThreadState::AtNamedBarrier: return {"named barrier", namedBarriers.describeWait(thread.asyncWork.barrier)};
  case ThreadState::AtWarpgroup:
    return {"warpgroup matrix multiply",
            fmt::format(" ({} of 128 threads have arrived)", groups[thread.threadId / 128].arrived)};
  case ThreadState::AtWgmmaWait: return {"wait for matrix multiplies", ""};
  case ThreadState::AtStoreWait: return {"wait for tensor stores", ""};
  default: return {"", ""};
  }
}

} // namespace ditron::sim
