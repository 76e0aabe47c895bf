//===- PublishedWaits.h - A rank's board of waits, where its GPU can write it ------------------------------*- C++ -*-===//
//
// Kernels compiled with DITRON_PUBLISH_WAITS write what they wait for into the board's slots (abi/WaitBoard.h); other processes read it
// (`ditron explain --pid`).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_PUBLISHEDWAITS_H
#define DITRON_RUNTIME_CUDA_PUBLISHEDWAITS_H

#include "ditron/explain/board/WaitBoard.h"
#include "ditron/runtime/cuda/CudaDriver.h"

namespace ditron::cuda {

class PublishedWaits {
public:
  /// The owner's context is current.
  static Expected<std::unique_ptr<PublishedWaits>> create(std::shared_ptr<const CudaDriver> driver,
                                                          const explain::BoardOwner &owner);
  ~PublishedWaits();

  explain::WaitBoard &board() { return *boardValue; }
  /// Where the GPU finds the slots.
  uint64_t slotsAddress() const { return address; }
  uint64_t slotMask() const { return DITRON_BOARD_SLOTS - 1; }
  /// Kernels may hang on the GPU and go on writing.
  void abandon() {
    boardValue->abandon();
    isRegistered = false;
  }

private:
  PublishedWaits() = default;

  std::shared_ptr<const CudaDriver> driver;
  std::unique_ptr<explain::WaitBoard> boardValue;
  DevicePointer address = 0;
  bool isRegistered = false;
};

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_PUBLISHEDWAITS_H
