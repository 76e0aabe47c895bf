//===- InterleavedTiming.cpp - Several ways to do one thing, timed in turns -----------------------------------------------===//
#include "bench/InterleavedTiming.h"

#include <algorithm>
#include <cmath>

namespace ditron::tool {

namespace {

/// Microseconds of a call, over `calls` of them.
Expected<double> timeCalls(runtime::Rank &rank, const Contender &contender, uint64_t calls, const runtime::Event &begin,
                           const runtime::Event &end) {
  runtime::Stream &stream = rank.stream();
  DITRON_RETURN_IF_ERROR(stream.record(begin));
  for (uint64_t call = 0; call < calls; ++call)
    DITRON_RETURN_IF_ERROR(contender.enqueue(call));
  DITRON_RETURN_IF_ERROR(stream.record(end));
  DITRON_RETURN_IF_ERROR(rank.world().synchronize());
  DITRON_ASSIGN_OR_RETURN(const int64_t picoseconds, end.elapsedSince(begin));
  return static_cast<double>(picoseconds) * 1e-6 / static_cast<double>(calls);
}

} // namespace

double ContenderTimes::median() const {
  std::vector<double> sorted = microseconds;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

Expected<std::vector<ContenderTimes>> timeInterleaved(runtime::Rank &rank, std::span<const Contender> contenders,
                                                      const TimingOptions &options) {
  DITRON_ASSIGN_OR_RETURN(runtime::Event begin, rank.createEvent("bench begin"));
  DITRON_ASSIGN_OR_RETURN(runtime::Event end, rank.createEvent("bench end"));
  const bool simulated = rank.world().machine() != nullptr;
  std::vector<ContenderTimes> times;
  std::vector<uint64_t> calls;
  for (const Contender &contender : contenders) {
    times.push_back({contender.name, {}});
    uint64_t count = 1;
    if (!simulated) {
      // The first calls load the code and fill the caches of addresses; only then is a call's time worth looking at.
      DITRON_RETURN_IF_ERROR(timeCalls(rank, contender, 2, begin, end).status());
      DITRON_ASSIGN_OR_RETURN(const double once, timeCalls(rank, contender, 3, begin, end));
      count = static_cast<uint64_t>(
          std::clamp(std::round(options.millisecondsPerRound * 1000 / std::max(once, 1.0)), 3.0, 2000.0));
    }
    calls.push_back(count);
  }
  const uint32_t rounds = simulated ? 1 : options.rounds;
  for (uint32_t round = 0; round < rounds; ++round)
    for (size_t turn = 0; turn < contenders.size(); ++turn) {
      const size_t i = (turn + round) % contenders.size();
      DITRON_ASSIGN_OR_RETURN(const double microseconds, timeCalls(rank, contenders[i], calls[i], begin, end));
      times[i].microseconds.push_back(microseconds);
    }
  return times;
}

} // namespace ditron::tool
