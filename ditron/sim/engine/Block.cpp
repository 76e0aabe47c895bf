//===- Block.cpp - A resident block and its threads ---------------------------------------------------------------===//
//
// Fibers of a block: start, switch, park, finish; and the block as an agent. Rendezvous are in Collectives.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Block.h"

#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/report/DeadlockReport.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ditron::sim {

namespace {
/// The thread whose fiber runs on this operating-system thread.
thread_local Thread *currentThread = nullptr;
/// Uninitialised shared memory reads as NaN or -1.
constexpr int sharedPoison = 0xff;
} // namespace

extern "C" DitronSimThread *ditron_sim_self(void) { return currentThread; }

std::string siteText(const DitronSimSite *site) {
  return site ? fmt::format("{}:{}:{}", site->file, site->line, site->column) : std::string("an unknown line");
}

Status failureAt(StatusCode code, const DitronSimSite *site, std::string_view what) {
  Status failure(code, fmt::format("{}: {}", siteText(site), what));
  return site ? failure.at({site->file, site->line, site->column}) : failure;
}

bool sameSite(const DitronSimSite *a, const DitronSimSite *b) {
  return a == b || (a && b && a->line == b->line && a->column == b->column && std::strcmp(a->file, b->file) == 0);
}

Block::Block(Engine &engine, Rank &rank, uint32_t slot)
    : engine(engine), rank(rank), slot(slot), checked(engine.options.checkBounds), cache(engine.memory.cache(rank.id)),
      asyncUnit(*this) {}

Block::~Block() { returnThreads(); }

void Block::begin(KernelRun &run, uint64_t linear, SimTime now) {
  const std::array<uint32_t, 3> &grid = run.description().grid;
  kernel = &run;
  linearId = linear;
  blockId[0] = static_cast<uint32_t>(linear % grid[0]);
  blockId[1] = static_cast<uint32_t>(linear / grid[0] % grid[1]);
  blockId[2] = static_cast<uint32_t>(linear / grid[0] / grid[1]);
  live = run.description().threadsPerBlock;
  fresh = true;
  clock = now + engine.scheduler.cost(engine.options.cost.blockStartNs * rank.slowFactor);
  if (const double latest = engine.schedule.blockStartNs; latest > 0)
    clock += engine.scheduler.cost(static_cast<double>(engine.scheduler.random.below(static_cast<uint64_t>(latest))));
  start = tracedWaitEnd = clock;
  engine.scheduler.wake(*this, clock);
}

bool Block::makeThreads() {
  const LaunchDescription &launch = kernel->description();
  const uint32_t warpSize = engine.options.warpSize, count = launch.threadsPerBlock;
  shared = engine.takeSharedMemory();
  if (!shared)
    return false;
  std::memset(shared, sharedPoison, launch.sharedBytes);
  warps.assign((count + warpSize - 1) / warpSize, {});
  ready.resize(std::bit_ceil(count + 1));
  readyMask = static_cast<uint32_t>(ready.size()) - 1;
  readyHead = readyTail = 0;
  for (uint32_t i = 0; i < count; ++i) {
    std::unique_ptr<Thread> taken = engine.takeThread();
    if (!taken)
      return false;
    Thread &thread = *threads.emplace_back(std::move(taken));
    thread.threadId = i;
    thread.laneId = i % warpSize;
    thread.warpId = i / warpSize;
    thread.numThreads = count;
    std::copy_n(blockId, 3, thread.blockId);
    std::copy_n(launch.grid.begin(), 3, thread.gridDim);
    thread.sharedMemory = shared;
    thread.sharedBytes = launch.sharedBytes;
    thread.timedOut = engine.timeLimit.word();
    thread.context = boost::context::detail::make_fcontext(thread.stack.top, thread.stack.bytes, threadMain);
    thread.block = this;
    thread.warp = &warps[thread.warpId];
    thread.warp->live |= uint64_t(1) << thread.laneId;
    thread.accessSite = nullptr;
    thread.frame = nullptr;
    thread.polling.clear();
    thread.lateLoad.phase = LateLoad::Phase::None;
    thread.lateLoad.request = LateLoad::Request::None;
    thread.faulted = false;
    thread.nullFor = {};
    thread.async.clear();
    thread.asyncWork.clear();
    thread.order.clear();
  }
  if (engine.races)
    engine.races->beginBlock(*this);
  chooseOrder();
  for (uint32_t place = 0; place < ready.size(); ++place)
    if (Thread *thread = inOrder(place))
      makeReady(*thread);
  waitingWord = waitingLanes = atBarrier = 0;
  recurrence.clear();
  globalBytes[0] = globalBytes[1] = sharedTraffic = 0;
  clocks = 0;
  accessTime.beginBlock(count);
  nativeStoreAddress = nullptr;
  remoteTraffic.clear();
  asyncUnit.reset(launch.sharedBytes, count);
  return true;
}

void Block::chooseOrder() {
  orderFlips = 0;
  runsWarpsApart = false;
  if (!engine.schedule.shuffledWarps)
    return;
  Random random(engine.schedule.seed ^ (linearId << 8 | rank.id) * 0x9e3779b97f4a7c15ULL);
  orderFlips = static_cast<uint32_t>(random.below(std::bit_ceil(threads.size())));
  runsWarpsApart = random.below(2) != 0;
}

void Block::returnThreads() {
  // In reverse: the next block then gets them in the same order.
  for (; !threads.empty(); threads.pop_back())
    engine.returnThread(std::move(threads.back()));
  if (shared)
    engine.returnSharedMemory(shared);
  shared = nullptr;
}

//===- Switching --------------------------------------------------------------------------------------------------===//

void Block::saveArrival(Transfer transfer) {
  if (transfer.data)
    saveContext(*static_cast<Thread *>(transfer.data), transfer.fctx);
  else
    schedulerContext = transfer.fctx;
}

void Block::switchAway(Thread &thread) {
  Context target = schedulerContext;
  if (readyHead != readyTail && !yielded && !engine.stopped()) {
    Thread *next = threads[ready[readyHead++ & readyMask]].get();
    if (next == &thread)
      return;
    target = next->context;
    currentThread = next;
  }
  ++engine.counters.fiberSwitches;
  saveArrival(boost::context::detail::jump_fcontext(target, &thread));
}

void Block::threadMain(Transfer transfer) {
  Thread &thread = *currentThread;
  Block &block = *thread.block;
  block.saveArrival(transfer);
  PreparedLaunch const &launch = *block.kernel->launch;
  launch.description.entry(const_cast<void **>(launch.pointers.data()));
  block.finishThread(asThread(&thread));
  block.switchAway(thread);
  std::abort(); // a finished thread is never ready
}

void Block::parkOnWord(Thread &thread) {
  ++waitingWord;
  engine.watches.add(thread.waiter);
  switchAway(thread);
}

void Block::parkOnPolledWords(Thread &thread) {
  ++waitingWord;
  thread.polling.sleep(thread, engine.watches);
  switchAway(thread);
}

void Block::letOthersAct(Thread &thread) {
  constexpr double attemptClocks = 32; // time passes in loops that read shared memory, too
  constexpr uint64_t patience = 256;
  clocks += attemptClocks;
  if (++attempts % patience == 0) {
    // Lanes that wait for this one, which does not come, may be those that it waits for. And the time limit may have passed.
    releaseLanes();
    yielded = true;
  }
  makeReady(thread);
  switchAway(thread);
  yieldIfAhead(thread);
}

void Block::wakeAt(Thread &thread, SimTime when) {
  clock = std::max(clock, when);
  makeReady(thread);
  engine.scheduler.wake(*this, clock);
}

void Block::yieldIfAhead(Thread &thread) {
  settle();
  if (!engine.scheduler.comesFirst(clock))
    return;
  // This thread continues first when the block runs again.
  ready[--readyHead & readyMask] = static_cast<uint16_t>(thread.threadId);
  yielded = true;
  switchAway(thread);
}

//===- Loads that are carried out late: LateLoad.h ----------------------------------------------------------------===//

void Block::saveContext(Thread &thread, Context context) {
  thread.context = context;
  LateLoad &late = thread.lateLoad;
  if (late.request == LateLoad::Request::Save) [[unlikely]]
    late.save(context, thread.stack);
  else if (late.request == LateLoad::Request::Restore) [[unlikely]]
    thread.context = late.restore();
  late.request = LateLoad::Request::None;
}

void Block::maybeLoadLate(Thread &thread, const void *address) {
  // A thread in three times as many that could be given an old value: few loads have a store behind them.
  if (!engine.weakMemory || yielded ||
      engine.scheduler.random.below(3000) >= static_cast<uint64_t>(engine.schedule.lateStores * 1000))
    return;
  // A loop that waits has been shown what it may be shown: from now on it is to come back to a state in which it has been.
  constexpr uint64_t enoughRepeats = 16;
  if (thread.polling.repeatsOf(address) >= enoughRepeats)
    return;
  thread.lateLoad.phase = LateLoad::Phase::Ahead;
  thread.lateLoad.request = LateLoad::Request::Save;
  thread.lateLoad.loaded = address;
  thread.lateLoad.moment = engine.races->momentOf(thread);
  thread.lateLoad.fence.reset();
  ready[--readyHead & readyMask] = static_cast<uint16_t>(thread.threadId);
  yielded = true;
  switchAway(thread);
}

bool Block::isMadeAlready(Thread &thread, void *address, uint64_t value, uint32_t bytes) {
  LateLoad &late = thread.lateLoad;
  if (late.phase != LateLoad::Phase::Late && late.phase != LateLoad::Phase::Back)
    return false;
  if (late.stored != address || late.storedValue != value || late.storedBytes != bytes) {
    leaveLateLoad(thread);
    return false;
  }
  late.phase = LateLoad::Phase::None;
  return true;
}

void Block::maybeGoBackToLoad(Thread &thread, void *address, uint64_t value, uint32_t bytes) {
  LateLoad &late = thread.lateLoad;
  if (late.phase != LateLoad::Phase::Ahead)
    return;
  // The load and the store of one word keep their order.
  if (yielded || reinterpret_cast<uintptr_t>(address) >> 3 == reinterpret_cast<uintptr_t>(late.loaded) >> 3) {
    late.phase = LateLoad::Phase::None;
    return;
  }
  late.stored = address;
  late.storedValue = value;
  late.storedBytes = bytes;
  constexpr uint64_t longestNs = 8000; // for others to see the store and to act
  clock += engine.scheduler.cost(static_cast<double>(engine.scheduler.random.below(longestNs)));
  goBackToLoad(thread, LateLoad::Phase::Late);
}

void Block::goBackToLoad(Thread &thread, LateLoad::Phase phase) {
  thread.lateLoad.phase = phase;
  thread.lateLoad.request = LateLoad::Request::Restore;
  makeReady(thread);
  yielded = true;
  switchAway(thread);
  std::abort(); // it goes on at the load
}

void Block::leaveLateLoad(Thread &thread) {
  if (thread.lateLoad.phase == LateLoad::Phase::Late && !engine.stopped())
    goBackToLoad(thread, LateLoad::Phase::Back);
  thread.lateLoad.phase = LateLoad::Phase::None;
}

void Block::maybeLetOthersFirst(Thread &thread) {
  if (readyHead == readyTail || yielded || !engine.scheduler.happens(engine.schedule.threadSwitches))
    return;
  makeReady(thread);
  switchAway(thread);
}

void Block::failThread(Thread &thread, StatusCode code, const std::string &what, const DitronSimSite *site) {
  engine.fail(failureAt(code, site, fmt::format("{}, thread {}: {}", describe(), thread.threadId, what)));
  switchAway(thread); // the run has stopped: to the scheduler, for good
  std::abort();
}

void Block::finishThread(Thread &thread) {
  thread.state = ThreadState::Finished;
  --live;
  ++engine.progress;
  if (engine.races)
    engine.races->threadFinished(thread);
  Warp &warp = *thread.warp;
  warp.live &= ~(uint64_t(1) << thread.laneId);
  // The others may have waited only for this thread.
  for (Rendezvous &meeting : warp.meetings)
    if (meeting.arrived && !(meeting.mask & warp.live & ~meeting.arrived))
      complete(warp, meeting, nullptr);
  if (warp.atLaneOrder && warp.atLaneOrder == warp.live)
    releaseLanes(warp);
  asyncUnit.threadFinished(thread);
  if (live && atBarrier == live)
    releaseBarrier(nullptr);
}

void Block::releaseFromWords(Thread &thread, SimTime when) {
  --waitingWord;
  engine.watches.remove(thread.waiter);
  thread.polling.wake(engine.watches);
  clock = std::max(clock, when);
  makeReady(thread);
  engine.scheduler.wake(*this, clock);
}

void Block::resumeSleepers() {
  for (const auto &thread : threads)
    if (thread->state == ThreadState::WaitingWord && !thread->waiter.active)
      releaseFromWords(*thread, clock);
}

bool Block::resumePollers(SimTime when) {
  if (recurrence.isStuck(*this, engine.progress))
    return false;
  clock = std::max(clock, when);
  resumeSleepers();
  return true;
}

//===- The block as an agent --------------------------------------------------------------------------------------===//

void Block::step(SimTime now) {
  clock = std::max(clock, now);
  yielded = false;
  if (fresh) {
    fresh = false;
    if (!makeThreads()) {
      engine.fail(
          {StatusCode::ResourceExhausted,
           fmt::format("no memory for the threads of {}: the system refuses more stacks of {}; raise the limit on "
                       "address space (ulimit -v), or use fewer ranks, SMs (--sms), blocks or warps",
                       describe(), byteCount(engine.options.threadStackBytes))});
      return;
    }
  }
  if (readyHead == readyTail) // woken early, or twice: the block may have ended since
    return;
  cache.serve(kernel->number);
  Thread *next = threads[ready[readyHead++ & readyMask]].get();
  currentThread = next;
  ++engine.counters.fiberSwitches;
  Transfer transfer = boost::context::detail::jump_fcontext(next->context, nullptr);
  saveContext(*static_cast<Thread *>(transfer.data), transfer.fctx);
  currentThread = nullptr;
  if (engine.stopped())
    return;
  engine.progress += std::exchange(effects, 0);
  settle();
  // A checked block's stores are all known: nobody sleeps on what it has written unless nativeStoreAddress is set.
  if (!engine.watches.empty() && (nativeStoreAddress || !checked)) {
    Writer last = nativeStoreAddress ? nativeStore : writer(*threads[0], nullptr);
    last.time = clock;
    nativeStoreAddress = nullptr;
    engine.rescan(&last);
  }
  if (live == 0)
    finish();
  else if (readyHead != readyTail)
    engine.scheduler.wake(*this, clock);
  else
    reportIfStuck();
}

void Block::reportIfStuck() {
  if (live && !fresh && !yielded && readyHead == readyTail && waitingWord == 0 && !asyncUnit.inFlight() &&
      !releaseLanes())
    reportStuck();
}

void Block::finish() {
  if (!asyncUnit.finish())
    return;
  if (engine.races)
    engine.races->blockFinished(*this);
  ++engine.counters.blocksRun;
  ++engine.progress;
  if (engine.trace.isEnabled()) {
    traceBlock(*this, clock, /*isFinished=*/true);
    if (kernel->record != SIZE_MAX)
      engine.trace.launches[kernel->record].blocks[linearId] = {
          {blockId[0], blockId[1], blockId[2]}, slot, start, clock};
  }
  returnThreads();
  engine.blockFinished(*this);
}

void Block::abandon() {
  for (auto &thread : threads)
    if (thread) {
      engine.watches.remove(thread->waiter);
      thread->polling.wake(engine.watches);
    }
  asyncUnit.clear();
  returnThreads();
  live = waitingLanes = 0;
  fresh = false;
  kernel = nullptr;
  readyHead = readyTail = 0;
}

void Block::settle() {
  const CostModel &cost = engine.options.cost;
  if (!globalBytes[0] && !globalBytes[1] && !sharedTraffic && clocks == 0)
    return;
  double share = engine.options.blocksPerSm; // resident blocks of an SM share what it gives
  double nanoseconds =
      static_cast<double>(globalBytes[0]) * share / cost.hbmBytesPerNsPerSm +
      static_cast<double>(globalBytes[1]) * engine.options.smsPerRank * share / cost.linkBytesPerNs +
      (clocks + static_cast<double>(sharedTraffic) / cost.sharedBytesPerClock) * share / cost.smClockGHz;
  clock += engine.scheduler.cost(nanoseconds * rank.slowFactor);
  if (globalBytes[1])
    for (RemoteTraffic &traffic : remoteTraffic)
      if (traffic.end < 0)
        traffic.end = clock;
  engine.counters.localBytes += globalBytes[0];
  engine.counters.remoteBytes += globalBytes[1];
  engine.counters.sharedBytes += sharedTraffic;
  globalBytes[0] = globalBytes[1] = sharedTraffic = 0;
  clocks = 0;
}

void Block::noteRemote(const Allocation &allocation, uint64_t bytes, bool isWrite, const DitronSimSite *site) {
  auto traffic = std::find_if(remoteTraffic.begin(), remoteTraffic.end(), [&](const RemoteTraffic &one) {
    return one.allocation == &allocation && one.isWrite == isWrite;
  });
  if (traffic == remoteTraffic.end())
    traffic =
        remoteTraffic.insert(traffic, {allocation.name, &allocation, allocation.rank, isWrite, 0, 0, clock, 0, site});
  traffic->bytes += bytes;
  ++traffic->accesses;
  traffic->end = -1; // known when the work is turned into time
}

bool Block::chargeAccess(const Thread &thread, const void *address, uint32_t bytes, bool isStore, bool remote,
                         const DitronSimSite *site) {
  const AccessTime::Cost cost =
      accessTime.access(thread.threadId, site, reinterpret_cast<uintptr_t>(address), bytes, isStore);
  globalBytes[remote] += cost.bytes;
  if (cost.hasLatency)
    addLatency(remote);
  return cost.isFirst;
}

void Block::chargeLatency(const Thread &thread, const DitronSimSite *site, bool remote) {
  if (accessTime.visit(thread.threadId, site))
    addLatency(remote);
}

void Block::addLatency(bool remote) {
  const CostModel &cost = engine.options.cost;
  clocks += (remote ? cost.linkLatencyNs : cost.localLatencyNs) * cost.smClockGHz / engine.options.blocksPerSm;
}

Writer Block::writer(const Thread &thread, const DitronSimSite *site) const {
  Writer writer;
  writer.kind = Writer::Kind::Kernel;
  writer.rank = rank.id;
  writer.name = kernel->name;
  writer.track = slot;
  std::copy_n(blockId, 3, writer.block);
  writer.place = engine.places.record(site);
  writer.time = clock;
  return writer;
}

//===- Reports ----------------------------------------------------------------------------------------------------===//

std::string Block::describe() const {
  return fmt::format("kernel {}, rank {}, block ({},{},{})", kernel->description().name, rank.id, blockId[0],
                     blockId[1], blockId[2]);
}

std::vector<Block::ParkedThreads> Block::parkedThreads() const {
  std::vector<ParkedThreads> groups; // in thread order
  for (const auto &thread : threads) {
    if (thread->state == ThreadState::Finished || thread->state == ThreadState::Ready ||
        thread->state == ThreadState::WaitingWord)
      continue;
    auto [what, detail] = asyncUnit.describeWait(*thread);
    if (thread->state == ThreadState::AtBarrier)
      what = "block barrier";
    if (thread->state == ThreadState::AtLaneOrder)
      what = "access that their warp does together";
    if (thread->state == ThreadState::AtWarp)
      for (const Rendezvous &meeting : thread->warp->meetings)
        if (meeting.arrived >> thread->laneId & 1)
          what = collectiveName(meeting.kind);
    auto it = std::find_if(groups.begin(), groups.end(), [&](const ParkedThreads &group) {
      return group.what == what && group.detail == detail && sameSite(group.site, thread->site);
    });
    if (it == groups.end())
      it = groups.insert(groups.end(), {what, detail, thread->site, {}});
    it->ids.push_back(thread->threadId);
  }
  return groups;
}

std::string Block::describeParked() const {
  std::string text;
  for (const ParkedThreads &group : parkedThreads()) {
    bool one = group.ids.size() == 1;
    std::string who = one ? fmt::format("thread {}", group.ids[0]) : fmt::format("{} threads", group.ids.size());
    if (!one && group.ids.back() - group.ids[0] + 1 == group.ids.size())
      who = fmt::format("threads {}..{}", group.ids[0], group.ids.back());
    text += fmt::format("{}{} wait{} at the {} {}{}", text.empty() ? "" : "; ", who, one ? "s" : "", group.what,
                        siteText(group.site), group.detail);
  }
  const auto finished = std::count_if(threads.begin(), threads.end(), [](const std::unique_ptr<Thread> &thread) {
    return thread->state == ThreadState::Finished;
  });
  if (finished && !text.empty())
    text += fmt::format("; {} of {} threads have returned", finished, threads.size());
  return text;
}

void Block::reportStuck() {
  Status failure = failureAt(StatusCode::Deadlock, threads[0]->site,
                             fmt::format("{}: threads wait for each other at different places and none can go on: {}",
                                         describe(), describeParked()));
  explain::WaitReport report = reportStuckBlock(*this, failure.message());
  engine.fail(std::move(failure), std::move(report));
}

} // namespace ditron::sim
