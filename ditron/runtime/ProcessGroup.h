//===- ProcessGroup.h - The ranks of a world that are other processes ----------------------------------------*- C++ -*-===//
//
// What a process of a job holds of the others: the meeting point, and their symmetric heaps, mapped here. The heaps travel as
// file descriptors over a Unix socket, which needs no privilege in any container.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_PROCESSGROUP_H
#define DITRON_RUNTIME_PROCESSGROUP_H

#include "ditron/runtime/bootstrap/PeerProcesses.h"
#include "ditron/runtime/bootstrap/Rendezvous.h"
#include "ditron/runtime/cuda/VirtualHeap.h"

#include <vector>

namespace ditron::runtime {

class ProcessGroup {
public:
  explicit ProcessGroup(std::unique_ptr<bootstrap::Rendezvous> rendezvous) : meeting(std::move(rendezvous)) {}

  bootstrap::Rendezvous &rendezvous() { return *meeting; }

  /// Ranks that have died are found from now on. Collective.
  Status watchProcesses();
  /// The ranks of processes that have ended without leaving the world.
  std::vector<uint32_t> lostRanks() const { return processes->lost(); }
  /// Gives this process's heap to all others and maps theirs. Returns the heaps' addresses in this process, by rank.
  Expected<std::vector<void *>> exchangeHeaps(const std::shared_ptr<const cuda::CudaDriver> &driver,
                                              cuda::DeviceOrdinal device, const cuda::VirtualHeap &own);
  /// Leaves the mappings to the end of the process: for GPUs that hang.
  void abandon();

private:
  std::unique_ptr<bootstrap::Rendezvous> meeting;
  std::unique_ptr<bootstrap::PeerProcesses> processes;
  std::vector<std::unique_ptr<cuda::PeerHeap>> peers;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_PROCESSGROUP_H
