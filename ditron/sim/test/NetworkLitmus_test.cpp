//===- NetworkLitmus_test.cpp - Weak outcomes between nodes, and what nodes are ---------------------------------------===//

#include "ditron/sim/test/Harness.h"
#include "ditron/sim/test/NetworkLitmus.h"

#include <fstream>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t schedules = 1000;

class NetworkLitmus : public testing::TestWithParam<size_t> {};

TEST_P(NetworkLitmus, ShowsJustWhatOpenShmemAllows) {
  const NetworkTest &test = networkTests()[GetParam()];
  for (NetworkOrder order : networkOrders) {
    if (order == NetworkOrder::Signal && !test.hasSignalForm)
      continue;
    const bool isForbidden = test.isForbiddenBy(order);
    std::optional<uint64_t> weak;
    for (uint64_t seed = 1; seed <= schedules && !weak; ++seed) {
      const Expected<bool> seen = seesWeakOutcome(test, order, seed);
      ASSERT_TRUE(seen.isOk()) << test.name << ", " << toString(order) << ", seed " << seed << ": "
                               << seen.status().message();
      if (*seen)
        weak = seed;
    }
    if (isForbidden)
      EXPECT_FALSE(weak) << test.name << ", " << toString(order) << ": forbidden, seen with seed " << *weak;
    else
      EXPECT_TRUE(weak) << test.name << ", " << toString(order) << ": allowed, not seen";
  }
}

INSTANTIATE_TEST_SUITE_P(Tests, NetworkLitmus, testing::Range<size_t>(0, networkTests().size()));

//===- Two nodes of one rank ------------------------------------------------------------------------------------------===//

class TwoNodes : public testing::Test {
protected:
  void start(uint64_t seed = 0, bool detectRaces = true) {
    MachineOptions options;
    options.ranks = 2;
    options.ranksPerNode = 1;
    options.seed = seed;
    options.detectRaces = detectRaces;
    machine = makeMachine(options);
    ASSERT_OK(machine->allocateSymmetric(count * sizeof(uint32_t), "inbox", 4).status());
    ASSERT_OK(machine->allocateSymmetric(sizeof(uint64_t), "flag", 8).status());
    source = makeBuffer<uint32_t>(*machine, 0, count, "source");
    for (uint32_t i = 0; i < count; ++i)
      source[i] = i + 1;
  }
  /// An address in the symmetric heap as kernels of `observer` have it.
  template <typename T> T *at(uint32_t rank, uint64_t offset, uint32_t observer) {
    return reinterpret_cast<T *>(static_cast<char *>(machine->symmetricBase(rank, observer)) + offset);
  }
  uint32_t *inbox(uint32_t rank, uint32_t observer) { return at<uint32_t>(rank, 256, observer); }
  uint64_t *flag(uint32_t rank, uint32_t observer) { return at<uint64_t>(rank, flagOffset, observer); }

  static constexpr uint32_t count = 256;
  static constexpr uint64_t flagOffset = 256 + count * 4 + 256;
  std::unique_ptr<Machine> machine;
  uint32_t *source = nullptr;
};

void store(void **arguments) {
  auto *address = argument<uint32_t *>(arguments, 0);
  ditron_sim_access(ditron_sim_self(), address, 4, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(7));
  *address = 1;
}

TEST_F(TwoNodes, LoadsAndStoresStayOnTheNode) {
  for (bool isFar : {true, false}) { // the address that kernels have, and one that the host has given
    start();
    const Status status = runOnce(*machine, kernel("store", store, {1, 1, 1}, 1, 0, inbox(1, isFar ? 0 : 1) + 3));
    EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("kernel.py:7"), HasSubstr("store of 4 bytes at inbox[3] of rank 1"),
                      HasSubstr("memory of node 1, and rank 0 is on node 0"), HasSubstr("putmem_block")));
  }
}

void raise(void **arguments) {
  ditron_sim_shmem_raise(ditron_sim_self(), argument<uint64_t *>(arguments, 0), 1, 8, DITRON_SIM_SIGNAL_ADD,
                         argument<uint32_t>(arguments, 1), 1, AT(8));
}

TEST_F(TwoNodes, ARaisedWordTravelsOnlyWhenAsked) {
  start();
  const uint32_t nodes = DITRON_SIM_REACH_NODES, node = DITRON_SIM_REACH_NODE;
  EXPECT_OK(runOnce(*machine, kernel("raise", raise, {1, 1, 1}, 1, 0, flag(1, 0), nodes)));
  const Status status = runOnce(*machine, kernel("raise", raise, {1, 1, 1}, 1, 0, flag(1, 0), node));
  EXPECT_THAT(status.message(), HasSubstr("inter_node"));
}

TEST_F(TwoNodes, CopiesAndStreamSignalsStayOnTheNode) {
  start();
  const StreamId stream = makeStream(*machine, 0);
  const std::string expected = "is memory of node 1, and rank 0 is on node 0";
  EXPECT_THAT(machine->copy(stream, {inbox(1, 1), source, 64}).message(),
              AllOf(HasSubstr("destination of copy"), HasSubstr(expected)));
  EXPECT_THAT(machine->copy(stream, {source, inbox(1, 1), 64}).message(), HasSubstr(expected));
  EXPECT_THAT(machine->memset(stream, inbox(1, 1), 0, 64).message(), HasSubstr(expected));
  EXPECT_THAT(machine->signalWrite(stream, flag(1, 1), 1).message(), HasSubstr(expected));
  EXPECT_THAT(machine->signalWait(stream, flag(1, 1), Compare::Equal, 1).message(), HasSubstr(expected));
  EXPECT_OK(machine->copy(stream, {inbox(0, 0), source, 64}));
  EXPECT_OK(machine->synchronize());
}

/// PE 0 puts all of `source`; PE 1 looks at the ends until something is there.
void putAll(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *there = argument<uint32_t *>(arguments, 0);
  auto *source = argument<uint32_t *>(arguments, 1);
  if (source) {
    ditron_sim_shmem_put(self, there, source, 1024, 1, /*nonblocking=*/0, AT(20));
    return ditron_sim_shmem_order(self, DITRON_SIM_SHMEM_QUIET, AT(21));
  }
  auto *seen = argument<uint32_t *>(arguments, 2);
  ditron_sim_wait_until(self, there + 255, 4, DITRON_SIM_NE, 0, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM, AT(22));
  *seen = static_cast<uint32_t>(
      ditron_sim_ld(self, there, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM, /*spin=*/0, AT(23)));
}

TEST_F(TwoNodes, PutsArriveInPieces) {
  uint32_t torn = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    start(seed, /*detectRaces=*/false); // the reader does not wait for all
    auto *seen = makeBuffer<uint32_t>(*machine, 1, 1, "seen");
    uint32_t *none = nullptr;
    ASSERT_OK(
        machine->launch(makeStream(*machine, 0), kernel("put", putAll, {1, 1, 1}, 1, 0, inbox(1, 0), source, none)));
    ASSERT_OK(
        machine->launch(makeStream(*machine, 1), kernel("get", putAll, {1, 1, 1}, 1, 0, inbox(1, 1), none, seen)));
    ASSERT_OK(machine->synchronize());
    torn += *seen == 0;
    for (uint32_t i = 0; i < count; ++i)
      ASSERT_EQ(inbox(1, 1)[i], i + 1) << "seed " << seed;
  }
  EXPECT_GT(torn, 20u);
  EXPECT_LT(torn, 80u);
}

/// A put, and then nothing, or a quiet.
void putAndEnd(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  ditron_sim_shmem_put(self, argument<uint32_t *>(arguments, 0), argument<uint32_t *>(arguments, 1), 64, 1,
                       /*nonblocking=*/1, AT(30));
  if (argument<uint32_t>(arguments, 2))
    ditron_sim_shmem_order(self, DITRON_SIM_SHMEM_QUIET, AT(31));
}

TEST_F(TwoNodes, KernelsEndBeforeTheirPutsArriveWithoutAQuiet) {
  for (uint32_t isQuiet : {1u, 0u}) {
    start();
    const StreamId stream = makeStream(*machine, 0);
    ASSERT_OK(machine->launch(stream, kernel("put", putAndEnd, {1, 1, 1}, 1, 0, inbox(1, 0), source, isQuiet)));
    ASSERT_OK(machine->synchronize(stream));
    EXPECT_EQ(inbox(1, 1)[1], isQuiet ? 2u : 0u);
    // The next kernel writes the source.
    ASSERT_OK(machine->launch(stream, kernel("store", store, {1, 1, 1}, 1, 0, source)));
    const Status reused = machine->synchronize();
    if (isQuiet) {
      EXPECT_OK(reused);
      continue;
    }
    EXPECT_EQ(reused.code(), StatusCode::DataRace) << reused.message();
    EXPECT_THAT(reused.message(), AllOf(HasSubstr("kernel.py:30"), HasSubstr("source[0]")));
  }
}

TEST_F(TwoNodes, HostsKnowNothingOfPutsWithoutAQuiet) {
  start();
  ASSERT_OK(runOnce(*machine, kernel("put", putAndEnd, {1, 1, 1}, 1, 0, inbox(1, 0), source, 0u)));
  EXPECT_EQ(machine->hostAccess(inbox(1, 1), 64, /*isWrite=*/false).code(), StatusCode::DataRace);
}

TEST_F(TwoNodes, TheNetworkTakesItsTime) {
  start();
  ASSERT_OK(runOnce(*machine, kernel("put", putAndEnd, {1, 1, 1}, 1, 0, inbox(1, 0), source, 1u)));
  const CostModel &cost = machine->options().cost;
  EXPECT_GT(static_cast<double>(machine->now()) / 1000, 1.8 * cost.networkLatencyNs); // there, and the answer
}

TEST(Nodes, OfDifferentSizesAreRefused) {
  MachineOptions options;
  options.ranks = 6;
  options.ranksPerNode = 4;
  EXPECT_THAT(Machine::create(options).status().message(),
              HasSubstr("ranksPerNode: accepted is a divisor of the 6 ranks"));
}

/// A number of a machine description, which is written once in the file.
double described(const char *file, const std::string &key) {
  std::ifstream stream(std::string(DITRON_SOURCE_DIR "/machines/") + file);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const size_t at = text.find("\"" + key + "\": ");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + key.size() + 4, nullptr);
}

TEST(Nodes, NetworkIsThatOfTheMachineDescription) {
  const CostModel cost = CostModel::sm90();
  const double share = MachineOptions::sm90().smsPerRank / described("h200x8.json", "sm_count");
  const double nic = described("h200-cluster.json", "nic_gb_per_s") * described("h200-cluster.json", "nic_efficiency");
  EXPECT_NEAR(cost.networkBytesPerNs, nic * share, 0.01 * nic * share);
  EXPECT_NEAR(cost.networkLatencyNs, described("h200-cluster.json", "latency_us") * 1000, 1);
}

} // namespace
} // namespace ditron::sim
