//===- Progress.cpp - A sign of life on the terminal --------------------------------------------------------------===//
//
// A thread that sleeps most of the time.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "base/Progress.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace ditron::tool {

namespace {
using namespace std::chrono_literals;
constexpr auto patience = 2s;
constexpr auto refresh = 500ms;
constexpr auto lineInterval = 10s;
} // namespace

std::string timeLeft(double fraction, double seconds) {
  if (!(fraction > 0) || fraction >= 1)
    return "";
  const double left = seconds * (1 - fraction) / fraction;
  const std::string time = left < 90     ? fmt::format("{:.0f} s", left)
                           : left < 5400 ? fmt::format("{:.0f} min", left / 60)
                                         : fmt::format("{:.1f} h", left / 3600);
  return fmt::format("{:.0f} % done, about {} left", fraction * 100, time);
}

Progress::Progress(bool quiet, std::chrono::steady_clock::time_point begin)
    : since(std::chrono::steady_clock::now()), begin(begin) {
  if (!quiet)
    thread = std::thread([this] { loop(); });
}

Progress::~Progress() { stop(); }

void Progress::activity(std::string newText) {
  std::lock_guard lock(mutex);
  text = std::move(newText);
  since = std::chrono::steady_clock::now();
}

void Progress::reached(double newFraction) {
  std::lock_guard lock(mutex);
  fraction = newFraction;
}

void Progress::stop() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard lock(mutex);
    stopped = true;
  }
  wake.notify_all();
  thread.join();
}

void Progress::loop() {
  const bool terminal = isatty(STDERR_FILENO);
  auto nextLine = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, refresh, [this] { return stopped; })) {
    const auto now = std::chrono::steady_clock::now();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - since).count();
    // Many short activities of something long show, too.
    const bool isLong = now - (terminal && fraction > 0 ? begin : since) >= patience;
    if (text.empty() || !isLong)
      continue;
    if (terminal) {
      const std::string left = timeLeft(fraction, std::chrono::duration<double>(now - begin).count());
      fmt::print(stderr, "\r\033[K{} ... {} s{}", text, seconds, left.empty() ? "" : " (" + left + ")");
      std::fflush(stderr);
      lineShown = true;
    } else if (now >= nextLine) {
      fmt::print(stderr, "{} ... {} s\n", text, seconds);
      nextLine = now + lineInterval;
    }
  }
  if (lineShown) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
}

} // namespace ditron::tool
