//===- Shmem.cpp - Puts and gets of kernels, delivered late -------------------------------------------------------===//
//
// See Shmem.h; and the functions of ditron/abi/Simulator.h that use it. One thread calls on behalf of all that carry out a transfer together.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Shmem.h"

#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/report/EngineTrace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace ditron::sim {

namespace {
/// Longest delay of a put that nothing makes hurry: many times what a signal takes.
constexpr uint64_t longestDelayNs = 40'000;
constexpr uint64_t shortestDelayNs = 4'000;
constexpr uint64_t longestHurryNs = 8'000;
/// The same between nodes, where two ways may differ by more than a message and its answer take.
constexpr uint64_t longestFarHurryNs = 30'000;
/// Between nodes a transfer comes in at most so many pieces, of at least so many bytes.
constexpr uint64_t mostPieces = 8, leastPieceBytes = 16;
/// Bytes of a put that race with no other put when they are there already.
constexpr uint64_t mostEqualBytes = 64;

bool isWord(const PendingTransfer &transfer) { return transfer.bytes == 4 || transfer.bytes == 8; }
} // namespace

void applySignal(void *address, uint32_t bytes, uint32_t op, uint64_t value) {
  if (bytes == 4) {
    auto *word = static_cast<volatile uint32_t *>(address);
    *word = static_cast<uint32_t>(op == DITRON_SIM_SIGNAL_ADD ? *word + value : value);
    return;
  }
  auto *word = static_cast<volatile uint64_t *>(address);
  *word = op == DITRON_SIM_SIGNAL_ADD ? *word + value : value;
}

void Shmem::begin(Thread &thread, PendingTransfer transfer, bool soon, const DitronSimSite *site) {
  Block &block = *thread.block;
  transfer.isFar = isFar(transfer.peer);
  plan(transfer, block.clock, soon);
  transfer.epoch = epoch;
  transfer.tie = engine.scheduler.random.next();
  transfer.writer = block.writer(thread, site);
  transfer.begun = block.clock;
  transfer.place = siteText(site);
  if (site)
    transfer.location = SourceLocation{site->file, site->line, site->column};
  if (engine.races)
    beginOrdered(thread, transfer, site);
  engine.scheduler.wake(*this, transfer.next());
  pending.push_back(std::move(transfer));
  ++engine.progress;
}

bool Shmem::isFar(uint32_t peer) const { return !engine.options.shareNode(peer, rank.id); }

void Shmem::plan(PendingTransfer &transfer, SimTime from, bool soon) {
  if (transfer.isFar)
    return planFar(transfer, from, soon);
  const CostModel &cost = engine.options.cost;
  double wayNs = cost.linkLatencyNs + static_cast<double>(transfer.bytes) / cost.linkBytesPerNs;
  Random &random = engine.scheduler.random;
  // Even what hurries may be overtaken by what was begun later.
  uint64_t delayNs = soon ? random.below(random.below(4) ? 500 : longestHurryNs)
                          : shortestDelayNs + random.below(longestDelayNs - shortestDelayNs);
  transfer.due = from + engine.scheduler.cost(wayNs + static_cast<double>(delayNs));
  if (transfer.bytes)
    transfer.pieces = {{0, transfer.bytes, transfer.due}};
}

void Shmem::planFar(PendingTransfer &transfer, SimTime from, bool soon) {
  const CostModel &cost = engine.options.cost;
  Random &random = engine.scheduler.random;
  // The bytes go through the NICs of both sides one transfer after the other.
  Rank &peer = *engine.ranks[transfer.peer];
  Rank &sender = transfer.isGet ? peer : rank, &receiver = transfer.isGet ? rank : peer;
  const SimTime start = std::max({from, sender.networkOutFree, receiver.networkInFree});
  const SimTime wire = engine.scheduler.cost(static_cast<double>(transfer.bytes) / cost.networkBytesPerNs);
  const SimTime latency = engine.scheduler.cost(cost.networkLatencyNs);
  sender.networkOutFree = receiver.networkInFree = start + wire;
  transfer.earliest = transfer.due = start + wire + latency;
  engine.counters.networkBytes += transfer.bytes;
  const auto late = [&] {
    return engine.scheduler.cost(static_cast<double>(soon ? random.below(random.below(4) ? 500 : longestHurryNs)
                                                          : shortestDelayNs + random.below(longestDelayNs)));
  };
  const uint64_t share = (transfer.bytes / mostPieces + leastPieceBytes) / leastPieceBytes * leastPieceBytes;
  for (uint64_t offset = 0; offset < transfer.bytes; offset += share) {
    const uint64_t bytes = std::min(share, transfer.bytes - offset);
    const auto through = static_cast<double>(offset + bytes) / static_cast<double>(transfer.bytes);
    const SimTime due = start + static_cast<SimTime>(static_cast<double>(wire) * through) + latency + late();
    transfer.pieces.push_back({offset, bytes, due});
    transfer.due = std::max(transfer.due, due);
  }
  if (transfer.signal)
    transfer.due += late();
}

void Shmem::fail(const PendingTransfer &transfer, StatusCode code, std::string_view problem) {
  const Status status(code, fmt::format("{}: rank {}, a transfer of this line: {}", transfer.place, rank.id, problem));
  engine.fail(transfer.location ? status.at(*transfer.location) : status);
}

bool Shmem::land(PendingTransfer &transfer, const TransferPiece &piece) {
  for (const void *end : {static_cast<const void *>(transfer.destination), transfer.source})
    if (std::string problem = end ? engine.memory.checkBulk(end, transfer.bytes) : ""; !problem.empty()) {
      fail(transfer, StatusCode::OutOfBounds, "it arrives late, without a quiet before: " + problem);
      return false;
    }
  if (engine.races && !checkRaces(transfer, piece))
    return false;
  transfer.writer.time = std::max(engine.scheduler.now, transfer.writer.time);
  std::memmove(transfer.to(piece), transfer.from(piece), piece.bytes);
  engine.rangeWritten(transfer.to(piece), piece.bytes, transfer.writer);
  return true;
}

void Shmem::deliver(PendingTransfer &transfer) {
  if (engine.trace.isEnabled())
    transfer.writer.track =
        traceTransfer(engine, transfer, rank.id, std::max(engine.scheduler.now, transfer.writer.time),
                      /*isFinished=*/true);
  for (const TransferPiece &piece : transfer.pieces)
    if (!land(transfer, piece))
      return;
  if (transfer.signal) {
    if (engine.races && !checkSignalRaces(transfer))
      return;
    transfer.writer.time = std::max(engine.scheduler.now, transfer.writer.time);
    applySignal(transfer.signal, transfer.signalBytes, transfer.signalOp, transfer.signalValue);
    engine.wordWritten(transfer.signal, transfer.signalBytes, transfer.writer);
  }
}

//===- Races ------------------------------------------------------------------------------------------------------===//

void Shmem::beginOrdered(Thread &thread, PendingTransfer &transfer, const DitronSimSite *site) {
  race::Detector &races = *engine.races;
  Path &path = paths[transfer.peer];
  Begun &begun = transfer.signal ? path.signalled[transfer.signal] : isWord(transfer) ? path.words : path.plain;
  races.ensureWarp(begun.warp, race::ActorKind::Network, race::nobody, rank.id, transfer.peer);
  transfer.call = races.momentOf(thread);
  if (transfer.isFenced)
    transfer.told = races.joined(races.sealedFor(thread, transfer.peer), races.heardBy(thread));
  transfer.known = races.joined(races.release(thread), transfer.told);
  if (transfer.tellsStores)
    transfer.told = transfer.known;
  transfer.warp = begun.warp;
  transfer.number = ++begun.count;
  transfer.site = races.siteNumber(site);
}

bool Shmem::checkRaces(const PendingTransfer &transfer, const TransferPiece &piece) {
  race::Detector &races = *engine.races;
  const race::Actor actor = races.transferOf(transfer.warp, transfer.number, transfer.call, transfer.known);
  const std::string *race = nullptr;
  if (transfer.source)
    race = races.access(actor, static_cast<const char *>(transfer.source) + piece.offset, piece.bytes,
                        {false, {}, transfer.site});
  race::Access write{true, {}, transfer.site};
  write.mayBeEqual =
      piece.bytes <= mostEqualBytes && std::memcmp(transfer.to(piece), transfer.from(piece), piece.bytes) == 0;
  // A put of a word can be a flag: what a fence has put before it comes first.
  if (!race && isWord(transfer))
    race = races.signal(
        actor, races.withLane(transfer.known, transfer.warp, transfer.number), transfer.destination,
        {static_cast<uint32_t>(transfer.bytes), /*isUpdate=*/false, transfer.site, /*isPut=*/true, write.mayBeEqual});
  else if (!race)
    race = races.access(actor, transfer.to(piece), piece.bytes, write);
  if (race)
    fail(transfer, StatusCode::DataRace, *race);
  return !race;
}

bool Shmem::checkSignalRaces(const PendingTransfer &transfer) {
  race::Detector &races = *engine.races;
  const race::Actor actor = races.transferOf(transfer.warp, transfer.number, transfer.call, transfer.known);
  const std::string *race =
      races.signal(actor, races.withLane(transfer.told, transfer.warp, transfer.number), transfer.signal,
                   {transfer.signalBytes, transfer.signalOp == DITRON_SIM_SIGNAL_ADD, transfer.site});
  if (race)
    fail(transfer, StatusCode::DataRace, *race);
  return !race;
}

void Shmem::fence(Thread &thread) {
  ++epoch;
  if (engine.races)
    engine.races->seal(thread, /*completes=*/false);
}

void Shmem::hurry(Thread &thread) {
  Block &block = *thread.block;
  const bool isDrawn = engine.schedule.shuffledCopies;
  SimTime last = block.clock;
  for (PendingTransfer &transfer : pending) {
    if (!isDrawn && !transfer.isFar)
      continue;
    const uint64_t longestNs = transfer.isFar ? longestFarHurryNs : longestHurryNs;
    const double drawn = isDrawn ? static_cast<double>(engine.scheduler.random.below(longestNs)) : 0;
    const SimTime first = std::max(block.clock, transfer.earliest);
    transfer.due = std::min(transfer.due, first + engine.scheduler.cost(drawn));
    for (TransferPiece &piece : transfer.pieces)
      piece.due = std::min(piece.due, transfer.due);
    // Of several pieces the last one comes then, the others before.
    const auto span = static_cast<uint64_t>(transfer.due - std::min(transfer.due, first));
    for (size_t i = 1; isDrawn && span && i < transfer.pieces.size(); ++i)
      transfer.pieces[i].due =
          std::min(transfer.pieces[i].due, first + static_cast<SimTime>(engine.scheduler.random.below(span)));
    engine.scheduler.wake(*this, transfer.next());
    // Whoever waits for another node waits for its answer.
    const SimTime answer = transfer.isFar ? engine.scheduler.cost(engine.options.cost.networkLatencyNs) : 0;
    last = std::max(last, transfer.due + answer);
  }
  if (!isDrawn && last == block.clock)
    return;
  block.clock = last;
  block.yieldIfAhead(thread);
}

void Shmem::quiet(Thread &thread) {
  hurry(thread);
  deliverIf([](const PendingTransfer &) { return true; });
  if (engine.races)
    engine.races->seal(thread, /*completes=*/true);
}

template <typename Action> void Shmem::roundTrip(Thread &thread, uint64_t bytes, Action meanwhile) {
  const CostModel &cost = engine.options.cost;
  Block &block = *thread.block;
  engine.counters.networkBytes += bytes;
  block.clock += engine.scheduler.cost(cost.networkLatencyNs);
  block.yieldIfAhead(thread);
  meanwhile();
  block.clock += engine.scheduler.cost(cost.networkLatencyNs + static_cast<double>(bytes) / cost.networkBytesPerNs);
  block.yieldIfAhead(thread);
}

const std::string *Shmem::signal(Thread &thread, void *address, uint32_t bytes, uint32_t op, uint32_t peer,
                                 const DitronSimSite *site) {
  if (!engine.races)
    return nullptr;
  race::Detector &races = *engine.races;
  // What the thread itself has done is only part of it when a fence comes between.
  Path &path = paths[peer];
  Begun &begun = path.signalled[address];
  races.ensureWarp(begun.warp, race::ActorKind::Network, race::nobody, rank.id, peer);
  const race::Moment call = races.momentOf(thread);
  const race::KnowledgeRef told = races.sealedFor(thread, peer), known = races.release(thread);
  const race::Actor actor = races.transferOf(begun.warp, ++begun.count, call, known);
  return races.signal(actor, races.withLane(told, begun.warp, begun.count), address,
                      {bytes, op == DITRON_SIM_SIGNAL_ADD, races.siteNumber(site)});
}

//===- Delivery ---------------------------------------------------------------------------------------------------===//

template <typename Condition> void Shmem::deliverIf(Condition condition) {
  std::vector<PendingTransfer> now;
  // What is chosen takes along what a fence puts before it.
  std::map<uint32_t, uint64_t> upTo;
  for (const PendingTransfer &transfer : pending)
    if (transfer.isFenced && condition(transfer))
      upTo[transfer.peer] = std::max(upTo[transfer.peer], transfer.epoch);
  std::erase_if(pending, [&](PendingTransfer &transfer) {
    auto it = upTo.find(transfer.peer);
    const bool isBefore = transfer.isFenced && it != upTo.end() && transfer.epoch < it->second;
    if (!isBefore && !condition(transfer))
      return false;
    now.push_back(std::move(transfer));
    return true;
  });
  std::sort(now.begin(), now.end(), [](const PendingTransfer &a, const PendingTransfer &b) {
    return a.epoch != b.epoch ? a.epoch < b.epoch : a.tie < b.tie;
  });
  for (PendingTransfer &transfer : now)
    deliver(transfer);
}

void Shmem::deliverDue(SimTime now) {
  deliverIf([&](const PendingTransfer &transfer) { return transfer.due <= now; });
  // A piece of something does not overtake what a fence has put before it either.
  std::map<uint32_t, uint64_t> upTo;
  for (const PendingTransfer &transfer : pending)
    if (transfer.isFenced && transfer.next() <= now)
      upTo[transfer.peer] = std::max(upTo[transfer.peer], transfer.epoch);
  deliverIf([&](const PendingTransfer &transfer) {
    auto it = upTo.find(transfer.peer);
    return transfer.isFenced && it != upTo.end() && transfer.epoch < it->second;
  });
  for (PendingTransfer &transfer : pending)
    std::erase_if(transfer.pieces, [&](const TransferPiece &piece) {
      return !engine.stopped() && piece.due <= now && land(transfer, piece);
    });
}

void Shmem::finishLater(KernelRun &run, SimTime now) {
  for (const PendingTransfer &transfer : pending)
    if (!transfer.isFar)
      now = std::max(now, transfer.due);
  finishing.push_back({&run, now});
  engine.scheduler.wake(*this, now);
}

void Shmem::step(SimTime now) {
  deliverDue(now);
  std::vector<KernelRun *> done;
  std::erase_if(finishing, [&](const auto &one) {
    if (one.second <= now)
      done.push_back(one.first);
    return one.second <= now;
  });
  for (KernelRun *run : done)
    engine.kernelFinished(*run, now);
  SimTime next = INT64_MAX;
  for (const PendingTransfer &transfer : pending)
    next = std::min(next, transfer.next());
  for (const auto &[run, when] : finishing)
    next = std::min(next, when);
  if (next != INT64_MAX)
    engine.scheduler.wake(*this, next);
  else
    engine.hostConditionsDirty = true; // see finishTransfers
}

namespace {

bool isShared(const Thread &thread, const void *address) {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(thread.sharedMemory) < thread.sharedBytes;
}

/// Checks one end of a transfer and accounts its bytes.
void enter(Thread &thread, std::string_view what, const void *address, uint64_t bytes, const DitronSimSite *site) {
  Block &block = *thread.block;
  if (isShared(thread, address)) {
    if (bytes > thread.sharedBytes ||
        static_cast<const char *>(address) + bytes > thread.sharedMemory + thread.sharedBytes)
      block.failThread(thread, StatusCode::OutOfBounds,
                       fmt::format("{} of {} leaves the block's shared memory", what, byteCount(bytes)), site);
    block.sharedTraffic += bytes;
    return;
  }
  if (static_cast<int64_t>(bytes) < 0)
    block.failThread(thread, StatusCode::OutOfBounds,
                     fmt::format("{} of {}: the count is negative", what, byteCount(bytes)), site);
  AccessCache::Entry entry;
  thread.accessSite = site;
  const std::string problem = block.checked
                                  ? block.engine.memory.checkAccess(block.rank.id, address, bytes, entry, Way::Network)
                                  : block.engine.memory.checkUnchecked(address, bytes);
  if (!problem.empty())
    block.failThread(
        thread, StatusCode::OutOfBounds,
        fmt::format("{} of {} at {} {}", what, byteCount(bytes), block.engine.memory.placeText(address), problem),
        site);
  block.globalBytes[entry.remote] += bytes;
}

/// Charges the call's time, and lets others act that are behind.
void charge(Thread &thread, const DitronSimSite *site) {
  thread.block->chargeLatency(thread, site, true);
  thread.block->yieldIfAhead(thread);
}

/// The rank that has what a transfer addresses on a PE, which a group of ranks may number otherwise.
uint32_t homeOf(const Thread &thread, const void *address, uint32_t pe) {
  Engine &engine = thread.block->engine;
  if (const Allocation *allocation = engine.memory.find(address))
    return allocation->rank;
  return std::min(pe, engine.options.ranks - 1);
}

PendingTransfer putTo(const Thread &thread, void *destination, const void *source, uint64_t bytes, uint32_t pe) {
  PendingTransfer transfer;
  transfer.destination = destination;
  transfer.source = source;
  transfer.bytes = bytes;
  transfer.peer = homeOf(thread, destination, pe);
  return transfer;
}

PendingTransfer signalTo(void *signal, uint64_t value, uint32_t bytes, uint32_t op, uint32_t peer) {
  PendingTransfer transfer;
  transfer.peer = peer;
  transfer.signal = signal;
  transfer.signalValue = value;
  transfer.signalBytes = bytes;
  transfer.signalOp = op;
  return transfer;
}

/// The thread itself reads or writes one end.
void touch(Thread &thread, const void *address, uint64_t bytes, bool isWrite, const DitronSimSite *site) {
  Block &block = *thread.block;
  if (block.engine.races)
    block.noteAccess(thread, isShared(thread, address) ? nullptr : block.engine.memory.find(address), address, bytes,
                     isWrite ? DITRON_SIM_STORE : DITRON_SIM_LOAD, site);
}

/// The bytes of a source that may change after the call.
void capture(PendingTransfer &transfer) {
  const char *from = static_cast<const char *>(transfer.source);
  transfer.data.assign(from, from + transfer.bytes);
  transfer.source = nullptr;
}

void enterSignal(Thread &thread, void *signal, uint32_t bytes, const DitronSimSite *site) {
  if (reinterpret_cast<uintptr_t>(signal) % bytes != 0)
    thread.block->failThread(thread, StatusCode::OutOfBounds,
                             fmt::format("a signal word of {} at {} is not aligned to its size", byteCount(bytes),
                                         thread.block->engine.memory.placeText(signal)),
                             site);
  enter(thread, "signal", signal, bytes, site);
}

} // namespace
} // namespace ditron::sim

using namespace ditron;
using namespace ditron::sim;

extern "C" {

void ditron_sim_shmem_peer(DitronSimThread *self, const int64_t *world, int32_t pe, const char *function,
                           const DitronSimSite *site) {
  Thread &thread = asThread(self);
  const int64_t count = world[1];
  if (pe < 0 || pe >= count)
    thread.block->failThread(thread, StatusCode::OutOfBounds,
                             fmt::format("{}: PE {} is not one of 0..{}", function, pe, count - 1), site);
}

void ditron_sim_shmem_put(DitronSimThread *self, void *destination, const void *source, uint64_t bytes, uint32_t pe,
                          uint32_t nonblocking, const DitronSimSite *site) {
  if (bytes == 0)
    return;
  Thread &thread = asThread(self);
  destination = thread.block->engine.memory.behindFar(destination);
  enter(thread, "put to the destination", destination, bytes, site);
  enter(thread, "put from the source", source, bytes, site);
  charge(thread, site);
  PendingTransfer transfer = putTo(thread, destination, source, bytes, pe);
  if (!nonblocking || isShared(thread, source)) {
    touch(thread, source, bytes, /*isWrite=*/false, site);
    capture(transfer);
  }
  thread.block->rank.shmem->begin(thread, std::move(transfer), /*soon=*/false, site);
}

void ditron_sim_shmem_value(DitronSimThread *self, void *destination, uint64_t value, uint32_t bytes, uint32_t pe,
                            const DitronSimSite *site) {
  Thread &thread = asThread(self);
  destination = thread.block->engine.memory.behindFar(destination);
  enter(thread, "put to the destination", destination, bytes, site);
  charge(thread, site);
  PendingTransfer transfer = putTo(thread, destination, &value, bytes, pe);
  capture(transfer); // little-endian: the low bytes come first
  thread.block->rank.shmem->begin(thread, std::move(transfer), /*soon=*/false, site);
}

void ditron_sim_shmem_get(DitronSimThread *self, void *destination, const void *source, uint64_t bytes, uint32_t pe,
                          uint32_t nonblocking, const DitronSimSite *site) {
  if (bytes == 0)
    return;
  Thread &thread = asThread(self);
  source = thread.block->engine.memory.behindFar(source);
  enter(thread, "get to the destination", destination, bytes, site);
  enter(thread, "get from the source", source, bytes, site);
  charge(thread, site);
  Shmem &network = *thread.block->rank.shmem;
  const uint32_t home = homeOf(thread, source, pe);
  if (!nonblocking || isShared(thread, destination)) {
    const auto read = [&] {
      touch(thread, source, bytes, /*isWrite=*/false, site);
      touch(thread, destination, bytes, /*isWrite=*/true, site);
      std::memmove(destination, source, bytes);
    };
    if (network.isFar(home))
      network.roundTrip(thread, bytes, read);
    else
      read();
    if (thread.block->engine.trace.isEnabled())
      if (const Allocation *from = thread.block->engine.memory.find(source);
          from && from->rank != thread.block->rank.id)
        thread.block->noteRemote(*from, bytes, /*isWrite=*/false, site);
    if (!isShared(thread, destination))
      thread.block->engine.rangeWritten(destination, bytes, thread.block->writer(thread, site));
    return;
  }
  std::memset(destination, 0xff, bytes); // whoever reads before the quiet shall notice
  PendingTransfer transfer = putTo(thread, destination, source, bytes, pe);
  transfer.peer = home;
  transfer.isGet = true;
  network.begin(thread, std::move(transfer), /*soon=*/false, site);
}

void ditron_sim_shmem_put_signal(DitronSimThread *self, void *destination, const void *source, uint64_t bytes,
                                 void *signal, uint64_t value, uint32_t signalBytes, uint32_t op, uint32_t pe,
                                 uint32_t nonblocking, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  destination = thread.block->engine.memory.behindFar(destination);
  signal = thread.block->engine.memory.behindFar(signal);
  if (bytes) {
    enter(thread, "put to the destination", destination, bytes, site);
    enter(thread, "put from the source", source, bytes, site);
  }
  enterSignal(thread, signal, signalBytes, site);
  charge(thread, site);
  PendingTransfer transfer = signalTo(signal, value, signalBytes, op, homeOf(thread, signal, pe));
  transfer.destination = destination;
  transfer.source = source;
  transfer.bytes = bytes;
  if (!nonblocking || isShared(thread, source) || !bytes) {
    if (bytes)
      touch(thread, source, bytes, /*isWrite=*/false, site);
    capture(transfer);
  }
  thread.block->rank.shmem->begin(thread, std::move(transfer), /*soon=*/true, site);
}

void ditron_sim_shmem_signal(DitronSimThread *self, void *signal, uint64_t value, uint32_t signalBytes, uint32_t op,
                             uint32_t pe, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  Block &block = *thread.block;
  signal = block.engine.memory.behindFar(signal);
  enterSignal(thread, signal, signalBytes, site);
  charge(thread, site);
  Shmem &network = *block.rank.shmem;
  const uint32_t home = homeOf(thread, signal, pe);
  if (network.isFar(home)) {
    PendingTransfer transfer = signalTo(signal, value, signalBytes, op, home);
    transfer.tellsStores = false;
    network.begin(thread, std::move(transfer), /*soon=*/true, site);
    return;
  }
  network.settleFenced(home);
  block.failIf(network.signal(thread, signal, signalBytes, op, home, site), thread, site);
  applySignal(signal, signalBytes, op, value);
  block.engine.wordWritten(signal, signalBytes, block.writer(thread, site));
}

void ditron_sim_shmem_raise(DitronSimThread *self, void *word, uint64_t value, uint32_t bytes, uint32_t op,
                            uint32_t reach, uint32_t pe, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  Block &block = *thread.block;
  void *place = block.engine.memory.behindFar(word);
  const uint32_t home = homeOf(thread, place, pe);
  if (reach == DITRON_SIM_REACH_NODES && block.rank.shmem->isFar(home)) {
    enterSignal(thread, place, bytes, site);
    charge(thread, site);
    PendingTransfer transfer = signalTo(place, value, bytes, op, home);
    transfer.isFenced = false;
    block.rank.shmem->begin(thread, std::move(transfer), /*soon=*/true, site);
    return;
  }
  const uint32_t scope = reach == DITRON_SIM_REACH_GPU ? DITRON_SIM_SCOPE_GPU : DITRON_SIM_SCOPE_SYSTEM;
  if (op == DITRON_SIM_SIGNAL_SET)
    ditron_sim_st(self, word, value, bytes, DITRON_SIM_RELEASE, scope, site);
  else
    ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, bytes == 8 ? DITRON_SIM_I64 : DITRON_SIM_I32, word, value, 1,
                          DITRON_SIM_RELEASE, scope, site);
}

uint32_t ditron_sim_reaches(DitronSimThread *self, const int64_t *world, int32_t pe, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  const int64_t rank = world[0], count = world[1], perNode = world[-3] ? world[-3] : count;
  if (pe < 0 || pe >= count || pe / perNode == rank / perNode)
    return 1; // who asks for a PE that is none is told so elsewhere
  thread.nullFor = {pe, pe / perNode, rank / perNode, site};
  return 0;
}

void ditron_sim_shmem_order(DitronSimThread *self, uint32_t kind, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  charge(thread, site);
  if (kind == DITRON_SIM_SHMEM_FENCE)
    thread.block->rank.shmem->fence(thread);
  else
    thread.block->rank.shmem->quiet(thread);
}

} // extern "C"
