//===- RankThreads.cpp - Host code of every rank, each on its own thread ------------------------------------------===//
//
// A counting barrier under one lock: ranks meet a few times a run, not a million.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/RankThreads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thread>

namespace ditron::runtime {

namespace {

/// Whose host code this thread runs. Keyed by the run, since worlds may be nested.
struct Current {
  const RankThreads *threads = nullptr;
  uint32_t rank = 0;
};
thread_local Current current;

} // namespace

std::optional<uint32_t> RankThreads::currentRank() const {
  return current.threads == this ? std::optional(current.rank) : std::nullopt;
}

Status RankThreads::run(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &host) {
  {
    std::lock_guard lock(mutex);
    running = static_cast<uint32_t>(ranks.size());
    arrived = 0;
    returned.clear();
    leftAlone.clear();
  }
  std::vector<Status> results(ranks.size());
  std::vector<std::thread> threads;
  for (size_t index = 0; index < ranks.size(); ++index)
    threads.emplace_back([&, index] {
      current = {this, ranks[index]};
      results[index] = host(ranks[index]);
      current = {};
      std::lock_guard lock(mutex);
      returned.push_back(ranks[index]);
      wake.notify_all();
    });
  for (std::thread &thread : threads)
    thread.join();
  const Status *following = nullptr;
  for (size_t index = 0; index < ranks.size(); ++index) {
    if (results[index].isOk())
      continue;
    if (!leftAlone.contains(ranks[index]))
      return results[index];
    following = following ? following : &results[index];
  }
  return following ? *following : Status::ok();
}

Status RankThreads::barrier() {
  if (!currentRank())
    return invalidArgument("hostBarrier outside of World::runRanks");
  std::unique_lock lock(mutex);
  const uint64_t mine = generation;
  if (++arrived == running) {
    arrived = 0;
    ++generation;
    wake.notify_all();
    return Status::ok();
  }
  wake.wait(lock, [&] { return generation != mine || !returned.empty(); });
  if (generation != mine)
    return Status::ok();
  leftAlone.insert(current.rank);
  return Status(StatusCode::Deadlock,
                fmt::format("a host barrier cannot complete: rank {} waits, and the host code of rank {} has returned",
                            current.rank, fmt::join(returned, ", ")));
}

} // namespace ditron::runtime
