//===- EventRing.cpp - Where a GPU's kernels note what they did when ----------------------------------------------===//
#include "ditron/runtime/cuda/EventRing.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ditron::cuda {

namespace {
constexpr uint64_t ringBytes = sizeof(DitronEventRing) + uint64_t(DITRON_RING_EVENTS) * sizeof(DitronEvent);
/// A GPU that does not answer for so long is gone.
constexpr std::chrono::seconds patience{5};
} // namespace

Expected<std::unique_ptr<EventRing>> EventRing::create(std::shared_ptr<const CudaDriver> driver, VirtualHeap &memory,
                                                       Context context, StreamRef stream) {
  std::unique_ptr<EventRing> made(new EventRing());
  made->driver = std::move(driver);
  made->context = context;
  made->stream = stream;
  Expected<void *> piece = memory.allocate(ringBytes);
  if (!piece.isOk())
    return piece.status().withContext("cannot allocate the ring of events for traces");
  made->ring = *piece;
  DITRON_RETURN_IF_ERROR(made->driver->check(made->driver->memsetD8Async(made->address(), 0, ringBytes, stream),
                                             "clearing of the ring of events"));
  DITRON_RETURN_IF_ERROR(
      made->driver->check(made->driver->streamSynchronize(stream), "clearing of the ring of events"));
  return made;
}

Status EventRing::download(void *destination, uint64_t offset, uint64_t bytes) const {
  DITRON_RETURN_IF_ERROR(driver->check(driver->memcpyDeviceToHostAsync(destination, address() + offset, bytes, stream),
                                       "reading of the events of kernels"));
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const Result result = driver->streamQuery(stream);
    if (result != errorNotReady)
      return driver->check(result, "reading of the events of kernels");
    if (std::chrono::steady_clock::now() - begin > patience)
      return Status(StatusCode::TimeOut, "the GPU does not give the events that its kernels have noted");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Expected<NotedEvents> EventRing::read() const {
  ContextScope scope(*driver, context);
  uint64_t claimed = 0;
  DITRON_RETURN_IF_ERROR(download(&claimed, offsetof(DitronEventRing, claimed), sizeof(claimed)));
  std::vector<DitronEvent> places(std::min<uint64_t>(claimed, DITRON_RING_EVENTS));
  if (!places.empty())
    DITRON_RETURN_IF_ERROR(download(places.data(), sizeof(DitronEventRing), places.size() * sizeof(DitronEvent)));
  return sortEvents(places, claimed);
}

NotedEvents sortEvents(const std::vector<DitronEvent> &places, uint64_t claimed) {
  NotedEvents noted;
  noted.overwritten = claimed - std::min<uint64_t>(claimed, places.size());
  // A place that was claimed again after the head was read, or is not written yet, has another sequence.
  for (uint64_t number = noted.overwritten; number < claimed; ++number)
    if (const DitronEvent &event = places[number % DITRON_RING_EVENTS];
        event.sequence == static_cast<uint32_t>(number + 1))
      noted.events.push_back(event);
  return noted;
}

} // namespace ditron::cuda
