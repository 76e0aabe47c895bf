//===- TensorCopy.cpp - Tensor copies between global and shared memory (TMA) --------------------------------------===//
//
// A copy is checked as a whole when it is issued and carried out by events: a load writes shared memory and counts at its
// mbarrier in one event; a store reads its source in one event and writes global memory in a later one.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/hopper/Costs.h"
#include "ditron/sim/hopper/TensorMap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ditron::sim {

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
  if (!store)
    barrierIndex = mbarriers.beginLoad(mbarriers.at(thread, bar, site));
  const TensorBox box(*map, coords);
  bool remote = false;
  if (!box.isOutside()) {
    auto [first, extent] = box.touched();
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
  copy.box = box;
  copy.shared = static_cast<uint32_t>(offset);
  copy.barrier = barrierIndex;
  copy.thread = &thread;
  copy.site = site;
  copy.active = true;
  copy.use = nullptr;
  copy.staged.clear();
  if (store) {
    AsyncThread &mine = thread.asyncWork;
    copy.group = mine.closedStoreGroups;
    mine.storeGroups.resize(copy.group + 1);
    ++mine.storeGroups[copy.group].unread;
    ++mine.storeGroups[copy.group].unwritten;
    if (SharedUse *use = proxy.beginStore(thread, copy.shared, bytes, what, site))
      mine.storeMarks.push_back({copy.group, use});
  } else {
    copy.use = proxy.beginLoad(thread, copy.shared, bytes, what, site);
    // Who reads before the phase is complete shall notice.
    if (proxy.isOn())
      std::memset(thread.sharedMemory + copy.shared, 0xff, bytes);
  }
  if (engine.races)
    checkCopyRaces(thread, copy);

  block.settle();
  const TensorCopyCost cost = tensorCopyCost(engine.options, box.movedBytes(), remote, block.rank.slowFactor);
  const SimTime begin = std::max(block.clock, copyFree);
  copyFree = begin + engine.scheduler.cost(cost.transferNs);
  const SimTime arrives = copyFree + engine.scheduler.cost(cost.latencyNs);
  (remote ? engine.counters.remoteBytes : engine.counters.localBytes) += box.movedBytes();
  (store ? engine.counters.tmaStoreBytes : engine.counters.tmaLoadBytes) += bytes;
  if (engine.trace.isEnabled()) {
    engine.trace.nameTrack(block.rank.id, tmaTracks + block.slot, fmt::format("SM {} TMA", block.slot));
    engine.trace.span(block.rank.id, tmaTracks + block.slot, engine.trace.intern(what), SpanKind::Copy, begin, copyFree,
                      fmt::format("\"bytes\":{},\"line\":{}", bytes, site ? site->line : 0));
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
    Mbarrier &barrier = mbarriers[copy.barrier];
    reader = writer =
        races.actorOf(warpOf(barrier.order.copies, race::ActorKind::TensorLoad), barrier.phase + 1, known);
  }
  block.failIf(
      races.accessShared(copy.store ? reader : writer, block, copy.shared, copy.box.bytes(), copy.store ? read : write),
      thread, copy.site);
  copy.box.forEachRow([&](uint32_t, const char *row, uint32_t, uint32_t bytes) {
    if (row && bytes)
      block.failIf(races.access(copy.store ? writer : reader, row, bytes, copy.store ? write : read), thread,
                   copy.site);
  });
}

void AsyncUnit::finishLoad(TensorCopy &copy, SimTime now) {
  copy.box.load(copy.thread->sharedMemory, copy.shared);
  proxy.end(copy.use);
  copy.active = false;
  mbarriers.endLoad(copy.barrier, copy.box.bytes(), now);
}

void AsyncUnit::readStore(TensorCopy &copy, SimTime now) {
  copy.staged.resize(copy.box.bytes());
  copy.box.readShared(copy.thread->sharedMemory, copy.shared, copy.staged.data());
  --copy.thread->asyncWork.storeGroups[copy.group].unread;
  wakeStoreWaiter(*copy.thread, now);
}

void AsyncUnit::finishStore(TensorCopy &copy, SimTime now) {
  copy.box.store(copy.staged.data());
  if (!copy.box.isOutside()) {
    auto [first, extent] = copy.box.touched();
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
    proxy.end(mark.use);
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
