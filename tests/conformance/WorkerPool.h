//===- WorkerPool.h - Cases in processes of their own ---------------------------------------------------------*- C++ -*-===//
//
// Cases run in forked workers, one at a time each. A case that crashes or hangs costs its worker, which is replaced; no
// other case notices.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_CONFORMANCE_WORKERPOOL_H
#define DITRON_TESTS_CONFORMANCE_WORKERPOOL_H

#include "CaseRunner.h"

#include <functional>

namespace ditron::conformance {

struct PoolOptions {
  std::string target = "sim:sm_90a";
  unsigned workers = 2;
  double limitSeconds = 60; ///< Longest that a case may take.
};

/// Runs all cases; the results are in their order. `progress` hears of each when it is done.
std::vector<CaseResult> runCases(const std::vector<Case> &cases, const PoolOptions &options,
                                 const std::function<void(size_t index, const CaseResult &)> &progress);

} // namespace ditron::conformance
#endif // DITRON_TESTS_CONFORMANCE_WORKERPOOL_H
