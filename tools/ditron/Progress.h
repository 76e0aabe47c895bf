//===- Progress.h - A sign of life on the terminal ------------------------------------------------------*- C++ -*-===//
//
// Says on stderr what is going on when it takes longer than two seconds, and nothing otherwise. On a terminal one line
// is kept up to date; elsewhere a line is written every ten seconds.
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

class Progress {
public:
  explicit Progress(bool quiet);
  ~Progress();

  /// What is done from now on, for example "compiling add_kernel".
  void activity(std::string text);
  /// Nothing any more: removes the line.
  void stop();

private:
  void loop();

  std::mutex mutex;
  std::condition_variable wake;
  std::string text;
  std::chrono::steady_clock::time_point since;
  bool stopped = false;
  bool lineShown = false;
  std::thread thread;
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_PROGRESS_H
