//===- TimeLimit_test.cpp - Runs that do not end ------------------------------------------------------------------===//
#include "Harness.h"

#include "ditron/sim/engine/TimeLimit.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>
#include <unistd.h>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr DitronSimSite loopSite{"kernel.py", 7, 5};
constexpr DitronSimSite addSite{"kernel.py", 8, 9};

std::unique_ptr<Machine> limited(double seconds, uint64_t seed = 0) {
  MachineOptions options;
  options.timeLimitSeconds = seconds;
  options.seed = seed;
  return makeMachine(options);
}

/// What compiled loops do.
void endlessLoop(void **) {
  DitronSimThread *self = ditron_sim_self();
  while (*self->timedOut == 0)
    ;
  ditron_sim_time_out(self, &loopSite);
}

/// Every turn lets other agents act.
void endlessTraffic(void **arguments) {
  auto *word = *static_cast<int32_t **>(arguments[0]);
  for (;;)
    ditron_sim_atomic_rmw(ditron_sim_self(), DITRON_SIM_RMW_ADD, DITRON_SIM_I32, word, 1, 1, DITRON_SIM_RELAXED,
                          DITRON_SIM_SCOPE_GPU, &addSite);
}

void addOnce(void **arguments) {
  auto *word = *static_cast<int32_t **>(arguments[0]);
  ditron_sim_atomic_rmw(ditron_sim_self(), DITRON_SIM_RMW_ADD, DITRON_SIM_I32, word, 1, 1, DITRON_SIM_RELAXED,
                        DITRON_SIM_SCOPE_GPU, &addSite);
}

TEST(TimeLimit, ALoopWithoutCallsIsEndedAndNamed) {
  auto machine = limited(0.1);
  const auto begin = std::chrono::steady_clock::now();
  Status status = runOnce(*machine, kernel("endless", endlessLoop, {1, 1, 1}, 32, 0));
  EXPECT_EQ(status.code(), StatusCode::TimeOut);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("kernel.py:7:5: kernel endless, rank 0, block (0,0,0), thread 0: "),
                                      HasSubstr("the time limit of 0.1 s has passed, and this loop still runs")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(machine->status().message(), status.message());
}

TEST(TimeLimit, TrafficThatNeverEndsIsEndedBetweenSteps) {
  auto machine = limited(0.1);
  auto *word = makeBuffer<int32_t>(*machine, 0, 1, "word");
  Status status = runOnce(*machine, kernel("busy", endlessTraffic, {2, 1, 1}, 1, 0, word));
  EXPECT_EQ(status.code(), StatusCode::TimeOut);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("the time limit of 0.1 s has passed at virtual time "),
                    HasSubstr("runs kernel busy: 0 of 2 blocks finished, 2 resident, 0 not started")));
}

/// Takes back what it has raised when the other one has raised too.
void givesWay(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *words = *static_cast<int32_t **>(arguments[0]);
  int32_t *mine = words + self->blockId[0], *theirs = words + 1 - self->blockId[0];
  auto store = [&](uint64_t value) {
    ditron_sim_st(self, mine, value, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, &addSite);
  };
  do {
    store(0);
    store(1);
    if (*self->timedOut)
      ditron_sim_time_out(self, &loopSite);
  } while (ditron_sim_ld(self, theirs, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, 0, &loopSite) != 5);
}

TEST(TimeLimit, NamesWhatIsReadBetweenEffects) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    auto machine = limited(0.1, seed);
    auto *words = makeBuffer<int32_t>(*machine, 0, 2, "words");
    Status status = runOnce(*machine, kernel("polite", givesWay, {2, 1, 1}, 1, 0, words));
    EXPECT_EQ(status.code(), StatusCode::TimeOut);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 0, kernel polite at kernel.py:7:5, block (0,0,0), thread 0\n"
                                                  "    looks at words[1] on rank 0: has "),
                                        HasSubstr("looks at words[0] on rank 0: has "),
                                        HasSubstr(" times so far, with effects in between; last written by rank 0")))
        << seed;
  }
}

TEST(TimeLimit, DoesNotNameWhatWasReadLongAgo) {
  auto machine = limited(0.1);
  auto *words = makeBuffer<int32_t>(*machine, 0, 2, "words");
  Status status = runOnce(*machine, kernel(
                                        "past",
                                        [](void **arguments) {
                                          auto *words = *static_cast<int32_t **>(arguments[0]);
                                          for (int i = 0; i < 20; ++i)
                                            ditron_sim_ld(ditron_sim_self(), words + 1, 4, DITRON_SIM_RELAXED,
                                                          DITRON_SIM_SCOPE_GPU, 0, &loopSite);
                                          endlessTraffic(arguments);
                                        },
                                        {2, 1, 1}, 1, 0, words));
  EXPECT_EQ(status.code(), StatusCode::TimeOut);
  EXPECT_THAT(status.message(), testing::Not(HasSubstr("words[1]")));
}

TEST(TimeLimit, DoesNotChangeARunThatKeepsIt) {
  SimTime times[2];
  for (double seconds : {0.0, 100.0}) {
    auto machine = limited(seconds, 3);
    auto *word = makeBuffer<int32_t>(*machine, 0, 1, "word");
    for (int call = 0; call < 3; ++call) // the limit is of each call
      ASSERT_OK(runOnce(*machine, kernel("add", addOnce, {20, 1, 1}, 64, 0, word)));
    EXPECT_EQ(*word, 3 * 20 * 64);
    times[seconds > 0] = machine->now();
  }
  EXPECT_EQ(times[0], times[1]);
}

TEST(TimeLimit, RefusesNonsense) {
  for (double seconds : {-1.0, 1e12, static_cast<double>(NAN)}) {
    MachineOptions options;
    options.timeLimitSeconds = seconds;
    EXPECT_THAT(Machine::create(options).status().message(), HasSubstr("timeLimitSeconds: accepted is 0 for none"));
  }
}

/// Ends what runs in this process after a while, as a signal handler does, and again until something ran.
class Interruption {
public:
  Interruption()
      : thread([this] {
          do
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          while (!done && !TimeLimit::interrupt(SIGINT));
        }) {}
  ~Interruption() {
    done = true;
    thread.join();
  }

private:
  std::atomic<bool> done = false;
  std::thread thread;
};

// The signal that is remembered is the process's: each of these has its own.
[[noreturn]] void interruptEndlessLoop() {
  EXPECT_FALSE(TimeLimit::interrupt(SIGINT)); // nothing runs
  EXPECT_EQ(TimeLimit::interruption(), 0);
  auto machine = limited(0);
  Interruption interruption;
  Status status = runOnce(*machine, kernel("endless", endlessLoop, {1, 1, 1}, 32, 0));
  std::fprintf(stderr, "%s\nsignal %d\n", status.message().c_str(), TimeLimit::interruption());
  _exit(testing::Test::HasFailure());
}

[[noreturn]] void interruptTraffic() {
  auto machine = limited(1000);
  auto *word = makeBuffer<int32_t>(*machine, 0, 1, "word");
  Interruption interruption;
  Status status = runOnce(*machine, kernel("busy", endlessTraffic, {2, 1, 1}, 1, 0, word));
  std::fprintf(stderr, "%s\nsignal %d\n", status.message().c_str(), TimeLimit::interruption());
  _exit(testing::Test::HasFailure());
}

TEST(Interruption, EndsALoopAndATrafficWithTheReportOfATimeLimit) {
  EXPECT_EXIT(interruptEndlessLoop(), testing::ExitedWithCode(0),
              "kernel.py:7:5: kernel endless, rank 0, block \\(0,0,0\\), thread 0: the run was interrupted by signal 2 "
              "\\(Interrupt\\), and this loop still runs\n(.|\n)*signal 2");
  EXPECT_EXIT(interruptTraffic(), testing::ExitedWithCode(0),
              "the run was interrupted by signal 2 \\(Interrupt\\)(.|\n)*runs kernel busy: 0 of 2 blocks "
              "finished(.|\n)*signal 2");
}

TEST(Interruption, IsOfTheRunThatItEnds) {
  auto stopped = limited(0), limitedLater = limited(0.1);
  {
    Interruption interruption;
    EXPECT_THAT(runOnce(*stopped, kernel("endless", endlessLoop, {1, 1, 1}, 32, 0)).message(),
                HasSubstr("the run was interrupted by signal 2 (Interrupt)"));
  }
  auto *word = makeBuffer<int32_t>(*limitedLater, 0, 1, "word");
  ASSERT_OK(runOnce(*limitedLater, kernel("add", addOnce, {20, 1, 1}, 64, 0, word)));
  EXPECT_EQ(*word, 20 * 64);
  EXPECT_THAT(runOnce(*limitedLater, kernel("endless", endlessLoop, {1, 1, 1}, 32, 0)).message(),
              HasSubstr("the time limit of 0.1 s has passed"));
}

TEST(Interruption, EndsWhatItsCallHasYetToRun) {
  {
    const TimeLimit::Call call;
    EXPECT_FALSE(TimeLimit::interrupt(SIGINT)); // while the call compiles
    auto machine = limited(0);
    EXPECT_THAT(runOnce(*machine, kernel("endless", endlessLoop, {1, 1, 1}, 32, 0)).message(),
                HasSubstr("the run was interrupted by signal 2 (Interrupt)"));
  }
  const TimeLimit::Call call;
  auto machine = limited(0);
  auto *word = makeBuffer<int32_t>(*machine, 0, 1, "word");
  ASSERT_OK(runOnce(*machine, kernel("add", addOnce, {1, 1, 1}, 32, 0, word)));
}

} // namespace
} // namespace ditron::sim
