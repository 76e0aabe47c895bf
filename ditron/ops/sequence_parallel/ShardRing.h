//===- ShardRing.h - Shards of all ranks go round them ------------------------------------------------------------*- C++ -*-===//
//
// Each rank has a shard, and works with those of all ranks one after the other, while the next one arrives: memory for a few shards instead of all.
//
// A rank is place p of node n, of L places and N nodes. Step (j, i), j < N, i < L, is with the shard of place p + i of node n + j (both in a circle): on a
// node shards go from each place to the one below, and at the beginning of each round of a node every rank puts the shard that it has to the rank with its
// place on the node below, for the next round. So the network carries a shard to a node once, and has a whole round's time. Two nodes of two ranks, shards
// by their ranks:
//
//     step      (0, 0)  (0, 1)  (1, 0)  (1, 1)
//     rank 0       0       1       2       3          rank 0 gets 1 and 3 from rank 1 by a copy engine, 2 from rank 2 by a put
//     rank 3       3       2       1       0          rank 3 gets 2 and 0 from rank 2, 1 from rank 1
//
// Memory: the own shard and those from other nodes have a place each, those from the own node two places by turns. Who sends to one of the latter
// waits until what was there two shards ago has been worked with and passed on. Gates say all this (CallWords::arrivals): a shard is there, worked with, passed on; no
// kernel waits. Why none waits for ever: of all ranks the one that is least far in its steps has all that it waits for from ranks that are at least as far.
//
// There is no wait between nodes but for what arrives: what was put from or to a place in the call before was there before its receiver ended that call, and
// the call's `enter` has met the receiver.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_SHARDRING_H
#define DITRON_OPS_SEQUENCE_PARALLEL_SHARDRING_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/GemmKernels.h"
#include "ditron/runtime/CallSequence.h"

#include <span>

namespace ditron::ops {

class ShardRing {
public:
  ShardRing() = default;
  /// Memory for shards of at most so many bytes. `name` is a literal and begins the names of what reports show.
  static Expected<ShardRing> create(runtime::World &world, runtime::KernelProvider &kernels, std::string_view name,
                                    uint64_t mostBytes);

  uint32_t steps() const { return world->numRanks(); }
  /// Whose shard a rank works with in a step; in step 0 its own.
  uint32_t source(uint32_t rank, uint32_t step) const;
  /// Where that shard is, as bytes; that of step 0, its own, is put there by the rank itself, behind `enter`.
  runtime::Pointer shard(uint32_t rank, uint32_t step) const;

  /// An empty call, whose first launch begins it: behind it no rank uses memory for its previous call any more.
  Expected<runtime::CallSequence> begin(runtime::Rank &rank) const;
  /// Behind `enter` and what puts the own shard in its place, in ascending order all steps: what a rank does with its shard. The shard goes on meanwhile,
  /// or, Unfused, behind it. `bytes`: of every shard of this call. After the last step the sequence ends with join(Lane::Main).
  Status addStep(runtime::Rank &rank, uint32_t step, uint64_t bytes, Schedule schedule,
                 std::span<const PreparedCall> work, runtime::CallSequence &sequence) const;

  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return slots.bytes(); }

private:
  enum class Gate { Arrived, Attended, PassedOn };

  uint32_t places() const { return world->ranksPerNode(); }
  /// Shards that come to a rank from its node, numbered; `step` is one in which it has such a shard.
  uint32_t arrivalOf(uint32_t step) const { return step / places() * (places() - 1) + step % places() - 1; }
  bool goesOn(uint32_t step) const { return step % places() + 1 < places(); }
  /// Of Arrived a gate for each step, of the others one for each arrival.
  runtime::Pointer gate(uint32_t rank, Gate kind, uint32_t number) const {
    return words.arrivals(rank) + (static_cast<uint32_t>(kind) * steps() + number);
  }
  void waitFor(runtime::Lane lane, runtime::Pointer gate, runtime::CallSequence &sequence) const {
    sequence.signalWait(lane, gate, runtime::Compare::GreaterEqual, 1);
  }
  void passOn(uint32_t rank, uint32_t step, uint64_t bytes, runtime::CallSequence &sequence) const;
  Status sendToNode(runtime::Rank &rank, uint32_t step, uint64_t bytes, runtime::CallSequence &sequence) const;

  std::string_view name;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  CallWords words;
  runtime::SymmetricBuffer slots; ///< Of mostBytes each: one for each node, then two.
  uint64_t mostBytes = 0;
  std::vector<std::shared_ptr<runtime::SideStream>> sides; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_SHARDRING_H
