//===- WorldText.h - Options of the simulated world as text --------------------------------------------------*- C++ -*-===//
//
// What --slow-rank says, for every subcommand that makes a world.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_WORLDTEXT_H
#define DITRON_TOOLS_DITRON_WORLDTEXT_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <map>
#include <vector>

namespace ditron::tool {

/// Warns, on rank 0 of a job of several processes, that each of them simulates the same world: `ditron launch -n 4 ditron run`.
/// Silent for real GPUs, and without a launcher.
void warnOfIdenticalWorlds(bool simulated, uint32_t numRanks);

/// Refuses --share-gpus and --bound-waits on a simulated target, where they would do nothing.
Status checkForRealGpus(bool simulated, bool shareGpus, bool boundWaits);

/// RANK:FACTOR each; a rank that does not exist, given twice, or a factor that is not positive is an error.
Expected<std::map<uint32_t, double>> parseSlowRanks(const std::vector<std::string> &texts, uint32_t numRanks);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_WORLDTEXT_H
