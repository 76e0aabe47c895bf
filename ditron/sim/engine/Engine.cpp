//===- Engine.cpp - The state of a machine ------------------------------------------------------------------------===//
//
// Construction, the run loop, and the way from a write to those who sleep on the word.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"

#include "ditron/sim/memory/Fault.h"
#include "ditron/sim/report/DeadlockReport.h"
#include "ditron/sim/report/EngineTrace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>
#include <utility>

namespace ditron::sim {

using explain::WaitReport;

namespace {
constexpr uint32_t threadStacksPerSlab = 64;
} // namespace

namespace {
/// To whoever has asked by a signal, and waits at the terminal.
void printReport(const std::string &text) { fmt::print(stderr, "{}\n", text); }
} // namespace

Machine::State::State(MachineOptions machineOptions)
    : options(std::move(machineOptions)),
      schedule(options.schedule ? *options.schedule : Schedule::draw(options.seed, options.ranks, options.smsPerRank)),
      scheduler(schedule, options.jitter), memory(options), trace(options.recordTrace),
      timeLimit(options.timeLimitSeconds), threadStacks(options.threadStackBytes, threadStacksPerSlab),
      hostStacks(options.hostStackBytes, 1) {}

Machine::State::~State() {
  stopEverything();
  ranks.clear(); // gives threads and shared memory back to the pools
  for (char *memory : idleShared)
    std::free(memory);
  for (auto &stream : streams)
    if (stream->capture && stream->capture->origin.value == stream->id)
      delete stream->capture; // a capture that was never ended
}

Status Machine::State::start() {
  DITRON_RETURN_IF_ERROR(memory.reserve());
  if (options.detectRaces && options.checkBounds)
    races = std::make_unique<race::Detector>(*this);
  if (races && schedule.lateStores > 0)
    weakMemory = std::make_unique<WeakMemory>(*this);
  for (uint32_t r = 0; r < options.ranks; ++r) {
    auto rank = std::make_unique<Rank>();
    rank->id = r;
    // Ranks of a real job never start together.
    if (schedule.rankStartNs > 0)
      rank->startDelayNs =
          static_cast<double>(Random(schedule.seed * 1024 + r).below(static_cast<uint64_t>(schedule.rankStartNs)));
    if (schedule.slowRank == static_cast<int64_t>(r))
      rank->slowFactor = schedule.slowFactor;
    if (auto it = options.slowRanks.find(r); it != options.slowRanks.end())
      rank->slowFactor *= it->second;
    for (uint32_t s = 0; s < options.smsPerRank * options.blocksPerSm; ++s) {
      rank->slots.push_back(std::make_unique<Block>(*this, *rank, s));
      rank->freeSlots.push_back(s);
      trace.nameTrack(r, s,
                      options.blocksPerSm == 1
                          ? fmt::format("SM {}", s)
                          : fmt::format("SM {} slot {}", s / options.blocksPerSm, s % options.blocksPerSm));
    }
    for (uint32_t c = 0; c < options.copyEnginesPerRank; ++c) {
      rank->copyEngines.push_back(std::make_unique<CopyEngine>(*this, *rank, c));
      trace.nameTrack(r, copyTracks + c, fmt::format("copy engine {}", c));
    }
    rank->shmem = std::make_unique<Shmem>(*this, *rank);
    if (schedule.busySms)
      rank->otherWork = std::make_unique<OtherWork>(*this, *rank, schedule.busySms);
    ranks.push_back(std::move(rank));
  }
  return Status::ok();
}

std::unique_ptr<Thread> Machine::State::takeThread() {
  if (!idleThreads.empty()) {
    std::unique_ptr<Thread> thread = std::move(idleThreads.back());
    idleThreads.pop_back();
    return thread;
  }
  auto thread = std::make_unique<Thread>();
  thread->stack = threadStacks.acquire();
  if (!thread->stack.top)
    return nullptr;
  thread->waiter.thread = thread.get();
  return thread;
}

char *Machine::State::takeSharedMemory() {
  if (!idleShared.empty()) {
    char *memory = idleShared.back();
    idleShared.pop_back();
    return memory;
  }
  constexpr uint64_t alignment = 1024; // of the widest swizzle's pattern
  uint64_t bytes = (options.sharedBytesPerBlock + alignment) / alignment * alignment;
  return static_cast<char *>(std::aligned_alloc(alignment, bytes));
}

//===- Errors -----------------------------------------------------------------------------------------------------===//

void Machine::State::fail(Status error) {
  if (status.isOk())
    status = std::move(error);
}

void Machine::State::fail(StatusCode code, WaitReport report) {
  Status error{code, textOf(report)};
  fail(std::move(error), std::move(report));
}

void Machine::State::fail(Status error, WaitReport report) {
  if (stopped())
    return;
  fail(std::move(error));
  waitReport = std::make_shared<const WaitReport>(std::move(report));
}

/// Drops everything that runs or waits. Fibers of kernels are not resumed: their frames own nothing.
void Machine::State::stopEverything() {
  for (auto &rank : ranks) {
    for (auto &slot : rank->slots)
      if (slot->kernel)
        slot->abandon();
    rank->runs.clear();
    rank->shmem->clear();
  }
}

//===- Writes and waits -------------------------------------------------------------------------------------------===//

SimTime Machine::State::signalLatency(uint32_t writerRank, const void *address, uint32_t waiterRank) {
  const Allocation *home = memory.find(address);
  uint32_t homeRank = home ? home->rank : waiterRank;
  double nanoseconds = options.cost.localLatencyNs;
  if (writerRank != homeRank && options.shareNode(writerRank, homeRank)) // the network's time has passed already
    nanoseconds += options.cost.linkLatencyNs;
  if (waiterRank != homeRank)
    nanoseconds += options.cost.linkLatencyNs;
  return scheduler.cost(nanoseconds);
}

void Machine::State::releaseAll(const std::vector<Waiter *> &released, const Writer *writer) {
  if (released.empty())
    return;
  ++progress;
  // Waking may run into the table again; the list is copied.
  std::vector<Waiter *> list = released;
  Block *drawn = nullptr;
  for (Waiter *waiter : list) {
    if (waiter->thread && waiter->thread->state != ThreadState::WaitingWord)
      continue; // by another of the words that it polls
    uint32_t rank = waiter->thread ? waiter->thread->block->rank.id : waiter->stream->rank.id;
    SimTime written = writer ? writer->time : scheduler.now;
    SimTime when =
        std::max(waiter->since, written + signalLatency(writer ? writer->rank : rank, waiter->address, rank));
    constexpr uint64_t latestNs = 20'000;
    if (waiter->thread && scheduler.happens(schedule.lateWakes))
      when += scheduler.cost(static_cast<double>(scheduler.random.below(latestNs)));
    Block *block = waiter->thread ? waiter->thread->block : nullptr;
    // Of the threads of a block that wake together one is drawn.
    if (trace.isEnabled() && (!block || block != drawn)) {
      traceWaitEnd(*this, *waiter, writer, when);
      drawn = block;
    }
    if (waiter->thread)
      waiter->thread->block->releaseFromWords(*waiter->thread, when);
    else
      waiter->stream->releaseWaiter(when);
  }
}

void Machine::State::wordWritten(const void *address, uint32_t bytes, const Writer &writer) {
  ++progress;
  writers.record(address, writer);
  if (!watches.empty())
    releaseAll(watches.written(address, bytes), &writer);
}

void Machine::State::wordChanged(const void *address, uint32_t bytes, const SimTime *when) {
  Writer nobody;
  nobody.time = when ? *when : scheduler.now;
  ++progress;
  if (!watches.empty())
    releaseAll(watches.written(address, bytes), &nobody);
}

void Machine::State::rangeWritten(void *address, uint64_t bytes, const Writer &writer) {
  ++progress;
  if (Allocation *allocation = memory.find(address)) {
    allocation->bulkWriter = writer;
    allocation->bulkBegin = static_cast<char *>(address) - allocation->begin;
    allocation->bulkEnd = allocation->bulkBegin + bytes;
  }
  if (!watches.empty())
    releaseAll(watches.written(address, bytes), &writer);
}

void Machine::State::rescan(const Writer *writer) {
  if (!watches.empty())
    releaseAll(watches.rescan(), writer);
}

//===- Running ----------------------------------------------------------------------------------------------------===//

bool Machine::State::wakeHosts() {
  hostConditionsDirty = false;
  bool any = false;
  for (auto &host : hosts)
    if (!host->finished && host->condition && !host->isQueued() && host->condition()) {
      host->condition = nullptr;
      scheduler.wake(*host, std::max(host->clock, scheduler.now));
      any = true;
    }
  progress += any; // it may write anything
  return any;
}

bool Machine::State::releaseLanes() {
  bool any = false;
  for (auto &rank : ranks)
    for (auto &slot : rank->slots)
      if (slot->kernel && slot->releaseLanes())
        any = true;
  return any;
}

bool Machine::State::wakePollers() {
  std::vector<Block *> blocks;
  std::unordered_set<const Block *> found;
  watches.forEach([&](const Waiter &waiter) {
    if (waiter.kind == Waiter::Kind::Poll && found.insert(waiter.thread->block).second)
      blocks.push_back(waiter.thread->block);
  });
  bool any = false;
  for (Block *block : blocks)
    any |= block->resumePollers(scheduler.now + scheduler.cost(options.cost.localLatencyNs));
  return any;
}

void Machine::State::run(const std::function<bool()> &condition) {
  rescan(nullptr); // the caller may have written signals by hand
  ++progress;
  hostConditionsDirty = true;
  TimeLimit::Watch watch(timeLimit);
  prepareForFaults();
  while (!stopped()) {
    if (timeLimit.hasPassed()) {
      fail(StatusCode::TimeOut, reportTimeOut(*this));
      break;
    }
    if (timeLimit.takeReportRequest())
      printReport(textOf(reportMoment(*this)));
    if (hostConditionsDirty) {
      wakeHosts();
      if (condition())
        return;
    }
    SimTime when = 0;
    if (Agent *agent = scheduler.pop(when)) {
      ++counters.schedulerSteps;
      agent->step(when);
      continue;
    }
    rescan(nullptr);
    if (!scheduler.empty() || wakeHosts() || releaseLanes() || wakePollers())
      continue;
    fail(StatusCode::Deadlock, reportDeadlock(*this));
  }
  if (trace.isEnabled())
    traceUnfinished(*this);
  stopEverything();
  // Host code owns things: it runs to its end, and every call of it fails.
  for (auto &host : hosts)
    while (!host->finished)
      host->step(scheduler.now);
}

void Machine::State::finishTransfers() {
  const auto isIdle = [this] {
    return std::all_of(ranks.begin(), ranks.end(), [](const auto &rank) { return rank->shmem->isIdle(); });
  };
  if (races && !stopped() && !currentHost && !isIdle())
    run(isIdle);
}

Status Machine::State::blockHost(std::function<bool()> condition, std::string description) {
  if (stopped())
    return status;
  if (insideCallback)
    return invalidArgument("a host callback must not block");
  if (currentHost) {
    rescan(nullptr);
    currentHost->park(std::move(condition), std::move(description));
    return status;
  }
  outsideWait = std::move(description);
  run(condition);
  const SimTime since = std::exchange(outsideClock, std::max(outsideClock, scheduler.now));
  if (trace.isEnabled() && outsideClock > since)
    traceHost(*this, "wait for " + outsideWait, since, outsideClock);
  outsideWait.clear();
  return status;
}

SimTime Machine::State::hostCall(std::string_view what) {
  SimTime cost = scheduler.cost(options.cost.hostCallNs);
  SimTime &clock = currentHost ? currentHost->clock : outsideClock;
  if (trace.isEnabled())
    traceHost(*this, what, clock, clock + cost);
  return clock += cost;
}

} // namespace ditron::sim
