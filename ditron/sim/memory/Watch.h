//===- Watch.h - Sleeping on words of memory ------------------------------------------------------------*- C++ -*-===//
//
// A thread or stream that waits for a word does not poll: it leaves a Waiter here, keyed by the 8-byte granule, and
// every write that passes through the engine asks the table whether somebody sleeps on it. Stores that generated code
// makes natively do not pass through the engine; so whenever an agent has run, rescan compares each watched granule
// with what was last seen there.
//
// There are two kinds of sleep. Until wakes when a comparison holds. Poll wakes when the word changes: these are threads that
// read words in a loop of their own (Polling.h). The engine does not see the rest of their loop, so such a sleep is
// only a postponement: when nothing else can run, pollers are resumed, and only when their blocks come back to a state
// in which they have been is it a deadlock (engine/KernelState.h).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_MEMORY_WATCH_H
#define DITRON_SIM_MEMORY_WATCH_H

#include "ditron/sim/Machine.h"
#include "ditron/sim/memory/Writer.h"

#include <unordered_map>
#include <vector>

namespace ditron::sim {

struct Thread;
class Stream;

/// Whether a signed word of 4 or 8 bytes satisfies a comparison.
bool compareHolds(Compare compare, int64_t seen, int64_t wanted);
/// The lowest bytes of a word, sign-extended.
int64_t signExtended(uint64_t value, uint32_t bytes);
/// The word at an address, sign-extended from its size.
int64_t loadSigned(const void *address, uint32_t bytes);
/// ">=" and so on.
std::string_view compareText(Compare compare);

struct Waiter {
  enum class Kind : uint8_t {
    Until, ///< Sleeps until the comparison holds.
    Poll,  ///< Sleeps until the word differs from `value`.
  };
  const void *address = nullptr;
  uint32_t bytes = 0;
  Kind kind = Kind::Until;
  Compare compare = Compare::Equal;
  bool active = false;
  int64_t value = 0;
  SimTime since = 0;
  SimTime began = 0;        ///< When it first read that value, if it polls.
  Thread *thread = nullptr; ///< One of thread and stream is set.
  Stream *stream = nullptr;

  bool satisfied() const {
    int64_t seen = loadSigned(address, bytes);
    return kind == Kind::Until ? compareHolds(compare, seen, value) : seen != value;
  }
};

class WatchTable {
public:
  bool empty() const { return entries.empty(); }
  void add(Waiter &waiter);
  void remove(Waiter &waiter);

  /// Takes out and returns the waiters whose condition holds after a write of these bytes. The result is valid until
  /// the next call.
  const std::vector<Waiter *> &written(const void *address, uint64_t bytes);
  /// The same for writes that nobody announced: looks at every watched granule that changed.
  const std::vector<Waiter *> &rescan();
  /// Whether somebody sleeps on a granule that the bytes touch. Exact: what follows from it must not depend on where memory lies.
  bool isWatched(const void *address, uint32_t bytes) const {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
    for (uintptr_t granule = begin >> 3; granule << 3 < begin + bytes; ++granule)
      if (filter[filterIndex(granule)] != 0 && index.contains(granule))
        return true;
    return false;
  }

  /// All waiters, in the order of their granules' first watch.
  template <typename Visit> void forEach(Visit visit) const {
    for (const Entry &entry : entries)
      for (Waiter *waiter : entry.waiters)
        visit(*waiter);
  }

private:
  struct Entry {
    uintptr_t granule;
    uint64_t seen; ///< Content when last looked at.
    std::vector<Waiter *> waiters;
  };
  static constexpr uint32_t filterSize = 1024;
  static uint32_t filterIndex(uintptr_t granule) { return (granule ^ (granule >> 10)) % filterSize; }
  void collect(Entry &entry);
  void takeOutReleased();

  std::vector<Entry> entries;
  std::unordered_map<uintptr_t, uint32_t> index;
  uint32_t filter[filterSize] = {};
  std::vector<Waiter *> released;
};

/// Who wrote each word last, for words written by atomics, ordered stores and stream operations.
class WriterTable {
public:
  void record(const void *address, const Writer &writer) {
    if (writers.size() < limit)
      writers[address] = writer;
    else if (auto it = writers.find(address); it != writers.end())
      it->second = writer;
  }
  /// Null when no write was recorded.
  const Writer *find(const void *address) const {
    auto it = writers.find(address);
    return it == writers.end() ? nullptr : &it->second;
  }
  /// Whether writes may have gone unrecorded because the table was full.
  bool isFull() const { return writers.size() >= limit; }

private:
  static constexpr size_t limit = size_t(1) << 20;
  std::unordered_map<const void *, Writer> writers;
};

} // namespace ditron::sim

#endif // DITRON_SIM_MEMORY_WATCH_H
