//===- ProxyCheck.cpp - Ordinary and asynchronous accesses of shared memory ---------------------------------------===//
//
// Every 16 bytes of shared memory carry a mark: who wrote them last by an ordinary store, and how many asynchronous reads
// and writes of them are in flight. An asynchronous read of an ordinary write needs a fence by the writer, and a meeting
// of threads after the fence unless reader and writer are of one warp; ordinary accesses of what is in flight are races.
// Meetings are counted for the whole block and not per pair of threads: what is reported is wrong, not everything wrong
// is reported.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

namespace ditron::sim {

void AsyncUnit::fence(Thread &thread) {
  ++thread.asyncWork.fences;
  thread.asyncWork.fenceSync = meetings;
}

void AsyncUnit::markReaders(uint32_t shared, uint32_t bytes, int change) {
  if (!chunks.empty())
    for (uint32_t chunk = shared / 16; chunk < (shared + bytes) / 16; ++chunk)
      chunks[chunk].readers = static_cast<uint8_t>(chunks[chunk].readers + change);
}

void AsyncUnit::markWriters(uint32_t shared, uint32_t bytes, int change) {
  if (!chunks.empty())
    for (uint32_t chunk = shared / 16; chunk < (shared + bytes) / 16; ++chunk) {
      chunks[chunk].writers = static_cast<uint8_t>(chunks[chunk].writers + change);
      chunks[chunk].site = nullptr;
    }
}

std::string AsyncUnit::flightText(uint32_t chunk) const {
  for (const TensorCopy &copy : copies)
    if (chunks[chunk].writers && copy.active && !copy.store && chunk >= copy.shared / 16 &&
        chunk < (copy.shared + copy.bytes) / 16)
      return fmt::format("which the tensor load of {} is still writing", siteText(copy.site));
  for (const Warpgroup &group : groups)
    for (const Warpgroup::Operation &operation : group.operations)
      for (uint32_t read : operation.chunks)
        if (read == chunk)
          return fmt::format("which the wgmma of {} may still be reading: its group has not been waited for",
                             siteText(operation.site));
  for (const auto &thread : block.allThreads())
    for (const AsyncThread::StoreMark &mark : thread->asyncWork.storeMarks)
      if (chunk >= mark.shared / 16 && chunk < (mark.shared + mark.bytes) / 16)
        return fmt::format("which the tensor store of {} may still be reading: its group has not been waited for",
                           siteText(mark.site));
  return "which is in use by an asynchronous operation";
}

void AsyncUnit::noteStore(Thread &thread, const void *address, uint64_t bytes, const DitronSimSite *site) {
  if (chunks.empty() || bytes == 0)
    return;
  const uint64_t offset = static_cast<const char *>(address) - thread.sharedMemory;
  for (uint64_t chunk = offset / 16; chunk <= (offset + bytes - 1) / 16; ++chunk) {
    SharedChunk &mark = chunks[chunk];
    if (mark.readers || mark.writers)
      block.failThread(thread, StatusCode::InvalidArgument,
                       fmt::format("store of {} at shared offset {}, {}", byteCount(bytes), offset,
                                   flightText(static_cast<uint32_t>(chunk))),
                       site);
    mark.site = site;
    mark.thread = static_cast<uint16_t>(thread.threadId);
    mark.fences = thread.asyncWork.fences;
  }
}

void AsyncUnit::checkLoad(Thread &thread, const void *address, uint64_t bytes, const DitronSimSite *site) {
  if (chunks.empty() || bytes == 0)
    return;
  const uint64_t offset = static_cast<const char *>(address) - thread.sharedMemory;
  for (uint64_t chunk = offset / 16; chunk <= (offset + bytes - 1) / 16; ++chunk)
    if (chunks[chunk].writers)
      block.failThread(thread, StatusCode::InvalidArgument,
                       fmt::format("load of {} at shared offset {}, {}", byteCount(bytes), offset,
                                   flightText(static_cast<uint32_t>(chunk))),
                       site);
}

void AsyncUnit::checkAsyncRead(Thread &thread, uint32_t chunk, std::string_view what, const DitronSimSite *site) {
  SharedChunk &mark = chunks[chunk];
  if (mark.writers)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("the {} reads shared offset {}, {}", what, chunk * 16, flightText(chunk)), site);
  if (!mark.site)
    return;
  const Thread &writer = *block.allThreads()[mark.thread];
  const AsyncThread &work = writer.asyncWork;
  std::string_view missing;
  if (work.fences == mark.fences)
    missing = "without fence_async after the store";
  else if (work.fences == mark.fences + 1 && work.fenceSync == meetings && writer.warpId != thread.warpId)
    missing = "without a barrier after its fence_async";
  if (!missing.empty())
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("the {} reads shared offset {}, which thread {} stored at {} {}", what, chunk * 16,
                                 writer.threadId, siteText(mark.site), missing),
                     site);
  mark.site = nullptr;
}

} // namespace ditron::sim

using namespace ditron::sim;

extern "C" void ditron_sim_fence_async(DitronSimThread *self, const DitronSimSite *) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.fence(thread);
}
