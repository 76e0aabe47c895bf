//===- VisibleGpus.h - Which GPUs the driver is to see ----------------------------------------------------*- C++ -*-===//
//
// The driver initialises every GPU that a process may see, for a fraction of a second each, whether or not a rank is on it. A
// subcommand knows how many it wants before it opens the driver.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_VISIBLEGPUS_H
#define DITRON_TOOLS_DITRON_VISIBLEGPUS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ditron::tool {

/// What CUDA_VISIBLE_DEVICES has to be for the first `count` of the GPUs that `present` lets the driver see; without it, of all. One
/// that the machine does not have ends the driver's list: what is said of too few GPUs stays right.
std::string firstGpus(std::optional<std::string_view> present, uint32_t count);

/// Lets this process see the GPUs of `numRanks` ranks and no more, if `target` is a real one. Does nothing in a job of several
/// processes, each of which looks at all GPUs to find its own. Before anything opens the driver.
void seeOnlyGpusOf(std::string_view target, uint32_t numRanks);

/// For work on one stream of one rank: lets the driver keep its 8 hardware queues. The 32 that the runtime asks for, so that streams do
/// not wait for each other, make a context half a second later (H100: a process takes 0.48 s instead of 1.05). What the user says
/// holds. Before anything opens the driver.
void takeFewQueues();

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_VISIBLEGPUS_H
