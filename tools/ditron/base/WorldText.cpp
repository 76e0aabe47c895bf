//===- WorldText.cpp - Options of the simulated world as text ---------------------------------------------------------===//
#include "base/WorldText.h"

#include "ditron/runtime/bootstrap/RankEnvironment.h"
#include "ditron/support/Plural.h"

#include <cstdio>
#include <fmt/format.h>

namespace ditron::tool {

void warnOfIdenticalWorlds(bool simulated, uint32_t numRanks) {
  const Expected<bootstrap::RankEnvironment> place = bootstrap::RankEnvironment::fromProcess();
  if (!simulated || !place.isOk() || place->worldSize < 2 || place->rank != 0)
    return;
  fmt::print(stderr,
             "warning: each of the {} processes of this job simulates the same world of {}; one process has all "
             "simulated ranks: "
             "leave the launcher out\n",
             place->worldSize, plural(numRanks, "rank"));
}

Status checkForRealGpus(bool simulated, bool shareGpus, bool boundWaits) {
  if (!simulated || (!shareGpus && !boundWaits))
    return Status::ok();
  return invalidArgument(shareGpus ? "--share-gpus is for real GPUs: on the simulator every rank has its own"
                                   : "--bound-waits is for real GPUs: the simulator finds a deadlock by itself, and --time-limit ends "
                                     "a loop that does not");
}

Expected<std::map<uint32_t, double>> parseSlowRanks(const std::vector<std::string> &texts, uint32_t numRanks) {
  std::map<uint32_t, double> slowRanks;
  for (const std::string &text : texts) {
    uint32_t rank = 0;
    double factor = 0;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%u:%lf%c", &rank, &factor, &rest) != 2 || text[0] == '-')
      return invalidArgument(fmt::format("--slow-rank '{}': write RANK:FACTOR, as in 1:4", text));
    if (rank >= numRanks)
      return invalidArgument(
          numRanks == 1 ? fmt::format("--slow-rank '{}': there is 1 rank, 0", text)
                        : fmt::format("--slow-rank '{}': there are {} ranks, 0 to {}", text, numRanks, numRanks - 1));
    if (!(factor > 0) || factor > 1e6)
      return invalidArgument(fmt::format("--slow-rank '{}': the factor must be positive and at most 1000000", text));
    if (!slowRanks.emplace(rank, factor).second)
      return invalidArgument(fmt::format("--slow-rank '{}': rank {} is given twice", text, rank));
  }
  return slowRanks;
}

} // namespace ditron::tool
