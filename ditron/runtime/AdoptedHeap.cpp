//===- AdoptedHeap.cpp - Symmetric memory that another library made ---------------------------------------------------===//
#include "ditron/runtime/AdoptedHeap.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::runtime {

namespace {

/// What kernels rely on addresses of arrays being multiples of.
constexpr uintptr_t alignment = 16;

Status check(const AdoptedHeapOptions &options, uint32_t numRanks) {
  if (options.addresses.size() != numRanks)
    return invalidArgument(fmt::format("{}: {} addresses for {} ranks; every rank has one part", options.name,
                                       options.addresses.size(), numRanks));
  if (options.bytes == 0 || options.reservedBytes > options.bytes)
    return invalidArgument(fmt::format("{}: {} bytes, of which {} are reserved; accepted are sizes from 1, and at most that many reserved",
                                       options.name, options.bytes, options.reservedBytes));
  for (uint32_t rank = 0; rank < numRanks; ++rank) {
    const auto begin = reinterpret_cast<uintptr_t>(options.addresses[rank]);
    if (begin == 0)
      return invalidArgument(fmt::format("{}: the address of the part of rank {} is null", options.name, rank));
    if (begin % alignment != 0)
      return invalidArgument(
          fmt::format("{}: the part of rank {} lies {} bytes behind a multiple of {}; accepted are multiples",
                      options.name, rank, begin % alignment, alignment));
    if (begin + options.bytes < begin)
      return invalidArgument(
          fmt::format("{}: the {} bytes of rank {} end beyond all addresses", options.name, options.bytes, rank));
    for (uint32_t other = 0; other < rank; ++other) {
      const auto against = reinterpret_cast<uintptr_t>(options.addresses[other]);
      if (std::max(begin, against) - std::min(begin, against) < options.bytes)
        return invalidArgument(
            fmt::format("{}: the parts of ranks {} and {} overlap: they begin {} bytes apart and have {} each",
                        options.name, other, rank, std::max(begin, against) - std::min(begin, against), options.bytes));
    }
  }
  return Status::ok();
}

} // namespace

Expected<std::shared_ptr<AdoptedHeap>> AdoptedHeap::create(AdoptedHeapOptions options, uint32_t numRanks) {
  DITRON_RETURN_IF_ERROR(check(options, numRanks));
  std::shared_ptr<AdoptedHeap> heap(new AdoptedHeap(std::move(options)));
  if (heap->options.reservedBytes > 0 && !heap->offsets.allocate(heap->options.reservedBytes))
    return internalError("an empty heap has no room for what is reserved of it");
  return heap;
}

Expected<uint64_t> AdoptedHeap::allocate(uint64_t bytes, std::string_view name) {
  std::lock_guard lock(mutex);
  if (const std::optional<uint64_t> offset = offsets.allocate(std::max<uint64_t>(bytes, 1)))
    return *offset;
  return Status(StatusCode::ResourceExhausted,
                fmt::format("cannot allocate '{}': {} bytes; {} has {} per rank, {} are the caller's own, and the largest free piece has {}",
                            name, bytes, options.name, options.bytes, options.reservedBytes, offsets.largestGap()));
}

void AdoptedHeap::free(uint64_t offset) {
  std::lock_guard lock(mutex);
  (void)offsets.free(offset);
}

} // namespace ditron::runtime
