//===- TimeLimit.h - The longest that a run may take ----------------------------------------------------*- C++ -*-===//
//
// A kernel may loop for ever without ever calling the engine. So the limit is a word of memory that a watching thread
// sets when the time has passed: the engine reads it between steps, and compiled kernels read it in every loop (a load
// and a branch; target/sim emits them). Time here is that of the clock on the wall, and the only thing in the engine
// that depends on it: a run within its limit does not notice it. An
// interruption by the user (Ctrl-C) ends a run in the same way. It is of the runs that it ends, and of nothing later: the machines of
// those refuse further work as after any error, others and new ones run on.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_TIMELIMIT_H
#define DITRON_SIM_ENGINE_TIMELIMIT_H

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

  /// Ends whatever runs in this process as if its time had passed, and what a Call is about to run; `signal` is what asked for it.
  /// False when nothing runs yet. May be called from any thread and from a signal handler.
  static bool interrupt(int signal);
  /// The latest signal that ended a run of this process; 0 for none. A process that goes on asks interruptedBy.
  static int interruption();
  /// The signal that ended the present run; 0 for none.
  int interruptedBy() const { return signal; }

  /// A call of a thread that compiles first and runs then: an interruption that comes before the run ends it when it begins.
  class Call {
  public:
    Call();
    ~Call();
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

  private:
    const bool isOutermost;
  };

  /// Asks whatever runs in this process for a report of the moment, on standard error; it goes on. False when nothing runs. May be
  /// called from a signal handler.
  static bool requestReport();
  /// Whether somebody has asked since the last call.
  bool takeReportRequest() {
    return reportWanted.load(std::memory_order_relaxed) && reportWanted.exchange(false, std::memory_order_relaxed);
  }

  bool hasPassed() const { return passed.load(std::memory_order_relaxed) != 0; }
  /// Not 0 once the time has passed; it stays so. Of an interruption until the next run begins.
  const volatile uint32_t *word() const { return reinterpret_cast<const volatile uint32_t *>(&passed); }

private:
  using Clock = std::chrono::steady_clock;
  void begin();
  void end();
  void watch();

  const double seconds;
  std::atomic<uint32_t> passed = 0;
  std::atomic<int> signal = 0;
  std::atomic<bool> reportWanted = false;
  static_assert(sizeof(passed) == sizeof(uint32_t) && decltype(passed)::is_always_lock_free);
  std::thread thread; ///< Started with the first watch.
  std::mutex mutex;
  std::condition_variable changed;
  bool running = false, ended = false;
  Clock::time_point deadline;
};

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_TIMELIMIT_H
