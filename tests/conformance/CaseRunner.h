//===- CaseRunner.h - Runs one case -----------------------------------------------------------------------------*- C++ -*-===//
//
// Compiles a case's kernel, launches it on the ranks it asks for and compares what it expects: results, printed lines, or an
// error with its place. It runs in the caller's process; WorkerPool.h keeps cases apart from each other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_CONFORMANCE_CASERUNNER_H
#define DITRON_TESTS_CONFORMANCE_CASERUNNER_H

#include "CaseFile.h"

#include "ditron/jit/Jit.h"
#include "ditron/runtime/World.h"

namespace ditron::conformance {

enum class Outcome {
  Passed,
  Failed,
  Refused, ///< The compiler says that it does not support what the case expects to work.
  Skipped, ///< The target cannot run it: too few GPUs, or the case is for another kind of target.
};

struct CaseResult {
  Outcome outcome = Outcome::Failed;
  std::string text;  ///< Why it did not pass; empty otherwise.
  double maxUlp = 0; ///< Of float outputs that are compared within a tolerance.
  double maxError = 0;
  double seconds = 0;
};

class CaseRunner {
public:
  /// For one target, for example "sim:sm_90a" or "cuda".
  explicit CaseRunner(std::string target) : target(std::move(target)) {}
  ~CaseRunner();

  CaseResult run(const Case &one);

private:
  struct Array;
  struct Launch;
  Expected<CaseResult> tryRun(const Case &one);
  Status makeArguments(const Case &one, Launch &launch);
  CaseResult judgeError(const Case &one, const Status &status, bool whileCompiling) const;
  Status compareOutputs(const Case &one, Launch &launch, CaseResult &result);

  std::string target;
  std::unique_ptr<jit::Jit> jit; ///< Made with the first case.
  /// On GPUs, where making one takes most of a second: the world of the last case.
  std::shared_ptr<runtime::World> keptWorld;
};

} // namespace ditron::conformance
#endif // DITRON_TESTS_CONFORMANCE_CASERUNNER_H
