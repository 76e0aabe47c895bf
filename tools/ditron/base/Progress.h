//===- Progress.h - A sign of life on the terminal ------------------------------------------------------*- C++ -*-===//
//
// Says on stderr what is going on when it takes longer than two seconds, and nothing otherwise. On a terminal one line
// is kept up to date, with the part that is done and the time that is left where that is known; elsewhere a line is written
// every ten seconds.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_PROGRESS_H
#define DITRON_TOOLS_DITRON_PROGRESS_H

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace ditron::tool {

/// "43 % done, about 2 min left" after `seconds`; empty when nothing is done yet, or everything.
std::string timeLeft(double fraction, double seconds);

class Progress {
public:
  /// `begin` is when everything began.
  explicit Progress(bool quiet, std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now());
  ~Progress();

  /// What is done from now on, for example "compiling add_kernel".
  void activity(std::string text);
  /// How much of everything is done, from 0 to 1.
  void reached(double fraction);
  /// Nothing any more: removes the line.
  void stop();

private:
  void loop();

  std::mutex mutex;
  std::condition_variable wake;
  std::string text;
  std::chrono::steady_clock::time_point since;
  const std::chrono::steady_clock::time_point begin; ///< Of everything.
  double fraction = 0;
  bool stopped = false;
  bool lineShown = false;
  std::thread thread;
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_PROGRESS_H
