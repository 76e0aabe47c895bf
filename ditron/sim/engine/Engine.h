//===- Engine.h - The state of a machine ----------------------------------------------------------------*- C++ -*-===//
//
// What Machine hides: everything the agents share, and the run loop.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_ENGINE_H
#define DITRON_SIM_ENGINE_ENGINE_H

#include "ditron/sim/engine/Block.h"
#include "ditron/sim/engine/CopyEngine.h"
#include "ditron/sim/engine/Fiber.h"
#include "ditron/sim/engine/HostFiber.h"
#include "ditron/sim/engine/OtherWork.h"
#include "ditron/sim/engine/Scheduler.h"
#include "ditron/sim/engine/Shmem.h"
#include "ditron/sim/engine/Streams.h"
#include "ditron/sim/engine/TimeLimit.h"
#include "ditron/sim/memory/Memory.h"
#include "ditron/sim/memory/Watch.h"
#include "ditron/sim/memory/WeakMemory.h"
#include "ditron/sim/race/Detector.h"
#include "ditron/sim/report/Trace.h"

#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace ditron::sim {

/// A launch that its stream has started: some of its blocks may wait for a slot, some are resident, some are done.
struct KernelRun {
  std::shared_ptr<const PreparedLaunch> launch;
  Rank *rank = nullptr;
  Stream *stream = nullptr;
  uint64_t number = 0; ///< Counted from 1.
  uint32_t name = 0;   ///< In the trace's table.
  uint64_t totalBlocks = 0, startedBlocks = 0, finishedBlocks = 0;
  SimTime submitted = 0, started = 0;
  size_t record = SIZE_MAX; ///< Index into the trace's launches.
  uint32_t operation = 0;   ///< Of the race detector.
  race::KnowledgeRef left;  ///< What its blocks knew at their end.

  const LaunchDescription &description() const { return launch->description; }
};

/// One simulated GPU.
struct Rank {
  uint32_t id = 0;
  double slowFactor = 1;
  double startDelayNs = 0; ///< By which its first launch is late; drawn from the seed.
  std::vector<std::unique_ptr<Block>> slots;
  std::vector<uint32_t> freeSlots; ///< Ascending.
  /// Launches with blocks not yet started: higher priority first, then by submission.
  std::vector<std::unique_ptr<KernelRun>> runs; ///< All unfinished launches, same order.
  std::vector<std::unique_ptr<CopyEngine>> copyEngines;
  std::vector<Stream *> streams;
  std::unique_ptr<Shmem> shmem;
  std::unique_ptr<OtherWork> otherWork;    ///< Null when the rank has all of its SMs.
  SimTime egressFree = 0, ingressFree = 0; ///< When the links are free for the next copy chunk.
  SimTime networkOutFree = 0, networkInFree = 0; ///< When the way to other nodes is free for the next transfer.
};

struct Machine::State {
  explicit State(MachineOptions machineOptions);
  ~State();
  Status start();

  //===- Errors ---------------------------------------------------------------------------------------------------===//

  /// Ends the run; the first error stands.
  void fail(Status error);
  /// The same, with the report as text and for whoever asks.
  void fail(StatusCode code, explain::WaitReport report);
  void fail(Status error, explain::WaitReport report);
  bool stopped() const { return !status.isOk(); }

  //===- Writes and waits -----------------------------------------------------------------------------------------===//

  /// A word was written through the engine: remembers who did it and wakes sleepers.
  void wordWritten(const void *address, uint32_t bytes, const Writer &writer);
  /// The same of a word that nobody is remembered for; known at `when`, or now.
  void wordChanged(const void *address, uint32_t bytes, const SimTime *when);
  /// A copy engine or memset wrote a range.
  void rangeWritten(void *address, uint64_t bytes, const Writer &writer);
  /// Finds changes that were not announced. `writer` is who ran last, if known.
  void rescan(const Writer *writer);
  /// Time from a write by `writerRank` to a word of `homeRank` until a sleeper on `waiterRank` acts on it.
  SimTime signalLatency(uint32_t writerRank, const void *address, uint32_t waiterRank);

  //===- Kernels (Kernels.cpp) ------------------------------------------------------------------------------------===//

  void submitKernel(Stream &stream, std::shared_ptr<const PreparedLaunch> launch, SimTime now);
  /// Starts blocks on free slots.
  void dispatch(Rank &rank, SimTime now);
  void blockFinished(Block &block);
  /// All blocks are done, and what they have put has arrived.
  void kernelFinished(KernelRun &run, SimTime now);

  //===- Running --------------------------------------------------------------------------------------------------===//

  /// Runs agents until the condition holds or the run fails; nothing left to run is a failure too, a deadlock.
  void run(const std::function<bool()> &condition);
  /// Host code has waited for all streams. What kernels have left under way, without a quiet, arrives where races are looked for: else
  /// the run might end before they show.
  void finishTransfers();
  /// Called by host-facing functions that block.
  Status blockHost(std::function<bool()> condition, std::string description);
  /// Where operations of the stream go: gives the error that says why none may.
  Status checkEnqueue(StreamId stream, Stream *&found);
  /// Appends to the stream, or to the graph that the stream is being captured into.
  Status enqueue(Stream &stream, StreamOp op);
  //===- Pools: last in, first out, so that what is taken is warm -------------------------------------------------===//

  /// A thread with a stack; null when there is no memory.
  std::unique_ptr<Thread> takeThread();
  void returnThread(std::unique_ptr<Thread> thread) { idleThreads.push_back(std::move(thread)); }
  /// Shared memory of the largest size a block may have; null when there is no memory.
  char *takeSharedMemory();
  void returnSharedMemory(char *memory) { idleShared.push_back(memory); }

  /// Charges one host call to the calling host code and gives the time of it.
  SimTime hostCall(std::string_view what);

  const MachineOptions options;
  const Schedule schedule;
  Scheduler scheduler;
  Memory memory;
  WatchTable watches;
  WriterTable writers;
  PlaceTable places;
  Trace trace;
  Counters counters;
  uint64_t launches = 0; ///< So far.
  TimeLimit timeLimit;
  std::unique_ptr<race::Detector> races; ///< Null when races are not looked for.
  std::unique_ptr<WeakMemory> weakMemory; ///< Null when every load sees the newest value.
  Status status;
  std::shared_ptr<const explain::WaitReport> waitReport; ///< Of the end of the run.
  StackPool threadStacks, hostStacks;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Event>> events;
  std::vector<std::unique_ptr<HostFiber>> hosts;
  HostFiber *currentHost = nullptr;
  /// Places of host code by file, line and column.
  std::map<std::tuple<std::string, uint32_t, uint32_t>, DitronSimSite> hostPlaces;
  race::HostOrder outsideOrder; ///< Of host code outside of runHosts.
  race::HostOrder &hostOrder() { return currentHost ? currentHost->order : outsideOrder; }
  /// Host codes that wait for each other; see Machine::hostMeet.
  struct HostMeeting {
    std::vector<HostFiber *> waiting;
    uint64_t generation = 0;
    race::HostOrder gathered; ///< What those who have come know.
  };
  std::map<std::string, HostMeeting, std::less<>> meetings;
  /// `describe` says what the waiting ones wait for, when so many are there.
  Status meet(std::string_view key, uint32_t participants, const std::function<std::string(size_t)> &describe);
  bool hostConditionsDirty = false; ///< Something happened that host code may wait for.
  bool insideCallback = false;
  SimTime outsideClock = 0; ///< Clock of host code outside of runRanks.
  std::string outsideWait;  ///< What that code waits for; empty when it does not.
  // Of all launches so far.
  uint64_t enqueuedBlocks = 0, finishedBlocks = 0;
  std::function<void(double)> progressObserver; ///< Is told what share of them has finished.
  /// Counts effects: while it stands still, what a thread reads is as it was.
  uint64_t progress = 0;

private:
  void releaseAll(const std::vector<Waiter *> &released, const Writer *writer);
  bool wakeHosts();
  /// Resumes threads that poll, but for those of blocks that are shown to go round in a circle (KernelState.h).
  bool wakePollers();
  /// Lets lanes go on that wait for others that will not come; false if there are none.
  bool releaseLanes();
  void stopEverything();

  std::vector<std::unique_ptr<Thread>> idleThreads;
  std::vector<char *> idleShared;
};

inline void Block::noteAccess(Thread &thread, Allocation *allocation, const void *address, uint64_t bytes,
                              uint32_t access, const DitronSimSite *site) {
  if (engine.races)
    failIf(engine.races->access(thread, allocation, address, bytes, access, site), thread, site);
}

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_ENGINE_H
