//===- Polling.h - Threads that read words over and over ------------------------------------------------*- C++ -*-===//
//
// A kernel may wait in a loop of its own: it reads one or more words until a value suits it. Such a thread need not run all the time.
// What it has read since it last did anything with effect is remembered here; when it reads a word again, finds the value that it had,
// and is in the state in which it was at an earlier such moment (engine/KernelState.h), then it goes round in a circle that only a
// change of those words can end: it sleeps until one changes (Watch.h).
//
//     while (ld(a) == 0 && ld(b) == 0);              reads a, b, a, b, a: the same state as before; sleeps on a and b
//     while (tries-- > 0 && ld(a) == 0);             never the same state: polls on, and gives up
//     while (now() < deadline && ld(a) == 0);        time passes: polls on
//
// Threads that poll on let the other threads of their block, and all agents that are behind, act after each attempt.
//
// The circle is that of one thread alone. Others of its block may take part in it (they meet at a barrier in the loop), so it is no
// proof yet: when nothing else can run, all such threads are resumed, and their blocks are compared (Recurrence).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_MEMORY_POLLING_H
#define DITRON_SIM_MEMORY_POLLING_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/memory/Watch.h"

#include <array>
#include <vector>

namespace ditron::sim {

struct Thread;

/// A word that a thread has read without effect.
struct PolledWord {
  Waiter waiter; ///< What it sleeps with; the address and the size are its key.
  uint64_t value = 0;
  const DitronSimSite *site = nullptr;
  uint64_t repeats = 0;   ///< How often it has come back unchanged.
  uint64_t state = 0;     ///< Of the kernel at one of these moments,
  uint64_t stateAt = 0;   ///< when the thread had read so often,
  uint64_t lastRead = 0;  ///< as when it read the word last.
  uint64_t timesRead = 0; ///< How often the thread had noted that time passes by then.
  bool hasSlept = false;  ///< The state is that in which it sleeps.
};

/// A word that a thread has read lately, whatever it has done since: for reports of runs that do not end.
struct RecentRead {
  Waiter waiter; ///< Never in the table. Its address and size, and when the thread read it first.
  const DitronSimSite *site = nullptr;
  uint64_t times = 0;
  uint64_t lastRead = 0; ///< Counted as Polling counts.
  SimTime last = 0;

  /// It reads it still: not long ago, compared with how long it has been reading it.
  bool isRead(SimTime now) const {
    constexpr uint64_t few = 8;
    return times >= few && now - last <= last - waiter.began;
  }
};

/// A read without effect.
struct PolledRead {
  const void *address;
  uint32_t bytes;
  uint64_t value;
  bool isKnownLoop;  ///< The compiler says that the load is the only effect of a loop without carried values.
  const char *frame; ///< The kernel's (engine/KernelState.h).
  const DitronSimSite *site;
};

/// What to do about it.
enum class PollStep : uint8_t {
  GoOn,
  LetOthersAct, ///< It was the same again: others first, and then once more.
  Sleep,        ///< Until one of the words changes.
};

struct PollOutcome {
  bool othersActed = false; ///< So the word may have changed.
  bool slept = false;
  SimTime since = 0; ///< When it fell asleep.
};

class Polling {
public:
  /// The thread has done something with effect.
  void forget() { count = 0; }
  /// The thread has read what will be different later, and nobody need write for that.
  void noteTimePasses() { ++timesRead; }

  PollStep noteRead(Thread &thread, const PolledRead &read);

  /// Enters the words into the table; the thread sleeps at the one that it read last.
  void sleep(Thread &thread, WatchTable &watches);
  /// Takes out those that are still in it.
  void wake(WatchTable &watches);

  /// How often it has read the word again and found it unchanged.
  uint64_t repeatsOf(const void *address) const;

  /// A new kernel's thread.
  void clear() {
    forget();
    recent.fill({});
  }
  static constexpr size_t mostRecent = 4;
  const std::array<RecentRead, mostRecent> &recentReads() const { return recent; }

  /// The word that was read last.
  const PolledWord &last() const { return words[position]; }
  /// The words of the circle, the last one first in no order.
  const PolledWord *begin() const { return words.data(); }
  const PolledWord *end() const { return words.data() + count; }

private:
  /// The word, from now on the last one.
  PolledWord &find(const void *address, uint32_t bytes, bool &isNew);
  void begin(PolledWord &word, const Thread &thread, const PolledRead &read);
  void noteRecent(const Thread &thread, const PolledRead &read);
  /// Forgets words that the thread has not read since it was in the state of the last word: they are not of its circle.
  void dropOthers();
  /// Whether memory still holds what it has read.
  bool areUnchanged() const;

  std::vector<PolledWord> words;
  std::array<RecentRead, mostRecent> recent;
  uint32_t count = 0;    ///< Of the words that count.
  uint32_t position = 0; ///< Of the word that was read last.
  uint64_t reads = 0;
  uint64_t timesRead = 0;
};

/// Notes a read of the running thread, and lets it sleep, or lets others act, if it polls.
PollOutcome poll(Thread &thread, const PolledRead &read);

} // namespace ditron::sim

#endif // DITRON_SIM_MEMORY_POLLING_H
