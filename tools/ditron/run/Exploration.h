//===- Exploration.h - One program under many schedules -------------------------------------------------*- C++ -*-===//
//
// `ditron run --explore N`: runs a program under the schedules of N seeds in this process, groups what went wrong, makes the first
// schedule that showed it simpler as long as the same goes wrong, and writes what repeats it (ReplayFile.h). Results that differ between
// schedules are wrong too, unless they may.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_EXPLORATION_H
#define DITRON_TOOLS_DITRON_EXPLORATION_H

#include "ditron/runtime/World.h"
#include "ditron/sim/explore/Schedule.h"
#include "ditron/support/Npy.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ditron::tool {

/// How one run of the program ended.
struct RunOutcome {
  Status status;
  bool kernelFailed = false; ///< The error is one of the program while it ran.
  bool mismatched = false;   ///< A result is not as expected.
  bool isDifferent = false;  ///< That of another schedule was expected.
  struct Result {
    std::string name; ///< "c_ptr on rank 1"
    NpyArray array;
  };
  std::vector<Result> results; ///< To be compared with those of other schedules.
  std::string oldValues;       ///< What to add when they differ: oldValuesNote.

  bool isFailureOfProgram() const { return kernelFailed || mismatched; }
};

/// What to add to the report of a wrong result: the loads that were given older values in this run. Empty: none.
std::string oldValuesNote(const runtime::World &world);

/// Runs the program once, with nothing on the terminal.
using RunOnce = std::function<RunOutcome(const sim::Schedule &)>;

struct ExplorationOptions {
  uint64_t schedules = 1;
  uint64_t firstSeed = 0;
  uint32_t ranks = 1, smsPerRank = 8;
  bool resultsMayDiffer = false;
  std::vector<sim::Schedule> given;        ///< Instead of those of seeds.
  std::string howToName = "--result NAME"; ///< How the user says which arrays are results.
};

/// What was found.
struct ExplorationResult {
  uint64_t schedules = 0, failed = 0;
  bool interrupted = false;
  /// Of the schedule that an interruption has ended.
  struct Unfinished {
    uint64_t seed = 0;
    Status status;
  };
  std::optional<Unfinished> unfinished;
  /// Equal failures, the first seed that showed each.
  struct Failure {
    std::string what; ///< Its first line.
    uint64_t count = 0, firstSeed = 0;
  };
  std::vector<Failure> failures;
  sim::Schedule schedule; ///< The simplest that was found for the first failure.
  RunOutcome outcome;     ///< Of it.
  /// What its results were compared with, if it failed because they differ.
  std::optional<sim::Schedule> reference;

  /// A few lines: how many schedules, which failures how often, and what the first one needs.
  std::string summary() const;
};

/// An error is one of the program before it runs: of no schedule.
Expected<ExplorationResult> explore(const ExplorationOptions &options, const RunOnce &run,
                                    const std::function<void(double)> &reached);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_EXPLORATION_H
