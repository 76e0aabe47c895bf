//===- Stream.h - Queues of work on one rank ------------------------------------------------------------*- C++ -*-===//
//
// A Stream runs what is appended to it in order; streams run beside each other and are ordered by events and signals.
// All members but synchronize only enqueue. Signals are words of 4 or 8 bytes (the pointer's element type says which)
// in symmetric or device memory; the library's own grow only and are waited for with GreaterEqual (docs/memory-model.md).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_STREAM_H
#define DITRON_RUNTIME_STREAM_H

#include "ditron/runtime/Device.h"

namespace ditron::runtime {

class Rank;

/// A point in a stream. Made by Rank::createEvent.
class Event {
public:
  Event() = default;
  Event(std::shared_ptr<Device> device, EventHandle handle) : device(std::move(device)), handleValue(handle) {}

  bool isValid() const { return device != nullptr; }
  EventHandle handle() const { return handleValue; }
  /// Waits until the latest recording has completed.
  Status synchronize() const;
  /// Device time in picoseconds of the latest completed recording.
  Expected<int64_t> time() const;
  /// Device time in picoseconds from the latest recording of `begin` to that of this event; both are of one rank.
  Expected<int64_t> elapsedSince(const Event &begin) const;

private:
  std::shared_ptr<Device> device;
  EventHandle handleValue = 0;
};

/// A captured sequence of stream operations. Made by Stream::endCapture.
class Graph {
public:
  Graph() = default;
  explicit Graph(GraphHandle handle) : handleValue(std::move(handle)) {}
  bool isValid() const { return handleValue != nullptr; }
  const GraphHandle &handle() const { return handleValue; }

private:
  GraphHandle handleValue;
};

/// A queue of work. Made by Rank::createStream; destroying it lets queued work run on.
class Stream {
public:
  Stream() = default;
  Stream(Stream &&other) noexcept;
  Stream &operator=(Stream &&other) noexcept;
  ~Stream();

  /// Creates; Rank::createStream is the usual way. `worldView` is the address of the rank's world view, the hidden last
  /// argument of every launch.
  static Expected<Stream> create(std::shared_ptr<Device> device, uint32_t rank, void *worldView, std::string_view name,
                                 int priority = 0);

  /// A stream that another library made and keeps: destroying the result leaves it as it is. Refused by simulated devices.
  static Expected<Stream> adopt(std::shared_ptr<Device> device, uint32_t rank, void *worldView, void *native);

  bool isValid() const { return device != nullptr; }
  bool isOf(const Device &other) const { return device.get() == &other; }
  const std::string &name() const { return nameText; }
  /// The rank's number in the world that made the stream.
  uint32_t rank() const { return rankId; }
  /// The backend's own handle, to enqueue work of other libraries: a CUstream on NVIDIA GPUs. From then on nothing of the stream is
  /// kept back (docs/gpu-loading.md), so that the order of calls is that of the work.
  StreamHandle nativeHandle() const;

  /// Runs a kernel with the parameters it was compiled for, in order.
  Status launch(const Kernel &kernel, const LaunchConfig &config, std::span<const Argument> arguments);
  Status launch(const Kernel &kernel, const LaunchConfig &config, std::initializer_list<Argument> arguments) {
    return launch(kernel, config, std::span(arguments.begin(), arguments.size()));
  }
  /// Runs a kernel past all checks: values[i] points to the value of the artifact's i-th parameter, tensor maps behind them, and
  /// the last is free for the world view: that of the stream unless another is given.
  Status launch(LoadedKernel &kernel, const LaunchConfig &config, void **values, size_t count,
                void *otherWorldView = nullptr);
  Status launch(const Graph &graph);
  /// While this stream is being captured: the kernel that it was given last.
  Expected<GraphNode> capturedKernel() const;
  /// Other values for a kernel of a graph that runs on this stream's rank, as launch takes them, from the graph's next launch on.
  Status patch(const Graph &graph, GraphNode node, const LoadedKernel &kernel, const LaunchConfig &config,
               void **values, size_t count, void *otherWorldView = nullptr);

  /// Copies bytes between any two ranks by the copy engine of this one.
  Status copy(const Copy &copy);
  /// A call of several operations follows that nobody has prepared, before it loads anything (Device::beginUnpreparedCall).
  void beginUnpreparedCall() { device->beginUnpreparedCall(handle); }
  /// What copy would refuse because of its destination, as far as that can be told without enqueueing anything.
  Status checkDestination(const Copy &copy) const;
  /// Copies `count` elements; both pointers have the same type.
  Status copy(Pointer destination, Pointer source, uint64_t count, std::string_view name = "copy");
  Status fill(Pointer destination, int byteValue, uint64_t count);

  /// Writes the word once the stream's earlier work is visible.
  Status signalWrite(Pointer word, uint64_t value);
  Status signalAdd(Pointer word, uint64_t value);
  /// Holds the stream until `*word compare value`.
  Status signalWait(Pointer word, Compare compare, uint64_t value);

  Status record(const Event &event);
  /// Holds the stream until the event's latest recording, as of this call, has completed.
  Status wait(const Event &event);
  /// Runs when the stream gets there; it must not block or enqueue.
  Status hostCallback(std::function<void()> callback, std::string_view name = "host callback");

  /// From now on the stream's operations (and those of streams that wait for its events) are kept instead of run.
  Status beginCapture();
  Expected<Graph> endCapture();
  bool isCapturing() const;

  /// Waits until all work appended so far has run. A deadlock or a bad access of a kernel comes back from here.
  Status synchronize();

private:
  Status checkWord(std::string_view operation, Pointer word) const;

  std::shared_ptr<Device> device;
  StreamHandle handle = 0;
  void *worldView = nullptr;
  std::string nameText;
  uint32_t rankId = 0;
  bool isOwner = true;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_STREAM_H
