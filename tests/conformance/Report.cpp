//===- Report.cpp - Passed, failed and refused by area ------------------------------------------------------------------===//
//
// Nothing in the page depends on the machine or the time, so that it changes only when results do.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "Report.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace ditron::conformance {
namespace {

struct AreaSum {
  size_t count[4] = {}; ///< By Outcome.
  double maxUlp = 0, maxError = 0;

  size_t of(Outcome outcome) const { return count[static_cast<size_t>(outcome)]; }
  size_t all() const { return count[0] + count[1] + count[2] + count[3]; }
  void add(const CaseResult &result) {
    ++count[static_cast<size_t>(result.outcome)];
    maxUlp = std::max(maxUlp, result.maxUlp);
    maxError = std::max(maxError, result.maxError);
  }
};

std::string row(const std::string &name, const AreaSum &sum) {
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", name, sum.all(), sum.of(Outcome::Passed),
                     sum.of(Outcome::Failed), sum.of(Outcome::Refused), sum.of(Outcome::Skipped),
                     sum.maxUlp > 0 ? fmt::format("{:.3g} ulp, {:.2g}", sum.maxUlp, sum.maxError) : "");
}

/// A message that fits into a cell.
std::string cell(std::string text) {
  if (text.size() > 160)
    text = text.substr(0, 160) + " ...";
  std::string safe;
  for (char c : text)
    safe += c == '|' ? std::string("\\|") : std::string(1, c);
  return safe;
}

} // namespace

std::string reportPage(const std::vector<Case> &cases, const std::vector<CaseResult> &results,
                       const std::string &target, const std::string &command) {
  std::map<std::string, AreaSum> areas;
  AreaSum total;
  for (size_t i = 0; i < cases.size(); ++i) {
    areas[cases[i].area()].add(results[i]);
    total.add(results[i]);
  }
  std::string text = fmt::format(
      "# Conformance\n\nWhat the conformance suite (`tests/conformance/`, its README says how cases are made) gives on "
      "`{}`.\n"
      "Made by `{}`; do not edit.\n*Refused* are cases that the compiler says it does not support. The largest "
      "differences\n"
      "are those of outputs compared within a tolerance, in units of the last place of the output's type and "
      "absolute.\n\n"
      "| area | cases | passed | failed | refused | skipped | largest differences |\n|---|---|---|---|---|---|---|\n",
      target, command);
  for (const auto &[name, sum] : areas)
    text += row(name, sum);
  text += row("**all**", total);
  for (const auto &[outcome, title] : {std::pair(Outcome::Failed, "Failed"), std::pair(Outcome::Refused, "Refused")}) {
    if (total.of(outcome) == 0)
      continue;
    text += fmt::format("\n## {}\n\n| case | |\n|---|---|\n", title);
    for (size_t i = 0; i < cases.size(); ++i)
      if (results[i].outcome == outcome)
        text += fmt::format("| `{}` | {} |\n", cases[i].name, cell(results[i].text));
  }
  return text;
}

std::string summaryLine(const std::vector<CaseResult> &results, double seconds) {
  AreaSum sum;
  for (const CaseResult &result : results)
    sum.add(result);
  return fmt::format("{} cases: {} passed, {} failed, {} refused, {} skipped in {:.0f} s", sum.all(),
                     sum.of(Outcome::Passed), sum.of(Outcome::Failed), sum.of(Outcome::Refused),
                     sum.of(Outcome::Skipped), seconds);
}

} // namespace ditron::conformance
