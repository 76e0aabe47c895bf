//===- PublishedWaits.cpp - A rank's board of waits, where its GPU can write it -------------------------------------===//
#include "ditron/runtime/cuda/PublishedWaits.h"

namespace ditron::cuda {

Expected<std::unique_ptr<PublishedWaits>> PublishedWaits::create(std::shared_ptr<const CudaDriver> driver,
                                                                 const explain::BoardOwner &owner) {
  std::unique_ptr<PublishedWaits> waits(new PublishedWaits());
  waits->driver = std::move(driver);
  DITRON_ASSIGN_OR_RETURN(waits->boardValue, explain::WaitBoard::create(owner));
  explain::WaitBoard &board = *waits->boardValue;
  DITRON_RETURN_IF_ERROR(waits->driver->check(
      waits->driver->memHostRegister(board.slots(), board.slotsBytes(), hostAllocPortable | hostAllocDeviceMap),
      "cannot show the board of waits to the GPU"));
  waits->isRegistered = true;
  DITRON_RETURN_IF_ERROR(waits->driver->check(waits->driver->memHostGetDevicePointer(&waits->address, board.slots(), 0),
                                              "cannot address the board of waits"));
  return waits;
}

PublishedWaits::~PublishedWaits() {
  if (isRegistered)
    driver->memHostUnregister(boardValue->slots());
}

} // namespace ditron::cuda
