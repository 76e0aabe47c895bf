//===- fork_test.cpp - fork() while other threads are in the library ----------------------------------------------===//
#include "ditron/support/ForkGate.h"

#include <atomic>
#include <gtest/gtest.h>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace ditron;
using Clock = std::chrono::steady_clock;

namespace {

/// Forks a child that runs `body` and ends with its result; that result.
template <typename Body> int inChild(Body body) {
  const pid_t child = fork();
  if (child == 0)
    _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int passesTheGate() {
  const ForkGate gate;
  return 7;
}

TEST(ForkGate, aForkWaitsForOtherThreads) {
  std::atomic<bool> isInside = false, isBusy = false, stops = false;
  std::thread other([&] {
    while (!stops) {
      const ForkGate gate;
      isBusy = true;
      isInside = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      isBusy = false;
    }
  });
  while (!isInside)
    std::this_thread::yield();
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(inChild([&] { return isBusy ? 1 : passesTheGate(); }), 7);
  stops = true;
  other.join();
}

TEST(ForkGate, notForEver) {
  std::atomic<bool> isInside = false, stops = false;
  std::thread other([&] {
    const ForkGate gate;
    isInside = true;
    while (!stops)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!isInside)
    std::this_thread::yield();
  const auto start = Clock::now();
  EXPECT_EQ(inChild(passesTheGate), 7);
  EXPECT_GE(Clock::now() - start, ForkGate::longest);
  stops = true;
  other.join();
  EXPECT_EQ(inChild(passesTheGate), 7);
}

TEST(ForkGate, theOwnThreadAndOpenGatesDoNotCount) {
  std::atomic<bool> isInside = false, stops = false;
  std::thread other([&] {
    const ForkGate gate, nested;
    const ForkGateOpen open;
    isInside = true;
    while (!stops)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!isInside)
    std::this_thread::yield();
  const auto start = Clock::now();
  {
    const ForkGate gate;
    EXPECT_EQ(inChild([] {
                // The child is inside as its parent's thread is, alone: a grandchild can be forked, and inside of it again.
                return passesTheGate() == 7 && inChild(passesTheGate) == 7 ? 8 : 1;
              }),
              8);
  }
  EXPECT_LT(Clock::now() - start, ForkGate::longest);
  stops = true;
  other.join();
}

} // namespace
