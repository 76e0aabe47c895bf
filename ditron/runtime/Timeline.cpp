//===- Timeline.cpp - Questions about what overlapped -------------------------------------------------------------===//
//
// Walks the simulator's launch and copy records.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/Timeline.h"

#include "ditron/sim/Machine.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace ditron::runtime {

static Status checkRecorded(const World &world) {
  if (world.machine() && world.options().trace)
    return Status::ok();
  return invalidArgument("the world keeps no timeline; make it with WorldOptions::trace");
}

Expected<Overlap> overlapWithCopies(const World &world, uint32_t rank, std::string_view kernel, CopyDirection direction,
                                    std::string_view copyPrefix) {
  DITRON_RETURN_IF_ERROR(checkRecorded(world));
  Overlap overlap;
  for (const sim::CopyRecord &copy : world.machine()->copies()) {
    const uint32_t mine = direction == CopyDirection::Incoming ? copy.destinationRank : copy.sourceRank;
    if (mine != rank || copy.sourceRank == copy.destinationRank || !copy.name.starts_with(copyPrefix))
      continue;
    overlap.firstCopyEnd = overlap.copies ? std::min(overlap.firstCopyEnd, copy.end) : copy.end;
    overlap.lastCopyEnd = std::max(overlap.lastCopyEnd, copy.end);
    ++overlap.copies;
  }
  std::set<std::string> others;
  bool found = false;
  for (const sim::LaunchRecord &launch : world.machine()->launches()) {
    if (launch.rank != rank)
      continue;
    if (launch.name != kernel) {
      others.insert(launch.name);
      continue;
    }
    overlap.kernelStart = found ? std::min(overlap.kernelStart, launch.start) : launch.start;
    overlap.kernelEnd = std::max(overlap.kernelEnd, launch.end);
    found = true;
    for (const sim::BlockRecord &block : launch.blocks) {
      ++overlap.blocks;
      if (overlap.copies == 0)
        continue;
      overlap.startedBeforeLastCopy += block.start < overlap.lastCopyEnd;
      overlap.finishedBeforeLastCopy += block.end <= overlap.lastCopyEnd;
      overlap.startedAfterFirstCopy += block.start >= overlap.firstCopyEnd;
    }
  }
  if (!found)
    return notFound(fmt::format("kernel '{}' was not launched on rank {}; launched there: {}", kernel, rank,
                                others.empty() ? "nothing" : fmt::format("{}", fmt::join(others, ", "))));
  return overlap;
}

Expected<int64_t> spanOfRecordedWork(const World &world) {
  DITRON_RETURN_IF_ERROR(checkRecorded(world));
  int64_t first = INT64_MAX, last = 0;
  for (const sim::LaunchRecord &launch : world.machine()->launches()) {
    first = std::min(first, launch.start);
    last = std::max(last, launch.end);
  }
  for (const sim::CopyRecord &copy : world.machine()->copies()) {
    first = std::min(first, copy.start);
    last = std::max(last, copy.end);
  }
  return std::max<int64_t>(last - first, 0);
}

} // namespace ditron::runtime
