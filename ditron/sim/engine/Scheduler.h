//===- Scheduler.h - Agents in virtual time -------------------------------------------------------------*- C++ -*-===//
//
// A priority queue of agents by the virtual time at which each wants to run next. Ties are broken by a random number
// and costs carry a random factor, both from the seed: that is all the nondeterminism there is, so a seed names a run.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_SCHEDULER_H
#define DITRON_SIM_ENGINE_SCHEDULER_H

#include "ditron/sim/Machine.h"
#include "ditron/sim/explore/Schedule.h"

#include <vector>

namespace ditron::sim {

/// Whatever acts in virtual time. An agent is in the queue at most once.
class Agent {
public:
  virtual ~Agent() = default;
  /// Acts at `now` and, to act again, calls Scheduler::wake; otherwise somebody else must wake it.
  virtual void step(SimTime now) = 0;

  bool isQueued() const { return ticket != 0; }

private:
  friend class Scheduler;
  uint64_t ticket = 0;  ///< Of the queue entry that is valid; 0 when not queued.
  int64_t priority = 0; ///< When agents act by priority; 0: none yet.
  SimTime queuedAt = 0;
};

/// A small random generator (splitmix64): equal on every platform.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15ULL + 0x853c49e6748fea9bULL) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// In [0, limit).
  uint64_t below(uint64_t limit) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * limit) >> 64);
  }
  /// In [-1, 1).
  double signedUnit() { return static_cast<double>(static_cast<int64_t>(next()) >> 11) * 0x1p-52; }

private:
  uint64_t state;
};

class Scheduler {
public:
  Scheduler(const Schedule &schedule, double jitter);

  /// Queues the agent for `when`; an agent already queued keeps the earlier of the two times.
  void wake(Agent &agent, SimTime when);
  /// The next agent and its time; null when nobody wants to run. The agent leaves the queue.
  Agent *pop(SimTime &when);
  /// When the next agent wants to run; the greatest SimTime when there is none.
  SimTime nextTime();
  bool empty() { return nextTime() == INT64_MAX; }
  /// Whether an agent that has got to `clock` should let others act before it has an effect.
  bool comesFirst(SimTime clock) { return byPriority ? !empty() : nextTime() < clock; }
  /// True in this share of the cases.
  bool happens(double share) { return share > 0 && random.below(1000) < static_cast<uint64_t>(share * 1000); }

  /// A cost of so many nanoseconds, with the jitter applied.
  SimTime cost(double nanoseconds) {
    return static_cast<SimTime>(nanoseconds * 1000.0 * (1.0 + jitter * random.signedUnit()));
  }

  Random random;
  SimTime now = 0; ///< The time of the agent that runs, or ran last; never decreases.

private:
  struct Entry {
    SimTime time;
    uint64_t tie;
    uint64_t ticket;
    Agent *agent;
    int64_t priority;
  };
  static bool later(const Entry &a, const Entry &b) {
    if (a.priority != b.priority)
      return a.priority < b.priority;
    if (a.time != b.time)
      return a.time > b.time;
    if (a.tie != b.tie)
      return a.tie > b.tie;
    return a.ticket > b.ticket;
  }
  void dropStale();
  void push(Agent &agent, SimTime when);
  Agent *take(SimTime &when);
  /// Whether the agent that would act now falls below all others instead.
  bool fallsNow(const Agent *agent);

  double jitter;
  // Of PCT (Schedule.h).
  bool byPriority = false;
  std::vector<uint64_t> changes; ///< Steps at which priorities fall, the latest first.
  uint64_t steps = 0, stepsInARow = 0;
  int64_t lowest = 0;
  const Agent *lastAgent = nullptr;
  uint64_t tickets = 0;
  std::vector<Entry> heap;
};

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_SCHEDULER_H
