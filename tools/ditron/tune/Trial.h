//===- Trial.h - One measurement, in a process of its own -------------------------------------------------------*- C++ -*-===//
//
// A trial is `ditron bench` of one plan, checked and timed, in a child process that has all ranks: so they all make the same calls in
// the same order, a failure of one is a failure of the trial, nothing is left of an earlier trial, neither in signals nor in memory, and a
// kernel that hangs, which no GPU can be freed of, ends with the process when its time is over.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_TRIAL_H
#define DITRON_TOOLS_DITRON_TRIAL_H

#include "tune/TuneSpace.h"

#include <map>
#include <optional>

namespace ditron::tool {

struct TrialOptions {
  std::string program; ///< This one's path.
  std::string target;
  double limitSeconds = 60; ///< For all of a trial, compilation included.
  std::string plant;        ///< Kind of PlantedFault.h; empty: none.
};

/// Microseconds of a call, or why there are none, in one line.
struct TrialResult {
  std::optional<double> microseconds;
  std::string failure;
};

TrialResult runTrial(const TuneProblem &problem, const std::string &plan, const TrialOptions &options);
/// Plans that have been tried, in turns for some seconds in one process (TuneProblem::comparesPlans): a GPU that is hot, as it is in use, is slower, and
/// by other factors for other plans, than one that has cooled while a plan was compiled. Microseconds by plan, of those that were timed.
std::map<std::string, double> runTurns(const TuneProblem &problem, const std::vector<std::string> &plans,
                                       const TrialOptions &options);
/// What is run.
std::vector<std::string> trialWords(const TuneProblem &problem, const std::vector<std::string> &plans,
                                    const TrialOptions &options);
/// The times of plans in the report of a benchmark that compares them.
std::map<std::string, double> timesOfPlans(const std::string &report);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_TRIAL_H
