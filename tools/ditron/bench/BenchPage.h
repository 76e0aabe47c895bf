//===- BenchPage.h - The report of a benchmark as a page ------------------------------------------------*- C++ -*-===//
//
// `ditron bench ... --html FILE`: one page with the facts, the plots as SVG inside it, and the table that the terminal shows. It
// is made from the JSON report, so that both say the same.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_BENCHPAGE_H
#define DITRON_TOOLS_DITRON_BENCHPAGE_H

#include "ditron/support/Status.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace ditron::tool {

/// `report` is that of a benchmark of kernels (an object with "rows") or of an overlapped operator. `table` is its text.
std::string benchPage(const std::string &title, const nlohmann::ordered_json &report, const std::string &table);

/// Refuses, before the work begins, what writeReport could not write, and two reports to standard output.
Status checkReportFiles(const std::string &jsonFile, const std::string &htmlFile);
/// Where the text for people goes: to stderr when a report is on standard output.
std::FILE *textStream(const std::string &jsonFile, const std::string &htmlFile);
/// Writes a report to the file that an option names, if it names one; "-" is standard output.
Status writeReport(std::string_view option, const std::string &path, const std::string &text);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_BENCHPAGE_H
