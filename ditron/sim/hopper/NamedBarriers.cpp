//===- NamedBarriers.cpp - Barriers of some threads of a block ----------------------------------------------------===//
//
// Arriving, waiting, and the last one, who lets the others go on.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/NamedBarriers.h"

#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

namespace ditron::sim {

namespace {
constexpr uint32_t numBarriers = 16;

/// What is wrong with a call; empty when nothing is.
std::string checkCall(uint32_t id, uint32_t count, uint32_t warpSize, uint32_t numThreads) {
  if (id < 1 || id >= numBarriers)
    return fmt::format("named barrier {}; accepted is 1 to {}", id, numBarriers - 1);
  if (count == 0 || count % warpSize != 0 || count > numThreads)
    return fmt::format("named barrier {} of {} threads; accepted is a multiple of {} up to the block's {}", id, count,
                       warpSize, numThreads);
  return {};
}
} // namespace

void NamedBarriers::arrive(Thread &thread, uint32_t id, uint32_t count, bool waits, const DitronSimSite *site) {
  auto refuse = [&](const std::string &problem) {
    block.failThread(thread, StatusCode::InvalidArgument, problem, site);
  };
  if (std::string problem = checkCall(id, count, block.engine.options.warpSize, thread.numThreads); !problem.empty())
    refuse(problem);
  barriers.resize(numBarriers);
  Barrier &barrier = barriers[id];
  if (barrier.count == 0) {
    barrier.expected = count;
    barrier.site = site;
  } else if (barrier.expected != count) {
    refuse(fmt::format("named barrier {} of {} threads here and of {} threads at {}", id, count, barrier.expected,
                       siteText(barrier.site)));
  }
  if (barrier.arrived[thread.threadId])
    refuse(fmt::format("the thread arrives twice at named barrier {} before the others have", id));
  barrier.arrived[thread.threadId] = true;
  if (block.engine.races)
    block.engine.races->arrive(thread, barrier.order);
  if (++barrier.count == barrier.expected) {
    complete(barrier, waits ? &thread : nullptr);
    return;
  }
  if (!waits)
    return;
  barrier.waiters.push_back(&thread);
  thread.site = site;
  thread.state = ThreadState::AtNamedBarrier;
  thread.asyncWork.barrier = id;
  block.park(thread);
}

/// The last thread has come; it is given if it waits.
void NamedBarriers::complete(Barrier &barrier, Thread *last) {
  block.clocks += block.engine.options.cost.barrierClocks;
  if (race::Detector *races = block.engine.races.get()) {
    races->complete(barrier.order);
    for (Thread *waiter : barrier.waiters)
      races->acquire(*waiter, barrier.order);
    if (last)
      races->acquire(*last, barrier.order);
  }
  for (Thread *waiter : barrier.waiters)
    block.makeReady(*waiter);
  barrier = {};
  proxy.noteMeeting();
}

std::string NamedBarriers::describeWait(uint32_t id) const {
  const Barrier &barrier = barriers[id];
  return fmt::format(" (barrier {}: {} of {} threads have arrived)", id, barrier.count, barrier.expected);
}

} // namespace ditron::sim

using namespace ditron::sim;

extern "C" void ditron_sim_named_barrier(DitronSimThread *self, uint32_t id, uint32_t threads, uint32_t kind,
                                         const DitronSimSite *site) {
  const bool waits = kind == DITRON_SIM_BARRIER_SYNC;
  Thread &thread = waits ? asMeeting(self) : asThread(self);
  const FrameGuard guard(thread, kernelFrame());
  thread.block->asyncUnit.namedBarriers.arrive(thread, id, threads, waits, site);
}
