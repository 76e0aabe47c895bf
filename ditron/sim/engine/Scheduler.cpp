//===- Scheduler.cpp - Agents in virtual time ---------------------------------------------------------------------===//
//
// A binary heap with lazy deletion: an entry whose ticket is not its agent's current one is skipped.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Scheduler.h"

#include <algorithm>

namespace ditron::sim {

namespace {
/// An agent that has acted so often in a row, while others could, waits for one of them in a way that cannot be seen.
constexpr uint64_t mostStepsInARow = 4096;
} // namespace

Scheduler::Scheduler(const Schedule &schedule, double jitter)
    : random(schedule.seed), jitter(jitter), byPriority(schedule.byPriority) {
  for (uint32_t i = 0; byPriority && i < schedule.priorityChanges; ++i)
    changes.push_back(1 + random.below(schedule.expectedSteps));
  std::sort(changes.begin(), changes.end(), std::greater());
}

void Scheduler::push(Agent &agent, SimTime when) {
  agent.ticket = ++tickets;
  agent.queuedAt = when;
  if (byPriority && agent.priority == 0)
    agent.priority = 1 + static_cast<int64_t>(random.below(INT64_MAX - 1));
  heap.push_back({when, random.next(), agent.ticket, &agent, agent.priority});
  std::push_heap(heap.begin(), heap.end(), later);
}

void Scheduler::wake(Agent &agent, SimTime when) {
  if (agent.ticket == 0 || agent.queuedAt > when)
    push(agent, when);
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

Agent *Scheduler::take(SimTime &when) {
  dropStale();
  if (heap.empty())
    return nullptr;
  Entry entry = heap.front();
  std::pop_heap(heap.begin(), heap.end(), later);
  heap.pop_back();
  entry.agent->ticket = 0;
  when = entry.time;
  return entry.agent;
}

bool Scheduler::fallsNow(const Agent *agent) {
  stepsInARow = agent == lastAgent ? stepsInARow + 1 : 0;
  lastAgent = agent;
  ++steps;
  if (!changes.empty() && steps >= changes.back()) {
    changes.pop_back();
    return true;
  }
  return stepsInARow >= mostStepsInARow && stepsInARow % mostStepsInARow == 0;
}

Agent *Scheduler::pop(SimTime &when) {
  Agent *agent = take(when);
  if (agent && byPriority && fallsNow(agent)) {
    agent->priority = --lowest;
    push(*agent, when);
    agent = take(when);
  }
  if (!agent)
    return nullptr;
  now = std::max(now, when);
  // Who acts later by priority does so at a later time: nobody sees what has not happened yet.
  if (byPriority)
    when = now;
  return agent;
}

} // namespace ditron::sim
