//===- Memory.h - Simulated memory and its table of allocations -----------------------------------------*- C++ -*-===//
//
// Each rank has one reserved address range per memory kind, and allocations are cut from it front to back with a red
// zone between them. Addresses are not used again until the range is exhausted: a freed allocation stays in the table
// as such, so that a late touch is told apart from a wild one. Pages of freed memory go back to the system.
//
// The table answers "what is at this address" for checks and for messages. Checks on the hot path do not come here:
// they hit the AccessCache of the rank, which remembers, per source line, the allocation that was last found.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_MEMORY_MEMORY_H
#define DITRON_SIM_MEMORY_MEMORY_H

#include "ditron/sim/Machine.h"
#include "ditron/sim/memory/Writer.h"
#include "ditron/sim/race/Shadow.h"

#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace ditron::sim {

struct Allocation {
  char *begin;
  char *end;
  uint64_t capacity; ///< From begin to the next red zone; end - begin rounded up.
  uint32_t rank;
  MemoryKind kind;
  uint32_t elementBytes;
  bool freed = false;
  bool adopted = false; ///< The caller's own memory: never cut from an arena.
  std::string name;
  /// The newest write by a copy engine (copies are not recorded word by word).
  Writer bulkWriter;
  uint64_t bulkBegin = 0, bulkEnd = 0; ///< Its range, as offsets.

  std::function<WordRole(uint64_t)> describeWord; ///< By the index of the element; null for most.

  std::unique_ptr<race::Shadow> shadow; ///< Made when races are looked for and somebody touches it.

  uint64_t size() const { return static_cast<uint64_t>(end - begin); }
  /// Who touched its words; null when the system refuses memory for it.
  race::Cell *cells() {
    if (!shadow)
      shadow = std::make_unique<race::Shadow>(size());
    return shadow->cells();
  }
};

/// Per rank: the range last found valid for accesses of a source line, in a launch.
class AccessCache {
public:
  struct Entry {
    const void *site = nullptr;
    uintptr_t begin = 0;
    uint64_t size = 0;
    uint32_t remote = 0;              ///< 1 when the range is on another rank.
    Allocation *allocation = nullptr; ///< Of the range; null when accesses are not checked.
  };
  Entry &at(const void *site) {
    Entry &entry = entries[(reinterpret_cast<uintptr_t>(site) >> 4) % count];
    if (entry.site != site) [[unlikely]] {
      entry = {};
      entry.site = site;
    }
    return entry;
  }
  /// Accesses of this launch follow: what its arguments allow is not what those of others do.
  void serve(uint64_t launch) {
    if (launch != served) [[unlikely]]
      clear();
    served = launch;
  }
  void clear() {
    for (Entry &entry : entries)
      entry = {};
  }

private:
  static constexpr size_t count = 64;
  Entry entries[count];
  uint64_t served = 0;
};

/// What takes bytes from a kernel to memory.
enum class Way {
  Access,  ///< Loads, stores and atomics: this node.
  Network, ///< Puts, gets and signals: symmetric memory of every rank.
};

class Memory {
public:
  explicit Memory(const MachineOptions &options);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// Reserves the address ranges.
  Status reserve();

  Expected<void *> allocate(uint32_t rank, uint64_t bytes, std::string_view name, uint32_t elementBytes,
                            MemoryKind kind);
  Expected<uint64_t> allocateSymmetric(uint64_t bytes, std::string_view name, uint32_t elementBytes);
  /// Lets kernels touch host memory of the caller's, which has no red zones. Refuses ranges that meet another allocation.
  Status adopt(uint32_t rank, void *address, uint64_t bytes, std::string_view name, uint32_t elementBytes);
  /// Ends what adopt began; an address that was not adopted is an error.
  Status release(void *address);
  Status free(void *address);
  Status freeSymmetric(uint64_t offset);
  void *symmetricBase(uint32_t rank) const { return arena(rank, MemoryKind::Symmetric).base; }
  /// Where the rank's symmetric heap seems to be for kernels of other nodes: addresses that hold nothing.
  void *farBase(uint32_t rank) const { return farHeaps[rank]; }
  /// The address itself, or that in a symmetric heap which a far address stands for.
  template <typename T> T *behindFar(T *address) const {
    const std::optional<uint32_t> rank = farRank(address);
    if (!rank)
      return address;
    const auto offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(farHeaps[*rank]);
    return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(symmetricBase(*rank)) + offset);
  }
  /// Why what is on the rank's node alone does not reach the address; empty when it does.
  std::string otherNode(uint32_t rank, const void *address);

  /// The live or freed allocation that holds the address; null when none does.
  Allocation *find(const void *address);
  /// The allocation whose begin or end is nearest: in the same arena, or anywhere when the address is in none. Null when there
  /// is none.
  const Allocation *nearest(const void *address) const;
  /// Whether the address lies in a range reserved here, that is, is simulated memory at all.
  bool isSimulated(const void *address) const;
  /// What is wrong with bytes [address, address + bytes) as seen from the rank's kernels; empty when nothing is. Fills
  /// the cache entry on success.
  std::string checkAccess(uint32_t rank, const void *address, uint64_t bytes, AccessCache::Entry &entry,
                          Way way = Way::Access);
  /// What is wrong with an access at an address that was made from a pointer to something else; empty when nothing is. Another rank's part
  /// of one symmetric allocation is the same thing.
  std::string checkOrigin(const void *pointer, const void *address);
  /// "; it is 8 bytes past the end of a, ..." of an address that was made from the pointer; empty where that differs from run to run.
  std::string distanceFrom(const void *pointer, const void *address);
  /// The same as checkAccess for copy engines and stream operations, which may reach any rank, and host memory.
  std::string checkBulk(const void *address, uint64_t bytes);
  /// What must hold of a transfer even when kernels run without bounds checks: an absurd size would write over everything.
  std::string checkUnchecked(const void *address, uint64_t bytes) const;
  /// "A (rank 0, 1024 bytes)" with the distance of the address, for messages about a wild address.
  std::string describeNearest(const void *address, uint64_t bytes) const;
  /// Whether two addresses of a rank's kernels cannot lead into one allocation: both lie in memory of the rank, in two
  /// allocations.
  bool areApart(uint32_t rank, const void *a, const void *b) {
    ApartCache &known =
        apart[(reinterpret_cast<uintptr_t>(a) >> 8 ^ reinterpret_cast<uintptr_t>(b) >> 6) % std::size(apart)];
    if (known.a != a || known.b != b || known.rank != rank)
      known = {a, b, rank, findApart(rank, a, b)};
    return known.areApart;
  }
  /// Where an address is, in words that are the same in every run: name[index] or name+k bytes with the rank; small numbers, which
  /// are no addresses, as such.
  std::string placeText(const void *address) const;
  /// name[index], or name[index]+k bytes, of an address in an allocation; the address itself otherwise.
  std::string signalName(const void *address);
  /// Forgets who touched what.
  void forgetAccesses() {
    for (auto &[begin, allocation] : table)
      allocation.shadow.reset();
  }
  /// Names the first allocation whose red zone was overwritten; empty when all are intact.
  std::string findDamagedRedZone() const;

  AccessCache &cache(uint32_t rank) { return caches[rank]; }

private:
  struct Arena {
    char *base = nullptr;
    uint64_t bytes = 0;
    uint64_t used = 0;        ///< Bytes cut so far.
    uint64_t committed = 0;   ///< Bytes made accessible so far.
    std::deque<char *> freed; ///< Begins of quarantined allocations, oldest first.
  };
  static constexpr uint32_t arenasPerRank = 3; ///< One for each MemoryKind.
  Arena &arena(uint32_t rank, MemoryKind kind) { return arenas[rank * arenasPerRank + static_cast<uint32_t>(kind)]; }
  const Arena &arena(uint32_t rank, MemoryKind kind) const {
    return arenas[rank * arenasPerRank + static_cast<uint32_t>(kind)];
  }
  /// The rank whose heap a far address stands for.
  std::optional<uint32_t> farRank(const void *address) const;
  /// Reserves as much for each arena; false, with nothing reserved, when the system refuses.
  bool reserve(uint64_t bytes);
  void release();
  /// Refuses what this machine cannot hold: memory that is claimed without asking is paid for by whoever the system then kills.
  Status askFor(uint64_t bytes, std::string_view name, uint32_t copies);
  Status commit(Arena &arena, uint64_t upTo);
  Expected<char *> cut(Arena &arena, uint64_t capacity);
  Allocation *recycle(Arena &arena, uint64_t capacity);
  void place(char *begin, uint64_t bytes, uint64_t capacity, uint32_t rank, MemoryKind kind, std::string_view name,
             uint32_t elementBytes);
  void clearCaches();
  bool findApart(uint32_t rank, const void *a, const void *b);

  /// An answer of areApart.
  struct ApartCache {
    const void *a = nullptr, *b = nullptr;
    uint32_t rank = 0;
    bool areApart = false;
  };

  const MachineOptions &options;
  std::vector<Arena> arenas;
  std::vector<char *> farHeaps; ///< By rank, as large as an arena each; empty where there is one node.
  uint64_t farBytes = 0;
  std::vector<AccessCache> caches;
  ApartCache apart[256];
  // How much was claimed here, what was available at first, and what was claimed since somebody last looked.
  uint64_t claimed = 0, atStart = 0, unasked = 0;
  std::map<uintptr_t, Allocation> table; ///< By begin.
};

/// "12 bytes", "1 byte"; "-4 bytes" of a count that somebody made negative.
std::string byteCount(uint64_t bytes);

} // namespace ditron::sim

#endif // DITRON_SIM_MEMORY_MEMORY_H
