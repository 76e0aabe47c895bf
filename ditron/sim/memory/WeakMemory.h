//===- WeakMemory.h - Strong loads that do not see the newest value -------------------------------------*- C++ -*-===//
//
// What atomic and ordered accesses (the strong ones) may see of a word while its stores are still on their way. Memory itself
// always holds the newest value; beside it a word keeps its recent stores in coherence order, and who has read which of them. A
// load may be given any of them that is not older than one that the thread must have seen:
//
//   - a store that it knows of (the race detector's knowledge: program order, release and acquire, fences, barriers, streams), or
//   - a store that a load read of which it knows: coherence, and causality through other threads' reads.
//
// Which of those it is given is a matter of time and of the schedule: a store reaches each observer late by a delay of its own, and
// by none with some probability. So what one thread sees in one order another may see in the other order (IRIW). A store
// may also come before others in coherence order that were carried out earlier, when nothing orders it after them (2+2W), but not before those of
// a kernel that has ended: its memory operations have been performed, as the kernels behind it are promised.
// Atomic read-modify-write operations come behind the newest store, or like stores before some that nothing orders before them; they
// read the store that they come behind, and nothing comes between the two:
//
//     x: 0, st 1       x = 1 was stored by a thread that this one has not heard of, and is still on its way
//     x: 0, add 1, st 1       the addition has read 0; memory holds 1 as before
//
// Before another read-modify-write none can come, even where it would not be noticed (adding 0): who reads the other one's value and
// acquires would have to learn what this one has released.
//
// Ordinary accesses need none of this: a program in which they could tell has a data race, and that is reported whatever
// they return. Loads that are carried out after the store behind them: engine/LateLoad.h.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_MEMORY_WEAKMEMORY_H
#define DITRON_SIM_MEMORY_WEAKMEMORY_H

#include "ditron/sim/engine/Scheduler.h"
#include "ditron/sim/race/Strand.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ditron::sim {

struct KernelRun;
struct Thread;

class WeakMemory {
public:
  explicit WeakMemory(Machine::State &engine);

  /// What a load is given.
  struct Seen {
    uint64_t value = 0;
    const race::SyncWord *store =
        nullptr; ///< The store that it comes from, unless that is the newest; valid until the next call.
  };
  Seen load(Thread &thread, const void *address, uint32_t bytes, const DitronSimSite *site);
  /// The thread has read the newest value.
  void loadedNewest(Thread &thread, const void *address, uint32_t bytes);

  /// Before a store: whether it becomes the newest, that is, is to be written to memory.
  bool beginStore(Thread &thread, const void *address, uint32_t bytes, bool isUpdate);
  /// Before an update: whether it comes before stores that were carried out earlier, and what it reads then (Seen::store is set); else
  /// beginStore follows. `wanted` is the value that a compare-and-swap has to find there.
  Seen beginEarlierUpdate(Thread &thread, const void *address, uint32_t bytes, std::optional<uint64_t> wanted,
                          const DitronSimSite *site);
  /// After it was noted by the race detector, which says what it tells; every beginStore has one.
  void endStore(Thread &thread, const void *address, uint64_t value, bool isUpdate, const race::SyncWord &store);

  /// Its stores come before whatever is stored from now on.
  void kernelFinished(const KernelRun &run);
  /// All stores have arrived everywhere.
  void clear();

  /// The loads that were given older values so far, a line each: what may have made a result wrong. Empty: none.
  std::string oldValues() const;

private:
  struct Store {
    uint64_t value = 0;
    uint64_t number = 0; ///< 0: what was there before the others; everybody sees it.
    race::Moment writer;
    SimTime time = 0;
    uint32_t rank = 0;
    bool isUpdate = false;              ///< Reads the store before it.
    const KernelRun *running = nullptr; ///< The kernel that has stored it; null when that has ended.
    race::SyncWord sync;
    std::vector<race::Moment> readers;
  };
  struct Word {
    uint32_t bytes = 0;
    SimTime lastStore = 0;
    size_t place = 0;          ///< Where the store that has begun goes.
    std::vector<Store> stores; ///< In coherence order; memory holds the last.
  };
  /// The stores of the word that may still be on their way; null when there are none.
  Word *find(const void *address, uint32_t bytes, SimTime now);
  /// The oldest store that the thread may still read.
  size_t oldestFor(Thread &thread, const Word &word) const;
  /// Whether a load that the thread carries out late may not be given it: engine/LateLoad.h.
  bool comesBehind(Thread &thread, const Store &store) const;
  /// Whether a store that begins now may come before one that was carried out earlier, unless the thread knows of that.
  bool mayComeBefore(const Store &store);
  bool hasArrived(const Store &store, const Thread &thread, SimTime now) const;
  static void addReader(Store &store, race::Moment reader);
  void noteOldValue(Thread &thread, const void *address, const Word &word, uint64_t given, const DitronSimSite *site);
  /// The thread is given the newest value now.
  void noteNewest(Thread &thread, const void *address);
  void dropArrived(SimTime now);

  Machine::State &engine;
  Random places; ///< Of stores in coherence order.
  std::unordered_map<const void *, Word> words;
  uint64_t stores = 0;
  size_t dropAt = 1024;
  race::SyncWord seen; ///< Of the last load.

  struct OldLine {
    std::string text;
    bool isRepeated;
  };
  OldLine lineOf(const race::OldValue &value) const;
  std::vector<race::OldValue> old; ///< The first of each pair of places.
  std::vector<OldLine> oldLines;   ///< Of before clear().
};

} // namespace ditron::sim

#endif // DITRON_SIM_MEMORY_WEAKMEMORY_H
