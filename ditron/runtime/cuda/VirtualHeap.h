//===- VirtualHeap.h - A heap of one GPU in reserved addresses -----------------------------------------------*- C++ -*-===//
//
// A range of addresses is reserved once and physical memory is mapped into it front to back as allocations need it, so that
// the heap's base never changes while it grows (cuMemAddressReserve, cuMemCreate, cuMemMap). Every piece is accessible to all
// GPUs given at creation: the other ranks of this process. Allocations are cut from it by an OffsetAllocator, since the
// driver maps no less than 2 MiB.
//
// Freeing gives a piece back to the list and touches no driver: unlike cuMemFree it never waits for running kernels.
//
// A heap that other processes map (PeerHeap, by the descriptor of exportDescriptor) is one physical piece, mapped in whole
// when it is made.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_VIRTUALHEAP_H
#define DITRON_RUNTIME_CUDA_VIRTUALHEAP_H

#include "ditron/runtime/OffsetAllocator.h"
#include "ditron/runtime/cuda/CudaDriver.h"

#include <vector>

namespace ditron::cuda {

class VirtualHeap {
public:
  struct Options {
    std::string name; ///< For errors: "symmetric heap of rank 3".
    DeviceOrdinal device = 0;
    std::vector<DeviceOrdinal> accessors; ///< All GPUs that may touch it, its own included.
    uint64_t capacityBytes = 0;           ///< Addresses reserved; rounded up.
    bool shareable = false;               ///< Mapped in whole at once, for export.
  };
  static Expected<std::unique_ptr<VirtualHeap>> create(std::shared_ptr<const CudaDriver> driver, Options options);
  /// Unmaps everything, unless abandoned.
  ~VirtualHeap();

  void *base() const { return reinterpret_cast<void *>(baseValue); }
  uint64_t capacity() const { return offsets.capacity(); }
  uint64_t mappedBytes() const { return mapped; }

  /// The heap grows by at least its size, from the first to the second of these: small buffers do not cost a mapping each, and a
  /// process that needs little takes little.
  static constexpr uint64_t leastGrowthBytes = uint64_t(8) << 20, mostGrowthBytes = uint64_t(64) << 20;
  /// Maps memory up to this offset, so that allocations before it need none.
  Status mapUpTo(uint64_t end);

  /// Whether allocate() will have to map memory for an array of this size.
  bool mustMapFor(uint64_t bytes);
  /// Memory with whatever was in it.
  Expected<void *> allocate(uint64_t bytes);
  Status free(void *address);
  bool contains(const void *address) const {
    const auto value = reinterpret_cast<DevicePointer>(address);
    return value >= baseValue && value < baseValue + offsets.capacity();
  }

  /// A file descriptor of the whole heap for another process, which the caller closes. Only of shareable heaps.
  Expected<int> exportDescriptor() const;
  /// Leaves everything to the end of the process: for GPUs that hang, where unmapping would wait for ever.
  void abandon() { abandoned = true; }

private:
  VirtualHeap(std::shared_ptr<const CudaDriver> driver, Options options, uint64_t capacity, uint64_t granularity);
  Status mapPiece(uint64_t bytes);

  struct Piece {
    AllocationHandle handle;
    uint64_t offset, bytes;
  };
  std::shared_ptr<const CudaDriver> driver;
  Options options;
  runtime::OffsetAllocator offsets;
  uint64_t granularity;
  DevicePointer baseValue = 0;
  uint64_t mapped = 0;
  std::vector<Piece> pieces;
  bool abandoned = false;
};

/// Another process's heap, mapped here for one GPU.
class PeerHeap {
public:
  /// Maps the heap behind `descriptor`, which stays the caller's. `name` is for errors: "symmetric heap of rank 3".
  static Expected<std::unique_ptr<PeerHeap>> map(std::shared_ptr<const CudaDriver> driver, DeviceOrdinal device,
                                                 int descriptor, uint64_t bytes, std::string_view name);
  ~PeerHeap();

  void *base() const { return reinterpret_cast<void *>(baseValue); }
  void abandon() { abandoned = true; }

private:
  explicit PeerHeap(std::shared_ptr<const CudaDriver> driver) : driver(std::move(driver)) {}

  std::shared_ptr<const CudaDriver> driver;
  AllocationHandle handle = 0;
  DevicePointer baseValue = 0;
  uint64_t bytes = 0;
  bool mapped = false, abandoned = false;
};

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_VIRTUALHEAP_H
