//===- Fiber.cpp - Stacks and context switches --------------------------------------------------------------------===//
//
// The stack pool: mmap in slabs, guard pages, cache colouring.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Fiber.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <fstream>

namespace ditron::sim {

namespace {
constexpr uint64_t pageBytes = 4096;
constexpr uint64_t cacheLineBytes = 64;
/// Lines from one stack's shift to the next; odd, so that the shifts visit every line of a page.
constexpr uint64_t colourStepLines = 7;

/// How many stacks of this process may still get a guard page by mprotect. Each costs two of the mappings that the system
/// limits (vm.max_map_count); the rest of the process, malloc first of all, needs some too.
std::atomic<int64_t> &guardsLeft() {
  static std::atomic<int64_t> left = [] {
    constexpr int64_t usualMappings = 65530;
    int64_t mappings = 0;
    std::ifstream("/proc/sys/vm/max_map_count") >> mappings;
    return (mappings > 0 ? mappings : usualMappings) / 4;
  }();
  return left;
}

/// Makes accesses of a page fault. Gives whether that took a mapping of its own.
bool guardPage(char *page) {
  // From Linux 6.13 on the page tables alone can say so.
  constexpr int guardInstall = 102;
  if (madvise(page, pageBytes, guardInstall) == 0)
    return false;
  // Past the limit a stack goes without: the compiler bounds what a kernel's thread puts there.
  if (guardsLeft().fetch_sub(1) <= 0 || mprotect(page, pageBytes, PROT_NONE) != 0) {
    guardsLeft().fetch_add(1);
    return false;
  }
  return true;
}
} // namespace

StackPool::StackPool(uint64_t stackBytes, uint32_t stacksPerSlab)
    : stackBytes((std::max(stackBytes, 4 * pageBytes) + pageBytes - 1) / pageBytes * pageBytes),
      stacksPerSlab(stacksPerSlab) {}

StackPool::~StackPool() {
  for (const Slab &slab : slabs) {
    munmap(slab.base, slab.bytes);
    guardsLeft().fetch_add(slab.guards);
  }
}

void StackPool::addSlab() {
  uint64_t stride = stackBytes + pageBytes;
  uint64_t bytes = stride * stacksPerSlab;
  void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return;
  slabs.push_back({base, bytes, 0});
  // Huge pages would commit every stack in full.
  madvise(base, bytes, MADV_NOHUGEPAGE);
  size_t first = freeStacks.size();
  for (uint32_t i = 0; i < stacksPerSlab; ++i) {
    char *guard = static_cast<char *>(base) + i * stride;
    slabs.back().guards += guardPage(guard);
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
