//===- StepClock.h - How long the steps of code generation take ----------------------------------------------*- C++ -*-===//
//
// A stopwatch for a straight sequence of steps, for the table that --time prints.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_STEPCLOCK_H
#define DITRON_TARGET_COMMON_STEPCLOCK_H

#include <chrono>
#include <string>
#include <vector>

namespace ditron::target {

struct StepTime {
  std::string name;
  double milliseconds = 0;
};

class StepClock {
public:
  /// Adds the time since the last step, or since construction.
  void done(std::string name, std::vector<StepTime> &steps) {
    const auto now = std::chrono::steady_clock::now();
    steps.push_back({std::move(name), std::chrono::duration<double, std::milli>(now - start).count()});
    start = now;
  }

private:
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_STEPCLOCK_H
