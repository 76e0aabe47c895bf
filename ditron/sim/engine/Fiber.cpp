//===- Fiber.cpp - Stacks and context switches --------------------------------------------------------------------===//
//
// The stack pool: mmap in slabs, kept for the next pool; guard pages, cache colouring.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Fiber.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <optional>

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

/// Slabs of pools that are gone. A machine lives for milliseconds when many schedules are tried, and mapping and first touching its stacks
/// takes longer than its run.
class SpareSlabs {
public:
  /// Takes it, or leaves it to the caller.
  bool keep(const StackPool::Slab &slab) {
    constexpr uint64_t mostBytes = uint64_t(128) << 20;
    const std::lock_guard lock(mutex);
    if (kept + slab.bytes > mostBytes)
      return false;
    kept += slab.bytes;
    slabs.push_back(slab);
    return true;
  }
  std::optional<StackPool::Slab> take(uint64_t bytes, uint32_t stacks) {
    const std::lock_guard lock(mutex);
    const auto found = std::find_if(slabs.begin(), slabs.end(), [&](const StackPool::Slab &slab) {
      return slab.bytes == bytes && slab.stacks == stacks;
    });
    if (found == slabs.end())
      return std::nullopt;
    const StackPool::Slab slab = *found;
    slabs.erase(found);
    kept -= bytes;
    return slab;
  }

private:
  std::mutex mutex;
  std::vector<StackPool::Slab> slabs;
  uint64_t kept = 0;
};

/// Never destroyed: machines that are may be.
SpareSlabs &spareSlabs() {
  static auto *const spare = new SpareSlabs;
  return *spare;
}
} // namespace

StackPool::StackPool(uint64_t stackBytes, uint32_t stacksPerSlab)
    : stackBytes((std::max(stackBytes, 4 * pageBytes) + pageBytes - 1) / pageBytes * pageBytes),
      stacksPerSlab(stacksPerSlab) {}

StackPool::~StackPool() {
  for (const Slab &slab : slabs) {
    if (spareSlabs().keep(slab))
      continue;
    munmap(slab.base, slab.bytes);
    guardsLeft().fetch_add(slab.guards);
  }
}

StackPool::Slab StackPool::makeSlab() const {
  const uint64_t stride = stackBytes + pageBytes;
  const uint64_t bytes = stride * stacksPerSlab;
  if (const std::optional<Slab> spare = spareSlabs().take(bytes, stacksPerSlab))
    return *spare;
  void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return {};
  // Huge pages would commit every stack in full.
  madvise(base, bytes, MADV_NOHUGEPAGE);
  uint32_t guards = 0;
  for (uint32_t i = 0; i < stacksPerSlab; ++i)
    guards += guardPage(static_cast<char *>(base) + i * stride);
  return {base, bytes, stacksPerSlab, guards};
}

void StackPool::addSlab() {
  const Slab slab = makeSlab();
  if (!slab.base)
    return;
  slabs.push_back(slab);
  const uint64_t stride = stackBytes + pageBytes;
  const size_t first = freeStacks.size();
  for (uint32_t i = 0; i < stacksPerSlab; ++i) {
    char *guard = static_cast<char *>(slab.base) + i * stride;
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
