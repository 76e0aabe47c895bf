//===- Progress.cpp - A sign of life on the terminal --------------------------------------------------------------===//
//
// A thread that sleeps most of the time.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "Progress.h"

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

Progress::Progress(bool quiet) : since(std::chrono::steady_clock::now()) {
  if (!quiet)
    thread = std::thread([this] { loop(); });
}

Progress::~Progress() { stop(); }

void Progress::activity(std::string newText) {
  std::lock_guard lock(mutex);
  text = std::move(newText);
  since = std::chrono::steady_clock::now();
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
    if (text.empty() || now - since < patience)
      continue;
    if (terminal) {
      fmt::print(stderr, "\r\033[K{} ... {} s", text, seconds);
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
