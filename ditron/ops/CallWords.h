//===- CallWords.h - The words that synchronise the calls of an operator ------------------------------------*- C++ -*-===//
//
// Every operator that writes into its peers' memory begins a call in the same way (docs/memory-model.md): advance the
// generation on the device, close the gates and clear the counters of this rank, and meet the other ranks, so that all of
// them have finished the previous call. CallWords owns the words and says what that beginning launches.
//
// Where there are several nodes a rank meets those of its own and those with its place on the others, and no others write to it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_CALLWORDS_H
#define DITRON_OPS_CALLWORDS_H

#include "ditron/ops/KernelLaunch.h"
#include "ditron/runtime/World.h"

#include <vector>

namespace ditron::ops {

class CallWords {
public:
  CallWords() = default;

  /// The most segments and gates that a rank may have.
  static uint32_t mostSegments(runtime::World &world);
  /// The most chunks of the rows of a call that have a segment for each rank.
  static uint32_t mostChunks(runtime::World &world);
  /// Refuses more.
  static Status verifyChunks(runtime::World &world, std::string_view operation, uint32_t chunks);
  /// Allocates the words on all ranks. `name` begins their names in reports; `segments` counters and gates per rank; `arrivals` gates
  /// that other ranks open.
  static Expected<CallWords> create(runtime::World &world, std::string_view name, uint32_t segments,
                                    uint32_t arrivals = 0);

  /// What a call copies inside this rank's memory when it begins; the source is the kernel's parameter `shard_ptr`, that of the scales
  /// `shard_scale_ptr`.
  /// Where there are several nodes, `sentElements` from the destination on are also put to the same place on the ranks of the others
  /// that have this one's place, in `count` chunks (below).
  struct OwnCopy {
    runtime::Pointer destination, source;
    int64_t rows = 0, columns = 0;
    int64_t destinationStride = 0, sourceStride = 0; ///< Elements from row to row.
    /// Scales of as many rows, `scaleStride` apart at the destination; null: none. The source has one for all, or one for each.
    runtime::Pointer scaleDestination = {}, scaleSource = {};
    int64_t scales = 0, scaleStride = 1;
    bool hasScaleOfEach = false;
    int64_t sentElements = 0, elementsPerChunk = 0;
  };
  /// The beginning of a call: after it, the generation word holds the call's number on every rank, and so do `count` signals of
  /// this rank from `raised` on, which stand for what is there without a peer's doing. Behind chunk c that comes from node n the
  /// signal at the same place as raised + c is raised, and then gate n * count + c of `arrivals` opened.
  KernelCall enter(const runtime::Rank &rank, runtime::Pointer raised, uint32_t count, const OwnCopy &copy) const;
  KernelCall enter(const runtime::Rank &rank) const;

  /// The rank's number of the current call: i64, device memory, advanced by `enter`.
  runtime::Pointer generation(uint32_t rank) const { return ranks[rank].generation.pointer(); }
  /// i32 counters and i64 gates, one per segment.
  runtime::Pointer counters(uint32_t rank) const { return ranks[rank].counters.pointer(); }
  runtime::Pointer gates(uint32_t rank) const { return ranks[rank].gates.pointer(); }
  /// i64 gates in the symmetric heap, closed by `enter` before it meets the others: what opens them comes after that meeting, and a stream
  /// must have waited for each that is opened when the call ends.
  runtime::Pointer arrivals(uint32_t rank) const { return arrivalGates.on(rank); }

private:
  struct PerRank {
    runtime::Buffer generation, counters, gates;
    runtime::Buffer finished; ///< i32: programs of `enter` that have ended; several nodes only.
  };
  std::vector<PerRank> ranks;
  runtime::SymmetricBuffer entered;
  runtime::SymmetricBuffer arrivalGates;
  uint32_t segmentCount = 0, arrivalCount = 0;
  uint32_t nodeSize = 0; ///< 0: one node.
};

} // namespace ditron::ops
#endif // DITRON_OPS_CALLWORDS_H
