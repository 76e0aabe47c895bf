//===- ExploreRun.h - ditron run --explore, ditron replay -----------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_EXPLORERUN_H
#define DITRON_TOOLS_DITRON_EXPLORERUN_H

#include "run/Exploration.h"
#include "run/KernelRun.h"
#include "run/ReplayFile.h"

namespace ditron::tool {

/// The options of `ditron run` for explorations.
struct ExploreArguments {
  uint64_t schedules = 0; ///< 0: one run, as ever.
  std::string replayFile = "ditron-replay.json";
  bool resultsMayDiffer = false;
};
void addExploreOptions(CLI::App *command, ExploreArguments &arguments);

/// Refuses what belongs to one run, and targets that are not simulated.
Status checkExploration(const RunOptions &options, const std::string &target);
/// Says on stderr which schedule a failed run had.
void nameSchedule(uint64_t seed, const CommandContext &context);
/// Explores the runs that the options describe, from their seed on; says what was found, and writes a replay file of a failure.
void exploreKernels(const RunOptions &options, const ExploreArguments &arguments, CommandContext &context);
/// The same for any program: `addSources` adds the files behind it.
void exploreProgram(const ExplorationOptions &options, const ExploreArguments &arguments, const RunOnce &run,
                    bool isQuiet, const std::function<void(Replay &)> &addSources, CommandContext &context);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_EXPLORERUN_H
