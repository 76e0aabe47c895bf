//===- CudaLaunch.cpp - An NVIDIA GPU as a Device: what runs on streams -------------------------------------------===//
//
// Copies, signals and kernels; graphs are in CudaGraph.cpp. Everything here only enqueues: with the driver, or with the queue of what is kept back
// until code is loaded (CudaLoad.cpp).
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/ProgramLoop.h"
#include "ditron/runtime/cuda/CudaDevice.h"
#include "ditron/runtime/cuda/CudaKernel.h"

#include <cstring>
#include <fmt/format.h>

namespace ditron::cuda {

namespace {

DevicePointer deviceAddress(const void *address) { return reinterpret_cast<DevicePointer>(address); }
StreamRef streamRef(runtime::StreamHandle handle) { return reinterpret_cast<StreamRef>(handle); }

struct HostCall {
  std::function<void()> function;
  bool once;
};

void runHostCall(void *userData) {
  auto *call = static_cast<HostCall *>(userData);
  call->function();
  if (call->once)
    delete call;
}

} // namespace

// Kernels

Status CudaDevice::launchStreamKernel(StreamRef stream, const char *name, std::initializer_list<uint64_t> values) {
  DITRON_ASSIGN_OR_RETURN(FunctionRef function, kernels->streamFunction(name));
  std::vector<uint64_t> storage(values); // 32-bit parameters read the low half of their word
  std::vector<void *> parameters;
  for (uint64_t &value : storage)
    parameters.push_back(&value);
  return check(driver.launchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr), name);
}

Status CudaDevice::delayKernel(StreamRef stream) {
  if (options.delayMicroseconds <= 0)
    return Status::ok();
  return launchStreamKernel(stream, "ditron_delay", {static_cast<uint64_t>(options.delayMicroseconds * 1e3)});
}

Status CudaDevice::delayCopy(StreamRef stream) {
  // PCIe of the fastest machines of today moves this much; slower ones delay more.
  constexpr double bytesPerMicrosecond = 50e3;
  for (auto left = static_cast<uint64_t>(options.delayMicroseconds * bytesPerMicrosecond); left > 0;) {
    const uint64_t bytes = std::min(left, ballastBytes);
    DITRON_RETURN_IF_ERROR(
        check(driver.memcpyDeviceToHostAsync(ballastTarget, deviceAddress(ballast), bytes, stream), "delay of a copy"));
    left -= bytes;
  }
  return Status::ok();
}

// Operations

Status CudaDevice::copy(runtime::StreamHandle stream, const runtime::Copy &copy) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (copy.rowBytes == 0 || copy.rows == 0)
    return Status::ok();
  DITRON_RETURN_IF_ERROR(pace(streamRef(stream)));
  if (const Entry entry(*this); entry.mayGo())
    return copyNow(streamRef(stream), copy);
  return hold({.order = {.stream = streamRef(stream)},

               .mayWait = false,
               .submit = [=, this] { return copyNow(streamRef(stream), copy); }});
}

Status CudaDevice::checkDestination(runtime::StreamHandle, const runtime::Copy &copy) {
  constexpr int memoryType =
      2; // CU_POINTER_ATTRIBUTE_MEMORY_TYPE, which the driver has of all memory that its copies reach
  DITRON_RETURN_IF_ERROR(system->status());
  if (copy.rowBytes == 0 || copy.rows == 0 || !driver.pointerGetAttribute)
    return Status::ok();
  ContextScope scope(driver, context);
  uint32_t type = 0;
  if (driver.pointerGetAttribute(&type, memoryType, deviceAddress(copy.destination)) == 0)
    return Status::ok();
  return {StatusCode::OutOfBounds, fmt::format("destination of copy {}: the driver knows no memory at {}; memory of "
                                               "GPUs that has not been freed, and host memory "
                                               "of the driver's, are accepted",
                                               copy.name, copy.destination)};
}

Status CudaDevice::copyNow(StreamRef stream, const runtime::Copy &copy) {
  ContextScope scope(driver, context);
  DITRON_RETURN_IF_ERROR(delayCopy(stream));
  const uint64_t sourcePitch = copy.sourcePitch ? copy.sourcePitch : copy.rowBytes;
  const uint64_t destinationPitch = copy.destinationPitch ? copy.destinationPitch : copy.rowBytes;
  if (copy.rows == 1 || (sourcePitch == copy.rowBytes && destinationPitch == copy.rowBytes))
    return check(driver.memcpyAsync(deviceAddress(copy.destination), deviceAddress(copy.source),
                                    copy.rowBytes * copy.rows, stream),
                 copy.name);
  Copy2D description = {};
  description.sourceType = description.destinationType = memoryUnified;
  description.sourceDevice = deviceAddress(copy.source);
  description.sourcePitch = sourcePitch;
  description.destinationDevice = deviceAddress(copy.destination);
  description.destinationPitch = destinationPitch;
  description.widthBytes = copy.rowBytes;
  description.height = copy.rows;
  return check(driver.memcpy2DAsync(&description, stream), copy.name);
}

Status CudaDevice::fill(runtime::StreamHandle stream, void *address, int byteValue, uint64_t bytes) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (bytes == 0)
    return Status::ok();
  if (const Entry entry(*this); entry.mayGo())
    return fillNow(streamRef(stream), address, byteValue, bytes);
  return hold({.order = {.stream = streamRef(stream)},

               .mayWait = false,
               .submit = [=, this] { return fillNow(streamRef(stream), address, byteValue, bytes); }});
}

Status CudaDevice::fillNow(StreamRef stream, void *address, int byteValue, uint64_t bytes) {
  ContextScope scope(driver, context);
  return check(driver.memsetD8Async(deviceAddress(address), static_cast<unsigned char>(byteValue), bytes, stream),
               "fill");
}

Status CudaDevice::signalWrite(runtime::StreamHandle stream, void *address, uint64_t value, uint32_t bytes) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (const Entry entry(*this); entry.mayGo())
    return signalWriteNow(streamRef(stream), address, value, bytes);
  return hold({.order = {.stream = streamRef(stream)},

               .mayWait = false,
               .submit = [=, this] { return signalWriteNow(streamRef(stream), address, value, bytes); }});
}

Status CudaDevice::signalWriteNow(StreamRef stream, void *address, uint64_t value, uint32_t bytes) {
  ContextScope scope(driver, context);
  // Without flags the driver orders the write after all earlier work of the stream, for the whole system.
  if (bytes == 8) {
    if (options.kernelSignals || !driver.streamWriteValue64)
      return launchStreamKernel(stream, "ditron_signal_write_64", {deviceAddress(address), value});
    return check(driver.streamWriteValue64(stream, deviceAddress(address), value, 0), "write of a signal");
  }
  if (options.kernelSignals || !driver.streamWriteValue32)
    return launchStreamKernel(stream, "ditron_signal_write_32", {deviceAddress(address), value});
  return check(driver.streamWriteValue32(stream, deviceAddress(address), static_cast<uint32_t>(value), 0),
               "write of a signal");
}

Status CudaDevice::signalAdd(runtime::StreamHandle stream, void *address, uint64_t value, uint32_t bytes) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (const Entry entry(*this); entry.mayGo())
    return signalAddNow(streamRef(stream), address, value, bytes);
  return hold({.order = {.stream = streamRef(stream)},

               .mayWait = false,
               .submit = [=, this] { return signalAddNow(streamRef(stream), address, value, bytes); }});
}

Status CudaDevice::signalAddNow(StreamRef stream, void *address, uint64_t value, uint32_t bytes) {
  ContextScope scope(driver, context);
  return launchStreamKernel(stream, bytes == 8 ? "ditron_signal_add_64" : "ditron_signal_add_32",
                            {deviceAddress(address), value});
}

Status CudaDevice::signalWait(runtime::StreamHandle stream, const void *address, runtime::Compare compare,
                              uint64_t value, uint32_t bytes) {
  DITRON_RETURN_IF_ERROR(system->status());
  DITRON_RETURN_IF_ERROR(pace(streamRef(stream)));
  if (const Entry entry(*this); entry.mayGo())
    return signalWaitNow(streamRef(stream), address, compare, value, bytes);
  return hold({.order = {.stream = streamRef(stream)},

               .submit = [=, this] { return signalWaitNow(streamRef(stream), address, compare, value, bytes); }});
}

Status CudaDevice::signalWaitNow(StreamRef stream, const void *address, runtime::Compare compare, uint64_t value,
                                 uint32_t bytes) {
  ContextScope scope(driver, context);
  setMayWait(stream);
  const bool native = compare == runtime::Compare::GreaterEqual || compare == runtime::Compare::Equal;
  const unsigned flags = compare == runtime::Compare::Equal ? WaitEqual : WaitGreaterEqual;
  if (native && !options.kernelSignals && bytes == 8 && driver.streamWaitValue64)
    return check(driver.streamWaitValue64(stream, deviceAddress(address), value, flags), "wait for a signal");
  if (native && !options.kernelSignals && bytes == 4 && driver.streamWaitValue32)
    return check(driver.streamWaitValue32(stream, deviceAddress(address), static_cast<uint32_t>(value), flags),
                 "wait for a signal");
  return launchStreamKernel(stream, bytes == 8 ? "ditron_signal_wait_64" : "ditron_signal_wait_32",
                            {deviceAddress(address), value, static_cast<uint64_t>(compare)});
}

Status CudaDevice::hostCallback(runtime::StreamHandle stream, std::function<void()> callback, std::string_view name) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (const Entry entry(*this); entry.mayGo())
    return hostCallbackNow(streamRef(stream), std::move(callback), name);
  return hold(
      {.order = {.stream = streamRef(stream)},

       .mayWait = false,
       .submit = [=, this, name = std::string(name)] { return hostCallbackNow(streamRef(stream), callback, name); }});
}

Status CudaDevice::hostCallbackNow(StreamRef stream, std::function<void()> callback, std::string_view name) {
  ContextScope scope(driver, context);
  if (const uint64_t capture = captureOf(stream)) {
    // A graph may run it any number of times and keeps it.
    auto call = std::make_shared<HostCall>(HostCall{std::move(callback), false});
    system->keepForCapture(capture, call);
    return check(driver.launchHostFunction(stream, runHostCall, call.get()), name);
  }
  auto call = std::make_unique<HostCall>(HostCall{std::move(callback), true});
  DITRON_RETURN_IF_ERROR(check(driver.launchHostFunction(stream, runHostCall, call.get()), name));
  (void)call.release(); // deletes itself when it has run
  return Status::ok();
}

static Expected<TensorElement> tensorElement(const runtime::TensorMapDescription &map) {
  switch (map.type) {
  case DataType::I1:
  case DataType::I8:
  case DataType::U8:
  case DataType::F8E5:
  case DataType::F8E4NV: return TensorElement::UInt8;
  case DataType::I16:
  case DataType::U16: return TensorElement::UInt16;
  case DataType::I32: return TensorElement::Int32;
  case DataType::U32: return TensorElement::UInt32;
  case DataType::I64: return TensorElement::Int64;
  case DataType::U64: return TensorElement::UInt64;
  case DataType::F16: return TensorElement::Float16;
  case DataType::BF16: return TensorElement::BFloat16;
  case DataType::F32: return map.roundsTf32 ? TensorElement::TFloat32 : TensorElement::Float32;
  case DataType::F64: return TensorElement::Float64;
  }
  return internalError("unknown element type of a tensor map");
}

static TensorSwizzle tensorSwizzle(uint32_t bytes) {
  switch (bytes) {
  case 32: return TensorSwizzle::Bytes32;
  case 64: return TensorSwizzle::Bytes64;
  case 128: return TensorSwizzle::Bytes128;
  default: return TensorSwizzle::None;
  }
}

Expected<runtime::TensorMap> CudaDevice::encodeTensorMap(const runtime::TensorMapDescription &map) {
  // Enough for every tensor of a model's step; beyond that the addresses are new each time, and nothing is worth keeping.
  constexpr size_t mostKept = 4096;
  std::lock_guard lock(mutex);
  if (auto found = tensorMaps.find(map); found != tensorMaps.end())
    return found->second;
  if (!driver.tensorMapEncodeTiled)
    return unsupported("tensor maps need a driver of version 525 or newer");
  DITRON_ASSIGN_OR_RETURN(const TensorElement element, tensorElement(map));
  ContextScope scope(driver, context);
  runtime::TensorMap encoded;
  // Of an empty tensor, whose address may be null, a kernel loads nothing; one that does faults here as it would there.
  void *const base = map.base ? map.base : reinterpret_cast<void *>(uintptr_t(128));
  const uint32_t everyElement[runtime::TensorMapDescription::maxRank] = {1, 1, 1, 1, 1};
  const Result result = driver.tensorMapEncodeTiled(encoded.bytes.data(), element, map.rank, base, map.sizes.data(),
                                                    map.stridesBytes.data() + 1, map.box.data(), everyElement, 0,
                                                    tensorSwizzle(map.swizzleBytes), TensorPromotion::Bytes256,
                                                    map.fillNan ? TensorFill::Nan : TensorFill::Zero);
  DITRON_RETURN_IF_ERROR(driver.check(
      result, fmt::format("description of a tensor of {} dimensions at {}", map.rank, fmt::ptr(map.base))));
  if (tensorMaps.size() >= mostKept)
    tensorMaps.clear();
  tensorMaps.emplace(map, encoded);
  return encoded;
}

uint32_t CudaDevice::residentBlocks(const runtime::Kernel &kernel) {
  const uint32_t blocks = kernel.artifact().loopsOverPrograms ? kernels->blocksPerMultiprocessor(kernel) : 1;
  return blocks * attributeValues.multiprocessors;
}

Status CudaDevice::enqueue(FunctionRef function, const runtime::Kernel &kernel, StreamRef stream,
                           const runtime::LaunchConfig &config, void *const *values, bool mayWait) {
  DITRON_RETURN_IF_ERROR(delayKernel(stream));
  const runtime::HardwareLaunch launch(kernel.artifact(), config.grid, values, residentBlocks(kernel));
  const std::array<uint32_t, 3> &grid = launch.grid();
  const unsigned threads = kernel.threadsPerBlock();
  const auto shared = static_cast<unsigned>(kernel.artifact().sharedBytes);
  void **parameters = launch.values();
  Result result;
  // A kernel that waits by itself for those before it starts while they end: their last blocks and its start run beside each other.
  const bool startsEarly = driver.launchKernelEx && !config.cooperative && kernels->waitsByItself(kernel);
  if (config.cooperative || startsEarly) {
    if (!driver.launchKernelEx)
      return unsupported(
          fmt::format("kernel '{}': cooperative launches need a driver of version 520 or newer", kernel.name()));
    LaunchAttribute attribute = {};
    attribute.id = startsEarly ? launchAttributeProgrammaticSerialization : launchAttributeCooperative;
    attribute.value.flag = 1;
    const LaunchConfiguration configuration = {grid[0], grid[1], grid[2], threads, 1, 1, shared, stream, &attribute, 1};
    result = driver.launchKernelEx(&configuration, function, parameters, nullptr);
  } else {
    result =
        driver.launchKernel(function, grid[0], grid[1], grid[2], threads, 1, 1, shared, stream, parameters, nullptr);
  }
  if (result == success) {
    setLastKernel(stream, kernel, mayWait);
    return Status::ok();
  }
  if (result == errorCooperativeLaunchTooLarge) {
    int blocks = 0;
    driver.occupancyBlocksPerMultiprocessor(&blocks, function, static_cast<int>(threads), shared);
    return Status(StatusCode::ResourceExhausted,
                  fmt::format("cooperative kernel '{}' has {} blocks; {} can hold {} at once", kernel.name(),
                              uint64_t(grid[0]) * grid[1] * grid[2], attributeValues.name,
                              uint64_t(blocks) * attributeValues.multiprocessors));
  }
  int cluster = 0; // of a kernel without clusters 0, or the driver does not know the question
  if (driver.functionGetAttribute(&cluster, FunctionAttribute::RequiredClusterWidth, function) == success &&
      cluster > 1 && grid[0] % static_cast<unsigned>(cluster) != 0)
    return invalidArgument(fmt::format("kernel '{}': grid.x is {}; it runs in clusters of {} blocks, multiples of {} "
                                       "are accepted",
                                       kernel.name(), grid[0], cluster, cluster));
  return check(result, fmt::format("launch of kernel '{}'", kernel.name()));
}

Status CudaKernel::launch(runtime::StreamHandle stream, const runtime::LaunchConfig &config, void *const *values) {
  if (device->system->hasEnded())
    return device->system->status();
  DITRON_RETURN_IF_ERROR(device->pace(streamRef(stream)));
  if (FunctionRef function = this->function())
    if (const CudaDevice::Entry entry(*device); entry.mayGo()) {
      ContextScope scope(device->driver, device->context);
      return device->enqueue(function, kernelValue, streamRef(stream), config, values, mayWait);
    }
  return device->holdLaunch(kernelValue, streamRef(stream), config, values);
}

Expected<runtime::KernelResources> CudaKernel::resources() {
  DITRON_RETURN_IF_ERROR(device->system->status());
  FunctionRef function = this->function();
  if (!function) {
    DITRON_ASSIGN_OR_RETURN(function, device->loadNow(kernelValue, nullptr));
  }
  ContextScope scope(device->driver, device->context);
  int registers = 0, localBytes = 0;
  const std::string what = fmt::format("cannot tell the registers of kernel '{}'", kernelValue.name());
  DITRON_RETURN_IF_ERROR(
      device->check(device->driver.functionGetAttribute(&registers, FunctionAttribute::Registers, function), what));
  DITRON_RETURN_IF_ERROR(
      device->check(device->driver.functionGetAttribute(&localBytes, FunctionAttribute::LocalBytes, function), what));
  return runtime::KernelResources{static_cast<uint32_t>(registers), static_cast<uint32_t>(localBytes)};
}

FunctionRef CudaKernel::function() const {
  if (FunctionRef known = functionRef.load(std::memory_order_acquire))
    return known;
  FunctionRef found = device->kernels->findReady(kernelValue);
  if (found) {
    mayWait = device->kernels->mayWait(kernelValue);
    functionRef.store(found, std::memory_order_release);
  }
  return found;
}

Status CudaDevice::holdLaunch(const runtime::Kernel &kernel, StreamRef stream, const runtime::LaunchConfig &config,
                              void *const *values) {
  HeldOperation operation;
  operation.order.stream = stream;
  operation.kernel = kernel;
  operation.submit = [this, kernel, stream, config, kept = KeptValues::of(kernel.artifact(), values)]() -> Status {
    ContextScope scope(driver, context);
    FunctionRef function = kernels->findReady(kernel);
    if (!function)
      return internalError(fmt::format("kernel '{}' is launched before it is loaded", kernel.name()));
    return enqueue(function, kernel, stream, config, kept->pointers.data(), kernels->mayWait(kernel));
  };
  const bool isLoaded = this->isLoaded(kernel);
  operation.mayWait = !isLoaded || kernels->mayWait(kernel);
  if (!isLoaded && (system->isCapturing() || isForeign(stream)))
    DITRON_RETURN_IF_ERROR(loadNow(kernel, stream).status());
  else if (!isLoaded) {
    system->queue.addUnloaded(*this, std::move(operation));
    return Status::ok();
  }
  return hold(std::move(operation));
}

} // namespace ditron::cuda
