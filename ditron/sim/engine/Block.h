//===- Block.h - A resident block and its threads -------------------------------------------------------*- C++ -*-===//
//
// A Block is an SM slot of a rank: the place where one block at a time is resident. Its threads are fibers. They run
// round-robin under the block's one agent and switch to each other directly; control returns to the scheduler only when
// every thread is parked or finished, or when the block has run ahead of another agent and a thread is about to
// communicate (yieldIfAhead). Between communications a block runs undisturbed: what others may not observe need not be
// interleaved.
//
// Where a thread can park:
//   AtBarrier    the block barrier; the last arriving live thread releases all
//   AtWarp       a meeting of some lanes of a warp (shuffle, ballot, warp barrier, mma); the last lane works for all
//   AtLaneOrder  before an access that the other lanes of the warp must not be behind of; all go on when the last one comes,
//                or when nothing else can run (lanes that took another way do not come)
//   AtMbarrier, AtNamedBarrier, AtWarpgroup, AtWgmmaWait, AtStoreWait  what AsyncUnit.h is about
//   WaitingWord  words of memory (Watch.h); released by a write from anywhere
// If all live threads are parked, none waits for a word and nothing asynchronous is in flight, no write can help: that is
// reported at once, with who waits where.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_BLOCK_H
#define DITRON_SIM_ENGINE_BLOCK_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/engine/AccessTime.h"
#include "ditron/sim/engine/Fiber.h"
#include "ditron/sim/engine/KernelState.h"
#include "ditron/sim/engine/LateLoad.h"
#include "ditron/sim/engine/Scheduler.h"
#include "ditron/sim/hopper/AsyncUnit.h"
#include "ditron/sim/memory/Memory.h"
#include "ditron/sim/memory/Polling.h"
#include "ditron/sim/memory/Watch.h"
#include "ditron/sim/race/Shadow.h"
#include "ditron/sim/race/Strand.h"
#include "ditron/sim/report/EngineTrace.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

namespace ditron::sim {

using Engine = Machine::State;
struct KernelRun;
struct Rank;

enum class ThreadState : uint8_t {
  Ready,
  AtBarrier,
  AtWarp,
  AtLaneOrder,
  AtMbarrier,
  AtNamedBarrier,
  AtWarpgroup,
  AtWgmmaWait,
  AtStoreWait,
  WaitingWord,
  Finished
};
enum class CollectiveKind : uint8_t { WarpBarrier, Shuffle, Ballot, Mma, Matrices };

class Block;

/// One asynchronous copy that has been issued and not yet waited for.
struct AsyncCopy {
  void *shared;
  const void *global; ///< Null writes zeros.
  uint32_t bytes;
  const DitronSimSite *site;
  std::array<char, 16> source; ///< What was there when it was issued, where races are looked for.
};

/// Asynchronous copies of a thread, in groups; carried out when the thread waits for them.
struct AsyncQueue {
  std::vector<AsyncCopy> copies;
  std::vector<uint32_t> groupEnds; ///< End of each committed group in copies.
  uint32_t doneGroups = 0;         ///< Groups at the front that are complete.

  void clear() {
    copies.clear();
    groupEnds.clear();
    doneGroups = 0;
  }
};

struct Warp;

/// A GPU thread. The base is what generated code reads.
struct Thread : DitronSimThread {
  Context context = nullptr;
  Block *block = nullptr;
  Warp *warp = nullptr;
  const DitronSimSite *site = nullptr; ///< Where it parked.
  const char *frame = nullptr; ///< Where its kernel's part of the stack begins, while it is parked; null: not known.
  const DitronSimSite *accessSite = nullptr; ///< Its last access without a bounds check.
  bool faulted = false;                      ///< See Fault.h.
  /// Its last question for a PE that it was given a null pointer for.
  struct NullPointer {
    int64_t pe = 0, node = 0, ownNode = 0;
    const DitronSimSite *site = nullptr; ///< Null: none.
  } nullFor;
  ThreadState state = ThreadState::Finished;
  // What the thread brought to a rendezvous, and what it takes away.
  uint32_t operand = 0;
  uint64_t value = 0;
  uint64_t result = 0;
  const void *mmaA = nullptr, *mmaB = nullptr;
  void *mmaC = nullptr;
  Waiter waiter; ///< For the comparison that it waits for.
  Polling polling;
  /// While it sleeps: the word at which it does.
  const Waiter &waits() const { return waiter.active ? waiter : polling.last().waiter; }
  AsyncQueue async;
  AsyncThread asyncWork;
  race::ThreadOrder order;
  LateLoad lateLoad;
  Stack stack;
};

/// A meeting of lanes that has begun and is not complete.
struct Rendezvous {
  CollectiveKind kind;
  uint32_t variant; ///< Shuffle kind or mma type.
  uint64_t mask = 0;
  uint64_t arrived = 0; ///< 0 when the slot is free.
  const DitronSimSite *site = nullptr;
  uint32_t mTiles = 0, nTiles = 0, kTiles = 0;
};

struct Warp {
  static constexpr uint32_t maxMeetings = 8;
  uint64_t live = 0;
  uint64_t atLaneOrder = 0; ///< Lanes that are parked there.
  Rendezvous meetings[maxMeetings];
  race::WarpOrder order;
};

class Block final : public Agent {
public:
  Block(Engine &engine, Rank &rank, uint32_t slot);
  ~Block() override;

  /// Makes the slot run the block of that linear id. The block acts from `now` on. Threads, stacks and shared memory
  /// are taken only when it first acts, from pools: blocks that run from start to end without a wait all use the same,
  /// warm ones.
  void begin(KernelRun &run, uint64_t linearId, SimTime now);
  void step(SimTime now) override;
  /// Ends the residency without running anything further; frames of fibers are dropped.
  void abandon();

  //===- For the ABI functions, on the fiber of `thread` ----------------------------------------------------------===//

  /// Parks the thread (its state says where) until somebody makes it ready.
  void park(Thread &thread) { switchAway(thread); }
  /// Parks the thread on the word that its waiter names, or on those that it polls.
  void parkOnWord(Thread &thread);
  void parkOnPolledWords(Thread &thread);
  /// Lets the other threads of the block and agents that are behind act before a thread that polls tries again.
  void letOthersAct(Thread &thread);
  void makeReady(Thread &thread) {
    thread.state = ThreadState::Ready;
    ready[readyTail++ & readyMask] = static_cast<uint16_t>(thread.threadId);
  }
  /// The same from an event at `when`, while no thread of the block runs.
  void wakeAt(Thread &thread, SimTime when);
  /// Lets agents whose clock is behind act first. Called before an effect that others may observe.
  void yieldIfAhead(Thread &thread);
  /// Lets the other threads of the block that can run go first, as often as the options say.
  void maybeLetOthersFirst(Thread &thread);
  /// Before a relaxed load of a word: returns each time that the load is to be carried out, mostly once (LateLoad.h).
  void maybeLoadLate(Thread &thread, const void *address);
  /// A relaxed store of a word that the thread could make before its last load: true when it has been made already.
  bool isMadeAlready(Thread &thread, void *address, uint64_t value, uint32_t bytes);
  /// The thread has made the store; its load is carried out later. Returns only when there is no such load.
  void maybeGoBackToLoad(Thread &thread, void *address, uint64_t value, uint32_t bytes);
  /// The thread does something with effect that is no such store.
  void leaveLateLoad(Thread &thread);
  /// Ends the run with an error from this thread; never returns.
  [[noreturn]] void failThread(Thread &thread, StatusCode code, const std::string &what, const DitronSimSite *site);
  /// Tells the race detector, if there is one, of an access of DitronSimAccess by the thread; its race ends the run. The allocation
  /// is null for shared memory.
  void noteAccess(Thread &thread, Allocation *allocation, const void *address, uint64_t bytes, uint32_t access,
                  const DitronSimSite *site);
  /// Notes for the trace that the block reaches memory of another rank.
  void noteRemote(const Allocation &allocation, uint64_t bytes, bool isWrite, const DitronSimSite *site);
  /// Ends the run with a race, if there is one.
  void failIf(const std::string *race, Thread &thread, const DitronSimSite *site) {
    if (race) [[unlikely]]
      failThread(thread, StatusCode::DataRace, *race, site);
  }
  /// A write, or the end of patience, releases the thread's wait for words at `when`.
  void releaseFromWords(Thread &thread, SimTime when);
  /// Resumes all threads that sleep on words that they poll: what one of the block waits for has moved, and they may take part in its loop.
  void resumeSleepers();
  /// Resumes all threads that poll, at `when`; false when they have been shown to poll for ever.
  bool resumePollers(SimTime when);
  void barrier(Thread &thread, const DitronSimSite *site);
  /// Meets the lanes of the mask; the last to arrive completes the meeting for all. `shape` holds the tile counts of an
  /// mma.
  void meet(Thread &thread, CollectiveKind kind, uint32_t variant, uint64_t mask, const DitronSimSite *site,
            const uint32_t *shape = nullptr);
  /// Parks the thread until all lanes of its warp have come here.
  void orderLanes(Thread &thread, const DitronSimSite *site);
  /// Turns the work accounted so far into time on the clock.
  void settle();
  /// Charges a word's access by one thread. True where no other thread of the block was there as often (AccessTime.h).
  bool chargeAccess(const Thread &thread, const void *address, uint32_t bytes, bool isStore, bool remote,
                    const DitronSimSite *site);
  /// Charges the latency of a fence or of the start of a transfer.
  void chargeLatency(const Thread &thread, const DitronSimSite *site, bool remote);
  /// Writer record of the thread for a write at the present clock.
  Writer writer(const Thread &thread, const DitronSimSite *site) const;

  //===- For reports ----------------------------------------------------------------------------------------------===//

  /// "kernel k, rank r, block (x,y,z)".
  std::string describe() const;
  /// "127 threads wait at the block barrier gemm.py:3:4; ..." about the live threads that do not wait for a word.
  std::string describeParked() const;
  /// Live threads that wait for others of their block, for the same at the same place.
  struct ParkedThreads {
    std::string what, detail; ///< "block barrier"; what else is known.
    const DitronSimSite *site = nullptr;
    std::vector<uint32_t> ids; ///< Ascending.
  };
  std::vector<ParkedThreads> parkedThreads() const;
  uint32_t liveThreads() const { return live; }
  const std::vector<std::unique_ptr<Thread>> &allThreads() const { return threads; }
  std::vector<Warp> &allWarps() { return warps; }
  char *sharedMemory() const { return shared; }
  /// What its warps do from now on is not what they did before.
  void forgetStrands() {
    for (Warp &warp : warps)
      warp.order.beginSync();
  }
  /// A store that generated code is about to make to a word that somebody may sleep on: those are looked after when the thread has run.
  void noteNativeStore(const Thread &thread, const void *address, const DitronSimSite *site) {
    nativeStore = writer(thread, site);
    nativeStoreAddress = address;
  }
  /// Lets all lanes go on that wait for others at a lane order, since those took another way. False if there are none.
  bool releaseLanes();
  /// Ends the run when no thread can ever go on and no word is waited for.
  void reportIfStuck();

  Engine &engine;
  Rank &rank;
  const uint32_t slot;
  KernelRun *kernel = nullptr; ///< Null when the slot is free.
  uint32_t blockId[3] = {0, 0, 0};
  uint64_t linearId = 0;
  SimTime start = 0;
  SimTime clock = 0;
  const bool checked;
  AccessCache &cache;
  AsyncUnit asyncUnit;
  race::BlockOrder order;
  std::vector<race::Cell> sharedCells; ///< Of its shared memory, when races are looked for.
  // Work since the last settle.
  uint64_t globalBytes[2] = {0, 0}; ///< Own rank, other ranks.
  uint64_t sharedTraffic = 0;
  double clocks = 0;
  /// Last checked native store to a word that somebody watched; names the source line when the change is found.
  Writer nativeStore;
  uint64_t effects = 0; ///< Since it last began to act: whatever is more than reading and meeting.
  const void *nativeStoreAddress = nullptr;
  std::vector<RemoteTraffic> remoteTraffic; ///< Gathered for the trace.
  SimTime tracedWaitEnd = 0; ///< End of the last wait drawn on the slot's track; spans of a track must not overlap.

private:
  static void threadMain(Transfer transfer);
  void finishThread(Thread &thread);
  /// Switches away from the thread, to a ready thread or else to the scheduler.
  void switchAway(Thread &thread);
  void saveArrival(Transfer transfer);
  static void saveContext(Thread &thread, Context context);
  void goBackToLoad(Thread &thread, LateLoad::Phase phase);
  void releaseBarrier(Thread *last);
  void complete(Warp &warp, Rendezvous &meeting, Thread *last);
  void releaseLanes(Warp &warp);
  /// Makes lanes of a warp ready, those that come first in the order first.
  void makeReady(Warp &warp, uint64_t lanes);
  /// The threads in the order in which the seed lets them run: the one at `place`, or null.
  Thread *inOrder(uint32_t place) const {
    const uint32_t id = place ^ orderFlips;
    return id < threads.size() ? threads[id].get() : nullptr;
  }
  /// Matrix loads or stores of 32 lanes (MatrixAccess.cpp); `variant` as ditron_sim_load_matrices puts it together.
  void moveMatrices(const std::unique_ptr<Thread> *lanes, uint32_t instructions, uint32_t variant);
  void addLatency(bool remote);
  void finish();
  void reportStuck();
  bool makeThreads();
  /// Draws the order in which threads run, from the seed; the seed 0 has that of their numbers.
  void chooseOrder();
  void returnThreads();

  std::vector<std::unique_ptr<Thread>> threads; ///< Of the present block once it has acted.
  std::vector<Warp> warps;
  std::vector<uint16_t> ready; ///< Ring.
  uint32_t readyMask = 0, readyHead = 0, readyTail = 0;
  uint32_t live = 0;
  uint32_t waitingWord = 0;
  uint32_t waitingLanes = 0;   ///< Threads at a lane order.
  uint32_t orderFlips = 0;     ///< Threads run in the order of their number with these bits flipped.
  bool runsWarpsApart = false; ///< A warp goes on after a meeting of its lanes before others do.
  uint32_t atBarrier = 0;
  bool barrierMixed = false;
  const DitronSimSite *barrierSite = nullptr;
  uint64_t attempts = 0; ///< Of threads that poll.
  Recurrence recurrence;
  bool yielded = false;
  bool fresh = false; ///< Has not acted yet.
  Context schedulerContext = nullptr;
  char *shared = nullptr;
  AccessTime accessTime;
};

/// "file.py:3:4".
std::string siteText(const DitronSimSite *site);
/// An error about a place in a kernel's source: "file.py:3:4: what", with the place as data.
Status failureAt(StatusCode code, const DitronSimSite *site, std::string_view what);
/// Whether two sites name the same place.
bool sameSite(const DitronSimSite *a, const DitronSimSite *b);
std::string_view collectiveName(CollectiveKind kind);

/// The calling thread, which only reads, or takes care of LateLoad.h itself.
inline Thread &asReader(DitronSimThread *self) { return *static_cast<Thread *>(self); }
/// The calling thread, which meets others or waits: nothing is different when it has done so twice.
inline Thread &asMeeting(DitronSimThread *self) {
  Thread &thread = asReader(self);
  if (thread.lateLoad.phase != LateLoad::Phase::None) [[unlikely]]
    thread.block->leaveLateLoad(thread);
  return thread;
}
/// Something is different from before: the thread is in no circle.
inline void noteEffect(Thread &thread) {
  ++thread.block->effects;
  thread.polling.forget();
}
/// The thread has read a clock, or an old value while the new one is on its way.
inline void noteTimePasses(Thread &thread) {
  ++thread.block->effects;
  thread.polling.noteTimePasses();
}
/// The calling thread, which does something with effect.
inline Thread &asThread(DitronSimThread *self) {
  Thread &thread = asMeeting(self);
  noteEffect(thread);
  return thread;
}

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_BLOCK_H
