//===- VirtualHeap.cpp - A heap of one GPU in reserved addresses --------------------------------------------------===//
//
// Physical pieces are mapped back to back; an allocation may lie across several.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/VirtualHeap.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::cuda {

namespace {

constexpr uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

AllocationProperties propertiesFor(DeviceOrdinal device, bool shareable) {
  AllocationProperties properties = {};
  properties.type = allocationPinned;
  properties.requestedHandleTypes = shareable ? handlePosixFileDescriptor : handleNone;
  properties.location = {locationDevice, device};
  return properties;
}

std::string mebibytes(uint64_t bytes) { return fmt::format("{} MiB", (bytes + (1 << 20) - 1) >> 20); }

} // namespace

VirtualHeap::VirtualHeap(std::shared_ptr<const CudaDriver> driver, Options options, uint64_t capacity,
                         uint64_t granularity)
    : driver(std::move(driver)), options(std::move(options)), offsets(capacity), granularity(granularity) {}

Expected<std::unique_ptr<VirtualHeap>> VirtualHeap::create(std::shared_ptr<const CudaDriver> driver, Options options) {
  if (!driver->attribute(Attribute::VirtualMemoryManagementSupported, options.device))
    return unsupported(
        fmt::format("GPU {} cannot map memory by address (no virtual memory management); Ditron needs it "
                    "for its heaps",
                    options.device));
  const AllocationProperties properties = propertiesFor(options.device, options.shareable);
  size_t granularity = 0;
  DITRON_RETURN_IF_ERROR(driver->check(driver->memGetAllocationGranularity(&granularity, &properties, 0),
                                       fmt::format("cannot ask the page size of the {}", options.name)));
  const uint64_t capacity = roundUp(std::max<uint64_t>(options.capacityBytes, 1), granularity);
  std::unique_ptr<VirtualHeap> heap(new VirtualHeap(std::move(driver), std::move(options), capacity, granularity));
  DITRON_RETURN_IF_ERROR(heap->driver->check(
      heap->driver->memAddressReserve(&heap->baseValue, capacity, 0, 0, 0),
      fmt::format("cannot reserve {} of addresses for the {}", mebibytes(capacity), heap->options.name)));
  if (heap->options.shareable)
    DITRON_RETURN_IF_ERROR(heap->mapPiece(capacity));
  return heap;
}

VirtualHeap::~VirtualHeap() {
  if (abandoned || !baseValue)
    return;
  for (const Piece &piece : pieces) {
    driver->memUnmap(baseValue + piece.offset, piece.bytes);
    driver->memRelease(piece.handle);
  }
  driver->memAddressFree(baseValue, offsets.capacity());
}

Status VirtualHeap::mapPiece(uint64_t bytes) {
  const AllocationProperties properties = propertiesFor(options.device, options.shareable);
  Piece piece = {0, mapped, bytes};
  if (Result result = driver->memCreate(&piece.handle, bytes, &properties, 0); result != success) {
    size_t available = 0, total = 0;
    driver->memGetInfo(&available, &total);
    Status status = driver->check(result, fmt::format("cannot allocate {} on GPU {} for the {} ({} of {} are free)",
                                                      mebibytes(bytes), options.device, options.name,
                                                      mebibytes(available), mebibytes(total)));
    return status;
  }
  Status status = driver->check(driver->memMap(baseValue + mapped, bytes, 0, piece.handle, 0),
                                fmt::format("cannot map {} of the {}", mebibytes(bytes), options.name));
  if (!status.isOk()) {
    driver->memRelease(piece.handle);
    return status;
  }
  pieces.push_back(piece);
  mapped += bytes;
  std::vector<AccessDescription> access;
  for (DeviceOrdinal accessor : options.accessors)
    access.push_back({{locationDevice, accessor}, accessReadWrite});
  return driver->check(driver->memSetAccess(baseValue + piece.offset, bytes, access.data(), access.size()),
                       fmt::format("cannot make the {} accessible to {} GPUs", options.name, access.size()));
}

Status VirtualHeap::mapUpTo(uint64_t end) {
  if (end <= mapped)
    return Status::ok();
  const uint64_t needed = roundUp(end - mapped, granularity);
  const uint64_t generous =
      std::min(std::max(needed, std::clamp(mapped, leastGrowthBytes, mostGrowthBytes)), offsets.capacity() - mapped);
  Status status = mapPiece(generous);
  if (status.code() == StatusCode::ResourceExhausted && generous > needed)
    status = mapPiece(needed);
  return status;
}

bool VirtualHeap::mustMapFor(uint64_t bytes) {
  const std::optional<uint64_t> offset = offsets.allocate(bytes);
  if (!offset)
    return false; // allocate() will refuse
  offsets.free(*offset);
  return *offset + bytes > mapped;
}

Expected<void *> VirtualHeap::allocate(uint64_t bytes) {
  const std::optional<uint64_t> offset = offsets.allocate(bytes);
  if (!offset)
    return Status(StatusCode::ResourceExhausted,
                  fmt::format("the {} has {} in all and no gap of {} bytes left (the largest has {}); "
                              "WorldOptions::heapBytes sets its size",
                              options.name, mebibytes(capacity()), bytes, offsets.largestGap()));
  if (Status status = mapUpTo(*offset + bytes); !status.isOk()) {
    offsets.free(*offset);
    return status;
  }
  return reinterpret_cast<void *>(baseValue + *offset);
}

Status VirtualHeap::free(void *address) {
  if (contains(address) && offsets.free(reinterpret_cast<DevicePointer>(address) - baseValue))
    return Status::ok();
  return invalidArgument(fmt::format("{} is not the address of an allocation in the {}", address, options.name));
}

Expected<int> VirtualHeap::exportDescriptor() const {
  if (!options.shareable || pieces.size() != 1)
    return internalError(fmt::format("the {} was not made for export", options.name));
  int descriptor = -1;
  DITRON_RETURN_IF_ERROR(
      driver->check(driver->memExport(&descriptor, pieces.front().handle, handlePosixFileDescriptor, 0),
                    fmt::format("cannot export the {}", options.name)));
  return descriptor;
}

Expected<std::unique_ptr<PeerHeap>> PeerHeap::map(std::shared_ptr<const CudaDriver> driver, DeviceOrdinal device,
                                                  int descriptor, uint64_t bytes, std::string_view name) {
  std::unique_ptr<PeerHeap> heap(new PeerHeap(driver));
  heap->bytes = bytes;
  // The driver takes the descriptor itself in the place of a pointer.
  DITRON_RETURN_IF_ERROR(
      driver->check(driver->memImport(&heap->handle, reinterpret_cast<void *>(static_cast<intptr_t>(descriptor)),
                                      handlePosixFileDescriptor),
                    fmt::format("cannot import the {}", name)));
  DITRON_RETURN_IF_ERROR(
      driver->check(driver->memAddressReserve(&heap->baseValue, bytes, 0, 0, 0),
                    fmt::format("cannot reserve {} of addresses for the {}", mebibytes(bytes), name)));
  DITRON_RETURN_IF_ERROR(driver->check(driver->memMap(heap->baseValue, bytes, 0, heap->handle, 0),
                                       fmt::format("cannot map the {}", name)));
  heap->mapped = true;
  const AccessDescription access = {{locationDevice, device}, accessReadWrite};
  DITRON_RETURN_IF_ERROR(
      driver->check(driver->memSetAccess(heap->baseValue, bytes, &access, 1),
                    fmt::format("GPU {} cannot access the {} (no peer-to-peer link between the GPUs)", device, name)));
  return heap;
}

PeerHeap::~PeerHeap() {
  if (abandoned)
    return;
  if (mapped)
    driver->memUnmap(baseValue, bytes);
  if (baseValue)
    driver->memAddressFree(baseValue, bytes);
  if (handle)
    driver->memRelease(handle);
}

} // namespace ditron::cuda
