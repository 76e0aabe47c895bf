//===- AllGather_test.cpp - The machine's main job in small -------------------------------------------------------===//
//
// Eight ranks: copy engines push shards in rotated order and raise generation-valued signals; a consumer kernel per
// rank waits per tile, own shard first; twenty calls in a row with new data and no host synchronisation in between,
// several seeds, one slow rank. This is the protocol of the library's AllGather+GEMM with the arithmetic left out.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "ditron/sim/test/Harness.h"

namespace ditron::sim {
namespace {

constexpr uint32_t ranks = 8, shardWords = 32 * 1024, tilesPerShard = 4, calls = 20;
constexpr uint32_t tileWords = shardWords / tilesPerShard, threads = 32;

struct TileArguments {
  uint64_t *gathered, *signals, *done, *sums;
  uint64_t rank, generation;
};

void consumeKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto in = argument<TileArguments>(arguments, 0);
  const uint32_t owner = (in.rank + self->blockId[0] / tilesPerShard) % ranks, tile = self->blockId[0] % tilesPerShard;
  if (self->threadId == 0)
    ditron_sim_wait_until(self, in.signals + owner, 8, DITRON_SIM_GE, in.generation, DITRON_SIM_ACQUIRE,
                          DITRON_SIM_SCOPE_SYSTEM, AT(10));
  ditron_sim_barrier(self, AT(11));
  uint64_t sum = 0;
  const uint64_t *words = in.gathered + owner * shardWords + tile * tileWords;
  for (uint32_t i = self->threadId; i < tileWords; i += threads) {
    ditron_sim_access(self, words + i, 8, 1, DITRON_SIM_LOAD, DITRON_SIM_GLOBAL, AT(12));
    sum += words[i];
  }
  ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, in.sums + in.generation, sum, 1, DITRON_SIM_RELAXED,
                        DITRON_SIM_SCOPE_GPU, AT(13));
}

void runCalls(uint64_t seed, bool slow) {
  MachineOptions options;
  options.ranks = ranks;
  options.seed = seed;
  options.recordTrace = true;
  options.detectRaces = seed == 1; // it takes most of the time
  if (slow)
    options.slowRanks[seed % ranks] = 10;
  auto machine = makeMachine(options);
  uint64_t gathered = machine->allocateSymmetric(ranks * shardWords * 8, "gathered", 8).value();
  uint64_t signals = machine->allocateSymmetric(ranks * 8, "signals", 8).value();
  uint64_t done = machine->allocateSymmetric(ranks * 8, "done", 8).value();
  auto at = [&](uint32_t rank, uint64_t offset) {
    return reinterpret_cast<uint64_t *>(static_cast<char *>(machine->symmetricBase(rank)) + offset);
  };
  std::vector<uint64_t *> sums(ranks), shards(ranks);
  auto value = [](uint32_t rank, uint32_t call) { return uint64_t(call) * 100 + rank; };
  Status status = machine->runRanks([&](uint32_t rank) -> Status {
    sums[rank] = makeBuffer<uint64_t>(*machine, rank, calls + 1, "sums");
    shards[rank] = makeBuffer<uint64_t>(*machine, rank, calls * shardWords, "shards");
    for (uint32_t call = 0; call < calls; ++call)
      std::fill_n(shards[rank] + call * shardWords, shardWords, value(rank, call + 1));
    StreamId compute = makeStream(*machine, rank, "compute"), comm = makeStream(*machine, rank, "comm");
    for (uint64_t call = 1; call <= calls; ++call) {
      for (uint32_t step = 0; step < ranks; ++step) {
        uint32_t peer = (rank + ranks - step) % ranks;
        // The peer must have read the previous call's data.
        DITRON_RETURN_IF_ERROR(machine->signalWait(comm, at(rank, done) + peer, Compare::GreaterEqual, call - 1));
        DITRON_RETURN_IF_ERROR(machine->copy(comm, {.destination = at(peer, gathered) + rank * shardWords,
                                                    .source = shards[rank] + (call - 1) * shardWords,
                                                    .rowBytes = shardWords * 8,
                                                    .name = "shard"}));
        DITRON_RETURN_IF_ERROR(machine->signalWrite(comm, at(peer, signals) + rank, call));
      }
      TileArguments tile{at(rank, gathered), at(rank, signals), at(rank, done), sums[rank], rank, call};
      DITRON_RETURN_IF_ERROR(
          machine->launch(compute, kernel("consume", consumeKernel, {ranks * tilesPerShard, 1, 1}, threads, 0, tile)));
      for (uint32_t peer = 0; peer < ranks; ++peer)
        DITRON_RETURN_IF_ERROR(machine->signalWrite(compute, at(peer, done) + rank, call));
    }
    return machine->synchronizeRank(rank);
  });
  ASSERT_OK(status);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (uint32_t call = 1; call <= calls; ++call) {
      uint64_t expected = 0;
      for (uint32_t owner = 0; owner < ranks; ++owner)
        expected += value(owner, call) * shardWords;
      ASSERT_EQ(sums[rank][call], expected) << "rank " << rank << " call " << call << " seed " << seed;
    }
  // Overlap: in the first call tiles run while shards are still under way. Other seeds draw ranks that start too late for that.
  for (uint32_t rank = 0; rank < ranks && seed == 0; ++rank) {
    SimTime last = 0;
    uint32_t seen = 0;
    for (const CopyRecord &copy : machine->copies())
      if (copy.destinationRank == rank && seen++ < ranks)
        last = std::max(last, copy.end);
    uint32_t early = 0;
    for (const LaunchRecord &launch : machine->launches())
      if (launch.rank == rank) {
        for (const BlockRecord &block : launch.blocks)
          early += block.end < last;
        break;
      }
    EXPECT_GT(early, tilesPerShard) << "rank " << rank;
  }
}

TEST(AllGather, TwentyCallsInARowAreRight) {
  for (uint64_t seed = 0; seed < 3; ++seed)
    runCalls(seed, false);
}

TEST(AllGather, OneSlowRankChangesNothing) {
  for (uint64_t seed = 0; seed < 2; ++seed)
    runCalls(seed, true);
}

} // namespace
} // namespace ditron::sim
