//===- HostFiber.cpp - Host code of a rank ------------------------------------------------------------------------===//
//
// The fiber and the agent.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/HostFiber.h"

#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/report/EngineTrace.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

namespace ditron::sim {

HostFiber::HostFiber(Engine &engine, const HostCode &code)
    : engine(engine), rank(code.rank), thread(code.name),
      name(code.name.empty() ? fmt::format("rank {}", code.rank) : fmt::format("rank {}, {}", code.rank, code.name)),
      body(code.run) {}

HostFiber::~HostFiber() {
  if (stack.top)
    engine.hostStacks.release(stack);
}

bool HostFiber::prepare() {
  stack = engine.hostStacks.acquire();
  if (!stack.top)
    return false;
  context = boost::context::detail::make_fcontext(stack.top, stack.bytes, main);
  return true;
}

void HostFiber::main(Transfer transfer) {
  auto &self = *static_cast<HostFiber *>(transfer.data);
  self.schedulerContext = transfer.fctx;
  self.result = self.body();
  self.finished = true;
  self.gaveUp = !self.result.isOk() && !self.engine.stopped();
  self.switchToScheduler();
  std::abort(); // a finished fiber is never resumed
}

void HostFiber::switchToScheduler() {
  Transfer transfer = boost::context::detail::jump_fcontext(schedulerContext, this);
  schedulerContext = transfer.fctx;
}

void HostFiber::step(SimTime now) {
  clock = std::max(clock, now);
  HostFiber *outer = engine.currentHost;
  engine.currentHost = this;
  Transfer transfer = boost::context::detail::jump_fcontext(context, this);
  context = transfer.fctx;
  engine.currentHost = outer;
  engine.hostConditionsDirty = true;
  // Host code may have written signals by hand.
  engine.rescan(nullptr);
}

void HostFiber::park(std::function<bool()> wanted, std::string what) {
  condition = std::move(wanted);
  description = std::move(what);
  if (!engine.stopped())
    engine.hostConditionsDirty = true;
  const SimTime since = clock;
  switchToScheduler();
  condition = nullptr;
  if (engine.trace.isEnabled() && clock > since)
    traceHost(engine, "wait for " + description, since, clock);
}

void HostFiber::yield() {
  engine.scheduler.wake(*this, clock);
  switchToScheduler();
}

} // namespace ditron::sim
