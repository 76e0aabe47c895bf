//===- Fiber.cpp - Stacks and context switches --------------------------------------------------------------------===//
//
// The stack pool: mmap in slabs, guard pages, cache colouring.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/Fiber.h"

#include <sys/mman.h>

#include <algorithm>

namespace ditron::sim {

namespace {
constexpr uint64_t pageBytes = 4096;
constexpr uint64_t cacheLineBytes = 64;
/// Lines from one stack's shift to the next; odd, so that the shifts visit every line of a page.
constexpr uint64_t colourStepLines = 7;
} // namespace

StackPool::StackPool(uint64_t stackBytes, uint32_t stacksPerSlab)
    : stackBytes((std::max(stackBytes, 4 * pageBytes) + pageBytes - 1) / pageBytes * pageBytes),
      stacksPerSlab(stacksPerSlab) {}

StackPool::~StackPool() {
  for (const Slab &slab : slabs)
    munmap(slab.base, slab.bytes);
}

void StackPool::addSlab() {
  uint64_t stride = stackBytes + pageBytes;
  uint64_t bytes = stride * stacksPerSlab;
  void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return;
  slabs.push_back({base, bytes});
  // Huge pages would commit every stack in full.
  madvise(base, bytes, MADV_NOHUGEPAGE);
  size_t first = freeStacks.size();
  for (uint32_t i = 0; i < stacksPerSlab; ++i) {
    char *guard = static_cast<char *>(base) + i * stride;
    // The system limits the number of mappings; past the limit a stack goes without its guard page.
    mprotect(guard, pageBytes, PROT_NONE);
    uint64_t shift = (made++ * colourStepLines * cacheLineBytes) % pageBytes;
    freeStacks.push_back({guard + stride - shift, stackBytes - shift});
  }
  std::reverse(freeStacks.begin() + first, freeStacks.end());
}

Stack StackPool::acquire() {
  if (freeStacks.empty())
    addSlab();
  if (freeStacks.empty())
    return {};
  Stack stack = freeStacks.back();
  freeStacks.pop_back();
  return stack;
}

} // namespace ditron::sim
