//===- OtherWork.cpp - SMs that something else has at first -----------------------------------------------------------===//

#include "ditron/sim/engine/OtherWork.h"

#include "ditron/sim/engine/Engine.h"

#include <algorithm>

namespace ditron::sim {

namespace {
constexpr uint64_t longestNs = 30'000; ///< Until the next SM is given back.
}

OtherWork::OtherWork(Machine::State &engine, Rank &rank, uint32_t sms) : engine(engine), rank(rank) {
  const size_t most = rank.freeSlots.size() - engine.options.blocksPerSm;
  for (uint32_t i = 0; i < sms * engine.options.blocksPerSm && slots.size() < most; ++i) {
    slots.push_back(rank.freeSlots.back());
    rank.freeSlots.pop_back();
  }
  if (!slots.empty())
    engine.scheduler.wake(*this, engine.scheduler.cost(static_cast<double>(engine.scheduler.random.below(longestNs))));
}

void OtherWork::step(SimTime now) {
  const uint32_t slot = slots.back();
  slots.pop_back();
  rank.freeSlots.insert(std::lower_bound(rank.freeSlots.begin(), rank.freeSlots.end(), slot), slot);
  engine.dispatch(rank, now);
  if (!slots.empty())
    engine.scheduler.wake(*this,
                          now + engine.scheduler.cost(static_cast<double>(engine.scheduler.random.below(longestNs))));
}

} // namespace ditron::sim
