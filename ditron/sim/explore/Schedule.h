//===- Schedule.h - What a run leaves to chance ---------------------------------------------------------*- C++ -*-===//
//
// A GPU leaves open when ranks start, which warp is first, when a store arrives, how long a waiting thread takes to notice. A
// Schedule says how much of each a run has; the seed then draws every single case. Schedule 0 has nothing of it: the times of
// the cost model. Any other number draws a schedule from itself, so that a number names a run; a schedule that is written out
// names it too, and can be made simpler knob by knob (ditron run --explore, ditron replay).
//
// Nothing is drawn that a GPU may not do. Blocks of a launch start in the order of their numbers, since programs rely on it, but
// late; SMs that are taken away at first come back, as from another kernel.
//
// With `byPriority` agents (blocks, streams, copy engines, networks, host codes) do not act in the order of virtual time: each has a
// priority of its own, the highest that can act does, and at `priorityChanges` moments the one that acts falls below all others. That
// is PCT (Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010): of n agents that act
// k times in all, a bug that shows whenever d of their steps come in one order is found with a probability of at least
// 1 / (n * k^(d-1)), where d is priorityChanges + 1.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_EXPLORE_SCHEDULE_H
#define DITRON_SIM_EXPLORE_SCHEDULE_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ditron::sim {

struct Schedule {
  uint64_t seed = 0;            ///< Draws each case.
  double rankStartNs = 0;       ///< The latest that a rank's first launch comes late.
  double hostStartNs = 0;       ///< The latest that a host code comes late, where there are several.
  double blockStartNs = 0;      ///< The latest that a block comes late.
  uint32_t busySms = 0;         ///< SMs of each rank that something else has at first; one is always left.
  int32_t slowRank = -1;        ///< A rank whose SMs and launches are slower; -1: none.
  double slowFactor = 1;        ///< By this factor.
  bool shuffledWarps = false;   ///< Threads of a block run in an order that is drawn for it, and warps perhaps alone.
  double threadSwitches = 0;    ///< Share of the strong accesses before which other threads of the block come first.
  double lateStores = 0;        ///< Share of strong stores that an observer sees late (memory/WeakMemory.h).
  double lateWakes = 0;         ///< Share of waiting threads that notice late.
  double lateCopies = 0;        ///< Share of copies that begin late.
  bool shuffledCopies = false;  ///< Pieces of a copy, and what a quiet waits for, come in an order that is drawn.
  bool stopsAtBarriers = false; ///< Other agents may act while a block is at a barrier.
  bool byPriority = false;      ///< See the top of the file.
  uint32_t priorityChanges = 0;
  uint64_t expectedSteps = 1024; ///< k: the changes come within so many steps.

  /// The schedule of a number; `ranks` and `smsPerRank` are those of the machine.
  static Schedule draw(uint64_t number, uint32_t ranks, uint32_t smsPerRank);

  /// A JSON object of what differs from schedule 0.
  std::string toJson() const;
  /// Refuses unknown names and values that make no sense.
  static Expected<Schedule> fromJson(std::string_view text);

  /// The names of what differs from schedule 0, but for the seed.
  std::vector<std::string> drawnKnobs() const;
  /// The same schedule with one of those as in schedule 0, or nearer to it.
  Schedule without(std::string_view knob) const;

  bool operator==(const Schedule &) const = default;
};

} // namespace ditron::sim

#endif // DITRON_SIM_EXPLORE_SCHEDULE_H
