//===- Buffer.cpp - Memory on ranks -------------------------------------------------------------------------------===//
//
// Ownership and host access. The element count is limited so that sizes in bytes never overflow.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/Buffer.h"

#include "ditron/runtime/AdoptedHeap.h"
#include "ditron/runtime/Device.h"

#include <fmt/format.h>

namespace ditron::runtime {

namespace {

constexpr uint64_t maxBytes = uint64_t(1) << 48;

Status checkCount(DataType type, uint64_t count, std::string_view name) {
  if (count > maxBytes / sizeOf(type))
    return invalidArgument(fmt::format("buffer '{}' of {} elements of {} is too large", name, count, toString(type)));
  return Status::ok();
}

Status checkRange(std::string_view name, uint64_t size, uint64_t bytes, uint64_t byteOffset) {
  if (byteOffset <= size && bytes <= size - byteOffset)
    return Status::ok();
  return invalidArgument(fmt::format("host access to bytes [{}, {}) of buffer '{}', which has {}", byteOffset,
                                     byteOffset + bytes, name, size));
}

Status checkFloatCount(std::string_view name, uint64_t given, uint64_t count) {
  if (given == count)
    return Status::ok();
  return invalidArgument(fmt::format("buffer '{}' has {} elements, given {} values", name, count, given));
}

} // namespace

Expected<Buffer> Buffer::allocate(std::shared_ptr<Device> device, DataType type, uint64_t count,
                                  std::string_view name) {
  DITRON_RETURN_IF_ERROR(checkCount(type, count, name));
  DITRON_ASSIGN_OR_RETURN(void *address,
                          device->allocate(count * sizeOf(type), name, sizeOf(type), MemoryKind::Device));
  Buffer buffer;
  buffer.device = std::move(device);
  buffer.pointerValue = {address, type};
  buffer.elements = count;
  buffer.nameText = name;
  return buffer;
}

Buffer::Buffer(Buffer &&other) noexcept
    : device(std::move(other.device)), pointerValue(std::exchange(other.pointerValue, {})),
      elements(std::exchange(other.elements, 0)), nameText(std::move(other.nameText)) {}

Buffer &Buffer::operator=(Buffer &&other) noexcept {
  // The temporary takes this buffer's memory and frees it.
  Buffer moved(std::move(other));
  std::swap(device, moved.device);
  std::swap(pointerValue, moved.pointerValue);
  std::swap(elements, moved.elements);
  std::swap(nameText, moved.nameText);
  return *this;
}

Buffer::~Buffer() {
  // A failure here means that the run has already ended with an error, which the next call reports.
  if (device)
    (void)device->free(pointerValue.address);
}

uint32_t Buffer::rank() const { return device->rank(); }

Status Buffer::upload(const void *source, uint64_t size, uint64_t byteOffset) {
  DITRON_RETURN_IF_ERROR(checkRange(nameText, bytes(), size, byteOffset));
  return device->upload(static_cast<std::byte *>(address()) + byteOffset, source, size);
}

Status Buffer::download(void *destination, uint64_t size, uint64_t byteOffset) const {
  DITRON_RETURN_IF_ERROR(checkRange(nameText, bytes(), size, byteOffset));
  return device->download(destination, static_cast<const std::byte *>(address()) + byteOffset, size);
}

Status Buffer::uploadFloats(std::span<const float> values) {
  DITRON_RETURN_IF_ERROR(checkFloatCount(nameText, values.size(), count()));
  const std::vector<std::byte> data = fromFloats(type(), values.data(), values.size());
  return upload(data.data(), data.size());
}

Expected<std::vector<float>> Buffer::downloadFloats() const {
  std::vector<std::byte> data(bytes());
  DITRON_RETURN_IF_ERROR(download(data.data(), data.size()));
  return toFloats(type(), data.data(), count());
}

struct SymmetricBuffer::Storage {
  std::vector<std::shared_ptr<Device>> devices; ///< Null for ranks of other processes.
  std::vector<void *> addresses;                ///< Per rank.
  std::vector<void *> allocated;                ///< Per rank; null where nothing is to be freed.
  uint64_t offset = 0;
  uint64_t count = 0;
  DataType type = DataType::U8;
  std::string name;
  std::shared_ptr<const Storage> whole; ///< Of a view of some ranks: what owns the memory.
  std::shared_ptr<AdoptedHeap> heap;    ///< That the array is a piece of.

  ~Storage() {
    if (heap)
      heap->free(offset);
    for (size_t i = 0; i < allocated.size(); ++i)
      if (allocated[i])
        (void)devices[i]->free(allocated[i]);
  }

  /// Host access to one rank's copy.
  Expected<Device *> deviceOf(uint32_t rank) const {
    if (rank >= devices.size())
      return invalidArgument(
          fmt::format("symmetric buffer '{}' has no rank {}; ranks are 0 to {}", name, rank, devices.size() - 1));
    if (!devices[rank])
      return invalidArgument(
          fmt::format("host access to symmetric buffer '{}' on rank {}, which is another process", name, rank));
    return devices[rank].get();
  }
};

Expected<SymmetricBuffer> SymmetricBuffer::allocate(std::vector<std::shared_ptr<Device>> devices,
                                                    const std::vector<void *> &heaps, DataType type, uint64_t count,
                                                    std::string_view name) {
  DITRON_RETURN_IF_ERROR(checkCount(type, count, name));
  auto storage = std::make_shared<Storage>();
  storage->devices = std::move(devices);
  storage->allocated.resize(storage->devices.size());
  storage->count = count;
  storage->type = type;
  storage->name = name;
  const Device *first = nullptr;
  for (size_t rank = 0; rank < storage->devices.size(); ++rank) {
    Device *device = storage->devices[rank].get();
    if (!device)
      continue;
    DITRON_ASSIGN_OR_RETURN(void *address,
                            device->allocate(count * sizeOf(type), name, sizeOf(type), MemoryKind::Symmetric));
    storage->allocated[rank] = address;
    const uint64_t offset =
        static_cast<uint64_t>(static_cast<std::byte *>(address) - static_cast<std::byte *>(device->symmetricBase()));
    if (first && offset != storage->offset)
      return internalError(fmt::format("symmetric buffer '{}' lies at offset {} on rank {} but at {} on rank {}", name,
                                       storage->offset, first->rank(), offset, device->rank()));
    first = device;
    storage->offset = offset;
  }
  for (void *heap : heaps)
    storage->addresses.push_back(static_cast<std::byte *>(heap) + storage->offset);
  SymmetricBuffer buffer;
  buffer.storage = std::move(storage);
  return buffer;
}

Expected<SymmetricBuffer> SymmetricBuffer::allocateIn(std::shared_ptr<AdoptedHeap> heap,
                                                      std::vector<std::shared_ptr<Device>> devices, DataType type,
                                                      uint64_t count, std::string_view name) {
  DITRON_RETURN_IF_ERROR(checkCount(type, count, name));
  DITRON_ASSIGN_OR_RETURN(const uint64_t offset, heap->allocate(count * sizeOf(type), name));
  auto storage = std::make_shared<Storage>();
  storage->devices = std::move(devices);
  for (void *part : heap->addresses())
    storage->addresses.push_back(static_cast<std::byte *>(part) + offset);
  storage->offset = offset;
  storage->count = count;
  storage->type = type;
  storage->name = name;
  storage->heap = std::move(heap);
  SymmetricBuffer buffer;
  buffer.storage = std::move(storage);
  return buffer;
}

SymmetricBuffer SymmetricBuffer::of(const std::vector<uint32_t> &members) const {
  auto part = std::make_shared<Storage>();
  for (uint32_t member : members) {
    part->devices.push_back(storage->devices[member]);
    part->addresses.push_back(storage->addresses[member]);
  }
  part->offset = storage->offset;
  part->count = storage->count;
  part->type = storage->type;
  part->name = storage->name;
  part->whole = storage;
  SymmetricBuffer result;
  result.storage = std::move(part);
  return result;
}

Pointer SymmetricBuffer::on(uint32_t rank) const { return {storage->addresses[rank], storage->type}; }
uint64_t SymmetricBuffer::offset() const { return storage->offset; }
DataType SymmetricBuffer::type() const { return storage->type; }
uint64_t SymmetricBuffer::count() const { return storage->count; }
const std::string &SymmetricBuffer::name() const { return storage->name; }
uint32_t SymmetricBuffer::numRanks() const { return static_cast<uint32_t>(storage->addresses.size()); }

Status SymmetricBuffer::upload(uint32_t rank, const void *source, uint64_t size, uint64_t byteOffset) const {
  DITRON_RETURN_IF_ERROR(checkRange(name(), bytes(), size, byteOffset));
  DITRON_ASSIGN_OR_RETURN(Device * device, storage->deviceOf(rank));
  return device->upload(static_cast<std::byte *>(on(rank).address) + byteOffset, source, size);
}

Status SymmetricBuffer::download(uint32_t rank, void *destination, uint64_t size, uint64_t byteOffset) const {
  DITRON_RETURN_IF_ERROR(checkRange(name(), bytes(), size, byteOffset));
  DITRON_ASSIGN_OR_RETURN(Device * device, storage->deviceOf(rank));
  return device->download(destination, static_cast<const std::byte *>(on(rank).address) + byteOffset, size);
}

Status SymmetricBuffer::uploadFloats(uint32_t rank, std::span<const float> values) const {
  DITRON_RETURN_IF_ERROR(checkFloatCount(name(), values.size(), count()));
  const std::vector<std::byte> data = fromFloats(type(), values.data(), values.size());
  return upload(rank, data.data(), data.size());
}

Expected<std::vector<float>> SymmetricBuffer::downloadFloats(uint32_t rank) const {
  std::vector<std::byte> data(bytes());
  DITRON_RETURN_IF_ERROR(download(rank, data.data(), data.size()));
  return toFloats(type(), data.data(), count());
}

} // namespace ditron::runtime
