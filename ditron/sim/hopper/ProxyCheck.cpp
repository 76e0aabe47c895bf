//===- ProxyCheck.cpp - Ordinary and asynchronous accesses of shared memory ---------------------------------------===//
//
// The marks of chunks, and what is said when they contradict an access.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/ProxyCheck.h"

#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace ditron::sim {

namespace {
constexpr uint32_t chunkBytes = 16;

bool uses(const SharedUse &use, uint32_t chunk) {
  return (chunk >= use.first && chunk < use.end) ||
         std::find(use.scattered.begin(), use.scattered.end(), chunk) != use.scattered.end();
}
} // namespace

void ProxyCheck::reset(uint64_t sharedBytes) {
  clear();
  if (block.checked)
    chunks.assign((sharedBytes + chunkBytes - 1) / chunkBytes, {});
  meetings = 0;
}

void ProxyCheck::clear() {
  chunks.clear();
  uses.clear();
  loadsInFlight = 0;
}

void ProxyCheck::fail(Thread &thread, const std::string &what, const DitronSimSite *site) {
  block.failThread(thread, StatusCode::InvalidArgument, what, site);
}

//===- What threads do --------------------------------------------------------------------------------------------===//

void ProxyCheck::fence(Thread &thread) {
  ProxyFences &fences = thread.asyncWork.fences;
  ProxyFences::One &one = fences.last[fences.count++ % fences.last.size()];
  fences.meetings = one.meetings = meetings;
  if (block.engine.races)
    one.actor = block.engine.races->momentWith(thread, one.known);
}

void ProxyCheck::noteStore(Thread &thread, const void *address, uint64_t bytes, const DitronSimSite *site) {
  if (chunks.empty() || bytes == 0)
    return;
  const uint64_t offset = static_cast<const char *>(address) - thread.sharedMemory;
  for (uint64_t chunk = offset / chunkBytes; chunk <= (offset + bytes - 1) / chunkBytes; ++chunk) {
    Chunk &mark = chunks[chunk];
    if (mark.readers || mark.writers)
      fail(thread,
           fmt::format("store of {} at shared offset {}, {}", byteCount(bytes), offset,
                       useText(static_cast<uint32_t>(chunk))),
           site);
    mark.site = site;
    mark.thread = static_cast<uint16_t>(thread.threadId);
    mark.fences = thread.asyncWork.fences.count;
    mark.meetings = static_cast<uint32_t>(meetings);
    if (block.engine.races)
      mark.stored = block.engine.races->momentOf(thread);
  }
}

void ProxyCheck::checkLoad(Thread &thread, const void *address, uint64_t bytes, const DitronSimSite *site) {
  if (bytes == 0)
    return;
  const uint64_t offset = static_cast<const char *>(address) - thread.sharedMemory;
  for (uint64_t chunk = offset / chunkBytes; chunk <= (offset + bytes - 1) / chunkBytes; ++chunk)
    if (chunks[chunk].writers)
      fail(thread,
           fmt::format("load of {} at shared offset {}, {}", byteCount(bytes), offset,
                       useText(static_cast<uint32_t>(chunk))),
           site);
}

//===- What asynchronous operations do ----------------------------------------------------------------------------===//

SharedUse &ProxyCheck::begin(SharedUse::Kind kind, uint32_t owner, uint32_t first, uint32_t end,
                             const DitronSimSite *site) {
  auto free = std::find_if(uses.begin(), uses.end(), [](const auto &use) { return !use->active; });
  if (free == uses.end())
    free = uses.insert(uses.end(), std::make_unique<SharedUse>());
  SharedUse &use = **free;
  use.kind = kind;
  use.active = true;
  use.owner = owner;
  use.number = ++usesBegun;
  use.site = site;
  use.first = first;
  use.end = end;
  use.scattered.clear();
  return use;
}

SharedUse *ProxyCheck::beginLoad(Thread &thread, uint32_t shared, uint32_t bytes, std::string_view what,
                                 const DitronSimSite *site) {
  if (chunks.empty())
    return nullptr;
  const uint32_t first = shared / chunkBytes, end = (shared + bytes) / chunkBytes;
  for (uint32_t chunk = first; chunk < end; ++chunk)
    if (chunks[chunk].readers || chunks[chunk].writers)
      fail(thread, fmt::format("{}: it overwrites shared offset {}, {}", what, chunk * chunkBytes, useText(chunk)),
           site);
  for (uint32_t chunk = first; chunk < end; ++chunk) {
    ++chunks[chunk].writers;
    chunks[chunk].site = nullptr;
  }
  ++loadsInFlight;
  return &begin(SharedUse::Kind::TensorLoad, thread.threadId, first, end, site);
}

SharedUse *ProxyCheck::beginStore(Thread &thread, uint32_t shared, uint32_t bytes, std::string_view what,
                                  const DitronSimSite *site) {
  if (chunks.empty())
    return nullptr;
  const uint32_t first = shared / chunkBytes, end = (shared + bytes) / chunkBytes;
  for (uint32_t chunk = first; chunk < end; ++chunk)
    checkRead(thread, chunk, what, site);
  for (uint32_t chunk = first; chunk < end; ++chunk)
    ++chunks[chunk].readers;
  return &begin(SharedUse::Kind::TensorStore, thread.threadId, first, end, site);
}

SharedUse *ProxyCheck::beginMultiply(uint32_t warpgroup, const DitronSimSite *site) {
  return chunks.empty() ? nullptr : &begin(SharedUse::Kind::Multiply, warpgroup, 0, 0, site);
}

void ProxyCheck::end(SharedUse *use) {
  if (!use)
    return;
  if (use->kind == SharedUse::Kind::TensorLoad) {
    for (uint32_t chunk = use->first; chunk < use->end; ++chunk) {
      --chunks[chunk].writers;
      chunks[chunk].site = nullptr;
    }
    --loadsInFlight;
  } else {
    for (uint32_t chunk = use->first; chunk < use->end; ++chunk)
      --chunks[chunk].readers;
    for (uint32_t chunk : use->scattered)
      --chunks[chunk].readers;
  }
  use->active = false;
}

void ProxyCheck::checkRead(Thread &thread, uint32_t chunk, std::string_view what, const DitronSimSite *site) {
  Chunk &mark = chunks[chunk];
  if (mark.writers)
    fail(thread, fmt::format("the {} reads shared offset {}, {}", what, chunk * chunkBytes, useText(chunk)), site);
  if (!mark.site)
    return;
  const Thread &writer = *block.allThreads()[mark.thread];
  const ProxyFences &fences = writer.asyncWork.fences;
  std::string_view missing;
  if (fences.count == mark.fences)
    missing = "without fence_async after the store";
  else if (fences.count == mark.fences + 1 && fences.meetings == meetings && writer.warpId != thread.warpId)
    missing = "without a barrier after its fence_async";
  if (!missing.empty() && !isFencedOnTheWay(thread, mark))
    fail(thread,
         fmt::format("the {} reads shared offset {}, which thread {} stored at {} {}", what, chunk * chunkBytes,
                     writer.threadId, siteText(mark.site), missing),
         site);
  mark.site = nullptr;
}

void ProxyCheck::forgetStores() {
  for (Chunk &chunk : chunks)
    chunk.site = nullptr;
  for (const auto &thread : block.allThreads())
    thread->asyncWork.fences.last = {};
}

bool ProxyCheck::isFencedOnTheWay(Thread &thread, const Chunk &mark) {
  const auto fencedBy = [&](Thread &fencing) {
    const ProxyFences &fences = fencing.asyncWork.fences;
    return fencing.threadId != mark.thread &&
           std::any_of(fences.last.begin(), fences.last.begin() + fences.numLast(),
                       [&](const ProxyFences::One &fence) { return isOnTheWay(fencing, fence, thread, mark); });
  };
  return fencedBy(thread) || std::any_of(block.allThreads().begin(), block.allThreads().end(),
                                         [&](const auto &fencing) { return fencedBy(*fencing); });
}

bool ProxyCheck::isOnTheWay(Thread &fencing, const ProxyFences::One &fence, Thread &thread, const Chunk &mark) {
  race::Detector *races = block.engine.races.get();
  if (!races)
    return fence.meetings > mark.meetings && (&fencing == &thread || meetings > fence.meetings);
  return races->isOrderedBefore(mark.stored, fence.actor, fence.known) &&
         (&fencing == &thread || races->knows(thread, {fence.actor.strand, fence.actor.lane}));
}

std::string ProxyCheck::useText(uint32_t chunk) const {
  const SharedUse *first = nullptr;
  auto rank = [](const SharedUse &use) { return std::tuple(use.kind, use.owner, use.number); };
  for (const auto &use : uses)
    if (use->active && sim::uses(*use, chunk) && (!first || rank(*use) < rank(*first)))
      first = use.get();
  if (!first)
    return "which is in use by an asynchronous operation";
  const std::string place = siteText(first->site);
  switch (first->kind) {
  case SharedUse::Kind::TensorLoad: return fmt::format("which the tensor load of {} is still writing", place);
  case SharedUse::Kind::Multiply:
    return fmt::format("which the wgmma of {} may still be reading: its group has not been waited for", place);
  case SharedUse::Kind::TensorStore:
    return fmt::format("which the tensor store of {} may still be reading: its group has not been waited for", place);
  }
  return {};
}

} // namespace ditron::sim

using namespace ditron::sim;

extern "C" void ditron_sim_fence_async(DitronSimThread *self, const DitronSimSite *) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.proxy.fence(thread);
}

extern "C" void ditron_sim_fence_async_global(DitronSimThread *self, const DitronSimSite *) {
  Thread &thread = asThread(self);
  if (thread.block->engine.races)
    thread.block->engine.races->proxyFence(thread);
}
