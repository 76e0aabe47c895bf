//===- RandomRace_test.cpp - Random programs against plain vector clocks ------------------------------------------===//
//
// Straight programs of threads that read and write two tiles, meet at barriers, and raise and await flags. A program is drawn step by
// step in an order that it can run in, beside a vector clock for each thread and the past of each byte, which say whether the next step
// races; mostly such a step is not taken. The detector has to come to the same, in whatever order the simulator runs the threads.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/test/Harness.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace ditron::sim {
namespace {

constexpr uint32_t blocks = 3, warps = 2, lanes = 4, threads = blocks * warps * lanes; // of 32 lanes these act
constexpr uint32_t tiles = 2, tileBytes = 64, mostSteps = 120;

enum class Do { Read, Write, Raise, Await, WarpBarrier, BlockBarrier, NextKernel };

struct Step {
  Do what;
  uint32_t thread = 0;        ///< Or one of the warp or block that meets.
  uint32_t at = 0, bytes = 0; ///< Or the flag.
  DitronSimSite site = {};
};

//===- What races, by the book ------------------------------------------------------------------------------------===//

using Clock = std::array<uint32_t, threads>;

struct Judge {
  struct Byte {
    int writer = -1;
    uint32_t written = 0;
    std::map<uint32_t, uint32_t> reads; ///< When each thread has read last.
  };
  Clock clocks[threads];
  Byte memory[tiles * tileBytes];
  std::vector<Clock> flags;

  Judge() {
    for (uint32_t thread = 0; thread < threads; ++thread) {
      clocks[thread].fill(0);
      clocks[thread][thread] = 1;
    }
  }
  bool races(const Step &step) const {
    const Clock &known = clocks[step.thread];
    for (uint32_t i = step.at; i < step.at + step.bytes; ++i) {
      const Byte &byte = memory[i];
      if (byte.writer >= 0 && known[static_cast<uint32_t>(byte.writer)] < byte.written)
        return true;
      if (step.what == Do::Write)
        for (auto [reader, time] : byte.reads)
          if (known[reader] < time)
            return true;
    }
    return false;
  }
  void access(const Step &step) {
    const uint32_t now = clocks[step.thread][step.thread];
    for (uint32_t i = step.at; i < step.at + step.bytes; ++i)
      if (step.what == Do::Write)
        memory[i] = {static_cast<int>(step.thread), now, {}};
      else
        memory[i].reads[step.thread] = now;
  }
  void learn(uint32_t thread, const Clock &what) {
    for (uint32_t i = 0; i < threads; ++i)
      clocks[thread][i] = std::max(clocks[thread][i], what[i]);
  }
  void raise(uint32_t thread) {
    flags.push_back(clocks[thread]);
    ++clocks[thread][thread];
  }
  /// Of `count` threads, among them this one.
  void meet(uint32_t thread, uint32_t count) {
    const uint32_t first = thread / count * count;
    Clock all = {};
    for (uint32_t i = first; i < first + count; ++i)
      for (uint32_t k = 0; k < threads; ++k)
        all[k] = std::max(all[k], clocks[i][k]);
    for (uint32_t i = first; i < first + count; ++i) {
      clocks[i] = all;
      ++clocks[i][i];
    }
  }
};

//===- Programs ---------------------------------------------------------------------------------------------------===//

struct Program {
  std::vector<Step> steps;
  bool races = false;
};

class Author {
public:
  explicit Author(uint32_t seed) : random(seed) {}

  Program write() {
    while (program.steps.size() < mostSteps && !program.races)
      writeStep();
    return std::move(program);
  }

private:
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random() % limit); }
  void add(Step step) {
    step.site = {"kernel.py", static_cast<uint32_t>(program.steps.size() + 1), 1};
    program.steps.push_back(step);
  }
  void access(const Step &step) {
    const bool races = judge.races(step);
    if (program.races || (races && below(200) != 0))
      return;
    program.races = races;
    judge.access(step);
    add(step);
  }
  void raise(uint32_t thread) {
    add({Do::Raise, thread, static_cast<uint32_t>(judge.flags.size())});
    judge.raise(thread);
  }
  void await(uint32_t thread, uint32_t flag) {
    add({Do::Await, thread, flag});
    judge.learn(thread, judge.flags[flag]);
  }
  void writeStep() {
    const uint32_t thread = below(threads), kind = below(100);
    const Do what = kind % 3 == 0 ? Do::Write : Do::Read;
    if (kind < 40) { // a tile by the lanes of a warp
      const uint32_t tile = below(tiles) * tileBytes, shift = below(2) * below(lanes);
      for (uint32_t lane = 0; lane < lanes; ++lane)
        access({what, thread / lanes * lanes + lane, tile + (lane + shift) % lanes * 16, 16});
    } else if (kind < 45) { // some bytes by several of them
      const uint32_t bytes = 1u << below(5), at = below(tiles * tileBytes / bytes) * bytes;
      for (uint32_t lane = below(lanes); lane < lanes; ++lane)
        access({Do::Read, thread / lanes * lanes + lane, at, bytes});
    } else if (kind < 65) {
      const uint32_t bytes = 1u << below(5);
      access({what, thread, below(tiles * tileBytes / bytes) * bytes, bytes});
    } else if (kind < 70) { // of a warp's lanes, by somebody else
      const uint32_t first = static_cast<uint32_t>(judge.flags.size()), warp = below(threads) / lanes;
      for (uint32_t lane = 0; lane < lanes; ++lane)
        raise(warp * lanes + lane);
      for (uint32_t flag = first; flag < first + lanes; ++flag)
        await(thread, flag);
    } else if (kind < 82) {
      raise(thread);
    } else if (kind < 93) {
      if (!judge.flags.empty())
        await(thread, below(static_cast<uint32_t>(judge.flags.size())));
    } else if (kind < 96) {
      add({Do::WarpBarrier, thread});
      judge.meet(thread, lanes);
    } else if (kind < 99) {
      add({Do::BlockBarrier, thread});
      judge.meet(thread, warps * lanes);
    } else {
      add({Do::NextKernel});
      judge.meet(0, threads);
    }
  }

  std::mt19937 random;
  Program program;
  Judge judge;
};

/// The steps of a kernel, each by those whom it is about.
void run(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto *program = argument<const Program *>(arguments, 0);
  auto *memory = argument<char *>(arguments, 1);
  auto *flags = argument<uint64_t *>(arguments, 2);
  const uint32_t warp = self->blockId[0] * warps + self->warpId;
  for (uint32_t i = argument<uint32_t>(arguments, 3); i < argument<uint32_t>(arguments, 4); ++i) {
    const Step &step = program->steps[i];
    const bool isMine = self->laneId < lanes && step.thread == warp * lanes + self->laneId;
    if (step.what == Do::BlockBarrier && step.thread / lanes / warps == self->blockId[0])
      ditron_sim_barrier(self, &step.site);
    if (step.what == Do::WarpBarrier && step.thread / lanes == warp)
      ditron_sim_warp_barrier(self, &step.site);
    if (isMine && step.what == Do::Raise)
      ditron_sim_st(self, flags + step.at, 1, 8, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_GPU, &step.site);
    if (isMine && step.what == Do::Await)
      ditron_sim_wait_until(self, flags + step.at, 8, DITRON_SIM_EQ, 1, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_GPU,
                            &step.site);
    if (isMine && step.what <= Do::Write) {
      ditron_sim_access(self, memory + step.at, step.bytes, 1,
                        step.what == Do::Write ? DITRON_SIM_STORE : DITRON_SIM_LOAD, DITRON_SIM_GLOBAL, &step.site);
      if (step.what == Do::Write)
        std::memset(memory + step.at, static_cast<int>(i + 1), step.bytes); // as nobody else
    }
  }
}

Status runProgram(const Program &program, uint32_t seed) {
  MachineOptions options;
  options.detectRaces = true;
  options.seed = seed;
  auto machine = makeMachine(options);
  auto *memory = makeBuffer<char>(*machine, 0, tiles * tileBytes, "memory");
  auto *flags = makeBuffer<uint64_t>(*machine, 0, mostSteps + 2 * lanes, "flags");
  DITRON_RETURN_IF_ERROR(machine->hostAccess(memory, tiles * tileBytes, true));
  const StreamId stream = makeStream(*machine, 0);
  const auto count = static_cast<uint32_t>(program.steps.size());
  for (uint32_t from = 0, to = 0; from < count; from = to + 1) {
    for (to = from; to < count && program.steps[to].what != Do::NextKernel;)
      ++to;
    DITRON_RETURN_IF_ERROR(machine->launch(
        stream, kernel("random", run, {blocks, 1, 1}, 32 * warps, 0, &program, memory, flags, from, to)));
  }
  return machine->synchronize();
}

std::string textOf(const Program &program) {
  std::string text;
  for (const Step &step : program.steps) {
    static const char *const names[] = {"read",         "write",         "raise",      "await",
                                        "warp barrier", "block barrier", "next kernel"};
    text += "\n" + std::to_string(step.site.line) + ": thread " + std::to_string(step.thread) + " " +
            names[static_cast<int>(step.what)] + " " + std::to_string(step.at) + " +" + std::to_string(step.bytes);
  }
  return text;
}

TEST(RandomRace, IsFoundWhereVectorClocksFindIt) {
  constexpr uint32_t count = 3000;
  uint32_t racing = 0;
  for (uint32_t seed = 0; seed < count; ++seed) {
    const Program program = Author(seed).write();
    const Status status = runProgram(program, seed);
    ASSERT_EQ(status.code(), program.races ? StatusCode::DataRace : StatusCode::Ok)
        << "seed " << seed << ": " << status.message() << textOf(program);
    racing += program.races;
  }
  EXPECT_GT(racing, count / 5);
  EXPECT_LT(racing, count * 4 / 5);
}

} // namespace
} // namespace ditron::sim
