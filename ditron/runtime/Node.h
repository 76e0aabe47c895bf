//===- Node.h - The ranks of this process as a backend drives them ----------------------------------------*- C++ -*-===//
//
// What differs between worlds of simulated GPUs, of the GPUs of this process, and of one GPU in each of several processes: how host
// code of the ranks runs and meets, how allocations agree, and what ended a run. A World has one; another backend brings its own.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_NODE_H
#define DITRON_RUNTIME_NODE_H

#include "ditron/support/Status.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ditron::sim {
class Machine;
}

namespace ditron::runtime {

/// Host code of a rank of this process, which may have several.
struct HostCode {
  uint32_t rank = 0;
  std::string name; ///< Tells it from the rank's other host code in reports; empty where there is no other.
  std::function<Status()> run;
};

class Node {
public:
  virtual ~Node() = default;

  /// The rank whose host code the caller is, inside runRanks.
  virtual std::optional<uint32_t> currentRank() const = 0;
  /// Holds the calling rank's host code until all ranks' are here.
  virtual Status hostBarrier() = 0;
  /// Runs `host` for each of the ranks of this process until all have returned.
  virtual Status runRanks(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &host) = 0;
  /// The same for any number of host codes per rank; every one of them is a thread of the program.
  virtual Status runHosts(const std::vector<HostCode> &codes) { return unsupported("several host codes per rank"); }
  /// Holds the calling host code until so many have called this with the key; `what` is said of it in reports.
  virtual Status hostMeet(std::string_view key, uint32_t participants, std::string_view what) {
    return unsupported("meetings of host code");
  }
  /// The calling host code is at this place of its program; simulated host codes go on in the order of time.
  virtual void hostStep(const SourceLocation &place) {}
  /// Where memory is about to be mapped: holds the calling host code as long as a driver may do so, which is until the work enqueued
  /// so far on the rank, or on all ranks, is done. Real drivers do so by themselves.
  virtual Status hostWaitForWork(std::optional<uint32_t> rank, std::string_view what) { return Status::ok(); }
  /// An operation that is enqueued, not done, and was given an address in the allocation; empty when none is known.
  virtual std::string pendingUse(const void *address) const { return ""; }
  /// Waits for all work of the ranks of this process; `each` waits for one of them.
  virtual Status synchronize(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &each) = 0;
  /// Ok, or the error that ended the run.
  virtual Status status() const = 0;

  /// Ranks are processes, so that every collective is one call of each.
  virtual bool spansProcesses() const { return false; }
  /// Where ranks are processes: every one gives a text and gets those of all, by rank. Waits for the others, within a time limit.
  virtual Expected<std::vector<std::string>> allGather(std::string_view step, const std::string &own) {
    return unsupported("texts of processes");
  }
  /// Fails when the processes' requests for the same step differ.
  virtual Status agree(std::string_view step, const std::string &request) { return Status::ok(); }
  /// The address by which multimem accesses reach all ranks' heaps; null where there is no multicast memory. `heap` is the rank's.
  virtual void *multicastHeap(void *heap) const { return nullptr; }
  /// What kernels of real GPUs have noted, as Chrome trace JSON.
  virtual Expected<std::string> chromeTrace() { return unsupported("a timeline of these GPUs is not recorded"); }
  /// The simulated machine; null for real GPUs.
  virtual sim::Machine *machine() const { return nullptr; }
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_NODE_H
