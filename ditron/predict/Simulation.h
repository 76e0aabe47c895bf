//===- Simulation.h - Events, signals and shared bandwidth in virtual time ------------------------------*- C++ -*-===//
//
// The engine below predictions: no memory, no threads, no arithmetic. What acts is a chain of actions; each is called at its time
// and says what comes after it. Three things pass time:
//
//   after(us, action)                a fixed cost
//   transfer(bytes, path, action)    bytes through pipes that are shared: all transfers of a pipe get equal parts of it, and what one
//                                    cannot use, because it is held up in another pipe, goes to the others (max-min fairness)
//   when(signal, count, action)      until others have raised the signal so often
//
// Events of one time happen in the order in which they were asked for, so that equal programs give equal runs.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_SIMULATION_H
#define DITRON_PREDICT_SIMULATION_H

#include "ditron/support/Status.h"

#include <functional>
#include <span>
#include <vector>

namespace ditron::predict {

/// Microseconds since the beginning.
using Time = double;
using Action = std::function<void()>;

enum class PipeId : uint32_t {};
enum class SignalId : uint32_t {};

class Simulation {
public:
  Time now() const { return clock; }
  void after(Time us, Action action);

  PipeId addPipe(double bytesPerUs);
  /// A transfer through no pipe, or of no bytes, takes no time.
  void transfer(double bytes, std::span<const PipeId> path, Action done);

  /// The name is for reports of waits that never end.
  SignalId addSignal(std::string name);
  void raise(SignalId signal);
  uint64_t value(SignalId signal) const { return signals[static_cast<uint32_t>(signal)].value; }
  const std::string &name(SignalId signal) const { return signals[static_cast<uint32_t>(signal)].name; }
  /// At once when the signal stands there already.
  void when(SignalId signal, uint64_t count, Action action);

  /// Until nothing is left to do. An error when somebody still waits: the program that was simulated is wrong.
  Status run();

private:
  struct Event {
    Time time;
    uint64_t order;
    Action action;
  };
  struct Waiter {
    uint64_t count;
    Action action;
  };
  struct Signal {
    std::string name;
    uint64_t value = 0;
    std::vector<Waiter> waiters;
  };
  struct Transfer {
    double left; ///< Bytes, at `settled`.
    double rate;
    std::vector<PipeId> path;
    Action done;
  };
  static bool later(const Event &a, const Event &b) { return a.time != b.time ? a.time > b.time : a.order > b.order; }
  void settle();
  void shareRates();
  Time nextArrival() const;
  void finishArrived();

  Time clock = 0, settled = 0;
  uint64_t order = 0;
  std::vector<Event> events; ///< A heap.
  std::vector<double> pipes; ///< Bytes per microsecond.
  std::vector<Transfer> transfers;
  bool ratesAreOld = false;
  std::vector<Signal> signals;
};

} // namespace ditron::predict
#endif // DITRON_PREDICT_SIMULATION_H
