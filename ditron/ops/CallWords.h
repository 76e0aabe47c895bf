//===- CallWords.h - The words that synchronise the calls of an operator ------------------------------------*- C++ -*-===//
//
// Every operator that writes into its peers' memory begins a call in the same way (docs/memory-model.md): advance the
// generation on the device, close the gates and clear the counters of this rank, and meet the other ranks, so that all of
// them have finished the previous call. CallWords owns the words and says what that beginning launches.
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

  /// Allocates the words on all ranks. `name` begins their names in reports; `segments` counters and gates per rank.
  static Expected<CallWords> create(runtime::World &world, std::string_view name, uint32_t segments);

  /// What a call copies inside this rank's memory when it begins; the source is the kernel's parameter `shard_ptr`.
  struct OwnCopy {
    runtime::Pointer destination, source;
    int64_t elements = 0;
  };
  /// The beginning of a call: after it, the generation word holds the call's number on every rank, and so do `count` signals of
  /// this rank from `raised` on, which stand for what is there without a peer's doing.
  KernelCall enter(const runtime::Rank &rank, runtime::Pointer raised, uint32_t count, const OwnCopy &copy) const;
  KernelCall enter(const runtime::Rank &rank) const;

  /// The rank's number of the current call: i64, device memory, advanced by `enter`.
  runtime::Pointer generation(uint32_t rank) const { return ranks[rank].generation.pointer(); }
  /// i32 counters and i64 gates, one per segment.
  runtime::Pointer counters(uint32_t rank) const { return ranks[rank].counters.pointer(); }
  runtime::Pointer gates(uint32_t rank) const { return ranks[rank].gates.pointer(); }

private:
  struct PerRank {
    runtime::Buffer generation, counters, gates;
  };
  std::vector<PerRank> ranks;
  runtime::SymmetricBuffer entered;
  uint32_t segmentCount = 0;
};

} // namespace ditron::ops
#endif // DITRON_OPS_CALLWORDS_H
