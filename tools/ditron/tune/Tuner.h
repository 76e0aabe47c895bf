//===- Tuner.h - From shapes to a table of plans ----------------------------------------------------------------*- C++ -*-===//
//
// For each shape the candidates are tried one after the other, on GPUs the best of them again in turns where the benchmark can do that, and the fastest
// becomes a row of the table. What was measured is in a
// journal beside the table, a line as soon as it is known, in the format of tables: the comment is the time or the failure. A run that
// was interrupted reads it and measures nothing twice but the turns. The table is replaced as a whole whenever a shape is done, so that it is valid
// at every moment; rows that it has for other shapes, operators or machines stay.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_TUNER_H
#define DITRON_TOOLS_DITRON_TUNER_H

#include "base/Progress.h"
#include "tune/Trial.h"

#include <functional>
#include <map>

namespace ditron::tool {

struct TuneOptions {
  std::vector<TuneProblem> problems; ///< Of one operator, one dtype and number of ranks; by size, ascending.
  std::string outFile;               ///< The table; the journal is this with ".journal".
  std::string gpu;                   ///< In rows: the device's name when empty.
  size_t mostCandidates = 40;
  std::vector<std::string> plans;             ///< To be tried besides, before all others.
  std::map<std::string, std::string> planted; ///< Plan -> kind of PlantedFault.h.
  bool startOver = false;                     ///< Forget the journal.
  TrialOptions trial;
};

/// What was found out of a plan.
struct TunedPlan {
  std::string plan;
  double predictedMicroseconds = 0;
  TrialResult result;
  bool isFromJournal = false;
};

struct TunedProblem {
  TuneProblem problem;
  std::vector<TunedPlan> plans;
  const TunedPlan *best = nullptr; ///< Null where no plan gave a right result.
  size_t inTurns = 0;              ///< Plans whose times are of turns.
};

/// At most four that are hardly slower than the best, which comes first; for TuneMachine's GPUs they are then timed in turns.
std::vector<TunedPlan *> closeToBest(TunedProblem &tuned);

/// Sizes that a row for this problem stands for: from what the next smaller problem's row leaves, at most down to a quarter.
std::vector<ops::PlanSize> bucketOf(const TuneProblem &problem, const std::vector<TuneProblem> &all);

/// Several runs may have the same file open.
class Journal {
public:
  /// While it lives, no other run changes the journal, nor the table beside it.
  class Lock {
  public:
    explicit Lock(int descriptor);
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
    ~Lock();

  private:
    int descriptor;
  };

  /// Reads what is there and opens the file for more; a last line that was not finished is removed. Lines of another version of the program
  /// are of other kernels: the journal then begins anew.
  static Expected<Journal> open(const std::string &path, const std::string &version, bool startOver);
  Journal(Journal &&other) noexcept;
  Journal &operator=(Journal &&) = delete;
  ~Journal();

  const TrialResult *find(const ops::PlanRow &row) const;
  /// The plans of the row's sizes, whatever its own plan is, with what they gave.
  std::vector<std::pair<std::string, TrialResult>> plansOf(const ops::PlanRow &row) const;
  /// On disk when it returns.
  Status add(const ops::PlanRow &row, const TrialResult &result);
  size_t size() const { return results.size(); }
  Lock lock() const { return Lock(descriptor); }

private:
  Journal() = default;
  std::map<std::string, TrialResult> results; ///< By the row's text.
  int descriptor = -1;
};

/// Tunes; `report` gets each shape as soon as it is done.
Status tune(const TuneOptions &options, const TuneMachine &machine, const std::string &version, Progress &progress,
            const std::function<void(const TunedProblem &)> &report);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_TUNER_H
