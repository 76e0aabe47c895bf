//===- Device.h - What a backend implements -------------------------------------------------------------*- C++ -*-===//
//
// One rank's GPU behind one small interface: memory, streams, events, copies, signals in stream order, graphs and
// launches. runtime/sim implements it over the simulator; a CUDA and a HIP backend implement the same. User code does
// not call it: Buffer, Stream, Event and Kernel are the owners over it that give the errors their context.
//
// Handles are numbers that a backend hands out. Every enqueue copies what it is given and returns at once.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_DEVICE_H
#define DITRON_RUNTIME_DEVICE_H

#include "ditron/abi/Compare.h"
#include "ditron/runtime/Kernel.h"
#include "ditron/runtime/TensorMap.h"

#include <functional>
#include <optional>

namespace ditron::runtime {

/// What a launch or a choice of variant may ask of a device.
struct DeviceAttributes {
  std::string name;             ///< For people: "simulated sm_80".
  uint32_t multiprocessors = 0; ///< SMs: how many blocks a persistent kernel should have.
  uint32_t warpSize = 32;
  uint64_t sharedBytesPerBlock = 0;
  uint32_t maxThreadsPerBlock = 0;
  uint32_t copyEngines = 0;
};

/// A step of a device's start, for those who ask why it takes so long.
struct StartTime {
  std::string what;
  double milliseconds;
};

enum class MemoryKind {
  Device,     ///< For the kernels of its own rank; copies may go anywhere.
  Symmetric,  ///< In the symmetric heap: for the kernels of every rank.
  HostPinned, ///< Host memory that every rank's kernels may touch.
};

/// Comparisons of signals; signed.
enum class Compare {
  Equal = DITRON_COMPARE_EQ,
  NotEqual = DITRON_COMPARE_NE,
  Greater = DITRON_COMPARE_GT,
  LessEqual = DITRON_COMPARE_LE,
  Less = DITRON_COMPARE_LT,
  GreaterEqual = DITRON_COMPARE_GE
};

/// A copy of rows of bytes; a plain copy has one row.
struct Copy {
  void *destination = nullptr;
  const void *source = nullptr;
  uint64_t rowBytes = 0;
  uint64_t rows = 1;
  uint64_t destinationPitch = 0; ///< Bytes from row to row; 0 means rowBytes.
  uint64_t sourcePitch = 0;
  std::string name = "copy"; ///< In traces and reports.

  /// Of `count` elements of the source's type.
  static Copy of(Pointer destination, Pointer source, uint64_t count, std::string_view name) {
    return {.destination = destination.address,
            .source = source.address,
            .rowBytes = count * sizeOf(source.type),
            .name = std::string(name)};
  }
};

/// Where a kernel with bounded waits reports a wait that took too long, and how long that is; zeros where waits need no bound.
struct WaitBounds {
  uint64_t reportAddress = 0;
  uint64_t limitNanoseconds = 0;
  // Where kernels say what they wait for (abi/WaitBoard.h), and the number of places less one; zeros where they cannot.
  uint64_t slotsAddress = 0;
  uint64_t slotMask = 0;
  uint64_t eventRing = 0; ///< Where they note what they do (abi/EventRing.h); 0: nobody gathers it.
};

using StreamHandle = uint64_t;
using EventHandle = uint64_t;
/// A captured graph; its type is the backend's.
using GraphHandle = std::shared_ptr<const void>;
/// A kernel of a captured graph.
using GraphNode = uint64_t;

/// What each thread of a kernel takes of a device.
struct KernelResources {
  uint32_t registers = 0; ///< Of 32 bits.
  uint32_t localBytes = 0;
};

/// A kernel that one device holds ready: launching it does nothing but enqueue.
class LoadedKernel {
public:
  virtual ~LoadedKernel() = default;
  /// values[i] points to the i-th value: the artifact's parameters, then its tensor maps, then the world view. Nothing is checked.
  virtual Status launch(StreamHandle stream, const LaunchConfig &config, void *const *values) = 0;
  /// Loads what is not loaded yet.
  virtual Expected<KernelResources> resources() = 0;
};

class Device {
public:
  virtual ~Device() = default;

  virtual uint32_t rank() const = 0;
  virtual const DeviceAttributes &attributes() const = 0;
  virtual std::vector<StartTime> startTimes() const { return {}; }
  virtual WaitBounds waitBounds() const { return {}; }
  /// Tells where the symmetric heaps of all ranks are, as this process addresses them; for reports.
  virtual void describeHeaps(const std::vector<void *> &heaps) {}

  virtual Expected<void *> allocate(uint64_t bytes, std::string_view name, uint32_t elementBytes, MemoryKind kind) = 0;
  virtual Status free(void *address) = 0;
  /// Lets kernels touch memory of the caller's until releaseMemory. Where anything that the GPU can address is free to use, as on
  /// real GPUs, this does nothing.
  virtual Status adoptMemory(void *address, uint64_t bytes, std::string_view name, uint32_t elementBytes) {
    return Status::ok();
  }
  virtual Status releaseMemory(void *address) { return Status::ok(); }
  /// Start of this rank's symmetric heap.
  virtual void *symmetricBase() const = 0;
  /// Immediate copies between host and device memory, past all streams.
  virtual Status upload(void *destination, const void *source, uint64_t bytes) = 0;
  virtual Status download(void *destination, const void *source, uint64_t bytes) = 0;

  virtual Expected<StreamHandle> createStream(std::string_view name, int priority) = 0;
  virtual Status destroyStream(StreamHandle stream) = 0;
  /// Others are about to enqueue on the stream without asking the device.
  virtual Status shareStream(StreamHandle stream) { return Status::ok(); }
  /// The handle of a stream that another library made and keeps.
  virtual Expected<StreamHandle> adoptStream(void *native);
  virtual Status synchronizeStream(StreamHandle stream) = 0;
  /// Waits for all streams of this rank.
  virtual Status synchronize() = 0;

  virtual Expected<EventHandle> createEvent(std::string_view name) = 0;
  virtual Status recordEvent(StreamHandle stream, EventHandle event) = 0;
  virtual Status waitEvent(StreamHandle stream, EventHandle event) = 0;
  virtual Status synchronizeEvent(EventHandle event) = 0;
  /// Picoseconds on the device's clock of the latest completed recording.
  virtual Expected<int64_t> eventTime(EventHandle event) = 0;
  /// Picoseconds between two completed recordings; finer than the difference of their times on a real GPU.
  virtual Expected<int64_t> elapsedTime(EventHandle begin, EventHandle end);

  virtual Status copy(StreamHandle stream, const Copy &copy) = 0;
  /// What copy would refuse because of its destination, as far as that can be told without enqueueing anything.
  virtual Status checkDestination(StreamHandle stream, const Copy &copy) = 0;
  virtual Status fill(StreamHandle stream, void *address, int byteValue, uint64_t bytes) = 0;
  /// The words are of 4 or 8 bytes.
  virtual Status signalWrite(StreamHandle stream, void *address, uint64_t value, uint32_t bytes) = 0;
  virtual Status signalAdd(StreamHandle stream, void *address, uint64_t value, uint32_t bytes) = 0;
  virtual Status signalWait(StreamHandle stream, const void *address, Compare compare, uint64_t value,
                            uint32_t bytes) = 0;
  virtual Status hostCallback(StreamHandle stream, std::function<void()> callback, std::string_view name) = 0;
  /// Makes the kernel ready to launch, so that launches do nothing but enqueue. Without it the first launch does. On real GPUs that
  /// stay busy it returns all the same, and the code is loaded when they are not (docs/gpu-loading.md).
  virtual Status load(const Kernel &kernel) { return Status::ok(); }
  /// The same, for launches; for one that follows at once, if its stream is given, 0 for any. `kernel`'s code stays loaded as long as the
  /// result.
  virtual Expected<std::unique_ptr<LoadedKernel>> loadForLaunch(const Kernel &kernel,
                                                                std::optional<StreamHandle> launchedOn = {}) = 0;
  /// A call begins that nobody has prepared: it loads its kernels, which may wait for others, and then launches them, on this stream and beside
  /// it. Real GPUs: what is enqueued from here on begins when the host synchronises, as behind a launch of a kernel that is not loaded, so that
  /// calls which follow can load theirs as well.
  virtual void beginUnpreparedCall(StreamHandle stream) {}
  /// The tensor map in the device's own format.
  virtual Expected<TensorMap> encodeTensorMap(const TensorMapDescription &map);

  virtual Status beginCapture(StreamHandle stream) = 0;
  virtual Expected<GraphHandle> endCapture(StreamHandle stream) = 0;
  virtual bool isCapturing(StreamHandle stream) const = 0;
  virtual Status launchGraph(StreamHandle stream, GraphHandle graph) = 0;

  /// Whether the kernels of captured graphs can get other values, so that the following work.
  virtual bool canPatchGraphs() const { return false; }
  /// Whether a graph can be made now without waiting for work that may wait for later launches; gives that work a moment to end.
  virtual bool mayMakeGraphs() { return true; }
  /// The kernel that the stream's capture has taken last.
  virtual Expected<GraphNode> capturedKernel(StreamHandle stream);
  /// Other values for it, as LoadedKernel::launch takes them, from the graph's next launch on; launches under way keep theirs.
  virtual Status patchGraph(const GraphHandle &graph, GraphNode node, const LoadedKernel &kernel, const LaunchConfig &config,
                            void *const *values);
  /// Brings the graph to the device, so that its first launch does nothing but enqueue.
  virtual Status loadGraph(const GraphHandle &graph);
};

inline Expected<GraphNode> Device::capturedKernel(StreamHandle) {
  return unsupported(attributes().name + " does not change captured graphs");
}
inline Status Device::patchGraph(const GraphHandle &, GraphNode, const LoadedKernel &, const LaunchConfig &, void *const *) {
  return unsupported(attributes().name + " does not change captured graphs");
}
inline Status Device::loadGraph(const GraphHandle &) { return Status::ok(); }

inline Expected<TensorMap> Device::encodeTensorMap(const TensorMapDescription &) {
  return unsupported(attributes().name + " has no tensor copies");
}

inline Expected<StreamHandle> Device::adoptStream(void *) {
  return unsupported(attributes().name + " has no streams of other libraries");
}

inline Expected<int64_t> Device::elapsedTime(EventHandle begin, EventHandle end) {
  DITRON_ASSIGN_OR_RETURN(const int64_t first, eventTime(begin));
  DITRON_ASSIGN_OR_RETURN(const int64_t last, eventTime(end));
  return last - first;
}

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_DEVICE_H
