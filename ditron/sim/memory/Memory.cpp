//===- Memory.cpp - Simulated memory and its table of allocations -------------------------------------------------===//
//
// Arenas, the allocation table, and the texts about addresses.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/memory/Memory.h"

#include "ditron/support/HostMemory.h"
#include "ditron/support/Plural.h"

#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ditron::sim {

namespace {
constexpr uint64_t alignment = 256;
constexpr uint64_t redZoneBytes = 256;
constexpr unsigned char redZoneByte = 0xdb;
constexpr uint64_t commitStep = uint64_t(1) << 21;
constexpr uint64_t pageBytes = 4096;
/// Smaller numbers are no addresses, but null pointers with an offset.
constexpr uintptr_t firstMapped = uintptr_t(1) << 32;
/// The longest distance between an address and an allocation of the same arena that is told.
constexpr uint64_t mostDistance = uint64_t(1) << 30;

/// No larger than what a step divides: an absurd size stays absurd.
uint64_t roundUp(uint64_t value, uint64_t step) {
  return value > UINT64_MAX - 2 * step ? UINT64_MAX / step * step : (value + step - 1) / step * step;
}

std::string_view kindName(MemoryKind kind) {
  switch (kind) {
  case MemoryKind::Device: return "device memory";
  case MemoryKind::Symmetric: return "symmetric memory";
  case MemoryKind::HostPinned: return "pinned host memory";
  }
  return "memory";
}
} // namespace

std::string byteCount(uint64_t bytes) {
  return static_cast<int64_t>(bytes) < 0 ? fmt::format("{} bytes", static_cast<int64_t>(bytes)) : plural(bytes, "byte");
}

Memory::Memory(const MachineOptions &options)
    : options(options), arenas(options.ranks * arenasPerRank), caches(options.ranks) {}

Memory::~Memory() { release(); }

bool Memory::reserve(uint64_t bytes) {
  const auto take = [&](char *&base) {
    void *range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    base = range == MAP_FAILED ? nullptr : static_cast<char *>(range);
    return base != nullptr;
  };
  bool fits = true;
  for (Arena &arena : arenas) {
    arena.bytes = bytes;
    fits = fits && take(arena.base);
  }
  farHeaps.assign(options.hasSeveralNodes() ? options.ranks : 0, nullptr);
  farBytes = bytes;
  for (char *&heap : farHeaps)
    fits = fits && take(heap);
  if (!fits)
    release();
  return fits;
}

void Memory::release() {
  for (Arena &arena : arenas)
    if (char *base = std::exchange(arena.base, nullptr))
      munmap(base, arena.bytes);
  for (char *&heap : farHeaps)
    if (char *base = std::exchange(heap, nullptr))
      munmap(base, farBytes);
}

Status Memory::reserve() {
  // Inaccessible memory counts nowhere, but some systems limit the address range itself: then all arenas get less, and as much as
  // one of them stays free for the rest of the process.
  constexpr uint64_t least = uint64_t(32) << 20;
  for (uint64_t bytes = roundUp(options.memoryPerRank, commitStep);; bytes = roundUp(bytes / 4 * 3, commitStep)) {
    arenas.emplace_back();
    const bool fits = reserve(bytes);
    if (fits)
      munmap(arenas.back().base, arenas.back().bytes);
    arenas.pop_back();
    if (fits)
      return Status::ok();
    if (bytes / 4 * 3 < least)
      return {
          StatusCode::ResourceExhausted,
          fmt::format("cannot reserve {} of addresses for each of {} kinds of memory on {}: a limit of this process "
                      "(ulimit -v) or of the system is too low; raise it, or take fewer ranks",
                      byteCount(bytes), arenasPerRank, plural(options.ranks, "simulated GPU"))};
  }
}

Status Memory::commit(Arena &arena, uint64_t upTo) {
  if (upTo <= arena.committed)
    return Status::ok();
  uint64_t target = std::min(roundUp(upTo, commitStep), arena.bytes);
  if (mprotect(arena.base + arena.committed, target - arena.committed, PROT_READ | PROT_WRITE) != 0)
    return {StatusCode::ResourceExhausted, "the system refuses more memory for a simulated GPU"};
  arena.committed = target;
  return Status::ok();
}

Allocation *Memory::recycle(Arena &arena, uint64_t capacity) {
  for (auto it = arena.freed.begin(); it != arena.freed.end(); ++it) {
    Allocation &old = table.at(reinterpret_cast<uintptr_t>(*it));
    if (old.capacity < capacity)
      continue;
    arena.freed.erase(it);
    return &old;
  }
  return nullptr;
}

Expected<char *> Memory::cut(Arena &arena, uint64_t capacity) {
  // Red zone, allocation, and room for the red zone behind it (which the next allocation then shares).
  uint64_t needed = arena.used + redZoneBytes + capacity + redZoneBytes;
  if (needed > arena.bytes || capacity > arena.bytes)
    return Status(StatusCode::ResourceExhausted, fmt::format("out of simulated memory: {} asked for, {} of {} in use",
                                                             byteCount(capacity), arena.used, byteCount(arena.bytes)));
  DITRON_RETURN_IF_ERROR(commit(arena, needed));
  char *begin = arena.base + arena.used + redZoneBytes;
  std::memset(begin - redZoneBytes, redZoneByte, redZoneBytes);
  arena.used += redZoneBytes + capacity;
  return begin;
}

void Memory::place(char *begin, uint64_t bytes, uint64_t capacity, uint32_t rank, MemoryKind kind,
                   std::string_view name, uint32_t elementBytes) {
  Allocation allocation;
  allocation.begin = begin;
  allocation.end = begin + bytes;
  allocation.capacity = capacity;
  allocation.rank = rank;
  allocation.kind = kind;
  allocation.elementBytes = std::max(1u, elementBytes);
  allocation.name = name.empty() ? std::string("unnamed") : std::string(name);
  std::memset(begin + bytes, redZoneByte, capacity - bytes + redZoneBytes);
  table.insert_or_assign(reinterpret_cast<uintptr_t>(begin), std::move(allocation));
  clearCaches();
}

Status Memory::askFor(uint64_t bytes, std::string_view name, uint32_t copies) {
  // Asking costs some file reads.
  constexpr uint64_t worthAsking = uint64_t(64) << 20;
  uint64_t total = 0;
  const bool overflows = __builtin_mul_overflow(bytes, uint64_t(copies), &total);
  if (!overflows && total + unasked < worthAsking) {
    unasked += total;
    return Status::ok();
  }
  unasked = 0;
  const uint64_t available = availableHostMemory();
  // What was allocated and not yet touched is not missing from what is available.
  if (atStart == 0)
    atStart = available;
  if (overflows || total > available || total > atStart - std::min(atStart, claimed))
    return {StatusCode::ResourceExhausted,
            fmt::format(
                "allocation {}: {}{} do not fit the memory of this machine: {} available, {} in simulated GPUs already",
                name, copies == 1 ? "" : fmt::format("{} ranks times ", copies), memoryText(bytes),
                memoryText(available), memoryText(claimed))};
  return Status::ok();
}

Expected<void *> Memory::allocate(uint32_t rank, uint64_t bytes, std::string_view name, uint32_t elementBytes,
                                  MemoryKind kind) {
  if (rank >= options.ranks)
    return invalidArgument(
        fmt::format("allocation {}: rank {} does not exist, ranks are 0..{}", name, rank, options.ranks - 1));
  Arena &target = arena(rank, kind);
  uint64_t capacity = roundUp(std::max<uint64_t>(bytes, 1), alignment);
  if (target.used + capacity + 2 * redZoneBytes > target.bytes)
    if (Allocation *old = recycle(target, capacity)) {
      char *begin = old->begin;
      uint64_t oldCapacity = old->capacity;
      std::memset(begin, 0, bytes);
      claimed += oldCapacity;
      place(begin, bytes, oldCapacity, rank, kind, name, elementBytes);
      return static_cast<void *>(begin);
    }
  DITRON_RETURN_IF_ERROR(askFor(capacity, name, 1));
  DITRON_ASSIGN_OR_RETURN(char *begin, cut(target, capacity));
  claimed += capacity;
  place(begin, bytes, capacity, rank, kind, name, elementBytes);
  return static_cast<void *>(begin);
}

Expected<uint64_t> Memory::allocateSymmetric(uint64_t bytes, std::string_view name, uint32_t elementBytes) {
  uint64_t used = 0;
  for (uint32_t rank = 0; rank < options.ranks; ++rank)
    used = std::max(used, arena(rank, MemoryKind::Symmetric).used);
  uint64_t capacity = roundUp(std::max<uint64_t>(bytes, 1), alignment);
  uint64_t offset = used + redZoneBytes;
  DITRON_RETURN_IF_ERROR(askFor(capacity, name, options.ranks));
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    Arena &target = arena(rank, MemoryKind::Symmetric);
    target.used = used;
    DITRON_ASSIGN_OR_RETURN(char *begin, cut(target, capacity));
    claimed += capacity;
    place(begin, bytes, capacity, rank, MemoryKind::Symmetric, name, elementBytes);
  }
  return offset;
}

Status Memory::adopt(uint32_t rank, void *address, uint64_t bytes, std::string_view name, uint32_t elementBytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (rank >= options.ranks)
    return invalidArgument(
        fmt::format("memory {}: rank {} does not exist, ranks are 0..{}", name, rank, options.ranks - 1));
  if (!address || bytes == 0 || begin + bytes < begin)
    return invalidArgument(fmt::format("memory {}: {} at {} cannot be adopted", name, byteCount(bytes),
                                       !address     ? "a null address"
                                       : bytes == 0 ? "an address"
                                                    : "the end of all addresses"));
  auto next = table.upper_bound(begin);
  const bool meetsNext = next != table.end() && next->first < begin + bytes;
  const bool meetsPrevious = next != table.begin() && reinterpret_cast<uintptr_t>(std::prev(next)->second.end) > begin;
  if (meetsNext || meetsPrevious || isSimulated(address))
    return invalidArgument(fmt::format("memory {}: {} meet memory that the simulator has already: {}", name,
                                       byteCount(bytes), describeNearest(address, bytes)));
  Allocation allocation;
  allocation.begin = static_cast<char *>(address);
  allocation.end = allocation.begin + bytes;
  allocation.capacity = bytes;
  allocation.rank = rank;
  allocation.kind = MemoryKind::HostPinned; // host memory, which several ranks may be given
  allocation.elementBytes = std::max(1u, elementBytes);
  allocation.adopted = true;
  allocation.name = name.empty() ? std::string("unnamed") : std::string(name);
  table.insert_or_assign(begin, std::move(allocation));
  clearCaches();
  return Status::ok();
}

Status Memory::release(void *address) {
  auto it = table.find(reinterpret_cast<uintptr_t>(address));
  if (it == table.end() || !it->second.adopted)
    return invalidArgument(fmt::format("release of {}, which is not the start of adopted memory", placeText(address)));
  table.erase(it);
  clearCaches();
  return Status::ok();
}

Status Memory::free(void *address) {
  auto it = table.find(reinterpret_cast<uintptr_t>(address));
  if (it == table.end() || it->second.adopted)
    return invalidArgument(fmt::format("free of {}, which is not the start of an allocation; {}", placeText(address),
                                       describeNearest(address, 0)));
  Allocation &allocation = it->second;
  if (allocation.freed)
    return invalidArgument(fmt::format("double free of {} (rank {})", allocation.name, allocation.rank));
  allocation.freed = true;
  arena(allocation.rank, allocation.kind).freed.push_back(allocation.begin);
  // Whole pages inside go back to the system; they read as zeros from now on.
  uintptr_t first = roundUp(reinterpret_cast<uintptr_t>(allocation.begin), pageBytes);
  uintptr_t last = reinterpret_cast<uintptr_t>(allocation.end) / pageBytes * pageBytes;
  claimed -= std::min(claimed, allocation.capacity);
  if (last > first)
    madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
  clearCaches();
  return Status::ok();
}

Status Memory::freeSymmetric(uint64_t offset) {
  for (uint32_t rank = 0; rank < options.ranks; ++rank)
    DITRON_RETURN_IF_ERROR(free(arena(rank, MemoryKind::Symmetric).base + offset));
  return Status::ok();
}

void Memory::clearCaches() {
  for (AccessCache &cache : caches)
    cache.clear();
  for (ApartCache &known : apart)
    known = {};
}

bool Memory::findApart(uint32_t rank, const void *a, const void *b) {
  const Allocation *first = find(a), *second = find(b);
  return first && second && first != second && first->rank == rank && second->rank == rank;
}

Allocation *Memory::find(const void *address) {
  auto it = table.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (it == table.begin())
    return nullptr;
  Allocation &candidate = std::prev(it)->second;
  return address < candidate.end ? &candidate : nullptr;
}

bool Memory::isSimulated(const void *address) const {
  return std::any_of(arenas.begin(), arenas.end(),
                     [&](const Arena &a) { return address >= a.base && address < a.base + a.bytes; });
}

const Allocation *Memory::nearest(const void *address) const {
  const auto arena = std::find_if(arenas.begin(), arenas.end(),
                                  [&](const Arena &a) { return address >= a.base && address < a.base + a.bytes; });
  const Allocation *best = nullptr;
  uintptr_t bestDistance = UINTPTR_MAX;
  auto consider = [&](const Allocation &allocation) {
    // In a rank's memory, a neighbour of the same kind and rank explains more than one that is closer by accident.
    if (arena != arenas.end() && (allocation.begin < arena->base || allocation.begin >= arena->base + arena->bytes))
      return;
    const auto a = reinterpret_cast<uintptr_t>(address), begin = reinterpret_cast<uintptr_t>(allocation.begin),
               end = reinterpret_cast<uintptr_t>(allocation.end);
    const uintptr_t distance = a < begin ? begin - a : a >= end ? a - end + 1 : 0;
    if (distance < bestDistance) {
      best = &allocation;
      bestDistance = distance;
    }
  };
  auto it = table.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (it != table.end())
    consider(it->second);
  if (it != table.begin())
    consider(std::prev(it)->second);
  return best;
}

std::optional<uint32_t> Memory::farRank(const void *address) const {
  for (uint32_t rank = 0; rank < farHeaps.size(); ++rank)
    if (address >= farHeaps[rank] && address < farHeaps[rank] + farBytes)
      return rank;
  return std::nullopt;
}

std::string Memory::otherNode(uint32_t rank, const void *address) {
  if (!options.hasSeveralNodes())
    return {};
  const Allocation *allocation = find(behindFar(address));
  const std::optional<uint32_t> home = allocation ? std::optional(allocation->rank) : farRank(address);
  if (!home || options.shareNode(*home, rank))
    return {};
  return fmt::format(
      "{} is memory of node {}, and rank {} is on node {}: loads, stores, atomics, copies and stream signals stay on a "
      "node. "
      "Between nodes libshmem_device carries bytes: putmem_block, putmem_signal_block, signal_op, getmem_block (and "
      "dl.notify with comm_scope=\"inter_node\")",
      placeText(address), options.nodeOf(*home), rank, options.nodeOf(rank));
}

std::string Memory::describeNearest(const void *address, uint64_t bytes) const {
  if (const std::optional<uint32_t> far = farRank(address))
    return fmt::format("{} is memory of node {}, which loads and stores of other nodes do not reach",
                       placeText(address), options.nodeOf(*far));
  if (const auto number = reinterpret_cast<uintptr_t>(address); number < firstMapped)
    return number ? fmt::format("it is a null pointer plus {}", byteCount(number)) : "it is a null pointer";
  const std::string_view foreign = isSimulated(address) ? "" : "the address is in no memory of any rank; ";
  const Allocation *near = nearest(address);
  const auto a = reinterpret_cast<uintptr_t>(address), begin = near ? reinterpret_cast<uintptr_t>(near->begin) : 0,
             end = near ? reinterpret_cast<uintptr_t>(near->end) : 0;
  // Farther away an allocation explains nothing. Outside of all memory of ranks the distance is by chance, too.
  const uint64_t farthest = foreign.empty() ? mostDistance : uint64_t(1) << 20;
  if (!near || (a < begin ? begin - a : a >= end ? a - end : 0) > farthest)
    return fmt::format("{}there is no allocation near it", foreign);
  std::string what = fmt::format("{}{} ({}, {} of rank {})", near->freed ? "freed " : "", near->name,
                                 byteCount(near->size()), kindName(near->kind), near->rank);
  if (!foreign.empty())
    what = "the nearest allocation, " + what;
  if (a < begin)
    return fmt::format("{}{} before the start of {}", foreign, byteCount(begin - a), what);
  if (a >= end)
    return a == end ? fmt::format("{}just past the end of {}", foreign, what)
                    : fmt::format("{}{} past the end of {}", foreign, byteCount(a - end), what);
  if (bytes > end - a)
    return fmt::format("it begins {} before the end of {} and runs {} past it", byteCount(end - a), what,
                       byteCount(bytes - (end - a)));
  return fmt::format("at offset {} of {}", a - begin, what);
}

std::string Memory::checkAccess(uint32_t rank, const void *address, uint64_t bytes, AccessCache::Entry &entry,
                                Way way) {
  if (way == Way::Access)
    if (std::string problem = otherNode(rank, address); !problem.empty())
      return "does not reach it: " + problem;
  Allocation *allocation = find(address);
  const char *a = static_cast<const char *>(address);
  if (!allocation || bytes > static_cast<uint64_t>(allocation->end - a))
    return fmt::format("is outside of every allocation: {}", describeNearest(address, bytes));
  if (allocation->freed)
    return fmt::format("is a use after free: {}", describeNearest(address, bytes));
  if (allocation->rank != rank &&
      (allocation->kind == MemoryKind::Device ||
       (allocation->kind == MemoryKind::HostPinned && !options.shareNode(allocation->rank, rank))))
    return fmt::format("touches another rank's memory that is not symmetric: {}", describeNearest(address, bytes));
  entry.begin = reinterpret_cast<uintptr_t>(allocation->begin);
  entry.size = allocation->size();
  entry.remote = allocation->rank != rank;
  entry.allocation = allocation;
  return {};
}

std::string Memory::checkOrigin(const void *pointer, const void *address) {
  const Allocation *own = find(pointer), *touched = find(address);
  // A pointer to nothing, or just past the end of something, says nothing.
  if (!own || own->freed || !touched || touched == own)
    return {};
  // The caller's own symmetric memory: what he calls one thing lies where he has put it.
  if (own->adopted && touched->adopted && own->rank != touched->rank && own->size() == touched->size())
    return {};
  const auto offset = [&](const Allocation &allocation) {
    return allocation.begin - arena(allocation.rank, allocation.kind).base;
  };
  if (own->kind == MemoryKind::Symmetric && touched->kind == MemoryKind::Symmetric && !own->adopted &&
      !touched->adopted && offset(*own) == offset(*touched))
    return {};
  std::string text = fmt::format("has left {} (rank {}, {}), which its pointer leads into: it has got to {}", own->name,
                                 own->rank, byteCount(own->size()), signalName(address));
  const bool isBefore = address < own->begin;
  const auto distance = static_cast<uint64_t>(isBefore ? own->begin - static_cast<const char *>(address)
                                                       : static_cast<const char *>(address) - own->end);
  if (own->rank != touched->rank || own->kind != touched->kind || distance > mostDistance) // by chance
    return touched->rank == own->rank ? text : text + fmt::format(" of rank {}", touched->rank);
  return text + fmt::format(", {} bytes {} it", distance, isBefore ? "before" : "behind");
}

std::string Memory::distanceFrom(const void *pointer, const void *address) {
  const Allocation *own = find(pointer);
  // Another rank's part of symmetric memory lies anywhere.
  if (!own || own->freed || own->adopted || (own->kind == MemoryKind::Symmetric && options.ranks > 1))
    return {};
  const bool isBefore = address < own->begin;
  return fmt::format("; it is {} {} {}, which its pointer leads into",
                     byteCount(static_cast<uint64_t>(isBefore ? own->begin - static_cast<const char *>(address)
                                                              : static_cast<const char *>(address) - own->end)),
                     isBefore ? "before the start of" : "past the end of", own->name);
}

std::string Memory::checkUnchecked(const void *address, uint64_t bytes) const {
  constexpr uint64_t mostBytes = uint64_t(1) << 40;
  const auto a = reinterpret_cast<uintptr_t>(address);
  if (bytes > mostBytes || a + bytes < a)
    return fmt::format("is larger than any memory: {}", describeNearest(address, bytes));
  for (const Arena &arena : arenas) {
    const auto base = reinterpret_cast<uintptr_t>(arena.base);
    const bool isInside = a >= base && a + bytes <= base + arena.committed;
    if (!isInside && a < base + arena.bytes && a + bytes > base)
      return fmt::format("leaves the memory of its rank: {}", describeNearest(address, bytes));
  }
  return {};
}

std::string Memory::checkBulk(const void *address, uint64_t bytes) {
  if (bytes == 0 || !isSimulated(address))
    return {};
  Allocation *allocation = find(address);
  const char *a = static_cast<const char *>(address);
  if (!allocation || bytes > static_cast<uint64_t>(allocation->end - a))
    return fmt::format("{} at {} lie outside of every allocation: {}", byteCount(bytes), placeText(address),
                       describeNearest(address, bytes));
  if (allocation->freed)
    return fmt::format("{} at {} are freed memory: {}", byteCount(bytes), placeText(address),
                       describeNearest(address, bytes));
  return {};
}

std::string Memory::placeText(const void *address) const {
  address = behindFar(address);
  const auto number = reinterpret_cast<uintptr_t>(address);
  if (number < firstMapped)
    return fmt::format("{:#x}", number);
  const Allocation *near = isSimulated(address) ? nearest(address) : const_cast<Memory *>(this)->find(address);
  if (!near)
    return "an address of no memory";
  const int64_t offset = static_cast<const char *>(address) - near->begin;
  if (offset >= 0 && address < near->end && offset % near->elementBytes == 0)
    return fmt::format("{}[{}] of rank {}", near->name, offset / near->elementBytes, near->rank);
  return fmt::format("{}{:+} bytes of rank {}", near->name, offset, near->rank);
}

std::string Memory::signalName(const void *address) {
  Allocation *allocation = find(address);
  if (!allocation)
    return placeText(address);
  uint64_t offset = static_cast<const char *>(address) - allocation->begin;
  uint64_t rest = offset % allocation->elementBytes;
  std::string text = fmt::format("{}[{}]", allocation->name, offset / allocation->elementBytes);
  return rest ? fmt::format("{}+{} bytes", text, rest) : text;
}

std::string Memory::findDamagedRedZone() const {
  for (const auto &[begin, allocation] : table) {
    if (allocation.adopted)
      continue;
    const auto *behind = reinterpret_cast<const unsigned char *>(allocation.end);
    uint64_t zone = allocation.capacity - allocation.size() + redZoneBytes;
    for (uint64_t i = 0; i < zone; ++i)
      if (behind[i] != redZoneByte)
        return fmt::format("something wrote {} past the end of {} (rank {}); run with bounds checks to see where",
                           byteCount(i), allocation.name, allocation.rank);
  }
  return {};
}

} // namespace ditron::sim
