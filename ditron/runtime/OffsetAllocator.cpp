//===- OffsetAllocator.cpp - A free list over a range of offsets --------------------------------------------------===//
//
// Two ordered maps. The number of live pieces is small (buffers, not tensors of a framework), so first fit is quick.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/OffsetAllocator.h"

#include <algorithm>

namespace ditron::runtime {

OffsetAllocator::OffsetAllocator(uint64_t capacity, uint64_t granule) : capacityValue(capacity), granule(granule) {
  if (capacity)
    gaps.emplace(0, capacity);
}

std::optional<uint64_t> OffsetAllocator::allocate(uint64_t bytes) {
  if (bytes > capacityValue)
    return std::nullopt;
  const uint64_t rounded = std::max(granule, (bytes + granule - 1) & ~(granule - 1));
  const auto gap = std::find_if(gaps.begin(), gaps.end(), [&](const auto &entry) { return entry.second >= rounded; });
  if (gap == gaps.end())
    return std::nullopt;
  const auto [offset, size] = *gap;
  gaps.erase(gap);
  if (size > rounded)
    gaps.emplace(offset + rounded, size - rounded);
  pieces.emplace(offset, rounded);
  usedValue += rounded;
  return offset;
}

bool OffsetAllocator::free(uint64_t offset) {
  const auto piece = pieces.find(offset);
  if (piece == pieces.end())
    return false;
  uint64_t begin = offset, size = piece->second;
  usedValue -= size;
  pieces.erase(piece);
  auto next = gaps.lower_bound(begin);
  if (next != gaps.end() && next->first == begin + size) {
    size += next->second;
    next = gaps.erase(next);
  }
  if (next != gaps.begin())
    if (const auto previous = std::prev(next); previous->first + previous->second == begin) {
      begin = previous->first;
      size += previous->second;
      gaps.erase(previous);
    }
  gaps.emplace(begin, size);
  return true;
}

uint64_t OffsetAllocator::largestGap() const {
  uint64_t largest = 0;
  for (const auto &[offset, size] : gaps)
    largest = std::max(largest, size);
  return largest;
}

} // namespace ditron::runtime
