//===- SimDevice.cpp - The simulated backend ----------------------------------------------------------------------===//
//
// A thin translation of Device into sim::Machine.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/sim/SimDevice.h"

#include "ditron/runtime/ProgramLoop.h"
#include "ditron/sim/hopper/TensorMap.h"

#include <cstring>
#include <fmt/format.h>

namespace ditron::runtime {

namespace {

sim::StreamId streamId(StreamHandle handle) { return {static_cast<uint32_t>(handle)}; }
sim::EventId eventId(EventHandle handle) { return {static_cast<uint32_t>(handle)}; }

sim::MemoryKind simKind(MemoryKind kind) {
  switch (kind) {
  case MemoryKind::Device: return sim::MemoryKind::Device;
  case MemoryKind::Symmetric: return sim::MemoryKind::Symmetric;
  case MemoryKind::HostPinned: return sim::MemoryKind::HostPinned;
  }
  return sim::MemoryKind::Device;
}

sim::Compare simCompare(Compare compare) {
  switch (compare) {
  case Compare::Equal: return sim::Compare::Equal;
  case Compare::NotEqual: return sim::Compare::NotEqual;
  case Compare::Greater: return sim::Compare::Greater;
  case Compare::LessEqual: return sim::Compare::LessEqual;
  case Compare::Less: return sim::Compare::Less;
  case Compare::GreaterEqual: return sim::Compare::GreaterEqual;
  }
  return sim::Compare::Equal;
}

sim::LaunchDescription describe(const Kernel &kernel, const LaunchConfig &config, const std::array<uint32_t, 3> &grid,
                                PackedArguments arguments) {
  sim::LaunchDescription description;
  description.name = kernel.name();
  description.source = kernel.artifact().sourceFile;
  description.entry = kernel.image().hostEntry;
  description.arguments.bytes = std::move(arguments.bytes);
  description.arguments.offsets = std::move(arguments.offsets);
  description.grid = grid;
  description.threadsPerBlock = kernel.threadsPerBlock();
  description.sharedBytes = kernel.artifact().sharedBytes;
  description.cooperative = config.cooperative;
  if (config.agreed.agreement)
    description.onStart = [agreed = config.agreed] { return agreed.agreement->enter(agreed.rank, agreed.what); };
  description.keepAlive = kernel.image().owner;
  return description;
}

/// The machine keeps a copy of the values, so that there is nothing to save here but the checks.
class SimKernel final : public LoadedKernel {
public:
  SimKernel(std::shared_ptr<sim::Machine> machine, const Kernel &kernel)
      : machine(std::move(machine)), kernel(kernel) {}

  Status launch(StreamHandle stream, const LaunchConfig &config, void *const *given) override {
    const HardwareLaunch launch(kernel.artifact(), config.grid, given, machine->options().smsPerRank);
    void **values = launch.values();
    PackedArguments arguments;
    for (const ArtifactParameter &parameter : kernel.artifact().parameters)
      arguments.add(*values++, parameter.bytes);
    if (kernel.artifact().loopsOverPrograms)
      for (size_t axis = 0; axis < config.grid.size(); ++axis)
        arguments.add(*values++, sizeof(uint32_t));
    for (size_t map = 0; map < kernel.artifact().tensorMaps.size(); ++map)
      arguments.add(*values++, sizeof(TensorMap::bytes));
    arguments.add(*values, sizeof(void *));
    return machine->launch(streamId(stream), describe(kernel, config, launch.grid(), std::move(arguments)));
  }

  /// As an NVIDIA GPU has them: so many that one block fits.
  Expected<KernelResources> resources() override {
    constexpr uint32_t ofMultiprocessor = 65536, mostOfThread = 255, granule = 8;
    const uint32_t most = std::min(ofMultiprocessor / kernel.threadsPerBlock(), mostOfThread);
    return KernelResources{.registers = most / granule * granule};
  }

private:
  std::shared_ptr<sim::Machine> machine;
  Kernel kernel;
};

} // namespace

SimDevice::SimDevice(std::shared_ptr<sim::Machine> machineValue, uint32_t rank, std::string name)
    : machine(std::move(machineValue)), rankId(rank) {
  const sim::MachineOptions &options = machine->options();
  attributeValues.name = std::move(name);
  attributeValues.multiprocessors = options.smsPerRank;
  attributeValues.warpSize = options.warpSize;
  attributeValues.sharedBytesPerBlock = options.sharedBytesPerBlock;
  attributeValues.maxThreadsPerBlock = options.maxThreadsPerBlock;
  attributeValues.copyEngines = options.copyEnginesPerRank;
}

Expected<void *> SimDevice::allocate(uint64_t bytes, std::string_view name, uint32_t elementBytes, MemoryKind kind) {
  return machine->allocate(rankId, bytes, name, elementBytes, simKind(kind));
}

Status SimDevice::free(void *address) { return machine->free(address); }
Status SimDevice::adoptMemory(void *address, uint64_t bytes, std::string_view name, uint32_t elementBytes) {
  return machine->adopt(rankId, address, bytes, name, elementBytes);
}
Status SimDevice::releaseMemory(void *address) { return machine->release(address); }
void *SimDevice::symmetricBase() const { return machine->symmetricBase(rankId); }

Status SimDevice::checkHostAccess(const void *address, uint64_t bytes) const {
  if (bytes == 0)
    return Status::ok(); // nothing lies in an empty allocation, not even its own address
  std::optional<sim::AddressInfo> info = machine->describe(address);
  if (!info)
    return Status(StatusCode::OutOfBounds,
                  fmt::format("host access of {} bytes to an address in no memory of any rank", bytes));
  if (info->freed)
    return Status(StatusCode::OutOfBounds,
                  fmt::format("host access to '{}' on rank {}, which was freed", info->name, info->rank));
  if (info->offset > info->bytes || bytes > info->bytes - info->offset)
    return Status(StatusCode::OutOfBounds,
                  fmt::format("host access to bytes [{}, {}) of '{}' on rank {}, which has {}", info->offset,
                              info->offset + bytes, info->name, info->rank, info->bytes));
  return Status::ok();
}

Status SimDevice::upload(void *destination, const void *source, uint64_t bytes) {
  DITRON_RETURN_IF_ERROR(checkHostAccess(destination, bytes));
  DITRON_RETURN_IF_ERROR(machine->hostAccess(destination, bytes, /*isWrite=*/true));
  std::memcpy(destination, source, bytes);
  return Status::ok();
}

Status SimDevice::download(void *destination, const void *source, uint64_t bytes) {
  DITRON_RETURN_IF_ERROR(checkHostAccess(source, bytes));
  DITRON_RETURN_IF_ERROR(machine->hostAccess(source, bytes, /*isWrite=*/false));
  std::memcpy(destination, source, bytes);
  return Status::ok();
}

Expected<StreamHandle> SimDevice::createStream(std::string_view name, int priority) {
  DITRON_ASSIGN_OR_RETURN(sim::StreamId stream, machine->createStream(rankId, name, priority));
  return StreamHandle(stream.value);
}

Status SimDevice::destroyStream(StreamHandle stream) { return machine->destroyStream(streamId(stream)); }
Status SimDevice::synchronizeStream(StreamHandle stream) { return machine->synchronize(streamId(stream)); }
Status SimDevice::synchronize() { return machine->synchronizeRank(rankId); }

Expected<EventHandle> SimDevice::createEvent(std::string_view name) {
  DITRON_ASSIGN_OR_RETURN(sim::EventId event, machine->createEvent(name));
  return EventHandle(event.value);
}

Status SimDevice::recordEvent(StreamHandle stream, EventHandle event) {
  return machine->recordEvent(streamId(stream), eventId(event));
}

Status SimDevice::waitEvent(StreamHandle stream, EventHandle event) {
  return machine->waitEvent(streamId(stream), eventId(event));
}

Status SimDevice::synchronizeEvent(EventHandle event) { return machine->synchronizeEvent(eventId(event)); }

Expected<int64_t> SimDevice::eventTime(EventHandle event) {
  if (std::optional<sim::SimTime> time = machine->eventTime(eventId(event)))
    return *time;
  return invalidArgument("the event has no completed recording");
}

static sim::CopyDescription describe(const Copy &copy) {
  sim::CopyDescription description;
  description.destination = copy.destination;
  description.source = copy.source;
  description.rowBytes = copy.rowBytes;
  description.rows = copy.rows;
  description.destinationPitch = copy.destinationPitch;
  description.sourcePitch = copy.sourcePitch;
  description.name = copy.name;
  return description;
}

Status SimDevice::copy(StreamHandle stream, const Copy &copy) {
  return machine->copy(streamId(stream), describe(copy));
}

Status SimDevice::checkDestination(StreamHandle stream, const Copy &copy) {
  return machine->checkCopy(streamId(stream), describe(copy));
}

Status SimDevice::fill(StreamHandle stream, void *address, int byteValue, uint64_t bytes) {
  return machine->memset(streamId(stream), address, byteValue, bytes);
}

Status SimDevice::signalWrite(StreamHandle stream, void *address, uint64_t value, uint32_t bytes) {
  return machine->signalWrite(streamId(stream), address, value, bytes);
}

Status SimDevice::signalAdd(StreamHandle stream, void *address, uint64_t value, uint32_t bytes) {
  return machine->signalAdd(streamId(stream), address, value, bytes);
}

Status SimDevice::signalWait(StreamHandle stream, const void *address, Compare compare, uint64_t value,
                             uint32_t bytes) {
  return machine->signalWait(streamId(stream), address, simCompare(compare), value, bytes);
}

Status SimDevice::hostCallback(StreamHandle stream, std::function<void()> callback, std::string_view name) {
  return machine->hostCallback(streamId(stream), std::move(callback), name);
}

Expected<TensorMap> SimDevice::encodeTensorMap(const TensorMapDescription &map) {
  std::array<uint32_t, TensorMapDescription::maxRank> sizes = {};
  for (uint32_t dim = 0; dim < map.rank; ++dim)
    sizes[dim] = static_cast<uint32_t>(std::min<uint64_t>(map.sizes[dim], UINT32_MAX));
  DITRON_ASSIGN_OR_RETURN(const DitronSimTensorMap encoded,
                          sim::makeTensorMap(map.base, sizeOf(map.type), std::span(sizes).first(map.rank),
                                             std::span(map.stridesBytes).subspan(1, map.rank - 1),
                                             std::span(map.box).first(map.rank), map.swizzleBytes, map.fillNan,
                                             map.roundsTf32));
  TensorMap result;
  static_assert(sizeof(encoded) == sizeof(result.bytes));
  std::memcpy(result.bytes.data(), &encoded, sizeof(encoded));
  return result;
}

Expected<std::unique_ptr<LoadedKernel>> SimDevice::loadForLaunch(const Kernel &kernel, std::optional<StreamHandle>) {
  return std::unique_ptr<LoadedKernel>(std::make_unique<SimKernel>(machine, kernel));
}

Status SimDevice::beginCapture(StreamHandle stream) { return machine->beginCapture(streamId(stream)); }

Expected<GraphHandle> SimDevice::endCapture(StreamHandle stream) {
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<const sim::Graph> graph, machine->endCapture(streamId(stream)));
  return GraphHandle(std::move(graph));
}

bool SimDevice::isCapturing(StreamHandle stream) const { return machine->isCapturing(streamId(stream)); }

Status SimDevice::launchGraph(StreamHandle stream, GraphHandle graph) {
  return machine->launchGraph(streamId(stream), std::static_pointer_cast<const sim::Graph>(graph));
}

} // namespace ditron::runtime
