//===- Stream.cpp - Queues of work on one rank --------------------------------------------------------------------===//
//
// Checks what can be checked without a device, and passes on.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/Stream.h"

#include "ditron/runtime/PreparedLaunch.h"

#include <fmt/format.h>

namespace ditron::runtime {

Status Event::synchronize() const { return device->synchronizeEvent(handleValue); }
Expected<int64_t> Event::time() const { return device->eventTime(handleValue); }

Expected<int64_t> Event::elapsedSince(const Event &begin) const {
  return device->elapsedTime(begin.handleValue, handleValue);
}

Expected<Stream> Stream::create(std::shared_ptr<Device> device, uint32_t rank, void *worldView, std::string_view name, int priority) {
  DITRON_ASSIGN_OR_RETURN(StreamHandle handle, device->createStream(name, priority));
  Stream stream;
  stream.device = std::move(device);
  stream.handle = handle;
  stream.worldView = worldView;
  stream.nameText = name;
  stream.rankId = rank;
  return stream;
}

Expected<Stream> Stream::adopt(std::shared_ptr<Device> device, uint32_t rank, void *worldView, void *native) {
  DITRON_ASSIGN_OR_RETURN(StreamHandle handle, device->adoptStream(native));
  Stream stream;
  stream.device = std::move(device);
  stream.handle = handle;
  stream.worldView = worldView;
  stream.nameText = "adopted";
  stream.rankId = rank;
  stream.isOwner = false;
  return stream;
}

Stream::Stream(Stream &&other) noexcept
    : device(std::move(other.device)), handle(other.handle), worldView(other.worldView),
      nameText(std::move(other.nameText)), rankId(other.rankId), isOwner(other.isOwner) {}

Stream &Stream::operator=(Stream &&other) noexcept {
  Stream moved(std::move(other));
  std::swap(device, moved.device);
  std::swap(handle, moved.handle);
  std::swap(worldView, moved.worldView);
  std::swap(nameText, moved.nameText);
  std::swap(rankId, moved.rankId);
  std::swap(isOwner, moved.isOwner);
  return *this;
}

Stream::~Stream() {
  if (device && isOwner)
    (void)device->destroyStream(handle);
}

Status Stream::launch(const Kernel &kernel, const LaunchConfig &config, std::span<const Argument> arguments) {
  DITRON_ASSIGN_OR_RETURN(const PreparedLaunch launch, PreparedLaunch::create(device, kernel, config, arguments, handle));
  return launch.enqueue(*this);
}

StreamHandle Stream::nativeHandle() const {
  if (device)
    (void)device->shareStream(handle); // what ended the run is told by the next operation
  return handle;
}

Status Stream::launch(LoadedKernel &kernel, const LaunchConfig &config, void **values, size_t count,
                      void *otherWorldView) {
  values[count - 1] = otherWorldView ? &otherWorldView : &worldView;
  return kernel.launch(handle, config, values);
}

Status Stream::launch(const Graph &graph) {
  if (!graph.isValid())
    return invalidArgument("launch of an empty Graph");
  return device->launchGraph(handle, graph.handle());
}

Expected<GraphNode> Stream::capturedKernel() const { return device->capturedKernel(handle); }

Status Stream::patch(const Graph &graph, GraphNode node, const LoadedKernel &kernel, const LaunchConfig &config,
                     void **values, size_t count, void *otherWorldView) {
  values[count - 1] = otherWorldView ? &otherWorldView : &worldView;
  return device->patchGraph(graph.handle(), node, kernel, config, values);
}

Status Stream::copy(const Copy &copy) { return device->copy(handle, copy); }
Status Stream::checkDestination(const Copy &copy) const { return device->checkDestination(handle, copy); }

Status Stream::copy(Pointer destination, Pointer source, uint64_t count, std::string_view name) {
  if (destination.type != source.type)
    return invalidArgument(fmt::format("copy '{}' from {} to {}: the element types must agree", name,
                                       toString(source.type), toString(destination.type)));
  return device->copy(handle, Copy::of(destination, source, count, name));
}

Status Stream::fill(Pointer destination, int byteValue, uint64_t count) {
  return device->fill(handle, destination.address, byteValue, count * sizeOf(destination.type));
}

Status Stream::checkWord(std::string_view operation, Pointer word) const {
  if (isInteger(word.type) && sizeOf(word.type) >= 4)
    return Status::ok();
  return invalidArgument(
      fmt::format("{} on a {} word; signals are i32, u32, i64 or u64", operation, toString(word.type)));
}

Status Stream::signalWrite(Pointer word, uint64_t value) {
  DITRON_RETURN_IF_ERROR(checkWord("signalWrite", word));
  return device->signalWrite(handle, word.address, value, sizeOf(word.type));
}

Status Stream::signalAdd(Pointer word, uint64_t value) {
  DITRON_RETURN_IF_ERROR(checkWord("signalAdd", word));
  return device->signalAdd(handle, word.address, value, sizeOf(word.type));
}

Status Stream::signalWait(Pointer word, Compare compare, uint64_t value) {
  DITRON_RETURN_IF_ERROR(checkWord("signalWait", word));
  return device->signalWait(handle, word.address, compare, value, sizeOf(word.type));
}

Status Stream::record(const Event &event) { return device->recordEvent(handle, event.handle()); }
Status Stream::wait(const Event &event) { return device->waitEvent(handle, event.handle()); }

Status Stream::hostCallback(std::function<void()> callback, std::string_view name) {
  return device->hostCallback(handle, std::move(callback), name);
}

Status Stream::beginCapture() { return device->beginCapture(handle); }

bool Stream::isCapturing() const { return device->isCapturing(handle); }

Expected<Graph> Stream::endCapture() {
  DITRON_ASSIGN_OR_RETURN(GraphHandle graph, device->endCapture(handle));
  return Graph(std::move(graph));
}

Status Stream::synchronize() { return device->synchronizeStream(handle); }

} // namespace ditron::runtime
