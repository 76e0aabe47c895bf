//===- BenchPage.cpp - The report of a benchmark as a page --------------------------------------------------------===//
//
// A plot is a list of bars. Of kernels: the time of each plan and of what it is compared with, a plot for each shape, with the
// range over the rounds. Of operators: how much of each rank's computation overlapped, and the times of a call.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "bench/BenchPage.h"

#include "base/Command.h"
#include "base/Svg.h"

#include "ditron/support/OutputFile.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

namespace ditron::tool {

using Json = nlohmann::ordered_json;

namespace {

struct Bar {
  std::string label;
  double value = 0, least = 0, most = 0; ///< The range is drawn when it is one.
};

constexpr double barHeight = 18, fontSize = 12, plotWidth = 520, margin = 4;

/// Bars from zero, beside their labels and values.
std::string barPlot(const std::vector<Bar> &bars, std::string_view unit) {
  size_t characters = 0;
  double largest = 0;
  for (const Bar &bar : bars) {
    characters = std::max(characters, bar.label.size());
    largest = std::max({largest, bar.value, bar.most});
  }
  const double left = margin + 0.62 * fontSize * static_cast<double>(characters) + 10;
  const double scale = largest > 0 ? plotWidth / largest : 0;
  Svg plot;
  for (size_t i = 0; i < bars.size(); ++i) {
    const Bar &bar = bars[i];
    const double y = margin + static_cast<double>(i) * (barHeight + 6);
    plot.text(left - 6, y + barHeight - 5, fontSize, bar.label, "end");
    plot.rectangle(left, y, std::max(1.0, bar.value * scale), barHeight, colourOf(static_cast<unsigned>(i), 0.4),
                   fmt::format("{}: {:.6g} {}", bar.label, bar.value, unit));
    if (bar.most > bar.least)
      plot.rectangle(left + bar.least * scale, y + barHeight / 2 - 1, (bar.most - bar.least) * scale, 2, "#333",
                     fmt::format("{:.6g} to {:.6g} {}", bar.least, bar.most, unit));
    plot.text(left + std::max(bar.value, bar.most) * scale + 6, y + barHeight - 5, fontSize,
              fmt::format("{:.4g} {}", bar.value, unit));
  }
  return plot.element();
}

/// A timed contender of a row, if it is one.
void addContender(std::vector<Bar> &bars, const Json &entry, const std::string &name) {
  if (!entry.is_object() || !entry.contains("median_microseconds"))
    return;
  Bar bar{entry.value("name", name), entry["median_microseconds"].get<double>()};
  const std::vector<double> rounds = entry.value("microseconds", std::vector<double>());
  if (!rounds.empty()) {
    bar.least = *std::ranges::min_element(rounds);
    bar.most = *std::ranges::max_element(rounds);
  }
  bars.push_back(std::move(bar));
}

std::string kernelPlots(const Json &rows) {
  std::string html;
  for (const Json &row : rows) {
    std::vector<Bar> bars;
    for (const auto &[name, entry] : row.items()) {
      addContender(bars, entry, name);
      if (entry.is_array())
        for (const Json &each : entry)
          addContender(bars, each, name);
    }
    if (!bars.empty())
      html += fmt::format("<h2>{}{}</h2>\n<p>Median time of a call, in microseconds; the line is the range over the rounds.</p>\n{}",
                          escapeXml(row.contains("kernel") ? row["kernel"].get<std::string>() + " " : ""),
                          escapeXml(row.value("shape", "")), barPlot(bars, "us"));
  }
  return html;
}

std::string operatorPlots(const Json &report) {
  std::string html;
  std::vector<Bar> times, overlap;
  for (const auto &[key, label] :
       {std::pair("simulated_microseconds", "on the machine model"), std::pair("single_microseconds", "one call"),
        std::pair("in_a_row_microseconds", "calls in a row"), std::pair("graph_microseconds", "as a graph")})
    if (report.contains(key) && report[key].is_number())
      times.push_back({label, report[key].get<double>()});
  if (!times.empty())
    html += "<h2>Time of a call</h2>\n" + barPlot(times, "us");
  const bool gather = report.value("operator", "") == "ag_gemm";
  size_t rank = 0;
  for (const Json &each : report.value("overlap", Json::array())) {
    const double blocks = std::max(1.0, each.value("blocks", 1.0));
    const double during = each.value(gather ? "started_before_last_copy" : "started_after_first_copy", 0.0);
    overlap.push_back({fmt::format("rank {}", rank++), 100 * during / blocks});
  }
  if (!overlap.empty())
    html += fmt::format("<h2>Overlap</h2>\n<p>Tiles that started {}.</p>\n{}",
                        gather ? "before the last shard had arrived" : "after the first segment had been sent",
                        barPlot(overlap, "%"));
  return html;
}

constexpr std::string_view style =
    "body{font-family:sans-serif;margin:2em;max-width:70em;color:#111;background:#fff}"
    "table{border-collapse:collapse}td{padding:2px 12px 2px 0;vertical-align:top}"
    "pre{background:#f4f4f4;padding:1em;overflow-x:auto}h2{margin-top:1.6em}svg{max-width:100%}";

} // namespace

Status checkReportFiles(const std::string &jsonFile, const std::string &htmlFile) {
  if (jsonFile == "-" && htmlFile == "-")
    return invalidArgument("--json - and --html -: only one of them can be standard output");
  if (const NamedFile files[] = {{"--json", jsonFile}, {"--html", htmlFile}}; !jsonFile.empty() && !htmlFile.empty())
    DITRON_RETURN_IF_ERROR(checkDistinctFiles(files));
  DITRON_RETURN_IF_ERROR(checkCanWrite("--json", jsonFile));
  return checkCanWrite("--html", htmlFile);
}

std::FILE *textStream(const std::string &jsonFile, const std::string &htmlFile) {
  return jsonFile == "-" || htmlFile == "-" ? stderr : stdout;
}

Status writeReport(std::string_view option, const std::string &path, const std::string &text) {
  if (path.empty())
    return Status::ok();
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return Status::ok();
  }
  return writeWholeFile(path, text).withContext(option);
}

std::string benchPage(const std::string &title, const Json &report, const std::string &table) {
  std::string html = fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\" /><title>{0}</title>"
                                 "<style>{1}</style></head>\n<body>\n<h1>{0}</h1>\n<table>\n",
                                 escapeXml(title), style);
  for (const auto &[key, value] : report.items()) {
    const bool isVerdict = key == "passed";
    if (value.is_structured() || (value.is_null() && !isVerdict) || (value.is_string() && value.get<std::string>().empty()))
      continue;
    std::string name = key;
    std::ranges::replace(name, '_', ' ');
    html += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escapeXml(name),
                        escapeXml(value.is_null()           ? "not checked"
                                  : value.is_string()       ? value.get<std::string>()
                                  : value.is_number_float() ? fmt::format("{:.6g}", value.get<double>())
                                                            : value.dump()));
  }
  html += "</table>\n";
  html += report.contains("rows") ? kernelPlots(report["rows"]) : operatorPlots(report);
  return html + fmt::format("<h2>As text</h2>\n<pre>{}</pre>\n</body>\n</html>\n", escapeXml(table));
}

} // namespace ditron::tool
