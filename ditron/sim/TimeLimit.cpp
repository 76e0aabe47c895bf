//===- TimeLimit.cpp - The longest that a run may take ------------------------------------------------------------===//
//
// The watching thread sleeps until the deadline of the present watch, or until there is one.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/TimeLimit.h"

namespace ditron::sim {

TimeLimit::~TimeLimit() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard lock(mutex);
    ended = true;
  }
  changed.notify_all();
  thread.join();
}

void TimeLimit::begin() {
  if (seconds <= 0)
    return;
  {
    std::lock_guard lock(mutex);
    running = true;
    deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  if (thread.joinable())
    changed.notify_all();
  else
    thread = std::thread([this] { watch(); });
}

void TimeLimit::end() {
  std::lock_guard lock(mutex);
  running = false;
}

void TimeLimit::watch() {
  std::unique_lock lock(mutex);
  while (!ended) {
    if (!running)
      changed.wait(lock);
    else if (const Clock::time_point until = deadline; Clock::now() < until)
      changed.wait_until(lock, until);
    else {
      passed = 1;
      return;
    }
  }
}

} // namespace ditron::sim
