//===- GpuTrace.h - The events of GPUs as a trace -----------------------------------------------------------*- C++ -*-===//
//
// Draws what kernels have noted (EventRing.h) in the simulator's form (sim/report/Trace): a block on the row of its SM, its waits inside
// of it, an arrow from the signal that ended a wait, a row of kernels. What a run that hangs still waits for comes from its boards.
// Times are the GPUs' own clocks, from the first event on; those of different GPUs are not compared.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_GPUTRACE_H
#define DITRON_RUNTIME_CUDA_GPUTRACE_H

#include "ditron/explain/board/BoardReader.h"
#include "ditron/runtime/cuda/EventRing.h"

#include <functional>

namespace ditron::cuda {

/// Of one rank.
struct RankEvents {
  uint32_t rank = 0;
  NotedEvents noted;
  std::vector<explain::PublishedWait> waiting; ///< That have not ended.
};

/// What the host knows of what events name.
struct EventNames {
  std::function<std::string(uint32_t hash)> kernel;
  std::function<std::string(uint32_t hash, uint32_t line)> place;
  std::function<std::string(uint64_t address)> word;
};

/// The trace as Chrome trace JSON. `ended` is the error that ended the run, or ok.
std::string renderGpuTrace(const std::vector<RankEvents> &ranks, const EventNames &names, const Status &ended);

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_GPUTRACE_H
