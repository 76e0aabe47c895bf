//===- Timeline.h - Questions about what overlapped ---------------------------------------------------------*- C++ -*-===//
//
// Answers from the recorded timeline of a simulated world (WorldOptions::trace). The question that an overlapped operator
// must answer is: how much of the computation was done before the last of the communication had arrived?
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_TIMELINE_H
#define DITRON_RUNTIME_TIMELINE_H

#include "ditron/runtime/World.h"

namespace ditron::runtime {

/// Blocks of one kernel on one rank against the copies into that rank.
struct Overlap {
  uint32_t blocks = 0;                    ///< Blocks that ran.
  uint32_t startedBeforeLastArrival = 0;  ///< Blocks that had started when the last copy into the rank ended.
  uint32_t finishedBeforeLastArrival = 0; ///< Blocks that had even finished.
  int64_t lastArrival = 0;                ///< Picoseconds; 0 when nothing was copied in.
  int64_t kernelStart = 0, kernelEnd = 0; ///< First start and last end.
};

/// Looks at all launches of `kernel` on `rank`, and at the copies from other ranks into `rank` whose name begins with
/// `copyPrefix`. Fails when the world records no timeline or the kernel never ran there.
Expected<Overlap> overlapWithIncomingCopies(const World &world, uint32_t rank, std::string_view kernel,
                                            std::string_view copyPrefix = "");
/// The same for copies that leave `rank`: how many blocks ran after the first had begun to leave is blocks - finished
/// before; here startedBeforeLastArrival counts blocks that had started when the last outgoing copy *ended*.
Expected<Overlap> overlapWithOutgoingCopies(const World &world, uint32_t rank, std::string_view kernel,
                                            std::string_view copyPrefix = "");

/// From the first start to the last end of everything recorded, in picoseconds of virtual time.
Expected<int64_t> spanOfRecordedWork(const World &world);

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_TIMELINE_H
