//===- AdoptedHeap.h - Symmetric memory that another library made ------------------------------------------*- C++ -*-===//
//
// One piece of memory on every rank, all of one size, given as the table of their addresses. A world over it (World::over) publishes
// the table where other worlds publish their own heaps, so that kernels find a peer's copy by the same two instructions: an
// address, less the own heap, plus the peer's. That is why a heap is adopted and no single buffer: a table of its own per buffer
// would have every symm_at ask first which table an address belongs to.
//
// The first bytes may stay the caller's; behind them symmetric arrays are cut off as from a heap of ours.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_ADOPTEDHEAP_H
#define DITRON_RUNTIME_ADOPTEDHEAP_H

#include "ditron/runtime/OffsetAllocator.h"
#include "ditron/support/Status.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ditron::runtime {

struct AdoptedHeapOptions {
  std::vector<void *> addresses; ///< Of every rank's part, as this process and its ranks' kernels address it.
  uint64_t bytes = 0;            ///< Of a part.
  uint64_t reservedBytes = 0;    ///< At the beginning of each part: the caller's own.
  std::string name = "adopted heap";
};

class AdoptedHeap {
public:
  /// Refuses tables that cannot be one: null, unaligned or overlapping parts.
  static Expected<std::shared_ptr<AdoptedHeap>> create(AdoptedHeapOptions options, uint32_t numRanks);

  const std::vector<void *> &addresses() const { return options.addresses; }
  /// The offset of a new array in every part. The same calls give the same offsets, in every process.
  Expected<uint64_t> allocate(uint64_t bytes, std::string_view name);
  void free(uint64_t offset);

private:
  AdoptedHeap(AdoptedHeapOptions options) : options(std::move(options)), offsets(this->options.bytes) {}

  const AdoptedHeapOptions options;
  std::mutex mutex;
  OffsetAllocator offsets;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_ADOPTEDHEAP_H
