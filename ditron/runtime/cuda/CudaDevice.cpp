//===- CudaDevice.cpp - An NVIDIA GPU as a Device: memory, streams, events ----------------------------------------===//
//
// What is launched on streams is in CudaLaunch.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/CudaDevice.h"

#include "ditron/support/ForkGate.h"

#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thread>

namespace ditron::cuda {

namespace {
DevicePointer deviceAddress(const void *address) { return reinterpret_cast<DevicePointer>(address); }
StreamRef streamRef(runtime::StreamHandle handle) { return reinterpret_cast<StreamRef>(handle); }
EventRef eventRef(runtime::EventHandle handle) { return reinterpret_cast<EventRef>(handle); }
} // namespace

Expected<std::shared_ptr<CudaDevice>> CudaDevice::create(std::shared_ptr<CudaSystem> system,
                                                         CudaDeviceOptions options) {
  std::shared_ptr<CudaDevice> device(new CudaDevice(std::move(system), std::move(options)));
  DITRON_RETURN_IF_ERROR(device->initialise().withContext(
      fmt::format("rank {} on GPU {}", device->options.rank, device->options.ordinal)));
  device->system->addDevice(device->options.rank, device);
  return device;
}

Status CudaDevice::initialise() {
  auto begin = std::chrono::steady_clock::now();
  auto lap = [&](const char *what) {
    const auto end = std::chrono::steady_clock::now();
    startTimeValues.push_back({what, std::chrono::duration<double, std::milli>(end - begin).count()});
    begin = end;
  };
  DeviceOrdinal handle = 0;
  DITRON_RETURN_IF_ERROR(driver.check(driver.deviceGet(&handle, options.ordinal), "cannot open the GPU"));
  DITRON_RETURN_IF_ERROR(driver.check(driver.primaryContextRetain(&context, handle), "cannot make a context"));
  readAttributes();
  ContextScope scope(driver, context);
  driver.contextPriorityRange(&leastPriority, &greatestPriority);
  lap("context");

  kernels =
      system->kernelCache(options.ordinal, context, fmt::format("GPU {} ({})", options.ordinal, attributeValues.name));
  for (const char *name : {"ditron_signal_add_64", "ditron_signal_add_32", "ditron_signal_write_64",
                           "ditron_signal_write_32", "ditron_signal_wait_64", "ditron_signal_wait_32", "ditron_delay"})
    DITRON_RETURN_IF_ERROR(kernels->streamFunction(name).status());
  lap("kernels of streams");

  size_t total = 0;
  DITRON_RETURN_IF_ERROR(driver.check(driver.deviceTotalMem(&total, handle), "cannot ask the size of the memory"));
  VirtualHeap::Options heap;
  heap.device = options.ordinal;
  heap.accessors = options.accessors;
  if (std::find(heap.accessors.begin(), heap.accessors.end(), options.ordinal) == heap.accessors.end())
    heap.accessors.push_back(options.ordinal);
  heap.name = fmt::format("memory of rank {}", options.rank);
  heap.capacityBytes = total;
  DITRON_ASSIGN_OR_RETURN(memory, VirtualHeap::create(system->driver, heap));
  heap.name = fmt::format("symmetric heap of rank {}", options.rank);
  heap.capacityBytes = options.symmetricBytes ? options.symmetricBytes : total;
  heap.shareable = options.shareable;
  DITRON_ASSIGN_OR_RETURN(symmetric, VirtualHeap::create(system->driver, heap));
  lap("heaps");

  DITRON_RETURN_IF_ERROR(
      driver.check(driver.streamCreate(&housekeeping, streamNonBlocking, greatestPriority), "cannot make a stream"));
  DITRON_RETURN_IF_ERROR(driver.check(driver.eventCreate(&origin, eventDefault), "cannot make an event"));
  DITRON_RETURN_IF_ERROR(driver.check(driver.eventRecord(origin, housekeeping), "cannot record an event"));
  void *pinnedReport = nullptr;
  DITRON_RETURN_IF_ERROR(
      driver.check(driver.memHostAlloc(&pinnedReport, sizeof(WaitReport), hostAllocPortable | hostAllocDeviceMap),
                   "cannot allocate pinned host memory"));
  std::memset(pinnedReport, 0, sizeof(WaitReport));
  report = static_cast<WaitReport *>(pinnedReport);
  system->addReport(options.rank, report);
  if (options.publishWaits)
    makeBoard();
  if (options.noteEvents) {
    DITRON_ASSIGN_OR_RETURN(noted, EventRing::create(system->driver, *memory, context, housekeeping));
    system->addEventRing(options.rank, noted);
  }
  if (options.delayMicroseconds > 0) {
    DITRON_ASSIGN_OR_RETURN(ballast, memory->allocate(ballastBytes));
    DITRON_RETURN_IF_ERROR(
        driver.check(driver.memHostAlloc(&ballastTarget, ballastBytes, hostAllocPortable | hostAllocDeviceMap),
                     "cannot allocate pinned host memory"));
  }
  lap("stream and host memory");
  return Status::ok();
}

void CudaDevice::makeBoard() {
  Expected<std::unique_ptr<PublishedWaits>> made = PublishedWaits::create(
      system->driver, {options.rank, static_cast<uint32_t>(options.ordinal), attributeValues.name});
  // Without it everything works, and nobody outside can ask what kernels wait for.
  if (!made.isOk())
    return;
  waits = std::move(*made);
  system->addBoard(options.rank, &waits->board());
}

void CudaDevice::describeHeaps(const std::vector<void *> &heaps) {
  if (!waits)
    return;
  waits->board().setNumRanks(static_cast<uint32_t>(heaps.size()));
  for (uint32_t rank = 0; rank < heaps.size(); ++rank)
    if (heaps[rank])
      waits->board().addHeap(rank, deviceAddress(heaps[rank]), symmetric->capacity());
}

void CudaDevice::readAttributes() {
  char name[128] = {};
  driver.deviceGetName(name, sizeof(name) - 1, options.ordinal);
  auto ask = [&](Attribute attribute) { return static_cast<uint32_t>(driver.attribute(attribute, options.ordinal)); };
  attributeValues.name = name;
  attributeValues.multiprocessors = ask(Attribute::MultiprocessorCount);
  attributeValues.warpSize = ask(Attribute::WarpSize);
  attributeValues.sharedBytesPerBlock = ask(Attribute::MaxSharedMemoryPerBlockOptin);
  attributeValues.maxThreadsPerBlock = ask(Attribute::MaxThreadsPerBlock);
  attributeValues.copyEngines = ask(Attribute::AsyncEngineCount);
}

CudaDevice::~CudaDevice() {
  system->queue.leave(*this);
  if (!abandoned && !system->hasEnded() && !completesBeforeLeaving())
    system->end(
        Status(StatusCode::TimeOut, fmt::format("rank {} has left work behind that does not complete", options.rank)));
  if (abandoned || system->hasEnded()) {
    // Work may hang on the GPU: unmapping or releasing would wait for it.
    abandon();
    return;
  }
  if (!context)
    return;
  {
    ContextScope scope(driver, context);
    for (const auto &[handle, state] : streams)
      driver.streamDestroy(streamRef(handle));
    for (StreamRef stream : leftStreams)
      driver.streamDestroy(stream);
    for (EventRef event : events)
      driver.eventDestroy(event);
    if (origin)
      driver.eventDestroy(origin);
    if (housekeeping)
      driver.streamDestroy(housekeeping);
    kernels.reset();
    for (const auto &[address, bytes] : pinned)
      driver.memFreeHost(address);
    for (const auto &[bytes, address] : pinnedReusable)
      driver.memFreeHost(address);
    system->addReport(options.rank, nullptr);
    system->addBoard(options.rank, nullptr);
    system->addEventRing(options.rank, nullptr);
    waits.reset();
    if (report)
      driver.memFreeHost(report);
    if (ballastTarget)
      driver.memFreeHost(ballastTarget);
    symmetric.reset();
    memory.reset();
  }
  driver.primaryContextRelease(options.ordinal);
}

bool CudaDevice::completesBeforeLeaving() {
  constexpr double secondsForTheLost = 1, mostSeconds = 10;
  if (!context)
    return true;
  const double limit = system->timeLimitSeconds > 0 ? std::min(system->timeLimitSeconds, mostSeconds) : mostSeconds;
  ContextScope scope(driver, context);
  const auto isBusy = [this](StreamRef stream) { return driver.streamQuery(stream) == errorNotReady; };
  std::vector<StreamRef> busy(leftStreams.begin(), leftStreams.end());
  for (const auto &[handle, state] : streams)
    busy.push_back(streamRef(handle));
  const auto began = std::chrono::steady_clock::now();
  for (;;) {
    std::erase_if(busy, [&](StreamRef stream) { return !isBusy(stream); });
    if (busy.empty())
      return true;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (seconds > limit)
      return false;
    if (seconds > secondsForTheLost && system->lostRanks && !system->lostRanks().empty())
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void CudaDevice::abandon() {
  abandoned = true;
  if (symmetric)
    symmetric->abandon();
  if (memory)
    memory->abandon();
  if (kernels)
    kernels->abandon();
  if (waits) {
    system->addBoard(options.rank, nullptr);
    waits->abandon();
  }
  system->addEventRing(options.rank, nullptr);
}

// Memory

Expected<void *> CudaDevice::allocate(uint64_t bytes, std::string_view name, uint32_t elementBytes,
                                      runtime::MemoryKind kind) {
  DITRON_RETURN_IF_ERROR(system->status());
  bytes = std::max<uint64_t>(bytes, 1); // an empty array still needs an address
  void *address = nullptr;
  if (kind == runtime::MemoryKind::HostPinned) {
    DITRON_ASSIGN_OR_RETURN(address, allocatePinned(bytes, name));
    std::memset(address, 0, bytes);
  } else {
    DITRON_ASSIGN_OR_RETURN(address, allocateFromHeap(bytes, name, kind));
    DITRON_RETURN_IF_ERROR(clear(address, bytes, name));
  }
  system->addAllocation(address, bytes, name, elementBytes, options.rank);
  if (waits)
    waits->board().addMemory(deviceAddress(address), bytes, elementBytes,
                             kind == runtime::MemoryKind::Symmetric ? "symmetric"
                             : kind == runtime::MemoryKind::Device  ? "device"
                                                                    : "pinned",
                             name);
  return address;
}

void CudaDevice::growWith(uint64_t mappedBytes) {
  ContextScope scope(driver, context);
  std::lock_guard lock(heapMutex);
  (void)memory->mapUpTo(std::min(mappedBytes, memory->capacity())); // what is too much now may never be needed
}

Expected<void *> CudaDevice::allocatePinned(uint64_t bytes, std::string_view name) {
  {
    std::lock_guard lock(heapMutex);
    if (auto reusable = pinnedReusable.find(bytes); reusable != pinnedReusable.end()) {
      void *address = reusable->second;
      pinnedReusable.erase(reusable);
      pinned.emplace(address, bytes);
      return address;
    }
  }
  const std::string what = fmt::format("allocate {} bytes of pinned host memory for '{}'", bytes, name);
  return whileIdle<void *>(what, [self = shared_from_this(), bytes, what]() -> Expected<void *> {
    ContextScope scope(self->driver, self->context);
    void *address = nullptr;
    DITRON_RETURN_IF_ERROR(self->driver.check(
        self->driver.memHostAlloc(&address, bytes, hostAllocPortable | hostAllocDeviceMap), "cannot " + what));
    std::lock_guard lock(self->heapMutex);
    self->pinned.emplace(address, bytes);
    return address;
  });
}

Expected<void *> CudaDevice::allocateFromHeap(uint64_t bytes, std::string_view name, runtime::MemoryKind kind) {
  VirtualHeap *heap = kind == runtime::MemoryKind::Symmetric ? symmetric.get() : memory.get();
  const std::string why = fmt::format("cannot allocate '{}'", name);
  {
    std::lock_guard lock(heapMutex);
    if (!heap->mustMapFor(bytes)) {
      Expected<void *> piece = heap->allocate(bytes);
      return piece.isOk() ? piece : piece.status().withContext(why);
    }
  }
  auto mapping = [self = shared_from_this(), heap, bytes, why]() -> Expected<void *> {
    ContextScope scope(self->driver, self->context);
    std::unique_lock lock(self->heapMutex);
    const uint64_t before = self->memory->mappedBytes();
    Expected<void *> piece = heap->allocate(bytes);
    if (!piece.isOk())
      return piece.status().withContext(why);
    const uint64_t after = self->memory->mappedBytes();
    lock.unlock();
    // Kernels of other ranks may run before those allocate too, and mapping may wait for them. Large arrays are their own rank's.
    if (after != before && after - before <= VirtualHeap::mostGrowthBytes &&
        self->system->unfinishedWork().text.empty())
      for (const std::shared_ptr<CudaDevice> &peer : self->system->livingDevices())
        if (peer != self)
          peer->growWith(after);
    return piece;
  };
  return whileIdle<void *>(fmt::format("map memory for '{}'", name), mapping);
}

Status CudaDevice::clear(void *address, uint64_t bytes, std::string_view name) {
  ContextScope scope(driver, context);
  Status status = driver.check(driver.memsetD8Async(deviceAddress(address), 0, bytes, housekeeping),
                               fmt::format("cannot clear '{}'", name));
  if (status.isOk())
    status = waitFor([&] { return driver.streamQuery(housekeeping); },
                     [&] { return driver.streamSynchronize(housekeeping); }, "clearing of new memory");
  if (!status.isOk()) {
    std::lock_guard lock(heapMutex);
    (void)(symmetric->contains(address) ? symmetric->free(address) : memory->free(address));
  }
  return status;
}

Status CudaDevice::free(void *address) {
  std::lock_guard lock(heapMutex);
  system->removeAllocation(address);
  if (waits)
    waits->board().removeMemory(deviceAddress(address));
  if (auto block = pinned.find(address); block != pinned.end()) {
    pinnedReusable.emplace(block->second, address);
    pinned.erase(block);
    return Status::ok();
  }
  return symmetric->contains(address) ? symmetric->free(address) : memory->free(address);
}

Status CudaDevice::upload(void *destination, const void *source, uint64_t bytes) {
  DITRON_RETURN_IF_ERROR(system->status());
  ContextScope scope(driver, context);
  DITRON_RETURN_IF_ERROR(
      check(driver.memcpyHostToDeviceAsync(deviceAddress(destination), source, bytes, housekeeping), "upload"));
  return waitFor([&] { return driver.streamQuery(housekeeping); },
                 [&] { return driver.streamSynchronize(housekeeping); }, "an upload");
}

Status CudaDevice::download(void *destination, const void *source, uint64_t bytes) {
  DITRON_RETURN_IF_ERROR(system->status());
  ContextScope scope(driver, context);
  DITRON_RETURN_IF_ERROR(
      check(driver.memcpyDeviceToHostAsync(destination, deviceAddress(source), bytes, housekeeping), "download"));
  return waitFor([&] { return driver.streamQuery(housekeeping); },
                 [&] { return driver.streamSynchronize(housekeeping); }, "a download");
}

// Streams and events

Expected<runtime::StreamHandle> CudaDevice::createStream(std::string_view name, int priority) {
  DITRON_RETURN_IF_ERROR(system->status());
  // The driver counts the other way round: more urgent is less.
  const int clamped = std::clamp(-priority, greatestPriority, leastPriority);
  const std::string what = fmt::format("make stream '{}' on rank {}", name, options.rank);
  DITRON_ASSIGN_OR_RETURN(
      StreamRef stream, whileIdle<StreamRef>(what, [self = shared_from_this(), clamped, what]() -> Expected<StreamRef> {
        ContextScope scope(self->driver, self->context);
        StreamRef made = nullptr;
        DITRON_RETURN_IF_ERROR(
            self->driver.check(self->driver.streamCreate(&made, streamNonBlocking, clamped), "cannot " + what));
        return made;
      }));
  std::lock_guard lock(mutex);
  const auto handle = reinterpret_cast<runtime::StreamHandle>(stream);
  streams[handle] = {.name = std::string(name), .lastKernel = {}};
  return handle;
}

Status CudaDevice::destroyStream(runtime::StreamHandle stream) {
  auto destroy = [this, stream]() -> Status {
    ContextScope scope(driver, context);
    std::lock_guard lock(mutex);
    streams.erase(stream);
    // Whether work is left on it is asked at the end only: to ask would break a capture that another library makes meanwhile.
    constexpr size_t mostLeft = 16;
    leftStreams.push_back(streamRef(stream));
    if (leftStreams.size() <= mostLeft)
      return Status::ok();
    const StreamRef oldest = leftStreams.front();
    leftStreams.pop_front();
    return driver.check(driver.streamDestroy(oldest), "cannot destroy a stream");
  };
  if (abandoned || system->hasEnded()) {
    std::lock_guard lock(mutex);
    streams.erase(stream);
    return Status::ok();
  }
  if (const Entry entry(*this); entry.mayGo())
    return destroy();
  return hold({.order = {.stream = streamRef(stream)}, .mayWait = false, .submit = destroy});
}

Status CudaDevice::shareStream(runtime::StreamHandle stream) {
  DITRON_RETURN_IF_ERROR(drain(streamRef(stream), nullptr, "a stream that other code is to see"));
  std::lock_guard lock(mutex);
  if (auto found = streams.find(stream); found != streams.end())
    found->second.isShared = true;
  return Status::ok();
}

std::string CudaDevice::streamText(runtime::StreamHandle stream) {
  std::lock_guard lock(mutex);
  const auto found = streams.find(stream);
  return found == streams.end() ? fmt::format("rank {}", options.rank) : streamText(found->second);
}

std::string CudaDevice::streamText(const StreamState &stream) const {
  std::string text = fmt::format("rank {}, stream {}", options.rank, stream.name);
  if (stream.lastKernel.isValid())
    text += fmt::format(" (last kernel: {})", stream.lastKernel.name());
  return text;
}

void CudaDevice::setLastKernel(StreamRef stream, const runtime::Kernel &kernel, bool mayWait) {
  std::lock_guard lock(mutex);
  if (auto found = streams.find(reinterpret_cast<runtime::StreamHandle>(stream)); found != streams.end()) {
    found->second.lastKernel = kernel;
    found->second.mayWait |= mayWait;
  }
}

void CudaDevice::setMayWait(StreamRef stream) {
  std::lock_guard lock(mutex);
  if (auto found = streams.find(reinterpret_cast<runtime::StreamHandle>(stream)); found != streams.end())
    found->second.mayWait = true;
}

runtime::Kernel CudaDevice::lastKernel(StreamRef stream) {
  std::lock_guard lock(mutex);
  const auto found = streams.find(reinterpret_cast<runtime::StreamHandle>(stream));
  return found == streams.end() ? runtime::Kernel() : found->second.lastKernel;
}

Status CudaDevice::check(Result result, std::string_view action) {
  if (result == success)
    return Status::ok();
  Status status = driver.check(result, fmt::format("rank {}, {}", options.rank, action));
  // These leave the context unusable: all that follows would fail with the same error.
  switch (result) {
  case errorIllegalAddress:
  case errorMisalignedAddress:
  case errorIllegalInstruction:
  case errorLaunchFailed:
  case 702 /* CUDA_ERROR_LAUNCH_TIMEOUT */:
  case 710 /* CUDA_ERROR_ASSERT */:
  case 714 /* CUDA_ERROR_HARDWARE_STACK_ERROR */:
  case 717 /* CUDA_ERROR_INVALID_ADDRESS_SPACE */:
  case 718 /* CUDA_ERROR_INVALID_PC */:
  case 214 /* CUDA_ERROR_ECC_UNCORRECTABLE */:
  case 220 /* CUDA_ERROR_NVLINK_UNCORRECTABLE */: {
    // A loop that polls for too long reports itself and then traps: its report says more than the driver.
    Status reported = system->checkReports();
    return system->end(reported.isOk() ? status : reported);
  }
  default: return status;
  }
}

Status CudaDevice::waitFor(const std::function<Result()> &query, const std::function<Result()> &block,
                           std::string_view what) {
  using Clock = std::chrono::steady_clock;
  const ForkGateOpen forksGoAhead;
  if (system->timeLimitSeconds <= 0 && !system->lostRanks)
    return check(block(), what);
  const auto begin = Clock::now();
  // What a rank has sent before its process died still counts; what it has not sent never comes.
  constexpr double secondsToLook = 0.05, secondsForTheLast = 1;
  double nextLook = secondsToLook, lostSince = 0;
  for (;;) {
    const Result result = query();
    if (result != errorNotReady)
      return check(result, what);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (system->lostRanks && seconds > nextLook) {
      nextLook = seconds + secondsToLook;
      if (const std::vector<uint32_t> lost = system->lostRanks(); !lost.empty()) {
        if (lostSince == 0)
          lostSince = seconds;
        if (seconds - lostSince > secondsForTheLast) {
          abandoned = true;
          return system->end(
              Status(StatusCode::TimeOut, fmt::format("{} has not completed, and the process of rank {} has died", what,
                                                      fmt::join(lost, ", "))));
        }
      }
    }
    if (system->timeLimitSeconds > 0 && seconds > system->timeLimitSeconds) {
      Status reported = system->checkReports();
      if (reported.isOk()) {
        const std::string waits = system->publishedWaits();
        reported = Status(StatusCode::TimeOut,
                          fmt::format("{} has not completed within {:g} seconds{}", what, system->timeLimitSeconds,
                                      waits.empty()
                                          ? ". Compile with DITRON_PUBLISH_WAITS=1 or --bound-waits to see which "
                                            "wait of which kernel holds it up, or run on the simulator (--target sim)"
                                          : "\nwaiting:\n" + waits) +
                              system->queue.unloadedText() + system->loadsText());
      }
      abandoned = true;
      return system->end(reported);
    }
    // Short waits are answered quickly, long ones do not burn a core.
    if (seconds < 200e-6)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(seconds < 0.01 ? 20 : 500));
  }
}

Status CudaDevice::timeOut(std::string text) {
  Status reported = system->checkReports();
  if (reported.isOk()) {
    if (const std::string waiting = system->publishedWaits(); !waiting.empty())
      text += "\nwaiting:\n" + waiting;
    reported = Status(StatusCode::TimeOut, text + system->loadsText());
  }
  abandoned = true;
  return system->end(reported);
}

Status CudaDevice::drain(StreamRef stream, EventRef event, std::string_view what) {
  const ForkGateOpen forksGoAhead;
  if (system->queue.drain(stream, event, system->timeLimitSeconds))
    return system->status();
  return timeOut(fmt::format("{} has not begun within {:g} seconds{}", what, system->timeLimitSeconds,
                             system->queue.unloadedText()));
}

Status CudaDevice::synchronizeStream(runtime::StreamHandle stream) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (system->queue.isHolding())
    DITRON_RETURN_IF_ERROR(drain(streamRef(stream), nullptr, streamText(stream)));
  ContextScope scope(driver, context);
  DITRON_RETURN_IF_ERROR(waitFor([&] { return driver.streamQuery(streamRef(stream)); },
                                 [&] { return driver.streamSynchronize(streamRef(stream)); }, streamText(stream)));
  driver.streamSynchronize(
      streamRef(stream)); // nothing is left to wait for, but only this writes what kernels have printed
  if (Status reported = system->checkReports(); !reported.isOk())
    return system->end(reported);
  return Status::ok();
}

Status CudaDevice::synchronize() {
  std::vector<runtime::StreamHandle> handles;
  {
    std::lock_guard lock(mutex);
    for (const auto &[handle, state] : streams)
      handles.push_back(handle);
  }
  for (runtime::StreamHandle handle : handles)
    DITRON_RETURN_IF_ERROR(synchronizeStream(handle));
  return system->status();
}

Expected<runtime::EventHandle> CudaDevice::createEvent(std::string_view name) {
  DITRON_RETURN_IF_ERROR(system->status());
  ContextScope scope(driver, context);
  EventRef event = nullptr;
  DITRON_RETURN_IF_ERROR(driver.check(driver.eventCreate(&event, eventDefault),
                                      fmt::format("cannot make event '{}' on rank {}", name, options.rank)));
  std::lock_guard lock(mutex);
  events.push_back(event);
  return reinterpret_cast<runtime::EventHandle>(event);
}

Status CudaDevice::recordEventNow(StreamRef stream, EventRef event) {
  ContextScope scope(driver, context);
  return check(driver.eventRecord(event, stream), "record an event");
}

Status CudaDevice::recordEvent(runtime::StreamHandle stream, runtime::EventHandle event) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (const Entry entry(*this); entry.mayGo())
    return recordEventNow(streamRef(stream), eventRef(event));
  return hold({.order = {.stream = streamRef(stream), .event = eventRef(event)},

               .mayWait = false,
               .submit = [=, this] { return recordEventNow(streamRef(stream), eventRef(event)); }});
}

Status CudaDevice::waitEventNow(StreamRef stream, EventRef event) {
  ContextScope scope(driver, context);
  setMayWait(stream);
  std::lock_guard lock(mutex); // it may begin a capture: see addUnfinishedWork
  return check(driver.streamWaitEvent(stream, event, 0), "wait for an event");
}

Status CudaDevice::waitEvent(runtime::StreamHandle stream, runtime::EventHandle event) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (const Entry entry(*this); entry.mayGo())
    return waitEventNow(streamRef(stream), eventRef(event));
  return hold({.order = {.stream = streamRef(stream), .event = eventRef(event)},

               .submit = [=, this] { return waitEventNow(streamRef(stream), eventRef(event)); }});
}

Status CudaDevice::pace(StreamRef stream, uint32_t operations) {
  if (!system->lostRanks || system->queue.isHolding())
    return Status::ok();
  ContextScope scope(driver, context);
  EventRef before = nullptr;
  {
    std::lock_guard lock(mutex);
    const auto found = streams.find(reinterpret_cast<runtime::StreamHandle>(stream));
    if (found == streams.end() || (found->second.unpaced += operations) < paceOperations || captureOf(stream) != 0)
      return Status::ok();
    StreamState &state = found->second;
    state.unpaced = 0;
    std::swap(state.paces[0], state.paces[1]);
    before = state.paces[1];
    if (!state.paces[0]) {
      DITRON_RETURN_IF_ERROR(driver.check(driver.eventCreate(&state.paces[0], eventDefault), "cannot make an event"));
      events.push_back(state.paces[0]);
    }
    DITRON_RETURN_IF_ERROR(driver.check(driver.eventRecord(state.paces[0], stream), "record an event"));
  }
  if (!before)
    return Status::ok();
  return waitFor([&] { return driver.eventQuery(before); }, [&] { return driver.eventSynchronize(before); },
                 streamText(reinterpret_cast<runtime::StreamHandle>(stream)));
}

Status CudaDevice::synchronizeEvent(runtime::EventHandle event) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (system->queue.isHolding())
    DITRON_RETURN_IF_ERROR(drain(nullptr, eventRef(event), fmt::format("rank {}, an event", options.rank)));
  ContextScope scope(driver, context);
  return waitFor([&] { return driver.eventQuery(eventRef(event)); },
                 [&] { return driver.eventSynchronize(eventRef(event)); },
                 fmt::format("rank {}, an event", options.rank));
}

Expected<int64_t> CudaDevice::elapsedTime(runtime::EventHandle begin, runtime::EventHandle end) {
  DITRON_RETURN_IF_ERROR(system->status());
  ContextScope scope(driver, context);
  float milliseconds = 0;
  const Result result = driver.eventElapsedTime(&milliseconds, eventRef(begin), eventRef(end));
  if (result == errorNotReady)
    return invalidArgument("the event has no completed recording");
  DITRON_RETURN_IF_ERROR(check(result, "time of an event"));
  return static_cast<int64_t>(static_cast<double>(milliseconds) * 1e9);
}

Expected<int64_t> CudaDevice::eventTime(runtime::EventHandle event) {
  return elapsedTime(reinterpret_cast<runtime::EventHandle>(origin), event);
}

} // namespace ditron::cuda
