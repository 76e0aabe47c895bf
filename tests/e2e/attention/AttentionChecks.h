//===- AttentionChecks.h - Attention, forward and backward, against a plain reference --------------------------*- C++ -*-===//
//
// One case of a problem, a plan and a target; attention_test.cpp names cases, attention_random_test.cpp draws them.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_ATTENTION_ATTENTIONCHECKS_H
#define DITRON_TESTS_E2E_ATTENTION_ATTENTIONCHECKS_H

#include "ditron/ops/attention/AttentionBackward.h"

#include <ostream>

namespace ditron::e2e {

/// What a case has besides the problem.
struct AttentionExtras {
  bool sinks = false, slopes = false;
  /// Rows of each batch, packed where the problem says so; `keys` else by keyLengths.
  std::vector<int64_t> queries = {}, keys = {};
};

struct AttentionCase {
  std::string name;
  const char *target; ///< Null: the one under test.
  ops::AttentionProblem problem;
  ops::AttentionPlan plan;
  AttentionExtras extras = {};
  double slack = 1; ///< Tolerances times this.
};
inline void PrintTo(const AttentionCase &p, std::ostream *stream) { *stream << p.name; }

struct BackwardCase {
  std::string name;
  const char *target; ///< Null: the one under test.
  ops::AttentionProblem problem;
  ops::AttentionBackwardPlan plan;
  AttentionExtras extras = {};
  double slack = 1; ///< Tolerances times this.
};
inline void PrintTo(const BackwardCase &p, std::ostream *stream) { *stream << p.name; }

/// Runs the case on random operands and expects result and log-sum-exp, or all gradients, within the type's tolerance. What the library says if it
/// refuses the case; nothing has been run then.
std::optional<std::string> checkForward(const AttentionCase &p);
std::optional<std::string> checkBackward(const BackwardCase &p);

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_ATTENTION_ATTENTIONCHECKS_H
