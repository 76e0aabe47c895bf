//===- Scheduler.cpp - Agents in virtual time ---------------------------------------------------------------------===//
//
// A binary heap with lazy deletion: an entry whose ticket is not its agent's current one is skipped.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Scheduler.h"

#include <algorithm>

namespace ditron::sim {

void Scheduler::wake(Agent &agent, SimTime when) {
  if (agent.ticket != 0 && agent.queuedAt <= when)
    return;
  agent.ticket = ++tickets;
  agent.queuedAt = when;
  heap.push_back({when, random.next(), agent.ticket, &agent});
  std::push_heap(heap.begin(), heap.end(), later);
}

void Scheduler::dropStale() {
  while (!heap.empty() && heap.front().agent->ticket != heap.front().ticket) {
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
  }
}

SimTime Scheduler::nextTime() {
  dropStale();
  return heap.empty() ? INT64_MAX : heap.front().time;
}

Agent *Scheduler::pop(SimTime &when) {
  dropStale();
  if (heap.empty())
    return nullptr;
  Entry entry = heap.front();
  std::pop_heap(heap.begin(), heap.end(), later);
  heap.pop_back();
  entry.agent->ticket = 0;
  when = entry.time;
  now = std::max(now, entry.time);
  return entry.agent;
}

} // namespace ditron::sim
