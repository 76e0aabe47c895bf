//===- TensorCopyUnit.cpp - Tensor copies between global and shared memory (TMA) ----------------------------------===//
//
// Issue: checks, books, costs. Then the events of a copy, and the waits for stores.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/TensorCopyUnit.h"

#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/hopper/Costs.h"
#include "ditron/sim/hopper/TensorMap.h"
#include "ditron/sim/report/EngineTrace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ditron::sim {

void TensorCopyUnit::clear() {
  copies.clear();
  unitFree = 0;
}

//===- Checks -----------------------------------------------------------------------------------------------------===//

void TensorCopyUnit::refuse(Thread &thread, const TensorCopyCall &call, StatusCode code, const std::string &problem) {
  block.failThread(thread, code, fmt::format("{}: {}", call.name(), problem), call.site);
}

/// What is wrong with the place of the box in its tensor, whatever the memory holds; empty when nothing is.
static std::string checkPlace(const TensorCopyCall &call) {
  const DitronSimTensorMap &map = *call.map;
  if (call.rank != map.rank)
    return fmt::format("{} coordinates for a tensor map of rank {}", call.rank, map.rank);
  // Seen on an H200: the first two end in "illegal instruction", the last one writes behind the row.
  if (const int64_t first = int64_t(call.coords[0]) * map.elementBytes; first % 16 != 0)
    return fmt::format("it begins at byte {} of its row, which is not a multiple of 16", first);
  for (uint32_t dim = 0; call.isStore() && dim < call.rank; ++dim)
    if (call.coords[dim] < 0)
      return fmt::format("coordinate {} is {}: only loads may begin before the tensor", dim, call.coords[dim]);
  if (const uint64_t rowBytes = uint64_t(map.dims[0]) * map.elementBytes; call.isStore() && rowBytes % 16 != 0)
    return fmt::format("rows end at byte {}; stores write them in steps of 16 bytes", rowBytes);
  return {};
}

void TensorCopyUnit::checkCall(Thread &thread, const TensorCopyCall &call) {
  std::string problem = call.map ? checkTensorMap(*call.map) : "no tensor map";
  if (problem.empty())
    problem = checkPlace(call);
  if (!problem.empty())
    refuse(thread, call, StatusCode::InvalidArgument, problem);
  const uint64_t offset = static_cast<const char *>(call.shared) - thread.sharedMemory;
  const uint32_t bytes = boxBytes(*call.map);
  if (offset > thread.sharedBytes || bytes > thread.sharedBytes - offset)
    refuse(thread, call, StatusCode::OutOfBounds,
           fmt::format("the box of {} bytes at shared offset {} is outside of the block's {}", bytes,
                       static_cast<int64_t>(offset), thread.sharedBytes));
  const uint32_t alignment = call.isPlain ? 16 : 128;
  if (offset % alignment != 0)
    refuse(thread, call, StatusCode::InvalidArgument,
           fmt::format("shared offset {} is not a multiple of {}", offset, alignment));
}

bool TensorCopyUnit::checkGlobal(Thread &thread, const TensorCopyCall &call, const TensorBox &box) {
  if (box.isOutside())
    return false;
  auto [first, extent] = box.touched();
  if (!block.checked) {
    const Allocation *allocation = block.engine.memory.find(first);
    return allocation && allocation->rank != block.rank.id;
  }
  AccessCache::Entry entry;
  if (std::string problem = block.engine.memory.checkAccess(block.rank.id, first, extent, entry); !problem.empty())
    refuse(thread, call, StatusCode::OutOfBounds,
           fmt::format("the {} at {} (the tensor's part of the box): {}", byteCount(extent),
                       block.engine.memory.placeText(first), problem));
  return entry.remote != 0;
}

//===- Issue ------------------------------------------------------------------------------------------------------===//

uint32_t TensorCopyUnit::freeCopy() {
  uint32_t index = 0;
  while (index < copies.size() && copies[index].active)
    ++index;
  if (index == copies.size())
    copies.emplace_back();
  return index;
}

void TensorCopyUnit::start(Thread &thread, const TensorCopyCall &call) {
  checkCall(thread, call);
  const uint32_t barrier = call.isStore() ? 0 : mbarriers.beginLoad(mbarriers.at(thread, call.bar, call.site));
  const TensorBox box(*call.map, call.coords);
  const bool remote = checkGlobal(thread, call, box);
  const uint32_t index = freeCopy();
  Copy &copy = copies[index];
  copy.store = call.isStore();
  copy.remote = remote;
  copy.box = box;
  copy.shared = static_cast<uint32_t>(static_cast<const char *>(call.shared) - thread.sharedMemory);
  copy.barrier = barrier;
  copy.thread = &thread;
  copy.site = call.site;
  copy.active = true;
  copy.use = nullptr;
  copy.staged.clear();
  book(thread, call, copy);
  if (block.engine.races)
    checkRaces(thread, call, copy);
  charge(call, index);
}

void TensorCopyUnit::book(Thread &thread, const TensorCopyCall &call, Copy &copy) {
  const uint32_t bytes = copy.box.bytes();
  if (copy.store) {
    StoreGroups &stores = thread.asyncWork.stores;
    copy.group = stores.add();
    if (SharedUse *use = proxy.beginStore(thread, copy.shared, bytes, call.name(), call.site))
      stores.keep(copy.group, use);
    return;
  }
  copy.use = proxy.beginLoad(thread, copy.shared, bytes, call.name(), call.site);
  // Who reads before the phase is complete shall notice.
  if (proxy.isOn())
    std::memset(thread.sharedMemory + copy.shared, 0xff, bytes);
}

void TensorCopyUnit::checkRaces(Thread &thread, const TensorCopyCall &call, const Copy &copy) {
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
  race::Access global = copy.store ? write : read;
  global.asyncName = call.name();
  copy.box.forEachRow([&](uint32_t, const char *row, uint32_t, uint32_t bytes) {
    if (row && bytes)
      block.failIf(races.access(copy.store ? writer : reader, row, bytes, global), thread, copy.site);
  });
}

void TensorCopyUnit::charge(const TensorCopyCall &call, uint32_t index) {
  Engine &engine = block.engine;
  const Copy &copy = copies[index];
  const uint64_t moved = copy.box.movedBytes();
  block.settle();
  const TensorCopyCost cost = tensorCopyCost(engine.options, moved, copy.remote, block.rank.slowFactor);
  const SimTime begin = std::max(block.clock, unitFree);
  unitFree = begin + engine.scheduler.cost(cost.transferNs);
  const SimTime arrives = unitFree + engine.scheduler.cost(cost.latencyNs);
  (copy.remote ? engine.counters.remoteBytes : engine.counters.localBytes) += moved;
  (copy.store ? engine.counters.tmaStoreBytes : engine.counters.tmaLoadBytes) += copy.box.bytes();
  if (engine.trace.isEnabled())
    traceTensorCopy(block, call.name(), begin, unitFree, copy.box.bytes(), call.site);
  auto schedule = [&](SimTime time, EventKind kind) {
    events.schedule(time, *this, static_cast<uint32_t>(kind), index);
  };
  if (copy.store) {
    schedule(unitFree, EventKind::StoreRead);
    schedule(arrives, EventKind::StoreDone);
  } else {
    schedule(arrives, EventKind::LoadDone);
  }
}

//===- Events -----------------------------------------------------------------------------------------------------===//

void TensorCopyUnit::handleEvent(uint32_t kind, uint32_t index, SimTime now) {
  Copy &copy = copies[index];
  switch (static_cast<EventKind>(kind)) {
  case EventKind::LoadDone: finishLoad(copy, now); break;
  case EventKind::StoreRead: readStore(copy, now); break;
  case EventKind::StoreDone: finishStore(copy, now); break;
  }
}

void TensorCopyUnit::finishLoad(Copy &copy, SimTime now) {
  copy.box.load(copy.thread->sharedMemory, copy.shared);
  proxy.end(copy.use);
  copy.active = false;
  mbarriers.endLoad(copy.barrier, copy.box.bytes(), now);
}

void TensorCopyUnit::readStore(Copy &copy, SimTime now) {
  copy.staged.resize(copy.box.bytes());
  copy.box.readShared(copy.thread->sharedMemory, copy.shared, copy.staged.data());
  copy.thread->asyncWork.stores.noteRead(copy.group);
  wakeStoreWaiter(*copy.thread, now);
}

void TensorCopyUnit::finishStore(Copy &copy, SimTime now) {
  copy.box.store(copy.staged.data());
  if (!copy.box.isOutside()) {
    auto [first, extent] = copy.box.touched();
    Writer writer = block.writer(*copy.thread, copy.site);
    writer.time = now;
    block.engine.rangeWritten(first, extent, writer);
  }
  copy.active = false;
  copy.thread->asyncWork.stores.noteWritten(copy.group);
  wakeStoreWaiter(*copy.thread, now);
}

std::string TensorCopyUnit::checkEnd(const DitronSimSite *&site) const {
  for (const Copy &copy : copies)
    if (copy.active && (!copy.store || copy.thread->asyncWork.stores.isReading(copy.group))) {
      site = copy.site;
      return fmt::format("the block ended while the tensor {} of that line was {} shared memory",
                         copy.store ? "store" : "load", copy.store ? "reading" : "writing");
    }
  return {};
}

void TensorCopyUnit::handleLateEvent(const EventQueue::Event &event) {
  if (static_cast<EventKind>(event.kind) != EventKind::StoreDone)
    return;
  finishStore(copies[event.index], std::max(event.time, block.clock));
  block.clock = std::max(block.clock, event.time);
}

//===- Waits for stores -------------------------------------------------------------------------------------------===//

void TensorCopyUnit::wakeStoreWaiter(Thread &thread, SimTime now) {
  const StoreGroups &stores = thread.asyncWork.stores;
  if (thread.state == ThreadState::AtStoreWait && stores.isDone(stores.awaited, stores.awaitsRead))
    block.wakeAt(thread, now);
}

void TensorCopyUnit::waitStores(Thread &thread, uint32_t pending, bool read, const DitronSimSite *site) {
  StoreGroups &stores = thread.asyncWork.stores;
  const uint64_t target = stores.target(pending);
  if (!stores.isDone(target, read)) {
    thread.site = site;
    thread.state = ThreadState::AtStoreWait;
    stores.awaited = target;
    stores.awaitsRead = read;
    block.park(thread);
  }
  if (block.engine.races) {
    block.engine.races->waitedFor(thread, thread.order.storeReads, static_cast<uint32_t>(target));
    if (!read)
      block.engine.races->waitedFor(thread, thread.order.storeWrites, static_cast<uint32_t>(target));
  }
  // The thread now knows that the source may be written again.
  stores.endUses(target, [&](SharedUse *use) { proxy.end(use); });
  stores.skipVisible(target);
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
  thread.block->asyncUnit.copies.start(thread, {map, rank, coords, shared, bar, site});
}

void ditron_sim_tma_store(DitronSimThread *self, const DitronSimTensorMap *map, uint32_t rank, const int32_t *coords,
                          const void *shared, uint32_t predicate, const DitronSimSite *site) {
  if (!predicate)
    return;
  Thread &thread = asThread(self);
  thread.block->asyncUnit.copies.start(thread, {map, rank, coords, shared, /*bar=*/nullptr, site});
}

void ditron_sim_tma_store_commit(DitronSimThread *self, const DitronSimSite *) {
  asThread(self).asyncWork.stores.close();
}

void ditron_sim_tma_store_wait(DitronSimThread *self, uint32_t pending, uint32_t read, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.copies.waitStores(thread, pending, read != 0, site);
}

void ditron_sim_bulk_copy(DitronSimThread *self, void *global, void *shared, uint32_t bytes, void *bar,
                          const DitronSimSite *site) {
  Thread &thread = asThread(self);
  if (bytes % 16 != 0 || reinterpret_cast<uintptr_t>(global) % 16 != 0)
    thread.block->failThread(
        thread, StatusCode::InvalidArgument,
        fmt::format("a bulk copy of {} bytes with global memory at {}: both must be multiples of 16", bytes,
                    thread.block->engine.memory.placeText(global)),
        site);
  // As tensors of rows of 16 bytes, of which a box takes 256.
  constexpr uint32_t rowBytes = 16, maxRows = 256;
  for (uint32_t done = 0; done < bytes;) {
    const uint32_t rows = std::min((bytes - done) / rowBytes, maxRows);
    DitronSimTensorMap map{};
    map.base = static_cast<char *>(global) + done;
    map.rank = 2;
    map.elementBytes = 1;
    map.stridesBytes[0] = rowBytes;
    map.dims[0] = map.box[0] = rowBytes;
    map.dims[1] = map.box[1] = rows;
    const int32_t origin[2] = {0, 0};
    thread.block->asyncUnit.copies.start(
        thread, {&map, 2, origin, static_cast<char *>(shared) + done, bar, site, /*isPlain=*/true});
    done += rows * rowBytes;
  }
}

} // extern "C"
