//===- Determinism_test.cpp - Seeds, slow ranks, traces -----------------------------------------------------------===//

#include "ditron/sim/test/Harness.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <set>

namespace ditron::sim {
namespace {

using testing::HasSubstr;

struct Outcome {
  std::string trace;
  std::vector<uint64_t> order, sums;
  SimTime end = 0;
  std::vector<SimTime> rankEnds;
};

// Blocks of all ranks take tickets from a counter on rank 0 (their order is the interleaving), compute, and notify rank
// 0, where a kernel waits for each rank in turn.
void workerKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *tickets = argument<uint64_t *>(arguments, 0), *signals = argument<uint64_t *>(arguments, 1);
  auto rank = argument<uint64_t>(arguments, 2);
  auto *scratch = argument<uint64_t *>(arguments, 3);
  for (int i = 0; i < 16; ++i) {
    uint64_t *word = scratch + (self->blockId[0] * 64 + self->threadId);
    ditron_sim_access(self, word, 8, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(10));
    *word += i;
    ditron_sim_barrier(self, AT(11));
  }
  if (self->threadId == 0) {
    uint64_t ticket = ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, tickets, 1, 1, DITRON_SIM_RELAXED,
                                            DITRON_SIM_SCOPE_SYSTEM, AT(12));
    ditron_sim_st(self, tickets + 1 + ticket, rank * 100 + self->blockId[0], 8, DITRON_SIM_RELAXED,
                  DITRON_SIM_SCOPE_SYSTEM, AT(13));
    ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, signals + rank, 1, 1, DITRON_SIM_RELEASE,
                          DITRON_SIM_SCOPE_SYSTEM, AT(14));
  }
}

void collectKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  for (int rank = 0; rank < 4; ++rank)
    ditron_sim_wait_until(self, argument<uint64_t *>(arguments, 0) + rank, 8, DITRON_SIM_GE, 12, DITRON_SIM_ACQUIRE,
                          DITRON_SIM_SCOPE_SYSTEM, AT(15));
}

Outcome runWorkers(MachineOptions options) {
  options.ranks = 4;
  options.recordTrace = true;
  auto machine = makeMachine(options);
  auto *tickets = makeBuffer<uint64_t>(*machine, 0, 49, "tickets", MemoryKind::Symmetric);
  auto *signals = makeBuffer<uint64_t>(*machine, 0, 4, "signals", MemoryKind::Symmetric);
  std::vector<uint64_t *> scratch;
  EXPECT_OK(
      machine->launch(makeStream(*machine, 0, "collect"), kernel("collect", collectKernel, {1, 1, 1}, 1, 0, signals)));
  for (uint32_t r = 0; r < 4; ++r) {
    scratch.push_back(makeBuffer<uint64_t>(*machine, r, 12 * 64, "scratch"));
    EXPECT_OK(machine->launch(makeStream(*machine, r), kernel("worker", workerKernel, {12, 1, 1}, 64, 0, tickets,
                                                              signals, uint64_t(r), scratch[r])));
  }
  EXPECT_OK(machine->synchronize());
  Outcome outcome{machine->chromeTrace(), {tickets + 1, tickets + 49}, {}, machine->now(), std::vector<SimTime>(4)};
  for (uint64_t *data : scratch)
    outcome.sums.insert(outcome.sums.end(), data, data + 12 * 64);
  for (const LaunchRecord &launch : machine->launches())
    if (launch.name == "worker")
      outcome.rankEnds[launch.rank] = launch.end - launch.start;
  return outcome;
}

TEST(Determinism, ASeedNamesARun) {
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    MachineOptions options;
    options.seed = seed;
    Outcome first = runWorkers(options), second = runWorkers(options);
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.order, second.order);
    EXPECT_EQ(first.end, second.end);
    std::multiset<uint64_t> all(first.order.begin(), first.order.end());
    EXPECT_EQ(all.size(), 48u);
    EXPECT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), 48u);
    orders.insert(first.order);
    for (uint64_t sum : first.sums)
      ASSERT_EQ(sum, 120u);
  }
  EXPECT_GT(orders.size(), 4u); // other seeds, other interleavings
}

TEST(Determinism, PreemptionAtBarriersChangesNoResult) {
  MachineOptions options;
  options.schedule = Schedule{.seed = options.seed, .stopsAtBarriers = true};
  EXPECT_EQ(runWorkers(options).sums, runWorkers({}).sums);
}

TEST(SlowRank, ChangesTimesAndNotResults) {
  MachineOptions options;
  Outcome normal = runWorkers(options);
  options.slowRanks[2] = 8;
  Outcome slow = runWorkers(options);
  EXPECT_EQ(normal.sums, slow.sums);
  EXPECT_GT(slow.rankEnds[2], normal.rankEnds[2] * 4);
  EXPECT_LT(slow.rankEnds[1], normal.rankEnds[1] * 2);
  EXPECT_GT(slow.end, normal.end);
  // The slow rank's blocks took the last tickets.
  EXPECT_EQ(slow.order.back() / 100, 2u);
}

TEST(Trace, IsJsonWithNamedTracksSpansAndArrows) {
  Outcome outcome = runWorkers({});
  nlohmann::json trace = nlohmann::json::parse(outcome.trace);
  std::set<std::string> threads;
  std::map<int, nlohmann::json> starts;
  int blocks = 0, waits = 0, ends = 0;
  for (const nlohmann::json &event : trace["traceEvents"]) {
    std::string phase = event["ph"];
    if (phase == "M" && event["name"] == "thread_name")
      threads.insert(event["args"]["name"]);
    if (phase == "X") {
      EXPECT_GE(event["dur"].get<double>(), 0);
      blocks += event["cat"] == "block";
      waits += event["cat"] == "wait";
      if (event["cat"] == "wait")
        EXPECT_THAT(event["name"].get<std::string>(), HasSubstr("wait signals["));
    }
    if (phase == "s")
      starts[event["id"]] = event;
    if (phase == "f") {
      ++ends;
      ASSERT_TRUE(starts.count(event["id"]));
      EXPECT_LE(starts[event["id"]]["ts"].get<double>(), event["ts"].get<double>());
    }
  }
  EXPECT_EQ(blocks, 4 * 12 + 1);
  EXPECT_GE(waits, 1);
  EXPECT_GE(ends, 1);
  EXPECT_TRUE(threads.count("SM 0") && threads.count("copy engine 1") && threads.count("stream collect"));
}

TEST(Trace, IsWrittenToAFile) {
  MachineOptions options;
  options.recordTrace = true;
  auto machine = makeMachine(options);
  std::string path = testing::TempDir() + "/ditron-sim-trace.json";
  ASSERT_OK(machine->writeChromeTrace(path));
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, machine->chromeTrace());
  EXPECT_THAT(machine->writeChromeTrace("/nonexistent/trace.json").message(),
              HasSubstr("trace: cannot write '/nonexistent/trace.json': No such file"));
}

TEST(Timeline, RecordsBlocksInLinearOrder) {
  MachineOptions options;
  options.recordTrace = true;
  auto machine = makeMachine(options);
  auto entry = [](void **) {};
  ASSERT_OK(runOnce(*machine, kernel("empty", entry, {5, 4, 1}, 32, 0)));
  ASSERT_EQ(machine->launches().size(), 1u);
  const LaunchRecord &launch = machine->launches()[0];
  ASSERT_EQ(launch.blocks.size(), 20u);
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(launch.blocks[i].block, (std::array<uint32_t, 3>{i % 5, i / 5, 0}));
    EXPECT_LE(launch.start, launch.blocks[i].start);
    EXPECT_LE(launch.blocks[i].end, launch.end);
    EXPECT_LT(launch.blocks[i].smSlot, 8u);
  }
  // At most eight at a time.
  for (const BlockRecord &block : launch.blocks) {
    int together = 0;
    for (const BlockRecord &other : launch.blocks)
      together += other.start <= block.start && block.start < other.end;
    EXPECT_LE(together, 8);
  }
  machine->clearTrace();
  EXPECT_TRUE(machine->launches().empty());
}

} // namespace
} // namespace ditron::sim
