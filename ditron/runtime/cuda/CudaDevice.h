//===- CudaDevice.h - An NVIDIA GPU as a Device --------------------------------------------------------------*- C++ -*-===//
//
// One rank on one GPU, in the GPU's primary context (so that it lives beside other CUDA code of the process). Every call
// makes the context current for its duration, so that one host thread may drive all ranks and each rank may as well have a
// thread of its own.
//
// Memory comes from two heaps of reserved addresses (VirtualHeap), one of them symmetric, both accessible to all GPUs of the
// process. Streams never synchronise with the default stream. Kernels are compiled by the driver from their PTX when they are
// first used on a GPU, or by load(), and stay loaded.
//
// A kernel that one rank loads is loaded on the GPUs of all ranks of the process at once, and no kernel that may wait for another
// runs before that: see SubmissionQueue.h. What else may wait for busy GPUs in a driver (memory that is mapped, streams, graphs that
// are made executable) is done beside them with the time limit of synchronisations; docs/gpu-loading.md lists all of it.
//
// A destructor never waits for work: when a GPU hangs (a synchronisation passed its time limit) everything is left to the
// end of the process.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_CUDADEVICE_H
#define DITRON_RUNTIME_CUDA_CUDADEVICE_H

#include "ditron/runtime/Device.h"
#include "ditron/runtime/cuda/CudaSystem.h"
#include "ditron/runtime/cuda/EventRing.h"
#include "ditron/runtime/cuda/KernelCache.h"
#include "ditron/runtime/cuda/PublishedWaits.h"
#include "ditron/runtime/cuda/VirtualHeap.h"

#include <deque>
#include <unordered_map>

namespace ditron::cuda {

struct CudaDeviceOptions {
  uint32_t rank = 0;
  DeviceOrdinal ordinal = 0;
  std::vector<DeviceOrdinal>
      accessors;                ///< GPUs of this process, whose kernels and copies may touch this rank's memory.
  uint64_t symmetricBytes = 0;  ///< Most that the symmetric heap may hold; 0 for all of the GPU's memory.
  bool shareable = false;       ///< The symmetric heap goes to other processes.
  double waitLimitSeconds = 10; ///< Of one wait in kernels compiled with DITRON_BOUND_WAITS.
  bool publishWaits = true;     ///< Keep a board of waits (PublishedWaits.h).
  bool noteEvents = false;      ///< Keep a ring of events (EventRing.h).
  double delayMicroseconds = 0; ///< Before every launch and copy, on the device, to make the rank slow in tests.
  bool kernelSignals = false;   ///< Signals by kernels instead of the driver's stream memory operations.
};

class CudaDevice final : public runtime::Device, public std::enable_shared_from_this<CudaDevice> {
public:
  static Expected<std::shared_ptr<CudaDevice>> create(std::shared_ptr<CudaSystem> system, CudaDeviceOptions options);
  ~CudaDevice() override;

  DeviceOrdinal ordinal() const { return options.ordinal; }
  const VirtualHeap &symmetricHeap() const { return *symmetric; }

  uint32_t rank() const override { return options.rank; }
  const runtime::DeviceAttributes &attributes() const override { return attributeValues; }
  runtime::WaitBounds waitBounds() const override {
    return {reinterpret_cast<uint64_t>(report), static_cast<uint64_t>(options.waitLimitSeconds * 1e9),
            waits ? waits->slotsAddress() : 0, waits ? waits->slotMask() : 0, noted ? noted->address() : 0};
  }
  std::vector<runtime::StartTime> startTimes() const override { return startTimeValues; }
  void describeHeaps(const std::vector<void *> &heaps) override;

  Expected<void *> allocate(uint64_t bytes, std::string_view name, uint32_t elementBytes,
                            runtime::MemoryKind kind) override;
  Status free(void *address) override;
  void *symmetricBase() const override { return symmetric->base(); }
  Status upload(void *destination, const void *source, uint64_t bytes) override;
  Status download(void *destination, const void *source, uint64_t bytes) override;

  Expected<runtime::StreamHandle> createStream(std::string_view name, int priority) override;
  Status destroyStream(runtime::StreamHandle stream) override;
  Expected<runtime::StreamHandle> adoptStream(void *native) override {
    return reinterpret_cast<runtime::StreamHandle>(native ? native : defaultStream());
  }
  Status shareStream(runtime::StreamHandle stream) override;
  Status synchronizeStream(runtime::StreamHandle stream) override;
  Status synchronize() override;

  Expected<runtime::EventHandle> createEvent(std::string_view name) override;
  Status recordEvent(runtime::StreamHandle stream, runtime::EventHandle event) override;
  Status waitEvent(runtime::StreamHandle stream, runtime::EventHandle event) override;
  Status synchronizeEvent(runtime::EventHandle event) override;
  Expected<int64_t> eventTime(runtime::EventHandle event) override;
  Expected<int64_t> elapsedTime(runtime::EventHandle begin, runtime::EventHandle end) override;

  Status copy(runtime::StreamHandle stream, const runtime::Copy &copy) override;
  Status checkDestination(runtime::StreamHandle stream, const runtime::Copy &copy) override;
  Status fill(runtime::StreamHandle stream, void *address, int byteValue, uint64_t bytes) override;
  Status signalWrite(runtime::StreamHandle stream, void *address, uint64_t value, uint32_t bytes) override;
  Status signalAdd(runtime::StreamHandle stream, void *address, uint64_t value, uint32_t bytes) override;
  Status signalWait(runtime::StreamHandle stream, const void *address, runtime::Compare compare, uint64_t value,
                    uint32_t bytes) override;
  Status hostCallback(runtime::StreamHandle stream, std::function<void()> callback, std::string_view name) override;
  Status load(const runtime::Kernel &kernel) override;
  Expected<std::unique_ptr<runtime::LoadedKernel>>
  loadForLaunch(const runtime::Kernel &kernel, std::optional<runtime::StreamHandle> launchedOn = {}) override;
  void beginUnpreparedCall(runtime::StreamHandle stream) override;
  Expected<runtime::TensorMap> encodeTensorMap(const runtime::TensorMapDescription &map) override;

  Status beginCapture(runtime::StreamHandle stream) override;
  Expected<runtime::GraphHandle> endCapture(runtime::StreamHandle stream) override;
  bool isCapturing(runtime::StreamHandle stream) const override;
  Status launchGraph(runtime::StreamHandle stream, runtime::GraphHandle graph) override;
  bool canPatchGraphs() const override;
  bool mayMakeGraphs() override;
  Expected<runtime::GraphNode> capturedKernel(runtime::StreamHandle stream) override;
  Status patchGraph(const runtime::GraphHandle &graph, runtime::GraphNode node, const runtime::LoadedKernel &kernel,
                    const runtime::LaunchConfig &config, void *const *values) override;
  Status loadGraph(const runtime::GraphHandle &graph) override;

  /// Leaves everything to the end of the process.
  void abandon();
  /// Waits for what is still on the GPU, some seconds, and fewer once a process has died that it may be waiting for. False: it goes on for ever, or
  /// for longer.
  bool completesBeforeLeaving();

  // For SubmissionQueue.
  /// Whether the kernel may be launched: it is on the GPUs of all ranks, where it would not get any more once it runs here.
  bool isLoaded(const runtime::Kernel &kernel) { return kernels->findReady(kernel) != nullptr; }
  /// Of this process. The driver may hold this up while one of them has work.
  Status loadOnAllGpus(const runtime::Kernel &kernel);
  /// Here, beside GPUs with unfinished work. Ends the run if the driver refuses.
  void tryLoad(const runtime::Kernel &kernel, const std::string &unfinished);
  /// Adds the streams of this rank whose work may run until others have done something.
  void addUnfinishedWork(UnfinishedWork &work);

private:
  friend class CudaKernel;
  /// While a thread gives an operation to the driver: no other begins to load meanwhile.
  class Entry {
  public:
    explicit Entry(CudaDevice &device) : device(device) { ++device.entering; }
    ~Entry() { --device.entering; }
    Entry(const Entry &) = delete;
    Entry &operator=(const Entry &) = delete;
    /// Or else the operation is for the queue.
    bool mayGo() const { return !device.system->queue.isHolding(); }

  private:
    CudaDevice &device;
  };
  static constexpr uint64_t ballastBytes = 4 << 20;
  struct StreamState {
    std::string name;
    runtime::Kernel lastKernel;
    bool mayWait = false;  ///< Something was given to it that may run until others have done something.
    bool isShared = false; ///< Other code enqueues on it, too.
    // Of pace().
    uint32_t unpaced = 0; ///< What has been enqueued since a pace was recorded.
    std::array<EventRef, 2> paces = {};
  };

  CudaDevice(std::shared_ptr<CudaSystem> system, CudaDeviceOptions options)
      : system(std::move(system)), driver(*this->system->driver), options(std::move(options)) {}

  Status initialise();
  /// Maps as much of this rank's heap as another rank has mapped of its own.
  void growWith(uint64_t mappedBytes);
  Expected<void *> allocatePinned(uint64_t bytes, std::string_view name);
  /// Cut from one of the heaps; not cleared.
  Expected<void *> allocateFromHeap(uint64_t bytes, std::string_view name, runtime::MemoryKind kind);
  Status clear(void *address, uint64_t bytes, std::string_view name);
  void readAttributes();
  void makeBoard();
  Status launchStreamKernel(StreamRef stream, const char *name, std::initializer_list<uint64_t> values);
  Status delayKernel(StreamRef stream);
  /// Blocks of a kernel that loops over programs that the device holds at once; of others nothing is asked.
  uint32_t residentBlocks(const runtime::Kernel &kernel);
  /// The launch itself; the context is current.
  Status enqueue(FunctionRef function, const runtime::Kernel &kernel, StreamRef stream,
                 const runtime::LaunchConfig &config, void *const *values, bool mayWait);
  /// By copies to the host: a kernel would find no SM while another kernel waits for what the delayed copy brings.
  Status delayCopy(StreamRef stream);
  /// Ready to launch; null if it will be loaded when the GPUs are idle.
  Expected<FunctionRef> functionFor(const runtime::Kernel &kernel, std::optional<runtime::StreamHandle> launchedOn);
  /// For a stream whose work cannot be kept back.
  Expected<FunctionRef> loadNow(const runtime::Kernel &kernel, StreamRef stream);
  Expected<FunctionRef> loadHere(const runtime::Kernel &kernel);
  /// Keeps the operation in the queue, or gives it to the driver if it cannot be kept or need not.
  Status hold(HeldOperation operation);
  Status holdLaunch(const runtime::Kernel &kernel, StreamRef stream, const runtime::LaunchConfig &config,
                    void *const *values);
  /// Whether work of the stream cannot be kept back: other code adds to it, or it is captured.
  bool isForeign(StreamRef stream);
  /// Until nothing of the stream or of the event is kept back; of everything if both are null.
  Status drain(StreamRef stream, EventRef event, std::string_view what);
  /// What the driver may do only when the GPUs are idle: at once if they are, else on another thread, with the time limit. That
  /// thread may outlast the call: `action` owns what it uses.
  template <typename T> Expected<T> whileIdle(std::string_view what, std::function<Expected<T>()> action);
  Status timeOut(std::string text);
  Status copyNow(StreamRef stream, const runtime::Copy &copy);
  Status fillNow(StreamRef stream, void *address, int byteValue, uint64_t bytes);
  Status signalWriteNow(StreamRef stream, void *address, uint64_t value, uint32_t bytes);
  Status signalAddNow(StreamRef stream, void *address, uint64_t value, uint32_t bytes);
  Status signalWaitNow(StreamRef stream, const void *address, runtime::Compare compare, uint64_t value, uint32_t bytes);
  Status hostCallbackNow(StreamRef stream, std::function<void()> callback, std::string_view name);
  Status recordEventNow(StreamRef stream, EventRef event);
  Status waitEventNow(StreamRef stream, EventRef event);
  Status launchGraphNow(StreamRef stream, const runtime::GraphHandle &graph);
  Status patchGraphNow(const runtime::GraphHandle &graph, runtime::GraphNode node, const runtime::Kernel &kernel,
                       const runtime::LaunchConfig &config, void *const *values);
  /// Before `operations` are enqueued, in a world over several processes: holds the host while the stream has more work than the queues of
  /// hardware take. The driver would hold it there as well, where nobody looks for processes that have died.
  Status pace(StreamRef stream, uint32_t operations = 1);
  /// Between two paces, of which a stream has two: queues have about a thousand entries.
  static constexpr uint32_t paceOperations = 256;
  /// Waits with the system's time limit until `query` says done; turns what kernels left behind into errors.
  Status waitFor(const std::function<Result()> &query, const std::function<Result()> &block, std::string_view what);
  /// Of an operation on a stream; an error that ends the run is remembered.
  Status check(Result result, std::string_view action);
  std::string streamText(runtime::StreamHandle stream);
  std::string streamText(const StreamState &stream) const;
  /// For reports: what the stream was given last.
  void setLastKernel(StreamRef stream, const runtime::Kernel &kernel, bool mayWait);
  void setMayWait(StreamRef stream);
  runtime::Kernel lastKernel(StreamRef stream);
  /// The capture that the stream takes part in, or 0.
  uint64_t captureOf(StreamRef stream) const;

  std::shared_ptr<CudaSystem> system;
  const CudaDriver &driver;
  CudaDeviceOptions options;
  runtime::DeviceAttributes attributeValues;
  std::vector<runtime::StartTime> startTimeValues;
  Context context = nullptr;
  std::shared_ptr<KernelCache> kernels; ///< Of the GPU.
  std::unique_ptr<VirtualHeap> memory, symmetric;
  StreamRef housekeeping = nullptr; ///< Immediate copies and zeroing.
  EventRef origin = nullptr;        ///< Times of events count from here.
  WaitReport *report = nullptr;
  std::unique_ptr<PublishedWaits> waits;             ///< Null when this machine has no room for them.
  std::shared_ptr<EventRing> noted;                  ///< Null unless events are asked for.
  void *ballast = nullptr, *ballastTarget = nullptr; ///< What delayCopy copies: device memory, pinned host memory.
  int leastPriority = 0, greatestPriority = 0;

  std::atomic<unsigned> entering = 0;             ///< Entry objects.
  std::mutex heapMutex;                           ///< For both heaps and the pinned blocks; taken before `mutex`.
  std::map<void *, uint64_t> pinned;              ///< Live host-pinned blocks.
  std::multimap<uint64_t, void *> pinnedReusable; ///< Freed ones by size: giving them to the driver would wait.

  std::mutex mutex; ///< For all below; never held while the driver may wait for GPUs.
  std::map<runtime::StreamHandle, StreamState> streams;
  std::vector<EventRef> events;
  std::deque<StreamRef> leftStreams; ///< Of owners that are gone, the newest ones, with work on them perhaps.
  /// What has been encoded; repeated launches mostly describe the same tensors.
  std::unordered_map<runtime::TensorMapDescription, runtime::TensorMap, runtime::TensorMapHash> tensorMaps;
  std::atomic<bool> abandoned = false; ///< Not under the lock.
};

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_CUDADEVICE_H
