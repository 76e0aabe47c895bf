//===- EventRing.h - Where a GPU's kernels note what they did when -----------------------------------------*- C++ -*-===//
//
// Kernels compiled with DITRON_TRACE_GPU append to the ring of their rank (abi/EventRing.h), in the GPU's memory. It holds the newest
// 65,536 events.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_EVENTRING_H
#define DITRON_RUNTIME_CUDA_EVENTRING_H

#include "ditron/abi/EventRing.h"
#include "ditron/runtime/cuda/CudaDriver.h"
#include "ditron/runtime/cuda/VirtualHeap.h"

#include <vector>

namespace ditron::cuda {

/// What a rank's kernels have noted.
struct NotedEvents {
  std::vector<DitronEvent> events; ///< In the order in which their numbers were taken.
  uint64_t overwritten = 0;        ///< Older ones.
};

class EventRing {
public:
  /// The owner's context is current; `stream` is one on which no kernel runs. The memory goes with the heap.
  static Expected<std::unique_ptr<EventRing>> create(std::shared_ptr<const CudaDriver> driver, VirtualHeap &memory,
                                                     Context context, StreamRef stream);

  /// Where kernels find it.
  uint64_t address() const { return reinterpret_cast<uint64_t>(ring); }
  /// Everything up to now; works while kernels run, and while they hang. Any thread.
  Expected<NotedEvents> read() const;

private:
  EventRing() = default;
  Status download(void *destination, uint64_t offset, uint64_t bytes) const;

  std::shared_ptr<const CudaDriver> driver;
  Context context = nullptr;
  StreamRef stream = nullptr;
  void *ring = nullptr;
};

/// The events of a copy of the ring's places, of which so many numbers have been taken.
NotedEvents sortEvents(const std::vector<DitronEvent> &places, uint64_t claimed);

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_EVENTRING_H
