//===- Report.h - Passed, failed and refused by area ------------------------------------------------------------*- C++ -*-===//
//
// The results as text for a terminal and as the page docs/conformance.md.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_CONFORMANCE_REPORT_H
#define DITRON_TESTS_CONFORMANCE_REPORT_H

#include "CaseRunner.h"

namespace ditron::conformance {

/// The page, in Markdown. `command` is what made it.
std::string reportPage(const std::vector<Case> &cases, const std::vector<CaseResult> &results,
                       const std::string &target, const std::string &command);
/// One line: how many of each outcome, and the time.
std::string summaryLine(const std::vector<CaseResult> &results, double seconds);

} // namespace ditron::conformance
#endif // DITRON_TESTS_CONFORMANCE_REPORT_H
