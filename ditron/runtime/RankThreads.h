//===- RankThreads.h - Host code of every rank, each on its own thread ---------------------------------------*- C++ -*-===//
//
// What World::runRanks is made of on real GPUs (the simulator interleaves ranks itself): a thread for each rank of this
// process, a barrier between them, and a way to know which rank the calling thread is. A rank that returns early releases
// the others from their barriers with an error instead of leaving them there.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_RANKTHREADS_H
#define DITRON_RUNTIME_RANKTHREADS_H

#include "ditron/support/Status.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace ditron::runtime {

class RankThreads {
public:
  /// Runs `host` for each of the ranks until all have returned; the error of the lowest rank that has one of its own.
  Status run(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &host);
  /// The rank whose host code the calling thread runs.
  std::optional<uint32_t> currentRank() const;
  /// Waits for all ranks of this run.
  Status barrier();

private:
  std::mutex mutex;
  std::condition_variable wake;
  uint32_t running = 0, arrived = 0; ///< Ranks in this run; of them, those at the barrier.
  uint64_t generation = 0;
  std::vector<uint32_t> returned; ///< Ranks whose host code is over.
  std::set<uint32_t> leftAlone;   ///< Ranks that a barrier has failed: what they return only follows from another's error.
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_RANKTHREADS_H
