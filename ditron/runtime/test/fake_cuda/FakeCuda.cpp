//===- FakeCuda.cpp - A stand-in for libcuda ----------------------------------------------------------------------===//
//
// See FakeCuda.h. Every check that the real driver makes and a mistake of ours would trip over is made here too: granularity
// of mappings, use of memory without access, operations on streams of the wrong kind during capture.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "FakeCuda.h"

#include "ditron/runtime/cuda/DriverTypes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace ditron::cuda;

namespace {

constexpr uint64_t pageBytes = 2 << 20;
constexpr Result invalidValue = 1;

struct Machine {
  int gpus = 2;
  int capability = 90;
  uint64_t memoryBytes = uint64_t(1) << 30;
  std::set<std::pair<int, int>> separated;
  int waits = 0;     ///< As fakeCudaLoadsWait has it.
  bool says = false; ///< Which GPUs got a context, at the end of the process.
};

Machine readMachine() {
  Machine machine;
  const char *text = std::getenv("FAKE_CUDA");
  std::string rest = text ? text : "";
  while (!rest.empty()) {
    const size_t end = rest.find(';');
    const std::string item = rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
    int a = 0, b = 0;
    if (std::sscanf(item.c_str(), "gpus=%d", &a) == 1)
      machine.gpus = a;
    else if (std::sscanf(item.c_str(), "capability=%d", &a) == 1)
      machine.capability = a;
    else if (std::sscanf(item.c_str(), "memory_mib=%d", &a) == 1)
      machine.memoryBytes = uint64_t(a) << 20;
    else if (std::sscanf(item.c_str(), "waits=%d", &a) == 1)
      machine.waits = a;
    else if (item == "says")
      machine.says = true;
    else if (std::sscanf(item.c_str(), "no_p2p=%d-%d", &a, &b) == 2)
      machine.separated.insert({a, b});
  }
  if (const char *visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::string list = visible;
    machine.gpus = std::min(machine.gpus, list.empty() ? 0 : 1 + static_cast<int>(std::ranges::count(list, ',')));
  }
  return machine;
}

/// One step of a stream: true when it is over.
using Step = std::function<bool()>;

struct FakeFunction {
  std::string name;
  std::vector<uint32_t> parameterBytes;
  int residentBlocks = 0; ///< As its module's .minnctapersm says; 0: it says nothing.
};

/// An operation in a graph, which runs them in the order of their capture.
struct FakeNode {
  size_t index;
  FakeFunction *function; ///< Null if it is no kernel.
};

struct FakeGraph {
  std::vector<Step> steps;
  std::vector<std::unique_ptr<FakeNode>> nodes;
};

struct FakeExecutable {
  std::vector<Step> steps;
  bool uploaded = false;
};

struct FakeStream {
  Context context;
  std::deque<Step> queue;
  FakeGraph *capture = nullptr;
  uint64_t captureId = 0;
  GraphNodeRef lastNode = nullptr;
};

struct FakeEvent {
  bool recorded = false, done = false;
  uint64_t time = 0;
  FakeGraph *capture = nullptr;
  uint64_t captureId = 0;
};

struct FakeModule {
  std::string ptx;
};

struct Physical {
  int descriptor;
  uint64_t bytes;
  int device;
};

struct State {
  std::recursive_mutex mutex;
  Machine machine = readMachine();
  std::string log, logTaken, calls, callsTaken;
  std::string lastCall;
  int loadsWait = machine.waits;
  bool hasWaited = false;
  std::map<Context, size_t> stackBytes; ///< Of the contexts that have been told.
  uint64_t nextHandle = 1, nextCapture = 1, clock = 0;
  std::map<AllocationHandle, Physical> physical;
  std::map<DevicePointer, uint64_t> reservations;
  std::map<DevicePointer, AllocationHandle> mappings;
  std::vector<std::unique_ptr<FakeStream>> streams;
  std::map<Context, FakeStream *> defaultStreams;
  std::vector<std::unique_ptr<FakeEvent>> events;
  std::vector<std::unique_ptr<FakeModule>> modules;
  std::vector<std::unique_ptr<FakeFunction>> functions;
  std::vector<std::unique_ptr<FakeGraph>> graphs;
  std::vector<std::unique_ptr<FakeExecutable>> executables;
  std::map<int, int> retained; ///< By GPU; stays when the context ends.
  std::set<void *> pinned;
  std::set<void *> registered; ///< Host memory of the process that GPUs may touch.
  int broken = 0;

  ~State() {
    if (!machine.says)
      return;
    std::string gpus;
    for (const auto &[gpu, times] : retained)
      gpus += " " + std::to_string(gpu);
    std::fprintf(stderr, "fake driver: %d visible, contexts on GPUs:%s\n", machine.gpus, gpus.empty() ? " none" : gpus.c_str());
  }
};

State &state() {
  static State instance;
  return instance;
}

thread_local std::vector<Context> contexts;

using Lock = std::lock_guard<std::recursive_mutex>;

void record(const std::string &text) { state().log += text + "\n"; }

/// Of every call; those that are repeated are noted once.
void note(const char *name) {
  Lock lock(state().mutex);
  if (state().lastCall == name)
    return;
  state().lastCall = name;
  state().calls += state().lastCall + "\n";
}

FakeStream *stream(StreamRef handle) {
  if (handle && handle != defaultStream())
    return reinterpret_cast<FakeStream *>(handle);
  FakeStream *&ofContext = state().defaultStreams[contexts.back()];
  if (!ofContext) {
    state().streams.push_back(std::make_unique<FakeStream>());
    ofContext = state().streams.back().get();
    ofContext->context = contexts.back();
  }
  return ofContext;
}
FakeEvent *event(EventRef handle) { return reinterpret_cast<FakeEvent *>(handle); }

void pump() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t i = 0; i < state().streams.size(); ++i) {
      FakeStream &candidate = *state().streams[i];
      while (!candidate.queue.empty() && candidate.queue.front()()) {
        candidate.queue.pop_front();
        moved = true;
      }
    }
  }
}

Result enqueue(StreamRef handle, Step step, FakeFunction *function = nullptr) {
  if (contexts.empty())
    return 201; // CUDA_ERROR_INVALID_CONTEXT
  if (state().broken)
    return state().broken;
  FakeStream *target = stream(handle);
  if (target->capture) {
    FakeGraph &graph = *target->capture;
    graph.nodes.push_back(std::make_unique<FakeNode>(FakeNode{graph.steps.size(), function}));
    graph.steps.push_back(std::move(step));
    target->lastNode = reinterpret_cast<GraphNodeRef>(graph.nodes.back().get());
    return success;
  }
  target->queue.push_back(std::move(step));
  pump();
  return success;
}

/// What may wait, in the real driver, until the context's GPU, or every GPU of the process, has nothing to do.
void waitForIdleGpus() {
  for (;; std::this_thread::yield()) {
    Lock lock(state().mutex);
    if (!state().loadsWait)
      return;
    pump();
    const Context own = contexts.empty() ? nullptr : contexts.back();
    if (std::ranges::all_of(state().streams, [&](const auto &stream) {
          return stream->queue.empty() || (state().loadsWait == 2 && stream->context != own);
        }))
      return;
    state().hasWaited = true;
  }
}

/// "ditron_delay" and so on with the sizes of their parameters, in order.
std::vector<uint32_t> parametersOf(const std::string &ptx, const std::string &name) {
  std::vector<uint32_t> sizes;
  const size_t begin = ptx.find(".entry " + name + "(");
  const size_t end = ptx.find('{', begin);
  for (size_t at = ptx.find(".param .u", begin); at != std::string::npos && at < end;
       at = ptx.find(".param .u", at + 1))
    sizes.push_back(static_cast<uint32_t>(std::atoi(ptx.c_str() + at + 9) / 8));
  return sizes;
}

template <typename T> bool compares(T seen, T wanted, uint64_t compare) {
  switch (compare) {
  case 0: return seen == wanted;
  case 1: return seen != wanted;
  case 2: return seen > wanted;
  case 3: return seen <= wanted;
  case 4: return seen < wanted;
  default: return seen >= wanted;
  }
}

Step kernelStep(const FakeFunction &function, std::vector<uint64_t> values) {
  const std::string name = function.name;
  return [name, values]() -> bool {
    auto word64 = [&](size_t index) { return reinterpret_cast<int64_t *>(values[index]); };
    auto word32 = [&](size_t index) { return reinterpret_cast<int32_t *>(values[index]); };
    if (name == "ditron_signal_add_64")
      *word64(0) += static_cast<int64_t>(values[1]);
    else if (name == "ditron_signal_add_32")
      *word32(0) += static_cast<int32_t>(values[1]);
    else if (name == "ditron_signal_write_64" || name == "store")
      *word64(0) = static_cast<int64_t>(values[1]);
    else if (name == "ditron_signal_write_32")
      *word32(0) = static_cast<int32_t>(values[1]);
    else if (name == "ditron_signal_wait_64")
      return compares(*word64(0), static_cast<int64_t>(values[1]), values[2]);
    else if (name == "ditron_signal_wait_32")
      return compares(*word32(0), static_cast<int32_t>(values[1]), values[2]);
    else if (name == "probe_write") {
      for (uint64_t i = 0; i < values[1]; ++i)
        word64(0)[i] = static_cast<int64_t>(values[2] + i);
      *word64(3) += 1;
    } else if (name == "probe_check") {
      if (*word64(3) == 0)
        return false;
      for (uint64_t i = 0; i < values[1]; ++i)
        *word64(4) += word64(0)[i] == static_cast<int64_t>(values[2] + i);
    } else if (name == "meet") {
      *word64(0) = 1;
      return *word64(1) == 1;
    } else if (name.starts_with("await_")) {
      *word64(0) = std::max(*word64(0), static_cast<int64_t>(values[2]));
      return *word64(1) >= static_cast<int64_t>(values[2]);
    } else if (name == "grid") {
      for (size_t axis = 0; axis < 3; ++axis)
        word64(0)[axis] = static_cast<int64_t>(values[1 + axis]);
    } else if (name == "sum")
      for (uint64_t i = 0; i < values[3]; ++i)
        word64(2)[i] = word64(0)[i] + word64(1)[i];
    return true;
  };
}

std::vector<uint64_t> readValues(const FakeFunction &function, void **parameters) {
  std::vector<uint64_t> values;
  for (size_t i = 0; i < function.parameterBytes.size(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, parameters[i], function.parameterBytes[i]);
    values.push_back(value);
  }
  return values;
}

Result launchFunction(FunctionRef handle, const char *api, unsigned grid, unsigned threads, unsigned shared,
                      bool cooperative, StreamRef target, void **parameters) {
  auto *function = reinterpret_cast<FakeFunction *>(handle);
  record(std::string(api) + "(" + function->name + " blocks=" + std::to_string(grid) + " threads=" +
         std::to_string(threads) + " shared=" + std::to_string(shared) + (cooperative ? " cooperative" : "") + ")");
  if (function->name == "pairs" && grid % 2 != 0)
    return invalidValue;
  if (cooperative && grid > 264)
    return errorCooperativeLaunchTooLarge;
  return enqueue(target, kernelStep(*function, readValues(*function, parameters)), function);
}

} // namespace

extern "C" {

const char *fakeCudaTakeLog() {
  Lock lock(state().mutex);
  state().logTaken = std::move(state().log);
  state().log.clear();
  return state().logTaken.c_str();
}
const char *fakeCudaTakeCalls() {
  Lock lock(state().mutex);
  state().callsTaken = std::move(state().calls);
  state().calls.clear();
  state().lastCall.clear();
  return state().callsTaken.c_str();
}
void fakeCudaLoadsWait(int wait) {
  Lock lock(state().mutex);
  state().loadsWait = wait;
  for (const std::unique_ptr<FakeStream> &left : state().streams)
    left->queue.clear();
}
int fakeCudaTakeWaited() {
  Lock lock(state().mutex);
  return std::exchange(state().hasWaited, false);
}
uint64_t fakeCudaLivePhysicalBytes() {
  Lock lock(state().mutex);
  uint64_t total = 0;
  for (const auto &[handle, piece] : state().physical)
    total += piece.bytes;
  return total;
}
void fakeCudaBreak(int error) { state().broken = error; }
uint64_t fakeCudaContextDepth() { return contexts.size(); }

Result cuGetErrorName(Result error, const char **text) {
  note(__func__);
  switch (error) {
  case success: *text = "CUDA_SUCCESS"; break;
  case errorOutOfMemory: *text = "CUDA_ERROR_OUT_OF_MEMORY"; break;
  case errorInvalidPtx: *text = "CUDA_ERROR_INVALID_PTX"; break;
  case errorIllegalAddress: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
  case errorNotReady: *text = "CUDA_ERROR_NOT_READY"; break;
  default: *text = "CUDA_ERROR_OTHER"; break;
  }
  return success;
}
Result cuGetErrorString(Result error, const char **text) {
  note(__func__);
  *text = error == errorOutOfMemory ? "out of memory" : "an error of the fake driver";
  return success;
}
Result cuInit(unsigned) {
  note(__func__);
  return state().machine.gpus > 0 ? success : errorNoDevice;
}
Result cuDriverGetVersion(int *version) {
  note(__func__);
  *version = 13000;
  return success;
}
Result cuDeviceGetCount(int *count) {
  note(__func__);
  *count = state().machine.gpus;
  return success;
}
Result cuDeviceGet(DeviceOrdinal *device, int ordinal) {
  note(__func__);
  *device = ordinal;
  return ordinal < state().machine.gpus ? success : 101;
}
Result cuDeviceGetName(char *name, int bytes, DeviceOrdinal) {
  note(__func__);
  std::snprintf(name, static_cast<size_t>(bytes), "Fake H200");
  return success;
}
Result cuDeviceGetAttribute(int *value, Attribute attribute, DeviceOrdinal) {
  note(__func__);
  switch (attribute) {
  case Attribute::MaxThreadsPerBlock: *value = 1024; break;
  case Attribute::WarpSize: *value = 32; break;
  case Attribute::MultiprocessorCount: *value = 132; break;
  case Attribute::AsyncEngineCount: *value = 3; break;
  case Attribute::ComputeCapabilityMajor: *value = state().machine.capability / 10; break;
  case Attribute::ComputeCapabilityMinor: *value = state().machine.capability % 10; break;
  case Attribute::MaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
  case Attribute::VirtualMemoryManagementSupported:
  case Attribute::HandleTypePosixFileDescriptorSupported:
  case Attribute::CooperativeLaunch: *value = 1; break;
  default: *value = 0; break;
  }
  return success;
}
Result cuDeviceTotalMem_v2(size_t *bytes, DeviceOrdinal) {
  note(__func__);
  *bytes = state().machine.memoryBytes;
  return success;
}
Result cuDeviceGetPCIBusId(char *text, int bytes, DeviceOrdinal device) {
  note(__func__);
  std::snprintf(text, static_cast<size_t>(bytes), "0000:%02x:00.0", device);
  return success;
}
Result cuDeviceCanAccessPeer(int *can, DeviceOrdinal device, DeviceOrdinal peer) {
  note(__func__);
  *can = !state().machine.separated.contains({device, peer});
  return success;
}
Result cuDeviceGetP2PAttribute(int *value, PeerAttribute, DeviceOrdinal, DeviceOrdinal) {
  note(__func__);
  *value = 1;
  return success;
}

Result cuDevicePrimaryCtxRetain(Context *context, DeviceOrdinal device) {
  note(__func__);
  Lock lock(state().mutex);
  ++state().retained[device];
  *context = reinterpret_cast<Context>(static_cast<intptr_t>(0x1000 + device));
  return success;
}
Result cuDevicePrimaryCtxRelease_v2(DeviceOrdinal device) {
  note(__func__);
  Lock lock(state().mutex);
  record("cuDevicePrimaryCtxRelease(" + std::to_string(device) + ")");
  return --state().retained[device] >= 0 ? success : invalidValue;
}
Result cuCtxPushCurrent_v2(Context context) {
  note(__func__);
  contexts.push_back(context);
  return success;
}
Result cuCtxPopCurrent_v2(Context *context) {
  note(__func__);
  if (contexts.empty())
    return invalidValue;
  *context = contexts.back();
  contexts.pop_back();
  return success;
}
Result cuCtxSynchronize() {
  note(__func__);
  return success;
}
Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  note(__func__);
  *least = 0;
  *greatest = -5;
  return success;
}

Result cuMemGetInfo_v2(size_t *available, size_t *total) {
  note(__func__);
  *total = state().machine.memoryBytes;
  *available = *total - std::min<uint64_t>(*total, fakeCudaLivePhysicalBytes());
  return success;
}
Result cuMemGetAllocationGranularity(size_t *bytes, const AllocationProperties *, int) {
  note(__func__);
  *bytes = pageBytes;
  return success;
}
Result cuMemCreate(AllocationHandle *handle, size_t bytes, const AllocationProperties *properties, unsigned long long) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  if (bytes == 0 || bytes % pageBytes)
    return invalidValue;
  uint64_t used = 0;
  for (const auto &[other, piece] : state().physical)
    used += piece.device == properties->location.id ? piece.bytes : 0;
  if (used + bytes > state().machine.memoryBytes)
    return errorOutOfMemory;
  const int descriptor = memfd_create("fake-gpu", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
    return errorOutOfMemory;
  *handle = state().nextHandle++;
  state().physical[*handle] = {descriptor, bytes, properties->location.id};
  record("cuMemCreate(" + std::to_string(bytes) + ")");
  return success;
}
Result cuMemRelease(AllocationHandle handle) {
  note(__func__);
  Lock lock(state().mutex);
  auto piece = state().physical.find(handle);
  if (piece == state().physical.end())
    return invalidValue;
  close(piece->second.descriptor);
  state().physical.erase(piece);
  return success;
}
Result cuMemAddressReserve(DevicePointer *address, size_t bytes, size_t, DevicePointer, unsigned long long) {
  note(__func__);
  Lock lock(state().mutex);
  if (bytes == 0 || bytes % pageBytes)
    return invalidValue;
  void *range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    return errorOutOfMemory;
  *address = reinterpret_cast<DevicePointer>(range);
  state().reservations[*address] = bytes;
  return success;
}
Result cuMemAddressFree(DevicePointer address, size_t bytes) {
  note(__func__);
  Lock lock(state().mutex);
  if (!state().reservations.erase(address))
    return invalidValue;
  munmap(reinterpret_cast<void *>(address), bytes);
  return success;
}
Result cuMemMap(DevicePointer address, size_t bytes, size_t, AllocationHandle handle, unsigned long long) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  auto piece = state().physical.find(handle);
  if (piece == state().physical.end() || piece->second.bytes < bytes || bytes % pageBytes ||
      state().mappings.contains(address))
    return invalidValue;
  void *mapped =
      mmap(reinterpret_cast<void *>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, piece->second.descriptor, 0);
  if (mapped == MAP_FAILED)
    return invalidValue;
  state().mappings[address] = handle;
  return success;
}
Result cuMemUnmap(DevicePointer address, size_t bytes) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  if (!state().mappings.erase(address))
    return invalidValue;
  mmap(reinterpret_cast<void *>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
       0);
  return success;
}
Result cuMemSetAccess(DevicePointer address, size_t bytes, const AccessDescription *descriptions, size_t count) {
  note(__func__);
  waitForIdleGpus();
  std::string gpus;
  for (size_t i = 0; i < count; ++i)
    gpus += " " + std::to_string(descriptions[i].location.id);
  Lock lock(state().mutex);
  record("cuMemSetAccess(" + std::to_string(bytes) + ":" + gpus + ")");
  return mprotect(reinterpret_cast<void *>(address), bytes, PROT_READ | PROT_WRITE) == 0 ? success : invalidValue;
}
Result cuMemExportToShareableHandle(void *shareable, AllocationHandle handle, int type, unsigned long long) {
  note(__func__);
  Lock lock(state().mutex);
  auto piece = state().physical.find(handle);
  if (piece == state().physical.end() || type != handlePosixFileDescriptor)
    return invalidValue;
  const int copy = fcntl(piece->second.descriptor, F_DUPFD_CLOEXEC, 0);
  std::memcpy(shareable, &copy, sizeof(copy));
  return copy >= 0 ? success : invalidValue;
}
Result cuMemImportFromShareableHandle(AllocationHandle *handle, void *shareable, int) {
  note(__func__);
  Lock lock(state().mutex);
  const int copy = fcntl(static_cast<int>(reinterpret_cast<intptr_t>(shareable)), F_DUPFD_CLOEXEC, 0);
  if (copy < 0)
    return invalidValue;
  *handle = state().nextHandle++;
  state().physical[*handle] = {copy, static_cast<uint64_t>(lseek(copy, 0, SEEK_END)), -1};
  return success;
}
Result cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  *address = std::aligned_alloc(4096, (bytes + 4095) & ~size_t(4095));
  state().pinned.insert(*address);
  return success;
}
Result cuMemFreeHost(void *address) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  if (!state().pinned.erase(address))
    return invalidValue;
  std::free(address);
  return success;
}

Result cuMemHostRegister_v2(void *address, size_t, unsigned) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  return state().registered.insert(address).second ? success : invalidValue;
}
Result cuMemHostUnregister(void *address) {
  note(__func__);
  Lock lock(state().mutex);
  return state().registered.erase(address) ? success : invalidValue;
}
Result cuMemHostGetDevicePointer_v2(DevicePointer *device, void *address, unsigned) {
  note(__func__);
  *device = reinterpret_cast<DevicePointer>(address);
  return success;
}

Result cuMemcpyAsync(DevicePointer destination, DevicePointer source, size_t bytes, StreamRef target) {
  note(__func__);
  Lock lock(state().mutex);
  record("cuMemcpyAsync(" + std::to_string(bytes) + ")");
  return enqueue(target, [=] {
    std::memcpy(reinterpret_cast<void *>(destination), reinterpret_cast<void *>(source), bytes);
    return true;
  });
}
Result cuMemcpyHtoDAsync_v2(DevicePointer destination, const void *source, size_t bytes, StreamRef target) {
  note(__func__);
  Lock lock(state().mutex);
  return enqueue(target, [=] {
    std::memcpy(reinterpret_cast<void *>(destination), source, bytes);
    return true;
  });
}
Result cuMemcpyDtoHAsync_v2(void *destination, DevicePointer source, size_t bytes, StreamRef target) {
  note(__func__);
  Lock lock(state().mutex);
  if (state().pinned.contains(destination)) // the others are downloads, which wait at once
    record("cuMemcpyDtoHAsync(" + std::to_string(bytes) + ")");
  return enqueue(target, [=] {
    std::memcpy(destination, reinterpret_cast<void *>(source), bytes);
    return true;
  });
}
Result cuMemcpy2DAsync_v2(const Copy2D *description, StreamRef target) {
  note(__func__);
  Lock lock(state().mutex);
  const Copy2D copy = *description;
  record("cuMemcpy2DAsync(" + std::to_string(copy.widthBytes) + "x" + std::to_string(copy.height) + ")");
  if (copy.sourceType != memoryUnified || copy.destinationType != memoryUnified || copy.widthBytes > copy.sourcePitch ||
      copy.widthBytes > copy.destinationPitch)
    return invalidValue;
  return enqueue(target, [=] {
    for (size_t row = 0; row < copy.height; ++row)
      std::memcpy(reinterpret_cast<char *>(copy.destinationDevice) + row * copy.destinationPitch,
                  reinterpret_cast<char *>(copy.sourceDevice) + row * copy.sourcePitch, copy.widthBytes);
    return true;
  });
}
Result cuMemsetD8Async(DevicePointer address, unsigned char value, size_t bytes, StreamRef target) {
  note(__func__);
  Lock lock(state().mutex);
  return enqueue(target, [=] {
    std::memset(reinterpret_cast<void *>(address), value, bytes);
    return true;
  });
}

Result cuStreamCreateWithPriority(StreamRef *created, unsigned flags, int priority) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  if (contexts.empty())
    return 201;
  record("cuStreamCreate(flags=" + std::to_string(flags) + " priority=" + std::to_string(priority) + ")");
  state().streams.push_back(std::make_unique<FakeStream>());
  state().streams.back()->context = contexts.back();
  *created = reinterpret_cast<StreamRef>(state().streams.back().get());
  return success;
}
Result cuStreamDestroy_v2(StreamRef) {
  note(__func__);
  return success;
}
Result cuStreamQuery(StreamRef target) {
  note(__func__);
  Lock lock(state().mutex);
  if (state().broken)
    return state().broken;
  if (stream(target)->capture)
    return 901 /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */;
  pump();
  return stream(target)->queue.empty() ? success : errorNotReady;
}
Result cuStreamSynchronize(StreamRef target) {
  note(__func__);
  for (;;) {
    const Result result = cuStreamQuery(target);
    if (result != errorNotReady)
      return result;
    std::this_thread::yield();
  }
}
Result cuStreamWriteValue64_v2(StreamRef target, DevicePointer address, uint64_t value, unsigned) {
  note(__func__);
  Lock lock(state().mutex);
  record("cuStreamWriteValue64");
  return enqueue(target, [=] {
    *reinterpret_cast<uint64_t *>(address) = value;
    return true;
  });
}
Result cuStreamWriteValue32_v2(StreamRef target, DevicePointer address, uint32_t value, unsigned) {
  note(__func__);
  Lock lock(state().mutex);
  record("cuStreamWriteValue32");
  return enqueue(target, [=] {
    *reinterpret_cast<uint32_t *>(address) = value;
    return true;
  });
}
Result cuStreamWaitValue64_v2(StreamRef target, DevicePointer address, uint64_t value, unsigned flags) {
  note(__func__);
  Lock lock(state().mutex);
  record("cuStreamWaitValue64(flags=" + std::to_string(flags) + ")");
  return enqueue(target, [=] {
    const int64_t difference = static_cast<int64_t>(*reinterpret_cast<volatile uint64_t *>(address) - value);
    return flags == WaitEqual ? difference == 0 : difference >= 0;
  });
}
Result cuStreamWaitValue32_v2(StreamRef target, DevicePointer address, uint32_t value, unsigned flags) {
  note(__func__);
  Lock lock(state().mutex);
  record("cuStreamWaitValue32(flags=" + std::to_string(flags) + ")");
  return enqueue(target, [=] {
    const int32_t difference = static_cast<int32_t>(*reinterpret_cast<volatile uint32_t *>(address) - value);
    return flags == WaitEqual ? difference == 0 : difference >= 0;
  });
}
Result cuLaunchHostFunc(StreamRef target, HostFunction function, void *userData) {
  note(__func__);
  Lock lock(state().mutex);
  return enqueue(target, [=] {
    function(userData);
    return true;
  });
}

Result cuEventCreate(EventRef *created, unsigned) {
  note(__func__);
  Lock lock(state().mutex);
  state().events.push_back(std::make_unique<FakeEvent>());
  *created = reinterpret_cast<EventRef>(state().events.back().get());
  return success;
}
Result cuEventDestroy_v2(EventRef) {
  note(__func__);
  return success;
}
Result cuEventRecord(EventRef handle, StreamRef target) {
  note(__func__);
  Lock lock(state().mutex);
  FakeEvent *recorded = event(handle);
  record("cuEventRecord");
  if (FakeGraph *capture = stream(target)->capture) {
    // Only an edge of the graph; later waits join the capture.
    recorded->capture = capture;
    recorded->captureId = stream(target)->captureId;
    return success;
  }
  recorded->capture = nullptr;
  recorded->recorded = true;
  recorded->done = false;
  return enqueue(target, [recorded] {
    recorded->done = true;
    recorded->time = ++state().clock;
    return true;
  });
}
Result cuStreamWaitEvent(StreamRef target, EventRef handle, unsigned) {
  note(__func__);
  Lock lock(state().mutex);
  FakeEvent *awaited = event(handle);
  record("cuStreamWaitEvent");
  if (awaited->capture) {
    stream(target)->capture = awaited->capture;
    stream(target)->captureId = awaited->captureId;
    return success;
  }
  return enqueue(target, [awaited] { return !awaited->recorded || awaited->done; });
}
Result cuEventQuery(EventRef handle) {
  note(__func__);
  Lock lock(state().mutex);
  pump();
  return event(handle)->recorded && !event(handle)->done ? errorNotReady : success;
}
Result cuEventSynchronize(EventRef handle) {
  note(__func__);
  while (cuEventQuery(handle) == errorNotReady)
    std::this_thread::yield();
  return success;
}
Result cuEventElapsedTime(float *milliseconds, EventRef begin, EventRef end) {
  note(__func__);
  Lock lock(state().mutex);
  if (!event(begin)->done || !event(end)->done)
    return errorNotReady;
  *milliseconds = static_cast<float>(event(end)->time) - static_cast<float>(event(begin)->time);
  return success;
}

Result cuModuleLoadDataEx(ModuleRef *module, const void *image, unsigned count, JitOption *options, void **values) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  const std::string ptx = static_cast<const char *>(image);
  record("cuModuleLoadDataEx");
  const size_t bad = ptx.find("bad_instruction");
  if (bad != std::string::npos) {
    const auto line = std::count(ptx.begin(), ptx.begin() + static_cast<ptrdiff_t>(bad), '\n') + 1;
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == JitOption::ErrorLogBuffer)
        std::snprintf(
            static_cast<char *>(values[i]), 1024,
            "ptxas application ptx input, line %ld; error   : Not a name of any known instruction: 'bad_instruction'\n",
            static_cast<long>(line));
    return errorInvalidPtx;
  }
  state().modules.push_back(std::make_unique<FakeModule>(FakeModule{ptx}));
  *module = reinterpret_cast<ModuleRef>(state().modules.back().get());
  return success;
}
Result cuModuleUnload(ModuleRef) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  record("cuModuleUnload");
  return success;
}
Result cuModuleGetFunction(FunctionRef *function, ModuleRef module, const char *name) {
  note(__func__);
  Lock lock(state().mutex);
  const std::string &ptx = reinterpret_cast<FakeModule *>(module)->ptx;
  if (ptx.find(std::string(".entry ") + name + "(") == std::string::npos)
    return 500; // CUDA_ERROR_NOT_FOUND
  constexpr std::string_view directive = ".minnctapersm ";
  const size_t said = ptx.find(directive);
  const int residentBlocks = said == ptx.npos ? 0 : std::atoi(ptx.c_str() + said + directive.size());
  state().functions.push_back(
      std::make_unique<FakeFunction>(FakeFunction{name, parametersOf(ptx, name), residentBlocks}));
  *function = reinterpret_cast<FunctionRef>(state().functions.back().get());
  return success;
}
Result cuFuncLoad(FunctionRef) {
  note(__func__);
  waitForIdleGpus();
  return success;
}
Result cuCtxGetLimit(size_t *value, ContextLimit limit) {
  note(__func__);
  Lock lock(state().mutex);
  *value = state().stackBytes.contains(contexts.back()) ? state().stackBytes[contexts.back()] : 1024;
  return limit == ContextLimit::StackBytes ? success : invalidValue;
}
Result cuCtxSetLimit(ContextLimit limit, size_t value) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  record("cuCtxSetLimit(" + std::to_string(static_cast<int>(limit)) + "=" + std::to_string(value) + ")");
  state().stackBytes[contexts.back()] = value;
  return success;
}
Result cuFuncSetAttribute(FunctionRef, FunctionAttribute attribute, int value) {
  note(__func__);
  Lock lock(state().mutex);
  record("cuFuncSetAttribute(" + std::to_string(static_cast<int>(attribute)) + "=" + std::to_string(value) + ")");
  return success;
}
Result cuFuncGetAttribute(int *value, FunctionAttribute attribute, FunctionRef handle) {
  note(__func__);
  const FakeFunction &function = *reinterpret_cast<FakeFunction *>(handle);
  const std::string &name = function.name;
  // A kernel of 148 registers, of which it can do without some: three blocks of 256 threads would have 85.
  const bool isShort = name == "wide" && function.residentBlocks > 2;
  *value = attribute == FunctionAttribute::LocalBytes && name == "spill"             ? 4096
           : attribute == FunctionAttribute::LocalBytes && isShort                   ? 200
           : attribute == FunctionAttribute::RequiredClusterWidth && name == "pairs" ? 2
           : attribute == FunctionAttribute::Registers                               ? 40
                                                                                     : 0;
  return success;
}
Result cuLaunchKernel(FunctionRef function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned,
                      unsigned, unsigned shared, StreamRef target, void **parameters, void **) {
  note(__func__);
  Lock lock(state().mutex);
  return launchFunction(function, "cuLaunchKernel", gridX * gridY * gridZ, blockX, shared, false, target, parameters);
}
Result cuLaunchKernelEx(const LaunchConfiguration *launch, FunctionRef function, void **parameters, void **) {
  note(__func__);
  Lock lock(state().mutex);
  bool cooperative = false;
  for (unsigned i = 0; i < launch->numAttributes; ++i)
    cooperative |= launch->attributes[i].id == launchAttributeCooperative && launch->attributes[i].value.flag;
  return launchFunction(function, "cuLaunchKernelEx", launch->gridX * launch->gridY * launch->gridZ, launch->blockX,
                        launch->sharedBytes, cooperative, launch->stream, parameters);
}
Result cuTensorMapEncodeTiled(void *map, TensorElement element, uint32_t rank, void *base, const uint64_t *sizes,
                              const uint64_t *stridesBytes, const uint32_t *box, const uint32_t *elementStrides,
                              int interleave, TensorSwizzle swizzle, TensorPromotion promotion, TensorFill fill) {
  note(__func__);
  Lock lock(state().mutex);
  if (contexts.empty())
    return 201; // CUDA_ERROR_INVALID_CONTEXT
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || !base || reinterpret_cast<uintptr_t>(base) % 16 != 0 || rank < 1 ||
      rank > 5 || interleave != 0)
    return invalidValue;
  std::string text = "cuTensorMapEncodeTiled(" + std::to_string(static_cast<int>(element));
  for (uint32_t dim = 0; dim < rank; ++dim) {
    text += " " + std::to_string(sizes[dim]) + "/" + std::to_string(dim == 0 ? 0 : stridesBytes[dim - 1]) + "/" +
            std::to_string(box[dim]);
    if (elementStrides[dim] != 1 || sizes[dim] == 0)
      return invalidValue;
  }
  text += " swizzle " + std::to_string(static_cast<int>(swizzle)) + " promotion " +
          std::to_string(static_cast<int>(promotion)) + " fill " + std::to_string(static_cast<int>(fill)) + ")";
  record(text);
  std::memset(map, 0xAB, 128);
  return success;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, FunctionRef handle, int, size_t) {
  note(__func__);
  const FakeFunction &function = *reinterpret_cast<FakeFunction *>(handle);
  *blocks = function.name == "wide" ? std::max(function.residentBlocks, 1) : 2;
  return success;
}

Result cuStreamBeginCapture_v2(StreamRef target, CaptureMode) {
  note(__func__);
  Lock lock(state().mutex);
  state().graphs.push_back(std::make_unique<FakeGraph>());
  stream(target)->capture = state().graphs.back().get();
  stream(target)->captureId = state().nextCapture++;
  return success;
}
Result cuStreamEndCapture(StreamRef target, GraphRef *graph) {
  note(__func__);
  Lock lock(state().mutex);
  FakeGraph *captured = stream(target)->capture;
  if (!captured)
    return invalidValue;
  for (const std::unique_ptr<FakeStream> &other : state().streams)
    if (other->capture == captured) {
      other->capture = nullptr;
      other->lastNode = nullptr;
    }
  *graph = reinterpret_cast<GraphRef>(captured);
  return success;
}
Result cuStreamGetCaptureInfo(StreamRef target, CaptureStatus *status, uint64_t *id) {
  note(__func__);
  Lock lock(state().mutex);
  *status = stream(target)->capture ? CaptureStatus::Active : CaptureStatus::None;
  *id = stream(target)->captureId;
  return success;
}
Result cuStreamGetCaptureInfo_v2(StreamRef target, CaptureStatus *status, uint64_t *id, GraphRef *graph,
                                 const GraphNodeRef **dependencies, size_t *count) {
  note(__func__);
  Lock lock(state().mutex);
  *graph = reinterpret_cast<GraphRef>(stream(target)->capture);
  *dependencies = &stream(target)->lastNode;
  *count = stream(target)->lastNode ? 1 : 0;
  return cuStreamGetCaptureInfo(target, status, id);
}
Result cuGraphInstantiateWithFlags(GraphExecRef *executable, GraphRef graph, unsigned long long) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  record("cuGraphInstantiate");
  state().executables.push_back(
      std::make_unique<FakeExecutable>(FakeExecutable{reinterpret_cast<FakeGraph *>(graph)->steps}));
  *executable = reinterpret_cast<GraphExecRef>(state().executables.back().get());
  return success;
}
Result cuGraphUpload(GraphExecRef executable, StreamRef) {
  note(__func__);
  waitForIdleGpus();
  Lock lock(state().mutex);
  record("cuGraphUpload");
  reinterpret_cast<FakeExecutable *>(executable)->uploaded = true;
  return success;
}
Result cuGraphExecKernelNodeSetParams(GraphExecRef executable, GraphNodeRef handle, const KernelNodeParameters *given) {
  note(__func__);
  Lock lock(state().mutex);
  const auto *node = reinterpret_cast<FakeNode *>(handle);
  auto *function = reinterpret_cast<FakeFunction *>(given->function);
  if (contexts.empty() || !node->function || node->function->name != function->name || given->gridX == 0)
    return invalidValue;
  record("cuGraphExecKernelNodeSetParams(" + function->name + ")");
  if (state().broken)
    return state().broken;
  // Launches under way have copies of the steps, as the real ones keep their values.
  reinterpret_cast<FakeExecutable *>(executable)->steps[node->index] =
      kernelStep(*function, readValues(*function, given->parameters));
  return success;
}
Result cuGraphLaunch(GraphExecRef executable, StreamRef target) {
  note(__func__);
  Lock lock(state().mutex);
  const auto *launched = reinterpret_cast<FakeExecutable *>(executable);
  record(launched->uploaded ? "cuGraphLaunch" : "cuGraphLaunch(first brings the graph to the GPU)");
  if (stream(target)->capture)
    return 900; // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  for (const Step &step : launched->steps)
    if (Result result = enqueue(target, step); result != success)
      return result;
  return success;
}
Result cuGraphDestroy(GraphRef) {
  note(__func__);
  return success;
}
Result cuGraphExecDestroy(GraphExecRef) {
  note(__func__);
  return success;
}

} // extern "C"
