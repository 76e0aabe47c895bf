//===- Simulation_test.cpp - Events, signals and shared bandwidth ---------------------------------------------------===//
#include "ditron/predict/Fleet.h"

#include <gmock/gmock.h>

namespace ditron::predict {
namespace {

TEST(Simulation, EventsHappenInOrderOfTimeThenOfAsking) {
  Simulation simulation;
  std::string order;
  simulation.after(2, [&] { order += "c"; });
  simulation.after(1, [&] {
    order += "a";
    simulation.after(0, [&] { order += "b"; });
  });
  simulation.after(2, [&] { order += "d"; });
  ASSERT_TRUE(simulation.run().isOk());
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(simulation.now(), 2);
}

TEST(Simulation, TransfersShareAPipe) {
  Simulation simulation;
  const PipeId pipe[] = {simulation.addPipe(100)};
  Time first = 0, second = 0;
  // Both at 50 until the first is done at 20; then the second has 1000 bytes left at 100.
  simulation.transfer(1000, pipe, [&] { first = simulation.now(); });
  simulation.transfer(2000, pipe, [&] { second = simulation.now(); });
  ASSERT_TRUE(simulation.run().isOk());
  EXPECT_NEAR(first, 20, 1e-6);
  EXPECT_NEAR(second, 30, 1e-6);
}

TEST(Simulation, WhatATransferCannotUseGoesToTheOthers) {
  Simulation simulation;
  const PipeId wide = simulation.addPipe(100), narrow = simulation.addPipe(20);
  const PipeId both[] = {wide, narrow}, one[] = {wide};
  Time held = 0, free = 0;
  simulation.transfer(200, both, [&] { held = simulation.now(); });
  simulation.transfer(800, one, [&] { free = simulation.now(); });
  ASSERT_TRUE(simulation.run().isOk());
  EXPECT_NEAR(held, 10, 1e-6); // at 20
  EXPECT_NEAR(free, 10, 1e-6); // at 80
}

TEST(Simulation, LateTransfersSlowEarlierOnes) {
  Simulation simulation;
  const PipeId pipe[] = {simulation.addPipe(100)};
  Time first = 0;
  simulation.transfer(1000, pipe, [&] { first = simulation.now(); });
  simulation.after(5, [&] { simulation.transfer(1000, pipe, [] {}); });
  ASSERT_TRUE(simulation.run().isOk());
  EXPECT_NEAR(first, 15, 1e-6); // 500 bytes alone, 500 at half the rate
  EXPECT_NEAR(simulation.now(), 20, 1e-6);
}

TEST(Simulation, SignalsWakeThoseWhoseCountIsReached) {
  Simulation simulation;
  const SignalId signal = simulation.addSignal("ready[0]");
  Time one = -1, two = -1;
  simulation.when(signal, 1, [&] { one = simulation.now(); });
  simulation.when(signal, 2, [&] { two = simulation.now(); });
  simulation.after(3, [&] { simulation.raise(signal); });
  simulation.after(7, [&] { simulation.raise(signal); });
  ASSERT_TRUE(simulation.run().isOk());
  EXPECT_EQ(one, 3);
  EXPECT_EQ(two, 7);
}

TEST(Simulation, AWaitThatNeverEndsIsAnError) {
  Simulation simulation;
  simulation.when(simulation.addSignal("ready[3] of rank 1"), 2, [] {});
  EXPECT_THAT(simulation.run().message(), testing::HasSubstr("ready[3] of rank 1 stands at 0 and never reaches 2"));
}

class FleetTest : public testing::Test {
protected:
  MachineDescription machine = *readMachine("h200x8");
};

TEST_F(FleetTest, BlocksTakeTilesInTurnAndShareSms) {
  machine.gpu.smCount = 2;
  Fleet fleet(machine, {});
  Stream &stream = fleet.addStream(0, "main");
  std::vector<std::pair<uint64_t, Time>> done;
  // Three blocks on two SMs: block 2 waits until a block has done all its tiles.
  stream.launch({"k", 3, 5, [&](uint64_t tile) {
                   return Tile{{}, 10, [&, tile] { done.emplace_back(tile, fleet.simulation.now()); }};
                 }});
  ASSERT_TRUE(fleet.simulation.run().isOk());
  const Time launch = machine.gpu.kernelLaunchUs;
  using testing::Pair;
  EXPECT_THAT(done, testing::ElementsAre(Pair(0, launch + 10), Pair(1, launch + 10), Pair(3, launch + 20),
                                         Pair(4, launch + 20), Pair(2, launch + 30)));
}

TEST_F(FleetTest, TilesSlowDownWhileCopiesRun) {
  machine.gpu.slowdownUnderCopies = 0.5;
  Fleet fleet(machine, {.gpus = 2});
  fleet.transfer(0, 1, 1e9, Mover::CopyEngine, [] {});
  Time done = 0;
  fleet.run(0, {"k", 1, 1, [](uint64_t) { return Tile{{}, 10, {}}; }}, [&] { done = fleet.simulation.now(); });
  ASSERT_TRUE(fleet.simulation.run().isOk());
  EXPECT_NEAR(done, 15, 1e-9);
}

TEST_F(FleetTest, RepresentativesSeeTheOppositeDistance) {
  MachineDescription cluster = *readMachine("h200-cluster");
  Fleet fleet(cluster, {.gpus = 32, .usesRepresentatives = true});
  const Fleet::Seen seen = fleet.seenBy(1, 26); // (0, 1) to (3, 2)
  EXPECT_EQ(seen.owner, 2u);
  EXPECT_EQ(seen.source, 9u); // (1, 1)
  EXPECT_EQ(fleet.simulatedRanks(), 8u);
}

TEST_F(FleetTest, CopiesBetweenNumaDomainsShareTheWay) {
  const MachineDescription pcie = *readMachine("l20x8");
  auto timeOf = [&](std::vector<std::pair<uint32_t, uint32_t>> copies) {
    Fleet fleet(pcie, {.gpus = 8});
    for (auto [from, to] : copies)
      fleet.transfer(from, to, 1e6, Mover::CopyEngine, [] {});
    EXPECT_TRUE(fleet.simulation.run().isOk());
    return fleet.simulation.now();
  };
  EXPECT_NEAR(timeOf({{0, 1}, {2, 3}}), timeOf({{0, 1}}), 1e-6);
  EXPECT_NEAR(timeOf({{0, 4}, {1, 5}, {2, 6}, {3, 7}}), 4 * timeOf({{0, 4}}), 1e-6);
}

} // namespace
} // namespace ditron::predict
