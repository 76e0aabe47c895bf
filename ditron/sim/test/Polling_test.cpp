//===- Polling_test.cpp - Loops that wait: deadlocks are those, and no others -----------------------------------------===//
#include "ditron/sim/engine/Scheduler.h"
#include "ditron/sim/memory/Watch.h"
#include "ditron/sim/test/Harness.h"

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

uint32_t load(const uint32_t *word, uint32_t spin = 0, uint32_t scope = DITRON_SIM_SCOPE_SYSTEM) {
  return static_cast<uint32_t>(ditron_sim_ld(ditron_sim_self(), word, 4, DITRON_SIM_ACQUIRE, scope, spin, AT(10)));
}
uint32_t loadRelaxed(const uint32_t *word) {
  return static_cast<uint32_t>(
      ditron_sim_ld(ditron_sim_self(), word, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM, 0, AT(10)));
}
void store(uint32_t *word, uint32_t value, uint32_t scope = DITRON_SIM_SCOPE_SYSTEM) {
  ditron_sim_st(ditron_sim_self(), word, value, 4, DITRON_SIM_RELEASE, scope, AT(11));
}
uint32_t exchange(uint32_t *word, uint32_t value) {
  return static_cast<uint32_t>(ditron_sim_atomic_rmw(ditron_sim_self(), DITRON_SIM_RMW_EXCHANGE, DITRON_SIM_I32, word,
                                                     value, 1, DITRON_SIM_ACQ_REL, DITRON_SIM_SCOPE_GPU, AT(12)));
}
uint64_t nanoseconds() { return ditron_sim_register(ditron_sim_self(), DITRON_SIM_GLOBALTIMER); }
void meet() { ditron_sim_barrier(ditron_sim_self(), AT(13)); }
uint32_t *wordsOf(void **arguments) { return argument<uint32_t *>(arguments, 0); }
uint32_t *shared() { return reinterpret_cast<uint32_t *>(ditron_sim_self()->sharedMemory); }
bool isThread(uint32_t id) { return ditron_sim_self()->threadId == id; }
bool isBlock(uint32_t id) { return ditron_sim_self()->blockId[0] == id; }

/// Runs the kernel on 16 words of zeros, with so many seeds.
struct Outcome {
  Status status;
  std::vector<uint32_t> words;
};
Outcome runOn(KernelEntry entry, uint32_t blocks = 1, uint32_t threads = 1, uint64_t seed = 0, double limit = 20,
              bool inTime = false) {
  MachineOptions options;
  options.seed = seed;
  if (inTime) // nobody comes late
    options.schedule = Schedule{.seed = seed};
  options.timeLimitSeconds = limit;
  auto machine = makeMachine(options);
  auto *words = makeBuffer<uint32_t>(*machine, 0, 16, "words");
  Outcome outcome;
  outcome.status = runOnce(*machine, kernel("loop", entry, {blocks, 1, 1}, threads, 1024, words));
  outcome.words.assign(words, words + 16);
  return outcome;
}
constexpr uint64_t seeds = 20;

void expectDeadlock(KernelEntry entry, const std::string &what, uint32_t blocks = 1, uint32_t threads = 1) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Outcome outcome = runOn(entry, blocks, threads, seed);
    EXPECT_EQ(outcome.status.code(), StatusCode::Deadlock) << seed << ": " << outcome.status.message();
    EXPECT_THAT(outcome.status.message(), HasSubstr(what));
  }
}
void expectEnd(KernelEntry entry, uint32_t blocks = 1, uint32_t threads = 1, bool inTime = false) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Outcome outcome = runOn(entry, blocks, threads, seed, 20, inTime);
    EXPECT_TRUE(outcome.status.isOk()) << seed << ": " << outcome.status.message();
    EXPECT_EQ(outcome.words[0], 7u) << seed;
  }
}

//===- Loops that give up ---------------------------------------------------------------------------------------------===//

TEST(Polling, AttemptsThatAreCountedEnd) {
  expectEnd([](void **arguments) {
    for (uint32_t left = 20000; left && load(wordsOf(arguments) + 1) == 0; --left) {
    }
    store(wordsOf(arguments), 7);
  });
}

TEST(Polling, FewAttemptsEndThoughTheFlagComesLater) {
  // Who gives up after ten attempts has done so when the other one comes after a long time.
  expectEnd(
      [](void **arguments) {
        uint32_t *words = wordsOf(arguments);
        if (isBlock(1)) {
          for (int i = 0; i < 2000; ++i)
            meet();
          return store(words + 1, 1);
        }
        uint32_t left = 10;
        while (left && load(words + 1) == 0)
          --left;
        store(words, left == 0 ? 7 : 100 + left);
      },
      2, 1, /*inTime=*/true);
}

TEST(Polling, AttemptsOfACompareAndSwapEnd) {
  expectEnd([](void **arguments) {
    uint32_t *words = wordsOf(arguments);
    exchange(words + 1, 1);
    for (uint32_t left = 5000; left; --left)
      if (ditron_sim_atomic_cas(ditron_sim_self(), words + 1, 0, 1, 4, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_GPU,
                                AT(14)) == 0)
        return;
    store(words, 7);
  });
}

TEST(Polling, AttemptsOfAKnownLoopEnd) {
  expectEnd([](void **arguments) {
    store(wordsOf(arguments) + 1, 1);
    for (uint32_t i = 0; i < 3000; ++i)
      while (load(wordsOf(arguments) + 1, /*spin=*/1) != 1) {
      }
    store(wordsOf(arguments), 7);
  });
}

TEST(Polling, AttemptsThatAllWarpsCountTogetherEnd) {
  // What a while loop around a scalar load becomes: one thread reads, and tells the others.
  expectEnd(
      [](void **arguments) {
        uint32_t *words = wordsOf(arguments);
        for (uint32_t i = 0; i < 500; ++i) {
          if (isThread(0))
            *shared() = load(words + 1);
          meet();
          const uint32_t seen = *shared();
          meet();
          if (seen)
            return;
        }
        if (isThread(0))
          store(words, 7);
      },
      1, 64);
}

TEST(Polling, OneThreadCountsForAnotherThatPolls) {
  // The state of the thread that polls is always the same; another one of its block counts.
  expectEnd(
      [](void **arguments) {
        uint32_t *words = wordsOf(arguments);
        if (isThread(0)) {
          *shared() = 0;
          meet();
          uint32_t ended = 0;
          while (!ended) {
            load(words + 1);
            meet();
            ended = *static_cast<volatile uint32_t *>(shared());
            meet();
          }
          return store(words, 7);
        }
        meet();
        for (uint32_t i = 0; i < 300; ++i) {
          if (i == 299)
            *static_cast<volatile uint32_t *>(shared()) = 1;
          meet();
          meet();
        }
      },
      1, 2);
}

TEST(Polling, ATimeOutByTheClockEnds) {
  expectEnd([](void **arguments) {
    const uint64_t begin = nanoseconds();
    while (load(wordsOf(arguments) + 1) == 0 && nanoseconds() < begin + 1'000'000) {
    }
    store(wordsOf(arguments), 7);
  });
}

TEST(Polling, ATimeOutByTheClockComesInItsTime) {
  // Another block acts a hundred times later; and one sleeps that the first wakes.
  expectEnd(
      [](void **arguments) {
        uint32_t *words = wordsOf(arguments);
        if (isBlock(0)) {
          const uint64_t begin = nanoseconds();
          while (load(words + 1) == 0 && nanoseconds() < begin + 20'000) {
          }
          return store(words + 2, load(words + 1) == 0 ? 1 : 2);
        }
        if (isBlock(1)) {
          const uint64_t begin = nanoseconds();
          while (nanoseconds() < begin + 2'000'000) {
          }
          return store(words + 1, 1);
        }
        uint32_t seen = 0;
        while ((seen = load(words + 2)) == 0) {
        }
        store(words, seen == 1 ? 7 : 100);
      },
      3, 1, /*inTime=*/true);
}

TEST(Polling, ALoopThatReadsTheClockForEverIsNoDeadlock) {
  const Outcome outcome = runOn(
      [](void **arguments) {
        while (load(wordsOf(arguments)) == 0)
          nanoseconds();
      },
      1, 1, 0, 0.2);
  EXPECT_EQ(outcome.status.code(), StatusCode::TimeOut);
}

TEST(Polling, TrafficForEverIsNoDeadlock) {
  const Outcome outcome = runOn(
      [](void **arguments) {
        for (uint32_t i = 0; load(wordsOf(arguments)) == 0; ++i)
          store(wordsOf(arguments) + 1 + ditron_sim_self()->blockId[0], i);
      },
      2, 1, 0, 0.2);
  EXPECT_EQ(outcome.status.code(), StatusCode::TimeOut);
}

//===- Loops that never end -------------------------------------------------------------------------------------------===//

TEST(PollingDeadlock, TwoWordsInTurn) {
  expectDeadlock(
      [](void **arguments) {
        while (load(wordsOf(arguments) + 3) == 0 && load(wordsOf(arguments) + 4) == 0) {
        }
      },
      "words[3]");
}

TEST(PollingDeadlock, NobodyIsLeftWhereOnlyThoseWhoWaitAre) {
  auto entry = [](void **arguments) {
    while (isThread(0) && load(wordsOf(arguments) + 1) == 0) {
    }
  };
  expectDeadlock(entry,
                 "nobody is left who could raise it: all threads that are left of those who were given it wait for it",
                 1, 64);
  auto others = [](void **arguments) {
    while (load(wordsOf(arguments) + ditron_sim_self()->threadId) == 0) {
    }
  };
  expectDeadlock(others, "could still raise it: kernel loop on rank 0, which waits itself", 1, 2);
}

TEST(PollingDeadlock, ManyWordsInTurn) {
  expectDeadlock(
      [](void **arguments) {
        for (bool all = false; !all;) {
          all = true;
          for (int i = 0; i < 16; ++i)
            all &= load(wordsOf(arguments) + i) != 0;
        }
      },
      "words[3]");
}

TEST(PollingDeadlock, ALockTakenByExchange) {
  expectDeadlock(
      [](void **arguments) {
        while (exchange(wordsOf(arguments) + 2, 1) != 0) {
        }
      },
      "words[2] on rank 0: has 1, polls it in a loop until it changes; last written by rank 0, kernel loop, block (",
      3);
}

TEST(PollingDeadlock, ALoopOfAWholeBlock) {
  expectDeadlock(
      [](void **arguments) {
        for (bool found = false; !found;) {
          if (isThread(0))
            *shared() = load(wordsOf(arguments) + 1);
          meet();
          found = *static_cast<volatile uint32_t *>(shared()) != 0;
          meet();
        }
      },
      "words[1] on rank 0: has 0", 2, 64);
}

TEST(PollingDeadlock, ALoopOfAWarpWithBallots) {
  expectDeadlock(
      [](void **arguments) {
        DitronSimThread *self = ditron_sim_self();
        while (ditron_sim_ballot(self, ~uint64_t(0), load(wordsOf(arguments) + self->laneId % 16) != 0, AT(15)) == 0) {
        }
      },
      "words[1] on rank 0: has 0", 1, 32);
}

TEST(PollingDeadlock, ALoopOfAWholeBlockWithRelaxedLoads) {
  // Which a schedule may carry out late, each at a time of its own.
  expectDeadlock(
      [](void **arguments) {
        while (loadRelaxed(wordsOf(arguments) + 1) == 0)
          meet();
      },
      "words[1] on rank 0: has 0", 1, 128);
}

TEST(PollingDeadlock, ASumOfWordsByShuffles) {
  expectDeadlock(
      [](void **arguments) {
        DitronSimThread *self = ditron_sim_self();
        for (uint64_t sum = 0; sum != 32;) {
          sum = loadRelaxed(wordsOf(arguments) + self->laneId % 16);
          for (uint32_t distance = 16; distance; distance /= 2)
            sum += ditron_sim_shuffle(self, DITRON_SIM_SHUFFLE_BUTTERFLY, sum, distance, ~uint64_t(0), AT(22));
        }
      },
      "words[1] on rank 0: has 0", 1, 128);
}

TEST(PollingDeadlock, ASignOfLifeIsNoProgress) {
  expectDeadlock(
      [](void **arguments) {
        while (load(wordsOf(arguments) + 1) == 0)
          store(wordsOf(arguments), 1);
      },
      "words[1]");
}

TEST(PollingDeadlock, AlternatingAttempts) {
  // The state repeats after five turns.
  expectDeadlock(
      [](void **arguments) {
        for (volatile uint32_t turn = 0; load(wordsOf(arguments) + 5) == 0; turn = (turn + 1) % 5) {
        }
      },
      "words[5]");
}

TEST(PollingDeadlock, OfSomeWhileOthersGiveUp) {
  expectDeadlock(
      [](void **arguments) {
        if (isBlock(0))
          while (load(wordsOf(arguments) + 1) == 0) {
          }
        const uint64_t begin = nanoseconds();
        for (uint32_t left = 3000; left && load(wordsOf(arguments) + 2) == 0 && nanoseconds() < begin + 100'000;
             --left) {
        }
      },
      "words[1] on rank 0: has 0", 4);
}

TEST(PollingDeadlock, AnMbarrierThatIsTested) {
  expectDeadlock(
      [](void **) {
        DitronSimThread *self = ditron_sim_self();
        if (isThread(0))
          ditron_sim_mbarrier_init(self, shared(), 2, AT(16));
        meet();
        if (isThread(0))
          ditron_sim_mbarrier_arrive(self, shared(), 1, 1, AT(17));
        while (ditron_sim_mbarrier_test(self, shared(), 0, AT(18)) == 0) {
        }
      },
      "mbarrier", 1, 32);
}

TEST(Polling, AnMbarrierThatIsTestedCompletes) {
  expectEnd(
      [](void **arguments) {
        DitronSimThread *self = ditron_sim_self();
        if (isThread(0))
          ditron_sim_mbarrier_init(self, shared(), 1, AT(16));
        meet();
        if (isThread(1)) {
          for (uint32_t left = 100; left && load(wordsOf(arguments) + 3) == 0; --left) {
          }
          ditron_sim_mbarrier_arrive(self, shared(), 1, 1, AT(17));
        }
        while (ditron_sim_mbarrier_test(self, shared(), 0, AT(18)) == 0) {
        }
        if (isThread(0))
          store(wordsOf(arguments), 7);
      },
      1, 32);
}

//===- Waking ---------------------------------------------------------------------------------------------------------===//

TEST(Polling, EitherOfTwoWordsWakesAtOnce) {
  for (uint32_t which : {1u, 2u})
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      MachineOptions options;
      options.schedule = Schedule{.seed = seed};
      auto machine = makeMachine(options);
      auto *words = makeBuffer<uint32_t>(*machine, 0, 16, "words");
      auto entry = [](void **arguments) {
        uint32_t *words = wordsOf(arguments);
        const auto which = argument<uint32_t>(arguments, 1);
        if (isBlock(0)) {
          while (load(words + 1) == 0 && load(words + 2) == 0) {
          }
          return store(words, 7);
        }
        const uint64_t begin = nanoseconds();
        while (nanoseconds() < begin + 100'000) {
        }
        store(words + which, 1);
        while (nanoseconds() < begin + 10'000'000) {
        }
        store(words + 3, load(words)); // long before now
      };
      ASSERT_OK(runOnce(*machine, kernel("two", entry, {2, 1, 1}, 1, 0, words, which)));
      EXPECT_EQ(words[3], 7u) << which << " " << seed;
    }
}

// A lane may poll what another lane does that waits for it at a place where lanes keep their order.
TEST(Polling, LanesThatWaitForTheOneThatPollsGoOn) {
  expectEnd(
      [](void **arguments) {
        DitronSimThread *self = ditron_sim_self();
        if (isThread(0)) {
          uint32_t attempts = 0;
          while (load(wordsOf(arguments) + 1) == 0)
            ++attempts;
          store(wordsOf(arguments) + 2, attempts);
          return store(wordsOf(arguments), 7);
        }
        ditron_sim_order_lanes(self, nullptr, 0, nullptr, 0, AT(19));
        if (isThread(1))
          store(wordsOf(arguments) + 1, 1);
      },
      1, 32);
}

//===- Random programs against a plain model --------------------------------------------------------------------------===//

// Each block carries out a list of steps: raise a word, or wait for one in one of several ways. Whether all come to their ends does not
// depend on the order, since words only grow: the model raises whatever it can until nothing changes.
struct Step {
  enum Kind : uint32_t { Raise, WaitUntil, Poll, PollTwo, PollWithBlock, TryAndGoOn, TimeOut, Exchange } kind;
  uint32_t word = 0, other = 0;
};
struct Program {
  uint32_t steps = 0;
  Step list[12];
};

void runProgram(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const Program &program = argument<const Program *>(arguments, 1)[self->blockId[0]];
  uint32_t *words = wordsOf(arguments);
  for (uint32_t i = 0; i < program.steps; ++i) {
    const Step step = program.list[i];
    if (step.kind == Step::PollWithBlock) {
      for (bool found = false; !found;) {
        if (isThread(0))
          *static_cast<volatile uint32_t *>(shared()) = load(words + step.word);
        meet();
        found = *static_cast<volatile uint32_t *>(shared()) != 0;
        meet();
      }
      continue;
    }
    if (!isThread(0))
      continue;
    switch (step.kind) {
    case Step::Raise: store(words + step.word, 1); break;
    case Step::WaitUntil:
      ditron_sim_wait_until(self, words + step.word, 4, DITRON_SIM_GE, 1, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM,
                            AT(20));
      break;
    case Step::Poll:
      while (load(words + step.word) == 0) {
      }
      break;
    case Step::PollTwo:
      while (load(words + step.word) == 0 && load(words + step.other) == 0) {
      }
      break;
    case Step::TryAndGoOn:
      for (uint32_t left = 50; left && load(words + step.word) == 0; --left) {
      }
      break;
    case Step::TimeOut:
      for (const uint64_t begin = nanoseconds(); load(words + step.word) == 0 && nanoseconds() < begin + 30'000;) {
      }
      break;
    case Step::Exchange:
      while (ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_OR, DITRON_SIM_I32, words + step.word, 0, 1, DITRON_SIM_ACQUIRE,
                                   DITRON_SIM_SCOPE_GPU, AT(21)) == 0) {
      }
      break;
    case Step::PollWithBlock: break;
    }
  }
  meet();
}

bool modelEnds(const std::vector<Program> &programs) {
  std::vector<uint32_t> at(programs.size(), 0);
  bool raised[16] = {};
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t block = 0; block < programs.size(); ++block)
      while (at[block] < programs[block].steps) {
        const Step &step = programs[block].list[at[block]];
        const bool waits = step.kind != Step::Raise && step.kind != Step::TryAndGoOn && step.kind != Step::TimeOut;
        if (waits && !raised[step.word] && !(step.kind == Step::PollTwo && raised[step.other]))
          break;
        if (step.kind == Step::Raise)
          raised[step.word] = true;
        ++at[block];
        changed = true;
      }
  }
  for (size_t block = 0; block < programs.size(); ++block)
    if (at[block] < programs[block].steps)
      return false;
  return true;
}

TEST(Polling, RandomProgramsDeadlockWhenTheModelDoes) {
  int ends = 0, deadlocks = 0;
  for (uint64_t number = 0; number < 4000; ++number) {
    Random random(number);
    const auto blocks = static_cast<uint32_t>(1 + random.below(5));
    const auto threads = static_cast<uint32_t>(random.below(3) == 0 ? 33 : 1);
    std::vector<Program> programs(blocks);
    for (Program &program : programs) {
      program.steps = static_cast<uint32_t>(1 + random.below(8));
      for (uint32_t i = 0; i < program.steps; ++i) {
        const auto kind = random.below(3) ? random.below(8) : uint64_t(Step::Raise);
        program.list[i] = {static_cast<Step::Kind>(kind), static_cast<uint32_t>(random.below(8)),
                           static_cast<uint32_t>(random.below(8))};
      }
    }
    MachineOptions options;
    options.seed = number % 7;
    options.timeLimitSeconds = 20;
    auto machine = makeMachine(options);
    auto *words = makeBuffer<uint32_t>(*machine, 0, 16, "words");
    const Status status = runOnce(*machine, kernel("random", runProgram, {blocks, 1, 1}, threads, 64, words,
                                                   static_cast<const Program *>(programs.data())));
    const bool shouldEnd = modelEnds(programs);
    ++(shouldEnd ? ends : deadlocks);
    ASSERT_EQ(status.code(), shouldEnd ? StatusCode::Ok : StatusCode::Deadlock) << number << ": " << status.message();
  }
  EXPECT_GT(ends, 500);
  EXPECT_GT(deadlocks, 500);
}

/// Words that nobody sleeps on are not taken for such: which ones would be is chance, of where memory lies, and so would be what threads do.
TEST(WatchTable, KnowsExactlyWhatIsWatched) {
  std::vector<uint64_t> words(8192); // more than the filter has places
  WatchTable table;
  Waiter waiter;
  waiter.address = &words[5];
  waiter.bytes = 4;
  table.add(waiter);
  for (size_t i = 0; i < words.size(); ++i)
    EXPECT_EQ(table.isWatched(&words[i], 8), i == 5) << i;
  EXPECT_TRUE(table.isWatched(&words[4], 16));
  table.remove(waiter);
  EXPECT_FALSE(table.isWatched(&words[5], 8));
}

/// Of two words of 2 bytes that lie together one has been written.
TEST(WriterTable, KnowsWordsApart) {
  const uint16_t words[4] = {};
  WriterTable table;
  table.record(&words[1], Writer{.kind = Writer::Kind::Kernel, .rank = 3});
  ASSERT_NE(table.find(&words[1]), nullptr);
  EXPECT_EQ(table.find(&words[1])->rank, 3u);
  EXPECT_EQ(table.find(&words[0]), nullptr);
  EXPECT_EQ(table.find(&words[2]), nullptr);
}

} // namespace
} // namespace ditron::sim
