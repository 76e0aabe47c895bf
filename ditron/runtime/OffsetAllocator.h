//===- OffsetAllocator.h - A free list over a range of offsets -----------------------------------------------*- C++ -*-===//
//
// Cuts pieces out of [0, capacity). First fit, in order of offsets, and neighbours are merged when freed: two allocators that
// have seen the same calls give the same offsets, which is what makes a symmetric heap symmetric. It only counts: the memory
// is elsewhere.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_OFFSETALLOCATOR_H
#define DITRON_RUNTIME_OFFSETALLOCATOR_H

#include <cstdint>
#include <map>
#include <optional>

namespace ditron::runtime {

class OffsetAllocator {
public:
  /// `granule`: every piece begins at a multiple of it; a power of two.
  explicit OffsetAllocator(uint64_t capacity, uint64_t granule = 512);

  /// The offset of a new piece, or nothing when no gap is large enough.
  std::optional<uint64_t> allocate(uint64_t bytes);
  /// Gives a piece back; false when no piece begins there.
  bool free(uint64_t offset);

  uint64_t capacity() const { return capacityValue; }
  uint64_t usedBytes() const { return usedValue; }
  /// The largest piece that allocate would give now.
  uint64_t largestGap() const;

private:
  uint64_t capacityValue, granule, usedValue = 0;
  std::map<uint64_t, uint64_t> gaps;   ///< Offset -> bytes; never adjacent.
  std::map<uint64_t, uint64_t> pieces; ///< Offset -> bytes, rounded up.
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_OFFSETALLOCATOR_H
