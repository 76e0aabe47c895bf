//===- PeerProcesses.h - Whether the other processes of a job are still there --------------------------------*- C++ -*-===//
//
// A kernel that waits for a rank whose process was killed would wait for ever, and so would who waits for the kernel. Each process
// gives the others a descriptor of itself (pidfd), which becomes readable when it ends, however that comes about, and in containers
// with numbers of their own too; and a second one that it makes readable when it leaves the world as it should.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_BOOTSTRAP_PEERPROCESSES_H
#define DITRON_RUNTIME_BOOTSTRAP_PEERPROCESSES_H

#include "ditron/runtime/bootstrap/Rendezvous.h"

namespace ditron::bootstrap {

class PeerProcesses {
public:
  /// Collective.
  static Expected<std::unique_ptr<PeerProcesses>> exchange(Rendezvous &rendezvous);
  /// This process leaves.
  ~PeerProcesses();

  /// The ranks whose processes have ended without leaving, ascending. Any thread may ask. Empty on kernels older than Linux 5.3.
  std::vector<uint32_t> lost() const;

private:
  PeerProcesses() = default;

  Descriptor ownFarewell;
  std::vector<Descriptor> processes, farewells; ///< By rank.
};

} // namespace ditron::bootstrap
#endif // DITRON_RUNTIME_BOOTSTRAP_PEERPROCESSES_H
