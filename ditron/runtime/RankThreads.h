//===- RankThreads.h - Host code of every rank, each on its own thread ---------------------------------------*- C++ -*-===//
//
// What World::runRanks is made of on real GPUs (the simulator interleaves ranks itself): a thread for each rank of this
// process, a barrier between them, and a way to know which rank the calling thread is. A rank that returns early releases
// the others from their barriers with an error instead of leaving them there.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_RANKTHREADS_H
#define DITRON_RUNTIME_RANKTHREADS_H

#include "ditron/runtime/Node.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace ditron::runtime {

class RankThreads {
public:
  /// Runs `host` for each of the ranks until all have returned; the error of the lowest rank that has one of its own.
  Status run(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &host);
  /// The same for any number of threads per rank.
  Status run(const std::vector<HostCode> &codes);
  /// The rank whose host code the calling thread runs.
  std::optional<uint32_t> currentRank() const;
  /// Waits for all ranks of this run.
  Status barrier();
  /// Waits until so many threads of this run have called this with the key. An error when all others have returned or wait too.
  Status meet(std::string_view key, uint32_t participants, std::string_view what);

private:
  std::mutex mutex;
  std::condition_variable wake;
  struct Meeting {
    uint32_t arrived = 0;
    uint64_t generation = 0;
    std::string waiting; ///< A line for each that waits.
  };
  /// Nobody is left who could complete a meeting: says who waits for what.
  std::string describeStuck() const;

  uint32_t running = 0, arrived = 0; ///< Threads of this run; of them, those at the barrier.
  uint64_t generation = 0;
  std::vector<uint32_t> returned; ///< Ranks of the threads that are over.
  std::set<uint32_t> leftAlone;   ///< Ranks that a barrier has failed: what they return only follows from another's error.
  std::map<std::string, Meeting, std::less<>> meetings;
  std::string stuck; ///< What was said when a meeting could not be completed.
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_RANKTHREADS_H
