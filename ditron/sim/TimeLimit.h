//===- TimeLimit.h - The longest that a run may take ----------------------------------------------------*- C++ -*-===//
//
// A kernel may loop for ever without ever calling the engine. So the limit is a word of memory that a watching thread
// sets when the time has passed: the engine reads it between steps, and compiled kernels read it in every loop (a load
// and a branch; target/sim emits them). Time here is that of the clock on the wall, and the only thing in the engine
// that depends on it: a run within its limit does not notice it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_TIMELIMIT_H
#define DITRON_SIM_TIMELIMIT_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace ditron::sim {

class TimeLimit {
public:
  /// 0 for no limit.
  explicit TimeLimit(double seconds) : seconds(seconds) {}
  ~TimeLimit();
  TimeLimit(const TimeLimit &) = delete;
  TimeLimit &operator=(const TimeLimit &) = delete;

  /// The time runs while this lives.
  class Watch {
  public:
    explicit Watch(TimeLimit &limit) : limit(limit) { limit.begin(); }
    ~Watch() { limit.end(); }
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;

  private:
    TimeLimit &limit;
  };

  bool hasPassed() const { return passed.load(std::memory_order_relaxed) != 0; }
  /// Not 0 once the time has passed; it stays so.
  const volatile uint32_t *word() const { return reinterpret_cast<const volatile uint32_t *>(&passed); }

private:
  using Clock = std::chrono::steady_clock;
  void begin();
  void end();
  void watch();

  const double seconds;
  std::atomic<uint32_t> passed = 0;
  static_assert(sizeof(passed) == sizeof(uint32_t) && decltype(passed)::is_always_lock_free);
  std::thread thread; ///< Started with the first watch.
  std::mutex mutex;
  std::condition_variable changed;
  bool running = false, ended = false;
  Clock::time_point deadline;
};

} // namespace ditron::sim

#endif // DITRON_SIM_TIMELIMIT_H
