//===- AsyncUnit.cpp - What runs beside the threads of a block ----------------------------------------------------===//
//
// The units together: their beginning and their end, and the words for who waits for what.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/AsyncUnit.h"

#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

namespace ditron::sim {

void AsyncUnit::reset(uint64_t sharedBytes, uint32_t threads) {
  clear();
  proxy.reset(sharedBytes);
  warpgroups.reset(threads);
}

void AsyncUnit::clear() {
  events.clear();
  mbarriers.clear();
  namedBarriers.clear();
  copies.clear();
  warpgroups.clear();
  proxy.clear();
}

bool AsyncUnit::finish() {
  const DitronSimSite *site = nullptr;
  if (std::string problem = copies.checkEnd(site); !problem.empty()) {
    block.engine.fail(failureAt(StatusCode::InvalidArgument, site, fmt::format("{}: {}", block.describe(), problem)));
    return false;
  }
  for (const EventQueue::Event &event : events.takeAll())
    if (event.receiver == &copies)
      copies.handleLateEvent(event);
  return true;
}

std::pair<std::string, std::string> AsyncUnit::describeWait(const Thread &thread) const {
  switch (thread.state) {
  case ThreadState::AtMbarrier: return {"mbarrier", mbarriers.describeWait(thread.asyncWork.barrier)};
  case ThreadState::AtNamedBarrier: return {"named barrier", namedBarriers.describeWait(thread.asyncWork.barrier)};
  case ThreadState::AtWarpgroup: return {"warpgroup matrix multiply", warpgroups.describeArrival(thread)};
  case ThreadState::AtWgmmaWait: return {"wait for matrix multiplies", ""};
  case ThreadState::AtStoreWait: return {"wait for tensor stores", ""};
  default: return {"", ""};
  }
}

} // namespace ditron::sim
