//===- PeerProcesses.cpp - Whether the other processes of a job are still there ---------------------------------------===//
#include "ditron/runtime/bootstrap/PeerProcesses.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ditron::bootstrap {

namespace {

bool isReadable(const Descriptor &descriptor) {
  pollfd asked = {descriptor.get(), POLLIN, 0};
  return poll(&asked, 1, 0) > 0 && (asked.revents & POLLIN);
}

Expected<Descriptor> makeEvent() {
  Descriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.isOpen())
    return Status(StatusCode::ResourceExhausted, fmt::format("cannot make an event: {}", std::strerror(errno)));
  return event;
}

} // namespace

Expected<std::unique_ptr<PeerProcesses>> PeerProcesses::exchange(Rendezvous &rendezvous) {
  std::unique_ptr<PeerProcesses> peers(new PeerProcesses());
  DITRON_ASSIGN_OR_RETURN(peers->ownFarewell, makeEvent());
  Descriptor self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (!self.isOpen()) { // never readable
    DITRON_ASSIGN_OR_RETURN(self, makeEvent());
  }
  DITRON_ASSIGN_OR_RETURN(peers->processes, rendezvous.allGatherDescriptors("processes of the ranks", self.get()));
  DITRON_ASSIGN_OR_RETURN(peers->farewells,
                          rendezvous.allGatherDescriptors("farewells of the ranks", peers->ownFarewell.get()));
  return peers;
}

PeerProcesses::~PeerProcesses() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(ownFarewell.get(), &one, sizeof(one));
}

std::vector<uint32_t> PeerProcesses::lost() const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < processes.size(); ++rank)
    if (isReadable(processes[rank]) && !isReadable(farewells[rank]))
      ranks.push_back(rank);
  return ranks;
}

} // namespace ditron::bootstrap
