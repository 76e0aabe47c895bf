//===- TimeLimit.cpp - The longest that a run may take ------------------------------------------------------------===//
//
// The watching thread sleeps until the deadline of the present watch, or until there is one.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/TimeLimit.h"

#include <array>
#include <optional>

namespace ditron::sim {

namespace {
/// The limits whose watch runs, for a signal handler to find; more at once than these cannot be interrupted.
std::array<std::atomic<TimeLimit *>, 64> active = {};
std::atomic<int> lastInterruption = 0, lastSignal = 0;
std::atomic<uint64_t> interruptions = 0;
/// How many there had been when the thread's call of the library began.
thread_local std::optional<uint64_t> interruptionsBeforeCall;

void exchangeActive(TimeLimit *from, TimeLimit *to) {
  for (std::atomic<TimeLimit *> &slot : active)
    if (TimeLimit *expected = from; slot.compare_exchange_strong(expected, to))
      return;
}
} // namespace

TimeLimit::Call::Call() : isOutermost(!interruptionsBeforeCall) {
  if (isOutermost)
    interruptionsBeforeCall = interruptions.load();
}

TimeLimit::Call::~Call() {
  if (isOutermost)
    interruptionsBeforeCall.reset();
}

bool TimeLimit::interrupt(int signal) {
  bool any = false;
  lastSignal = signal;
  ++interruptions;
  for (std::atomic<TimeLimit *> &slot : active)
    if (TimeLimit *limit = slot.load()) {
      lastInterruption = signal;
      limit->signal = signal;
      limit->passed = 1;
      any = true;
    }
  return any;
}

bool TimeLimit::requestReport() {
  bool any = false;
  for (std::atomic<TimeLimit *> &slot : active)
    if (TimeLimit *limit = slot.load()) {
      limit->reportWanted = true;
      any = true;
    }
  return any;
}

int TimeLimit::interruption() { return lastInterruption; }

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
  if (signal.exchange(0)) // it came when the run had ended by itself
    passed = 0;
  exchangeActive(nullptr, this);
  if (interruptionsBeforeCall && *interruptionsBeforeCall != interruptions) {
    signal = lastSignal.load();
    lastInterruption = lastSignal.load();
    passed = 1;
  }
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
  exchangeActive(this, nullptr);
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
