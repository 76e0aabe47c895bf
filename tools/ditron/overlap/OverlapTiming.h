//===- OverlapTiming.h - Speed of an operator on several GPUs ------------------------------------------------*- C++ -*-===//
//
// Three times of one call, in microseconds, each to the end on the slowest rank:
//   single    from the moment at which all ranks start together, each call by itself, after the caches were overwritten
//   in a row  calls one behind the other, as a training step makes them, enqueued by a thread for each rank
//   as graph  the same with a captured graph for each rank, of as many calls as take about 20 ms, replayed behind a replay that is not timed
// A gate on every rank holds the streams until work is enqueued everywhere; the ranks may be processes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_OVERLAPTIMING_H
#define DITRON_TOOLS_DITRON_OVERLAPTIMING_H

#include "ditron/runtime/World.h"

#include <algorithm>

namespace ditron::tool {

/// What can be called again and again on the default stream of a rank of this process.
class TimedCalls {
public:
  virtual ~TimedCalls() = default;
  /// Enqueues one call on a rank.
  virtual Status enqueue(uint32_t id) = 0;
  /// How many calls are enqueued on each rank before any begins, so that GPUs never run dry at the start. What they consist of has to fit into the
  /// queues of the hardware: whoever enqueues more waits for the GPU, and nothing begins.
  virtual uint32_t headStart() const { return 4; }
};

/// Calls so short that a captured graph has many of them: what its launch costs is shared by all. An entry of what timeShortCalls gives is of
/// one of them.
class ShortCalls : public TimedCalls {
public:
  virtual Status enqueueOne(uint32_t id) = 0;
  Status enqueue(uint32_t id) final;
  uint32_t headStart() const override { return 1; }
};

struct OverlapTimes {
  double single = 0, inARow = 0, asGraph = 0; ///< Medians; 0 when not measured.
  /// The faster of the two that have no pauses.
  double best() const { return std::min(inARow, asGraph); }
};

/// Collective when ranks are processes. `count` is the number of single calls, and of calls in each of five rows.
Expected<OverlapTimes> timeOverlap(runtime::World &world, TimedCalls &calls, uint32_t count);
Expected<OverlapTimes> timeShortCalls(runtime::World &world, ShortCalls &calls);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_OVERLAPTIMING_H
