//===- ProcessGroup.cpp - The ranks of a world that are other processes -------------------------------------------===//
//
// The exchange of heaps.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/ProcessGroup.h"

#include <fmt/format.h>

namespace ditron::runtime {

Status ProcessGroup::watchProcesses() {
  DITRON_ASSIGN_OR_RETURN(processes, bootstrap::PeerProcesses::exchange(*meeting));
  return Status::ok();
}

Expected<std::vector<void *>> ProcessGroup::exchangeHeaps(const std::shared_ptr<const cuda::CudaDriver> &driver,
                                                          cuda::DeviceOrdinal device, const cuda::VirtualHeap &own) {
  DITRON_RETURN_IF_ERROR(meeting->agree("size of the symmetric heap", fmt::format("{} bytes", own.capacity())));
  DITRON_ASSIGN_OR_RETURN(const int exported, own.exportDescriptor());
  const bootstrap::Descriptor descriptor(exported);
  DITRON_ASSIGN_OR_RETURN(std::vector<bootstrap::Descriptor> descriptors,
                          meeting->allGatherDescriptors("exchange of the symmetric heaps", descriptor.get()));
  std::vector<void *> bases;
  for (uint32_t rank = 0; rank < meeting->numRanks(); ++rank) {
    if (rank == meeting->rank()) {
      bases.push_back(own.base());
      continue;
    }
    DITRON_ASSIGN_OR_RETURN(std::unique_ptr<cuda::PeerHeap> peer,
                            cuda::PeerHeap::map(driver, device, descriptors[rank].get(), own.capacity(),
                                                fmt::format("symmetric heap of rank {}", rank)));
    bases.push_back(peer->base());
    peers.push_back(std::move(peer));
  }
  // Nobody writes into a peer before the peer is ready.
  DITRON_RETURN_IF_ERROR(meeting->barrier("mapping of the symmetric heaps"));
  return bases;
}

void ProcessGroup::abandon() {
  for (const std::unique_ptr<cuda::PeerHeap> &peer : peers)
    peer->abandon();
}

} // namespace ditron::runtime
