//===- AccessTime_test.cpp - What accesses of single threads cost ---------------------------------------------------===//
#include "ditron/sim/engine/AccessTime.h"

#include "ditron/sim/test/Harness.h"

#include <algorithm>
#include <random>

namespace ditron::sim {
namespace {

const DitronSimSite *loadSite = AT(1), *storeSite = AT(2);

struct Step {
  uint32_t thread;
  const DitronSimSite *site;
  uintptr_t address;
  bool isStore = false;
};

struct Sum {
  uint64_t latencies = 0, bytes = 0;
};

Sum sumOf(uint32_t threads, const std::vector<Step> &steps) {
  AccessTime time;
  time.beginBlock(threads);
  Sum sum;
  for (const Step &step : steps) {
    const AccessTime::Cost cost = time.access(step.thread, step.site, step.address, 8, step.isStore);
    sum.latencies += cost.hasLatency;
    sum.bytes += cost.bytes;
    EXPECT_TRUE(cost.isFirst || !cost.hasLatency);
  }
  return sum;
}

TEST(AccessTime, TheThreadThatComesMostOftenDecidesInWhateverOrderTheyCome) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const uint32_t threads = 1 + random() % 64;
    std::vector<uint32_t> rounds(threads);
    std::vector<Step> steps;
    for (uint32_t thread = 0; thread < threads; ++thread) {
      rounds[thread] = random() % 9;
      for (uint32_t round = 0; round < rounds[thread]; ++round)
        steps.push_back({thread, loadSite, (thread + 1) * 256});
    }
    const uint32_t most = *std::max_element(rounds.begin(), rounds.end());
    EXPECT_EQ(sumOf(threads, steps).latencies, most) << "thread by thread";
    std::shuffle(steps.begin(), steps.end(), random);
    EXPECT_EQ(sumOf(threads, steps).latencies, most) << "mixed";
  }
}

TEST(AccessTime, StoresBehindAStoreAreUnderWayWithIt) {
  EXPECT_EQ(sumOf(1, {{0, storeSite, 0, true}, {0, storeSite, 64, true}, {0, storeSite, 128, true}}).latencies, 1u);
  EXPECT_EQ(sumOf(1, {{0, storeSite, 0, true}, {0, loadSite, 64}, {0, storeSite, 128, true}}).latencies, 3u);
}

TEST(AccessTime, WordsShareSectors) {
  // Two words each, as a packet has: one visit, and two threads share a sector.
  std::vector<Step> steps;
  for (uint32_t thread = 0; thread < 32; ++thread)
    for (uint32_t word = 0; word < 2; ++word)
      steps.push_back({thread, loadSite, 4096 + thread * 16 + word * 8});
  const Sum packets = sumOf(32, steps);
  EXPECT_EQ(packets.latencies, 1u);
  EXPECT_EQ(packets.bytes, 32u * 16);
  // The same word again is asked for again.
  const Sum polls = sumOf(1, {{0, loadSite, 64}, {0, loadSite, 64}, {0, loadSite, 64}});
  EXPECT_EQ(polls.latencies, 3u);
  EXPECT_EQ(polls.bytes, 96u);
}

TEST(AccessTime, BlocksBeginAnew) {
  AccessTime time;
  for (uint32_t threads : {4, 128, 1}) {
    time.beginBlock(threads);
    EXPECT_TRUE(time.access(threads - 1, loadSite, 64, 8, false).hasLatency);
    EXPECT_TRUE(time.visit(threads - 1, storeSite));
  }
}

} // namespace
} // namespace ditron::sim
