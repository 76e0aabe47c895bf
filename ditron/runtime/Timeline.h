//===- Timeline.h - Questions about what overlapped -----------------------------------------------------*- C++ -*-===//
//
// Answers from the recorded timeline of a simulated world (WorldOptions::trace). The question that an overlapped
// operator must answer is: how much of the computation had begun, or was even done, before the last of the
// communication was over?
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_TIMELINE_H
#define DITRON_RUNTIME_TIMELINE_H

#include "ditron/runtime/World.h"

namespace ditron::runtime {

enum class CopyDirection {
  Incoming, ///< From other ranks into the rank.
  Outgoing, ///< From the rank into other ranks.
};

/// Blocks of one kernel on one rank against the copies between this rank and others. Times are picoseconds.
struct Overlap {
  uint32_t blocks = 0;                 ///< Blocks that ran.
  uint32_t startedBeforeLastCopy = 0;  ///< Blocks that had started when the last copy ended.
  uint32_t finishedBeforeLastCopy = 0; ///< Blocks that had even finished.
  uint32_t startedAfterFirstCopy = 0;  ///< Blocks that started when the first copy had ended.
  uint32_t copies = 0;
  int64_t firstCopyEnd = 0, lastCopyEnd = 0; ///< 0 without copies.
  int64_t kernelStart = 0, kernelEnd = 0;    ///< First start and last end.
};

/// Looks at all launches of `kernel` on `rank`, and at the copies between `rank` and others whose name begins with
/// `copyPrefix`. Fails when the world records no timeline or the kernel never ran there.
Expected<Overlap> overlapWithCopies(const World &world, uint32_t rank, std::string_view kernel, CopyDirection direction,
                                    std::string_view copyPrefix = "");

/// From the first start to the last end of all launches and copies recorded, in picoseconds of virtual time; 0 for
/// none.
Expected<int64_t> spanOfRecordedWork(const World &world);

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_TIMELINE_H
