//===- OtherWork.h - SMs that something else has at first -----------------------------------------------*- C++ -*-===//
//
// A kernel rarely finds its GPU empty: blocks of another one still run. They keep some SMs for a while, and then give them back,
// one after the other, so that a launch which needs all of them only starts later.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_OTHERWORK_H
#define DITRON_SIM_ENGINE_OTHERWORK_H

#include "ditron/sim/engine/Scheduler.h"

#include <vector>

namespace ditron::sim {

struct Rank;

class OtherWork final : public Agent {
public:
  /// Takes the slots of so many SMs of the rank.
  OtherWork(Machine::State &engine, Rank &rank, uint32_t sms);
  void step(SimTime now) override;

private:
  Machine::State &engine;
  Rank &rank;
  std::vector<uint32_t> slots; ///< That it still has.
};

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_OTHERWORK_H
