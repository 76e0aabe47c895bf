//===- Rendezvous.h - Where the processes of a job on one machine meet ---------------------------------------*- C++ -*-===//
//
// A star of Unix sockets with rank 0 in the middle. Processes exchange small texts and file descriptors (SCM_RIGHTS), and
// wait for each other. Every step has a name and a time limit; when it passes, all ranks that are there are told which are
// not.
//
// How they find each other: rank 0 makes a socket of random name in a directory that only this user can enter, and then
// publishes its path and a random cookie in a file (mode 0600) named after the job, written under another name and renamed.
// The others look for the file until it leads to a socket that accepts the cookie: a file that an earlier job left behind
// leads nowhere and is waited out. The socket admits processes of this user only, and is gone when all have joined.
//
// No network interface is opened.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_BOOTSTRAP_RENDEZVOUS_H
#define DITRON_RUNTIME_BOOTSTRAP_RENDEZVOUS_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ditron::bootstrap {

/// A file descriptor that is closed with its owner.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int value) : value(value) {}
  Descriptor(Descriptor &&other) noexcept : value(std::exchange(other.value, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  ~Descriptor();

  int get() const { return value; }
  bool isOpen() const { return value >= 0; }
  int release() { return std::exchange(value, -1); }

private:
  int value = -1;
};

struct RendezvousOptions {
  uint32_t rank = 0;
  uint32_t numRanks = 1;
  std::string job;       ///< The same in all processes of the job, and in no other job that runs at the same time.
  std::string directory; ///< Where to meet; empty for a directory of this user's (privateDirectory).
  double timeLimitSeconds = 60;
};

class Rendezvous {
public:
  /// Returns when all ranks have joined.
  static Expected<std::unique_ptr<Rendezvous>> join(const RendezvousOptions &options);
  ~Rendezvous();

  uint32_t rank() const { return options.rank; }
  uint32_t numRanks() const { return options.numRanks; }

  /// Every rank gives a text and gets those of all, by rank. `step` names it in errors and must be the same everywhere.
  Expected<std::vector<std::string>> allGather(std::string_view step, std::string_view own);
  /// Every rank gives a descriptor, which stays its own, and gets copies of all, by rank.
  Expected<std::vector<Descriptor>> allGatherDescriptors(std::string_view step, int own);
  Status barrier(std::string_view step);
  /// Ok when all ranks give the same text; else an error that shows who gave what.
  Status agree(std::string_view step, std::string_view own);

private:
  struct Message;
  explicit Rendezvous(RendezvousOptions options);
  Status listenAndAccept();
  Status findAndConnect();
  Status connectTo(const std::string &socketPath, const std::string &cookie);
  Expected<Message> receive(int socket, uint32_t from, double deadline, std::string_view step) const;
  Status send(int socket, uint32_t to, const Message &message) const;
  /// Of rank 0: one message from every other rank, in any order.
  Expected<std::vector<Message>> collect(std::string_view step);
  /// By the others; an error is what rank 0 has said last, if it is gone.
  Status tellRankZero(const Message &message) const;
  Status broadcastError(const Status &status);
  std::string pointerFile() const;

  RendezvousOptions options;
  std::vector<Descriptor> sockets; ///< Of rank 0: by rank. Of the others: one, to rank 0.
  uint32_t sequence = 0;
};

/// A directory for the sockets of this user: $XDG_RUNTIME_DIR or one in /tmp, made if needed with mode 0700. One that
/// belongs to somebody else or that others may enter is refused.
Expected<std::string> privateDirectory();

/// Hexadecimal digits from the system's source of random numbers.
std::string randomName(unsigned bytes);

} // namespace ditron::bootstrap
#endif // DITRON_RUNTIME_BOOTSTRAP_RENDEZVOUS_H
