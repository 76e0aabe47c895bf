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
#include <vector>

namespace ditron::sim {
class Machine;
}

namespace ditron::runtime {

class Node {
public:
  virtual ~Node() = default;

  /// The rank whose host code the caller is, inside runRanks.
  virtual std::optional<uint32_t> currentRank() const = 0;
  /// Holds the calling rank's host code until all ranks' are here.
  virtual Status hostBarrier() = 0;
  /// Runs `host` for each of the ranks of this process until all have returned.
  virtual Status runRanks(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &host) = 0;
  /// Waits for all work of the ranks of this process; `each` waits for one of them.
  virtual Status synchronize(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &each) = 0;
  /// Ok, or the error that ended the run.
  virtual Status status() const = 0;

  /// Ranks are processes, so that every collective is one call of each.
  virtual bool spansProcesses() const { return false; }
  /// Fails when the processes' requests for the same step differ.
  virtual Status agree(std::string_view step, const std::string &request) { return Status::ok(); }
  /// The address by which multimem accesses reach all ranks' heaps; null where there is no multicast memory. `heap` is the rank's.
  virtual void *multicastHeap(void *heap) const { return nullptr; }
  /// The simulated machine; null for real GPUs.
  virtual sim::Machine *machine() const { return nullptr; }
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_NODE_H
