//===- EventQueue.cpp - What happens beside the threads of a block ------------------------------------------------===//
//
// A heap by time; the agent sleeps until its front is due.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/EventQueue.h"

#include "ditron/sim/engine/Engine.h"

#include <algorithm>
#include <utility>

namespace ditron::sim {

void EventQueue::schedule(SimTime time, EventReceiver &receiver, uint32_t kind, uint32_t index) {
  events.push_back({time, ++scheduled, &receiver, kind, index});
  std::push_heap(events.begin(), events.end(), later);
  block.engine.scheduler.wake(*this, events.front().time);
}

std::vector<EventQueue::Event> EventQueue::takeAll() {
  std::vector<Event> rest = std::exchange(events, {});
  std::sort(rest.begin(), rest.end(), [](const Event &a, const Event &b) { return later(b, a); });
  return rest;
}

void EventQueue::step(SimTime now) {
  while (!events.empty() && events.front().time <= now) {
    std::pop_heap(events.begin(), events.end(), later);
    const Event event = events.back();
    events.pop_back();
    event.receiver->handleEvent(event.kind, event.index, event.time);
  }
  if (!events.empty())
    block.engine.scheduler.wake(*this, events.front().time);
  else
    block.reportIfStuck();
}

} // namespace ditron::sim
