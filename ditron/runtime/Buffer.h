//===- Buffer.h - Memory on ranks -----------------------------------------------------------------------*- C++ -*-===//
//
// Owners of device memory. A Buffer is an array of one element type on one rank; a SymmetricBuffer is an array that
// lies at the same offset of every rank's symmetric heap, so that a kernel finds any rank's copy from its own (symm_at)
// and host code finds it with on(rank). A Pointer is an address with an element type: what launches, copies and signals
// take. All three are made by World and Rank.
//
// Owners free their memory when destroyed; work that is still queued on it is the caller's mistake (the simulator
// reports such a use after free), so synchronise first. They keep the device alive, so the order of destruction does
// not matter.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_BUFFER_H
#define DITRON_RUNTIME_BUFFER_H

#include "ditron/support/DataType.h"

#include <memory>
#include <span>

namespace ditron::runtime {

class AdoptedHeap;
class Device;

/// A typed device address.
struct Pointer {
  void *address = nullptr;
  DataType type = DataType::U8;

  /// The address `elements` further on.
  Pointer operator+(int64_t elements) const {
    return {static_cast<std::byte *>(address) + elements * static_cast<int64_t>(sizeOf(type)), type};
  }
  /// The same address, seen as another type.
  Pointer as(DataType other) const { return {address, other}; }
};

/// An array on one rank. Zero-filled when made.
class Buffer {
public:
  Buffer() = default;
  Buffer(Buffer &&other) noexcept;
  Buffer &operator=(Buffer &&other) noexcept;
  ~Buffer();

  /// Allocates; Rank::allocate is the usual way.
  static Expected<Buffer> allocate(std::shared_ptr<Device> device, DataType type, uint64_t count,
                                   std::string_view name);

  bool isValid() const { return pointerValue.address != nullptr; }
  void *address() const { return pointerValue.address; }
  Pointer pointer() const { return pointerValue; }
  operator Pointer() const { return pointerValue; }
  DataType type() const { return pointerValue.type; }
  uint64_t count() const { return elements; }
  uint64_t bytes() const { return elements * sizeOf(type()); }
  const std::string &name() const { return nameText; }
  uint32_t rank() const;

  /// Copies from or to host memory at once, past all streams: synchronise first when work may be queued on the memory.
  Status upload(const void *source, uint64_t bytes, uint64_t byteOffset = 0);
  Status download(void *destination, uint64_t bytes, uint64_t byteOffset = 0) const;
  /// The whole array as floats: rounded to the element type, nearest even, on upload.
  Status uploadFloats(std::span<const float> values);
  Expected<std::vector<float>> downloadFloats() const;

private:
  std::shared_ptr<Device> device;
  Pointer pointerValue;
  uint64_t elements = 0;
  std::string nameText;
};

/// An array on every rank, at the same offset of each symmetric heap. Zero-filled when made. Copies share the memory,
/// which is freed with the last of them.
class SymmetricBuffer {
public:
  SymmetricBuffer() = default;

  /// Allocates on all devices; World::allocateSymmetric is the usual way. `heaps` are the ranks' symmetric heaps as this
  /// process addresses them; ranks of other processes have no device here. Fails when the offsets come out different,
  /// that is, when the ranks' symmetric heaps have had different histories.
  static Expected<SymmetricBuffer> allocate(std::vector<std::shared_ptr<Device>> devices,
                                            const std::vector<void *> &heaps, DataType type, uint64_t count,
                                            std::string_view name);

  /// Cuts the array off an adopted heap; the devices are for access by the host. Nothing is cleared.
  static Expected<SymmetricBuffer> allocateIn(std::shared_ptr<AdoptedHeap> heap, std::vector<std::shared_ptr<Device>> devices,
                                              DataType type, uint64_t count, std::string_view name);

  /// The same memory as some of the ranks see it, numbered by their places in the list.
  SymmetricBuffer of(const std::vector<uint32_t> &members) const;

  bool isValid() const { return storage != nullptr; }
  /// The rank's copy, as any rank may address it.
  Pointer on(uint32_t rank) const;
  /// From the start of every symmetric heap.
  uint64_t offset() const;
  DataType type() const;
  uint64_t count() const;
  uint64_t bytes() const { return count() * sizeOf(type()); }
  const std::string &name() const;
  uint32_t numRanks() const;

  /// As Buffer's, on one rank's copy; the rank must be of this process.
  Status upload(uint32_t rank, const void *source, uint64_t bytes, uint64_t byteOffset = 0) const;
  Status download(uint32_t rank, void *destination, uint64_t bytes, uint64_t byteOffset = 0) const;
  Status uploadFloats(uint32_t rank, std::span<const float> values) const;
  Expected<std::vector<float>> downloadFloats(uint32_t rank) const;

private:
  struct Storage;
  std::shared_ptr<const Storage> storage;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_BUFFER_H
