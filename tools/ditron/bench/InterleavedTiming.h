//===- InterleavedTiming.h - Several ways to do one thing, timed in turns -------------------------------------*- C++ -*-===//
//
// A GPU's clock falls with heat and load, so that two programs timed one after the other differ by more than the programs do.
// Here all contenders run in each of several rounds, in rotating order, and the medians over the rounds are compared.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_INTERLEAVEDTIMING_H
#define DITRON_TOOLS_DITRON_INTERLEAVEDTIMING_H

#include "ditron/runtime/World.h"

#include <functional>

namespace ditron::tool {

struct Contender {
  std::string name;
  /// Enqueues one call on the rank's default stream; consecutive calls get consecutive numbers, to take turns with operands.
  std::function<Status(uint64_t call)> enqueue;
};

struct TimingOptions {
  uint32_t rounds = 5;
  double millisecondsPerRound = 20; ///< Of one contender: calls are repeated until about this long.
};

struct ContenderTimes {
  std::string name;
  std::vector<double> microseconds; ///< Of a call, in each round.
  double median() const;
};

/// Device time between events around the calls of a round, after a warm-up. A simulated GPU's clock has no noise: there one
/// call is made.
Expected<std::vector<ContenderTimes>> timeInterleaved(runtime::Rank &rank, std::span<const Contender> contenders,
                                                      const TimingOptions &options);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_INTERLEAVEDTIMING_H
