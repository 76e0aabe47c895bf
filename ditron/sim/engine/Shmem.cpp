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
  const CostModel &cost = engine.options.cost;
  Block &block = *thread.block;
  double wayNs = cost.linkLatencyNs + static_cast<double>(transfer.bytes) / cost.linkBytesPerNs;
  Random &random = engine.scheduler.random;
  // Even what hurries may be overtaken by what was begun later.
  uint64_t delayNs = soon ? random.below(random.below(4) ? 500 : longestHurryNs)
                          : shortestDelayNs + random.below(longestDelayNs - shortestDelayNs);
  transfer.due = block.clock + engine.scheduler.cost(wayNs + static_cast<double>(delayNs));
  transfer.epoch = epoch;
  transfer.tie = engine.scheduler.random.next();
  transfer.writer = block.writer(thread, site);
  transfer.begun = block.clock;
  transfer.place = siteText(site);
  if (site)
    transfer.location = SourceLocation{site->file, site->line, site->column};
  if (engine.races)
    beginOrdered(thread, transfer, site);
  engine.scheduler.wake(*this, transfer.due);
  pending.push_back(std::move(transfer));
  ++engine.progress;
}

void Shmem::fail(const PendingTransfer &transfer, StatusCode code, std::string_view problem) {
  const Status status(code, fmt::format("{}: rank {}, a transfer of this line: {}", transfer.place, rank.id, problem));
  engine.fail(transfer.location ? status.at(*transfer.location) : status);
}

void Shmem::deliver(PendingTransfer &transfer) {
  const char *from = transfer.source ? static_cast<const char *>(transfer.source) : transfer.data.data();
  for (const void *end : {static_cast<const void *>(transfer.destination), transfer.source})
    if (std::string problem = end ? engine.memory.checkBulk(end, transfer.bytes) : ""; !problem.empty()) {
      fail(transfer, StatusCode::OutOfBounds, "it arrives late, without a quiet before: " + problem);
      return;
    }
  if (engine.races && !checkRaces(transfer, transfer.source))
    return;
  transfer.writer.time = std::max(engine.scheduler.now, transfer.writer.time);
  if (engine.trace.isEnabled())
    transfer.writer.track = traceTransfer(engine, transfer, rank.id, transfer.writer.time, /*isFinished=*/true);
  if (transfer.bytes) {
    std::memmove(transfer.destination, from, transfer.bytes);
    engine.rangeWritten(transfer.destination, transfer.bytes, transfer.writer);
  }
  if (transfer.signal) {
    applySignal(transfer.signal, transfer.signalBytes, transfer.signalOp, transfer.signalValue);
    engine.wordWritten(transfer.signal, transfer.signalBytes, transfer.writer);
  }
}

//===- Races ------------------------------------------------------------------------------------------------------===//

void Shmem::beginOrdered(Thread &thread, PendingTransfer &transfer, const DitronSimSite *site) {
  race::Detector &races = *engine.races;
  Begun &begun = transfer.signal ? signalled[transfer.signal] : plain;
  races.ensureWarp(begun.warp, race::ActorKind::Network, race::nobody, rank.id);
  transfer.known = races.joined(races.release(thread), fenced);
  transfer.warp = begun.warp;
  transfer.number = ++begun.count;
  transfer.site = races.siteNumber(site);
}

bool Shmem::checkRaces(const PendingTransfer &transfer, const void *from) {
  race::Detector &races = *engine.races;
  const race::Actor actor = races.actorOf(transfer.warp, transfer.number, transfer.known);
  const race::KnowledgeRef released = races.withLane(transfer.known, transfer.warp, transfer.number);
  auto isWord = [](uint64_t bytes) { return bytes == 4 || bytes == 8; };
  const std::string *race = from ? races.access(actor, from, transfer.bytes, {false, {}, transfer.site}) : nullptr;
  // A put of a word can be a flag: what a fence has put before it comes first.
  if (!race && isWord(transfer.bytes))
    race =
        races.signal(actor, released, transfer.destination, static_cast<uint32_t>(transfer.bytes), /*isUpdate=*/false);
  else if (!race && transfer.bytes)
    race = races.access(actor, transfer.destination, transfer.bytes, {true, {}, transfer.site});
  if (!race && transfer.signal)
    race = races.signal(actor, released, transfer.signal, transfer.signalBytes,
                        transfer.signalOp == DITRON_SIM_SIGNAL_ADD);
  if (race)
    fail(transfer, StatusCode::DataRace, *race);
  return !race;
}

race::KnowledgeRef Shmem::arrived() {
  race::KnowledgeRef known;
  auto add = [&](const Begun &begun) {
    if (begun.count)
      known = engine.races->withLane(known, begun.warp, begun.count);
  };
  add(plain);
  for (const auto &[address, begun] : signalled)
    add(begun);
  return known;
}

void Shmem::fence(Thread &thread) {
  ++epoch;
  if (engine.races)
    fenced = engine.races->joined(engine.races->joined(fenced, engine.races->release(thread)), arrived());
}

void Shmem::hurry(Thread &thread) {
  Block &block = *thread.block;
  SimTime last = block.clock;
  for (PendingTransfer &transfer : pending) {
    const SimTime soon = engine.scheduler.cost(static_cast<double>(engine.scheduler.random.below(longestHurryNs)));
    transfer.due = std::min(transfer.due, block.clock + soon);
    engine.scheduler.wake(*this, transfer.due);
    last = std::max(last, transfer.due);
  }
  block.clock = last;
  block.yieldIfAhead(thread);
}

void Shmem::quiet(Thread &thread) {
  if (engine.schedule.shuffledCopies)
    hurry(thread);
  deliverIf([](const PendingTransfer &) { return true; });
  if (!engine.races)
    return;
  engine.races->learn(thread, arrived());
  fenced = engine.races->joined(fenced, engine.races->release(thread));
}

const std::string *Shmem::signal(Thread &thread, void *address, uint32_t bytes, uint32_t op,
                                 const DitronSimSite *site) {
  if (!engine.races)
    return nullptr;
  race::Detector &races = *engine.races;
  // What the thread itself has done is only part of it when a fence comes between.
  Begun &begun = signalled[address];
  races.ensureWarp(begun.warp, race::ActorKind::Network, race::nobody, rank.id);
  const race::KnowledgeRef known = races.release(thread);
  const race::Actor actor = races.actorOf(begun.warp, ++begun.count, known);
  return races.signal(actor, races.withLane(fenced, begun.warp, begun.count), address, bytes,
                      op == DITRON_SIM_SIGNAL_ADD);
}

//===- Delivery ---------------------------------------------------------------------------------------------------===//

template <typename Condition> void Shmem::deliverIf(Condition condition) {
  std::vector<PendingTransfer> now;
  // What is chosen takes along what a fence puts before it.
  std::map<uint32_t, uint64_t> upTo;
  for (const PendingTransfer &transfer : pending)
    if (condition(transfer))
      upTo[transfer.peer] = std::max(upTo[transfer.peer], transfer.epoch);
  std::erase_if(pending, [&](PendingTransfer &transfer) {
    auto it = upTo.find(transfer.peer);
    if (it == upTo.end() || !(condition(transfer) || transfer.epoch < it->second))
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

void Shmem::finishLater(KernelRun &run, SimTime now) {
  for (const PendingTransfer &transfer : pending)
    now = std::max(now, transfer.due);
  finishing.push_back({&run, now});
  engine.scheduler.wake(*this, now);
}

void Shmem::step(SimTime now) {
  deliverIf([&](const PendingTransfer &transfer) { return transfer.due <= now; });
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
    next = std::min(next, transfer.due);
  for (const auto &[run, when] : finishing)
    next = std::min(next, when);
  if (next != INT64_MAX)
    engine.scheduler.wake(*this, next);
}

namespace {

bool isShared(const Thread &thread, const void *address) {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(thread.sharedMemory) < thread.sharedBytes;
}

/// Checks one end of a transfer and accounts its bytes.
void enter(Thread &thread, std::string_view what, const void *address, uint64_t bytes, const DitronSimSite *site) {
  Block &block = *thread.block;
  if (isShared(thread, address)) {
    if (bytes > thread.sharedBytes || static_cast<const char *>(address) + bytes > thread.sharedMemory + thread.sharedBytes)
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
  const std::string problem = block.checked ? block.engine.memory.checkAccess(block.rank.id, address, bytes, entry)
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

PendingTransfer transferOf(void *destination, const void *source, uint64_t bytes, uint32_t pe) {
  PendingTransfer transfer;
  transfer.destination = destination;
  transfer.source = source;
  transfer.bytes = bytes;
  transfer.peer = pe;
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

void ditron_sim_shmem_peer(DitronSimThread *self, const int64_t *world, int32_t pe, const char *function, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  const int64_t rank = world[0], count = world[1], perNode = world[-3] ? world[-3] : count;
  if (pe < 0 || pe >= count)
    thread.block->failThread(thread, StatusCode::OutOfBounds,
                             fmt::format("{}: PE {} is not one of 0..{}", function, pe, count - 1), site);
  if (pe / perNode != rank / perNode)
    thread.block->failThread(thread, StatusCode::Unsupported,
                             fmt::format("{}: PE {} is on another node than PE {}; between nodes there is no transport yet, only "
                                         "PEs of one node (team NODE) can be reached",
                                         function, pe, rank),
                             site);
}

void ditron_sim_shmem_put(DitronSimThread *self, void *destination, const void *source, uint64_t bytes, uint32_t pe,
                          uint32_t nonblocking, const DitronSimSite *site) {
  if (bytes == 0)
    return;
  Thread &thread = asThread(self);
  enter(thread, "put to the destination", destination, bytes, site);
  enter(thread, "put from the source", source, bytes, site);
  charge(thread, site);
  PendingTransfer transfer = transferOf(destination, source, bytes, pe);
  if (!nonblocking || isShared(thread, source)) {
    touch(thread, source, bytes, /*isWrite=*/false, site);
    capture(transfer);
  }
  thread.block->rank.shmem->begin(thread, std::move(transfer), /*soon=*/false, site);
}

void ditron_sim_shmem_value(DitronSimThread *self, void *destination, uint64_t value, uint32_t bytes, uint32_t pe,
                            const DitronSimSite *site) {
  Thread &thread = asThread(self);
  enter(thread, "put to the destination", destination, bytes, site);
  charge(thread, site);
  PendingTransfer transfer = transferOf(destination, &value, bytes, pe);
  capture(transfer); // little-endian: the low bytes come first
  thread.block->rank.shmem->begin(thread, std::move(transfer), /*soon=*/false, site);
}

void ditron_sim_shmem_get(DitronSimThread *self, void *destination, const void *source, uint64_t bytes, uint32_t pe,
                          uint32_t nonblocking, const DitronSimSite *site) {
  if (bytes == 0)
    return;
  Thread &thread = asThread(self);
  enter(thread, "get to the destination", destination, bytes, site);
  enter(thread, "get from the source", source, bytes, site);
  charge(thread, site);
  if (!nonblocking || isShared(thread, destination)) {
    touch(thread, source, bytes, /*isWrite=*/false, site);
    touch(thread, destination, bytes, /*isWrite=*/true, site);
    std::memmove(destination, source, bytes);
    if (thread.block->engine.trace.isEnabled())
      if (const Allocation *from = thread.block->engine.memory.find(source);
          from && from->rank != thread.block->rank.id)
        thread.block->noteRemote(*from, bytes, /*isWrite=*/false, site);
    if (!isShared(thread, destination))
      thread.block->engine.rangeWritten(destination, bytes, thread.block->writer(thread, site));
    return;
  }
  std::memset(destination, 0xff, bytes); // whoever reads before the quiet shall notice
  PendingTransfer transfer = transferOf(destination, source, bytes, pe);
  thread.block->rank.shmem->begin(thread, std::move(transfer), /*soon=*/false, site);
}

void ditron_sim_shmem_put_signal(DitronSimThread *self, void *destination, const void *source, uint64_t bytes, void *signal,
                                 uint64_t value, uint32_t signalBytes, uint32_t op, uint32_t pe, uint32_t nonblocking,
                                 const DitronSimSite *site) {
  Thread &thread = asThread(self);
  if (bytes) {
    enter(thread, "put to the destination", destination, bytes, site);
    enter(thread, "put from the source", source, bytes, site);
  }
  enterSignal(thread, signal, signalBytes, site);
  charge(thread, site);
  PendingTransfer transfer = transferOf(destination, source, bytes, pe);
  if (!nonblocking || isShared(thread, source) || !bytes) {
    if (bytes)
      touch(thread, source, bytes, /*isWrite=*/false, site);
    capture(transfer);
  }
  transfer.signal = signal;
  transfer.signalValue = value;
  transfer.signalBytes = signalBytes;
  transfer.signalOp = op;
  thread.block->rank.shmem->begin(thread, std::move(transfer), /*soon=*/true, site);
}

void ditron_sim_shmem_signal(DitronSimThread *self, void *signal, uint64_t value, uint32_t signalBytes, uint32_t op, uint32_t pe,
                             const DitronSimSite *site) {
  Thread &thread = asThread(self);
  Block &block = *thread.block;
  enterSignal(thread, signal, signalBytes, site);
  charge(thread, site);
  block.rank.shmem->settleFenced(pe);
  block.failIf(block.rank.shmem->signal(thread, signal, signalBytes, op, site), thread, site);
  applySignal(signal, signalBytes, op, value);
  block.engine.wordWritten(signal, signalBytes, block.writer(thread, site));
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
