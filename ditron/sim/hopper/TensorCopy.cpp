//===- TensorCopy.cpp - Tensor copies between global and shared memory (TMA) --------------------------------------===//
//
// A copy is checked as a whole when it is issued and carried out by events: a load writes shared memory and counts at its
// mbarrier in one event; a store reads its source in one event and writes global memory in a later one.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/hopper/TensorMap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ditron::sim {

namespace {

/// The part of a box that lies in the tensor.
struct InRange {
  bool any = true;
  int64_t from[5] = {0, 0, 0, 0, 0}, to[5] = {1, 1, 1, 1, 1}; ///< Of the tensor's elements; `to` is past the end.
  uint64_t elements = 1;
};

InRange inRange(const DitronSimTensorMap &map, const int32_t *coords) {
  InRange range;
  for (uint32_t d = 0; d < map.rank; ++d) {
    range.from[d] = std::max<int64_t>(0, coords[d]);
    range.to[d] = std::min<int64_t>(map.dims[d], static_cast<int64_t>(coords[d]) + map.box[d]);
    if (range.to[d] <= range.from[d])
      range.any = false;
    else
      range.elements *= static_cast<uint64_t>(range.to[d] - range.from[d]);
  }
  if (!range.any)
    range.elements = 0;
  return range;
}

uint64_t rowOffset(const DitronSimTensorMap &map, const int64_t *position) {
  uint64_t offset = 0;
  for (uint32_t d = 1; d < map.rank; ++d)
    offset += static_cast<uint64_t>(position[d]) * map.stridesBytes[d - 1];
  return offset;
}

/// First byte and byte count that the copy touches in global memory.
std::pair<char *, uint64_t> touched(const DitronSimTensorMap &map, const InRange &range) {
  int64_t last[5];
  for (uint32_t d = 0; d < 5; ++d)
    last[d] = range.to[d] - 1;
  uint64_t first = rowOffset(map, range.from) + static_cast<uint64_t>(range.from[0]) * map.elementBytes;
  uint64_t end = rowOffset(map, last) + static_cast<uint64_t>(range.to[0]) * map.elementBytes;
  return {static_cast<char *>(map.base) + first, end - first};
}

/// Calls visit(row number in the box, address of the row's part in the tensor or null, bytes before it, its bytes).
template <typename Visit> void forEachRow(const TensorCopy &copy, Visit visit) {
  const DitronSimTensorMap &map = copy.map;
  const InRange range = inRange(map, copy.coords.data());
  const uint32_t rows = copy.bytes / (map.box[0] * map.elementBytes);
  uint32_t index[5] = {0, 0, 0, 0, 0};
  for (uint32_t row = 0; row < rows; ++row) {
    int64_t position[5] = {range.from[0], 0, 0, 0, 0};
    bool inside = range.any;
    for (uint32_t d = 1; d < map.rank; ++d) {
      position[d] = static_cast<int64_t>(copy.coords[d]) + index[d];
      inside &= position[d] >= range.from[d] && position[d] < range.to[d];
    }
    if (inside)
      visit(row,
            static_cast<char *>(map.base) + rowOffset(map, position) +
                static_cast<uint64_t>(position[0]) * map.elementBytes,
            static_cast<uint32_t>(range.from[0] - copy.coords[0]) * map.elementBytes,
            static_cast<uint32_t>(range.to[0] - range.from[0]) * map.elementBytes);
    else
      visit(row, static_cast<char *>(nullptr), 0u, 0u);
    for (uint32_t d = 1; d < map.rank && ++index[d] == map.box[d]; ++d)
      index[d] = 0;
  }
}

constexpr uint32_t maxRowBytes = 256 * 8;

/// Fills a row with the value of elements out of range.
void fillRow(const DitronSimTensorMap &map, char *row, uint32_t bytes) {
  std::memset(row, map.fillNan ? 0xff : 0, bytes);
  if (map.fillNan) // 0x7f in the byte of sign and exponent: a positive NaN of every type
    for (uint32_t i = map.elementBytes - 1; i < bytes; i += map.elementBytes)
      row[i] = 0x7f;
}

} // namespace

void AsyncUnit::startCopy(Thread &thread, const DitronSimTensorMap *map, uint32_t rank, const int32_t *coords,
                          const void *shared, void *bar, const DitronSimSite *site, bool isPlain) {
  Engine &engine = block.engine;
  const bool store = bar == nullptr;
  const std::string_view what = isPlain ? (store ? "bulk store" : "bulk load") : store ? "tensor store" : "tensor load";
  auto refuse = [&](StatusCode code, const std::string &problem) {
    block.failThread(thread, code, fmt::format("{}: {}", what, problem), site);
  };
  if (std::string problem = map ? checkTensorMap(*map) : "no tensor map"; !problem.empty())
    refuse(StatusCode::InvalidArgument, problem);
  if (rank != map->rank)
    refuse(StatusCode::InvalidArgument, fmt::format("{} coordinates for a tensor map of rank {}", rank, map->rank));
  // Seen on an H200: the first two end in "illegal instruction", the last one writes behind the row.
  if (int64_t(coords[0]) * map->elementBytes % 16 != 0)
    refuse(StatusCode::InvalidArgument,
           fmt::format("it begins at byte {} of its row, which is not a multiple of 16", int64_t(coords[0]) * map->elementBytes));
  for (uint32_t dim = 0; store && dim < rank; ++dim)
    if (coords[dim] < 0)
      refuse(StatusCode::InvalidArgument,
             fmt::format("coordinate {} is {}: only loads may begin before the tensor", dim, coords[dim]));
  if (store && uint64_t(map->dims[0]) * map->elementBytes % 16 != 0)
    refuse(StatusCode::InvalidArgument, fmt::format("rows end at byte {}; stores write them in steps of 16 bytes",
                                                    uint64_t(map->dims[0]) * map->elementBytes));
  const uint64_t offset = static_cast<const char *>(shared) - thread.sharedMemory;
  const uint32_t bytes = boxBytes(*map);
  if (offset > thread.sharedBytes || bytes > thread.sharedBytes - offset)
    refuse(StatusCode::OutOfBounds, fmt::format("the box of {} bytes at shared offset {} is outside of the block's {}",
                                                bytes, static_cast<int64_t>(offset), thread.sharedBytes));
  const uint32_t alignment = isPlain ? 16 : 128;
  if (offset % alignment != 0)
    refuse(StatusCode::InvalidArgument, fmt::format("shared offset {} is not a multiple of {}", offset, alignment));
  uint32_t barrierIndex = 0;
  if (!store) {
    Mbarrier &barrier = barrierAt(thread, bar, site);
    barrierIndex = static_cast<uint32_t>(&barrier - barriers.data());
    ++barrier.inFlight;
  }
  const InRange range = inRange(*map, coords);
  bool remote = false;
  if (range.any) {
    auto [first, extent] = touched(*map, range);
    AccessCache::Entry entry;
    if (block.checked) {
      if (std::string problem = engine.memory.checkAccess(block.rank.id, first, extent, entry); !problem.empty())
        refuse(StatusCode::OutOfBounds, fmt::format("global bytes {} to {} (the tensor's part of the box): {}",
                                                    fmt::ptr(first), fmt::ptr(first + extent), problem));
      remote = entry.remote != 0;
    } else if (const Allocation *allocation = engine.memory.find(first)) {
      remote = allocation->rank != block.rank.id;
    }
  }
  uint32_t index = 0;
  while (index < copies.size() && copies[index].active)
    ++index;
  if (index == copies.size())
    copies.emplace_back();
  TensorCopy &copy = copies[index];
  copy.store = store;
  copy.remote = remote;
  copy.map = *map;
  std::copy_n(coords, rank, copy.coords.begin());
  copy.shared = static_cast<uint32_t>(offset);
  copy.bytes = bytes;
  copy.barrier = barrierIndex;
  copy.thread = &thread;
  copy.site = site;
  copy.active = true;
  copy.staged.clear();
  if (store) {
    AsyncThread &mine = thread.asyncWork;
    copy.group = mine.closedStoreGroups;
    mine.storeGroups.resize(copy.group + 1);
    ++mine.storeGroups[copy.group].unread;
    ++mine.storeGroups[copy.group].unwritten;
    for (uint32_t chunk = copy.shared / 16; !chunks.empty() && chunk < (copy.shared + bytes) / 16; ++chunk)
      checkAsyncRead(thread, chunk, what, site);
  } else if (!chunks.empty()) {
    for (uint32_t chunk = copy.shared / 16; chunk < (copy.shared + bytes) / 16; ++chunk)
      if (chunks[chunk].readers || chunks[chunk].writers)
        refuse(StatusCode::InvalidArgument,
               fmt::format("it overwrites shared offset {}, {}", chunk * 16, flightText(chunk)));
    // Who reads before the phase is complete shall notice.
    std::memset(thread.sharedMemory + copy.shared, 0xff, bytes);
  }
  if (!store) {
    ++loadsInFlight;
    markWriters(copy.shared, bytes, 1);
  } else if (!chunks.empty()) {
    thread.asyncWork.storeMarks.push_back({copy.group, copy.shared, bytes, site});
    markReaders(copy.shared, bytes, 1);
  }
  if (engine.races)
    checkCopyRaces(thread, copy);

  block.settle();
  const CostModel &cost = engine.options.cost;
  const double moved = static_cast<double>(range.elements * map->elementBytes) * engine.options.blocksPerSm;
  const double transfer =
      remote ? moved * engine.options.smsPerRank / cost.linkBytesPerNs : moved / cost.hbmBytesPerNsPerSm;
  copy.begin = std::max(block.clock, copyFree);
  copyFree = copy.begin + engine.scheduler.cost(transfer * block.rank.slowFactor);
  const double latency = cost.tmaLatencyNs + (remote ? cost.linkLatencyNs : 0);
  const SimTime arrives = copyFree + engine.scheduler.cost(latency);
  if (remote)
    engine.counters.remoteBytes += range.elements * map->elementBytes;
  else
    engine.counters.localBytes += range.elements * map->elementBytes;
  (store ? engine.counters.tmaStoreBytes : engine.counters.tmaLoadBytes) += bytes;
  if (engine.trace.isEnabled()) {
    engine.trace.nameTrack(block.rank.id, tmaTracks + block.slot, fmt::format("SM {} TMA", block.slot));
    engine.trace.span(block.rank.id, tmaTracks + block.slot, engine.trace.intern(what), SpanKind::Copy, copy.begin,
                      copyFree, fmt::format("\"bytes\":{},\"line\":{}", bytes, site ? site->line : 0));
  }
  if (store) {
    schedule(copyFree, EventKind::StoreRead, index);
    schedule(arrives, EventKind::StoreDone, index);
  } else {
    schedule(arrives, EventKind::LoadDone, index);
  }
}

void AsyncUnit::checkCopyRaces(Thread &thread, const TensorCopy &copy) {
  race::Detector &races = *block.engine.races;
  const race::KnowledgeRef known = races.release(thread);
  auto warpOf = [&](uint32_t &warp, race::ActorKind kind) {
    races.ensureWarp(warp, kind, block.order.block, block.rank.id);
    return warp;
  };
  const race::Access read{false, {}, races.siteNumber(copy.site)}, write{true, {}, read.site};
  race::Actor reader, writer;
  if (copy.store) {
    reader = races.actorOf(warpOf(thread.order.storeReads, race::ActorKind::TensorStoreRead), copy.group + 1, known);
    writer = races.actorOf(warpOf(thread.order.storeWrites, race::ActorKind::TensorStoreWrite), copy.group + 1, known);
  } else {
    Mbarrier &barrier = barriers[copy.barrier];
    reader = writer =
        races.actorOf(warpOf(barrier.order.copies, race::ActorKind::TensorLoad), barrier.phase + 1, known);
  }
  block.failIf(
      races.accessShared(copy.store ? reader : writer, block, copy.shared, copy.bytes, copy.store ? read : write),
      thread, copy.site);
  forEachRow(copy, [&](uint32_t, const char *row, uint32_t, uint32_t bytes) {
    if (row && bytes)
      block.failIf(races.access(copy.store ? writer : reader, row, bytes, copy.store ? write : read), thread,
                   copy.site);
  });
}

void AsyncUnit::finishLoad(TensorCopy &copy, SimTime now) {
  const uint32_t rowBytes = copy.map.box[0] * copy.map.elementBytes;
  char *shared = copy.thread->sharedMemory;
  char row[maxRowBytes];
  forEachRow(copy, [&](uint32_t number, const char *source, uint32_t before, uint32_t bytes) {
    if (!source || bytes != rowBytes)
      fillRow(copy.map, row, rowBytes);
    if (source)
      std::memcpy(row + before, source, bytes);
    const uint32_t address = copy.shared + number * rowBytes;
    if (!copy.map.swizzleBytes)
      std::memcpy(shared + address, row, rowBytes);
    else
      for (uint32_t i = 0; i < rowBytes; i += 16)
        std::memcpy(shared + swizzleAddress(address + i, copy.map.swizzleBytes), row + i, 16);
  });
  markWriters(copy.shared, copy.bytes, -1);
  --loadsInFlight;
  copy.active = false;
  Mbarrier &barrier = barriers[copy.barrier];
  --barrier.inFlight;
  if (race::Detector *races = block.engine.races.get())
    barrier.order.arrived = races->withLane(barrier.order.arrived, barrier.order.copies, barrier.phase + 1);
  barrier.pendingBytes -= copy.bytes;
  advance(barrier, &now);
}

void AsyncUnit::readStore(TensorCopy &copy, SimTime now) {
  const char *shared = copy.thread->sharedMemory;
  copy.staged.resize(copy.bytes);
  for (uint32_t i = 0; i < copy.bytes; i += 16)
    std::memcpy(copy.staged.data() + i, shared + swizzleAddress(copy.shared + i, copy.map.swizzleBytes), 16);
  --copy.thread->asyncWork.storeGroups[copy.group].unread;
  wakeStoreWaiter(*copy.thread, now);
}

void AsyncUnit::finishStore(TensorCopy &copy, SimTime now) {
  const uint32_t rowBytes = copy.map.box[0] * copy.map.elementBytes;
  const InRange range = inRange(copy.map, copy.coords.data());
  forEachRow(copy, [&](uint32_t number, char *target, uint32_t before, uint32_t bytes) {
    if (target)
      std::memcpy(target, copy.staged.data() + number * rowBytes + before, bytes);
  });
  if (range.any) {
    auto [first, extent] = touched(copy.map, range);
    Writer writer = block.writer(*copy.thread, copy.site);
    writer.time = now;
    block.engine.rangeWritten(first, extent, writer);
  }
  copy.active = false;
  --copy.thread->asyncWork.storeGroups[copy.group].unwritten;
  wakeStoreWaiter(*copy.thread, now);
}

bool AsyncUnit::storesDone(Thread &thread, uint64_t target, bool read) const {
  const AsyncThread &mine = thread.asyncWork;
  for (uint64_t group = mine.firstOpenStore; group < target && group < mine.storeGroups.size(); ++group)
    if (read ? mine.storeGroups[group].unread : mine.storeGroups[group].unwritten)
      return false;
  return true;
}

void AsyncUnit::wakeStoreWaiter(Thread &thread, SimTime now) {
  if (thread.state == ThreadState::AtStoreWait &&
      storesDone(thread, thread.asyncWork.waitTarget, thread.asyncWork.waitRead))
    block.wakeAt(thread, now);
}

void AsyncUnit::waitStores(Thread &thread, uint32_t pending, bool read, const DitronSimSite *site) {
  AsyncThread &mine = thread.asyncWork;
  const uint64_t target = mine.closedStoreGroups > pending ? mine.closedStoreGroups - pending : 0;
  if (!storesDone(thread, target, read)) {
    thread.site = site;
    thread.state = ThreadState::AtStoreWait;
    mine.waitTarget = target;
    mine.waitRead = read;
    block.park(thread);
  }
  if (block.engine.races) {
    block.engine.races->waitedFor(thread, thread.order.storeReads, static_cast<uint32_t>(target));
    if (!read)
      block.engine.races->waitedFor(thread, thread.order.storeWrites, static_cast<uint32_t>(target));
  }
  // The thread now knows that the source may be written again.
  std::erase_if(mine.storeMarks, [&](const AsyncThread::StoreMark &mark) {
    if (mark.group >= target)
      return false;
    markReaders(mark.shared, mark.bytes, -1);
    return true;
  });
  while (mine.firstOpenStore < target &&
         (mine.firstOpenStore >= mine.storeGroups.size() || mine.storeGroups[mine.firstOpenStore].unwritten == 0))
    ++mine.firstOpenStore;
}

} // namespace ditron::sim

//===- The ABI ----------------------------------------------------------------------------------------------------===//

using namespace ditron;
using namespace ditron::sim;

extern "C" {

void ditron_sim_tma_load(DitronSimThread *self, const DitronSimTensorMap *map, uint32_t rank, const int32_t *coords,
                         void *shared, void *bar, uint32_t predicate, const DitronSimSite *site) {
  if (!predicate)
    return;
  Thread &thread = asThread(self);
  if (!bar)
    thread.block->failThread(thread, StatusCode::InvalidArgument, "tensor load without an mbarrier", site);
  thread.block->asyncUnit.startCopy(thread, map, rank, coords, shared, bar, site);
}

void ditron_sim_tma_store(DitronSimThread *self, const DitronSimTensorMap *map, uint32_t rank, const int32_t *coords,
                          const void *shared, uint32_t predicate, const DitronSimSite *site) {
  if (!predicate)
    return;
  Thread &thread = asThread(self);
  thread.block->asyncUnit.startCopy(thread, map, rank, coords, shared, nullptr, site);
}

void ditron_sim_tma_store_commit(DitronSimThread *self, const DitronSimSite *site) {
  AsyncThread &mine = asThread(self).asyncWork;
  ++mine.closedStoreGroups;
  mine.storeGroups.resize(mine.closedStoreGroups);
}

void ditron_sim_tma_store_wait(DitronSimThread *self, uint32_t pending, uint32_t read, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.waitStores(thread, pending, read != 0, site);
}

} // extern "C"
