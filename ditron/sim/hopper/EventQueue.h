//===- EventQueue.h - What happens beside the threads of a block ----------------------------------------*- C++ -*-===//
//
// A tensor copy or a multiply goes on while threads do other things. What it will do, and when, is an event here: the queue
// is an agent beside its block, and when the time of an event comes it tells the unit that scheduled it. So copies and
// multiplies overlap each other and the threads' work.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_EVENTQUEUE_H
#define DITRON_SIM_HOPPER_EVENTQUEUE_H

#include "ditron/sim/engine/Scheduler.h"

#include <cstdint>
#include <vector>

namespace ditron::sim {

class Block;

/// A unit that schedules events.
class EventReceiver {
public:
  /// The time of an event has come. `kind` and `index` are what the unit gave.
  virtual void handleEvent(uint32_t kind, uint32_t index, SimTime now) = 0;

protected:
  ~EventReceiver() = default;
};

class EventQueue final : public Agent {
public:
  struct Event {
    SimTime time;
    uint64_t order; ///< Of scheduling: among events of one time the first comes first.
    EventReceiver *receiver;
    uint32_t kind, index;
  };

  explicit EventQueue(Block &block) : block(block) {}

  void schedule(SimTime time, EventReceiver &receiver, uint32_t kind, uint32_t index);
  bool isEmpty() const { return events.empty(); }
  void clear() { events.clear(); }
  /// Everything that is still to come, in its order; nothing is, then.
  std::vector<Event> takeAll();
  void step(SimTime now) override;

private:
  static bool later(const Event &a, const Event &b) { return a.time != b.time ? a.time > b.time : a.order > b.order; }

  Block &block;
  std::vector<Event> events; ///< Heap.
  uint64_t scheduled = 0;
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_EVENTQUEUE_H
