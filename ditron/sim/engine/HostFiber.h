//===- HostFiber.h - Host code of a rank ----------------------------------------------------------------*- C++ -*-===//
//
// A piece of host code that runHosts runs, as a fiber and an agent. Unlike GPU threads host code owns things, so
// its frames are never dropped: after an error every blocking call returns the error at once, and the code runs to its
// end.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_HOSTFIBER_H
#define DITRON_SIM_ENGINE_HOSTFIBER_H

#include "ditron/sim/engine/Fiber.h"
#include "ditron/sim/engine/Scheduler.h"
#include "ditron/sim/race/Strand.h"

#include <functional>
#include <string>

namespace ditron::sim {

using Engine = Machine::State;

class HostFiber final : public Agent {
public:
  HostFiber(Engine &engine, const HostCode &code);
  ~HostFiber() override;

  /// False when there is no memory for a stack.
  bool prepare();
  void step(SimTime now) override;
  /// Parks until the condition holds; called on this fiber.
  void park(std::function<bool()> condition, std::string description);
  /// Lets agents that are behind this host's clock act; called on this fiber.
  void yield();

  Engine &engine;
  const uint32_t rank;
  const std::string thread; ///< What tells it from its rank's other host code; empty where there is none.
  const std::string name;   ///< "rank 1", or "rank 1, loader".
  uint32_t track = 0;       ///< Of the trace.
  SimTime clock = 0;
  race::HostOrder order;
  const DitronSimSite *place = nullptr; ///< Of its program; null where nobody has said.
  bool finished = false;
  bool gaveUp = false; ///< Has finished with an error of its own, not with what ended the run.
  Status result;
  std::function<bool()> condition; ///< Set while parked.
  std::string description;

private:
  static void main(Transfer transfer);
  void switchToScheduler();

  const std::function<Status()> &body;
  Stack stack;
  Context context = nullptr, schedulerContext = nullptr;
};

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_HOSTFIBER_H
