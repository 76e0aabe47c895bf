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
  std::vector<HostCode> codes;
  for (uint32_t rank : ranks)
    codes.push_back({rank, "", [&host, rank] { return host(rank); }});
  return run(codes);
}

Status RankThreads::run(const std::vector<HostCode> &codes) {
  {
    std::lock_guard lock(mutex);
    running = static_cast<uint32_t>(codes.size());
    arrived = 0;
    returned.clear();
    leftAlone.clear();
    meetings.clear();
    stuck.clear();
  }
  std::vector<Status> results(codes.size());
  std::vector<std::thread> threads;
  for (size_t index = 0; index < codes.size(); ++index)
    threads.emplace_back([&, index] {
      current = {this, codes[index].rank};
      results[index] = codes[index].run();
      current = {};
      std::lock_guard lock(mutex);
      returned.push_back(codes[index].rank);
      wake.notify_all();
    });
  for (std::thread &thread : threads)
    thread.join();
  const Status *following = nullptr;
  for (size_t index = 0; index < codes.size(); ++index) {
    if (results[index].isOk())
      continue;
    if (!leftAlone.contains(codes[index].rank))
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

Status RankThreads::meet(std::string_view key, uint32_t participants, std::string_view what) {
  if (!currentRank())
    return invalidArgument("a meeting of host code outside of World::runHosts");
  std::unique_lock lock(mutex);
  Meeting &meeting = meetings.try_emplace(std::string(key)).first->second;
  const uint64_t mine = meeting.generation;
  if (++meeting.arrived >= participants) {
    meeting.arrived = 0;
    ++meeting.generation;
    meeting.waiting.clear();
    wake.notify_all();
    return Status::ok();
  }
  meeting.waiting += fmt::format("\n  rank {} waits for {}", current.rank, what);
  auto isStuck = [&] {
    uint32_t waiting = 0;
    for (const auto &[name, each] : meetings)
      waiting += each.arrived;
    return waiting + returned.size() >= running;
  };
  wake.notify_all();
  wake.wait(lock, [&] { return meeting.generation != mine || isStuck(); });
  if (meeting.generation != mine)
    return Status::ok();
  leftAlone.insert(current.rank);
  // What the first of them sees: the others return because of it.
  if (stuck.empty())
    stuck = describeStuck();
  return Status(StatusCode::Deadlock, "host code waits for others that will not come" + stuck);
}

std::string RankThreads::describeStuck() const {
  std::string text;
  for (const auto &[name, meeting] : meetings)
    text += meeting.waiting;
  if (!returned.empty())
    text += fmt::format("\n  the host code of rank {} has returned", fmt::join(returned, ", "));
  return text;
}

} // namespace ditron::runtime
