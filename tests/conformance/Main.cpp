//===- Main.cpp - ditron-conformance --------------------------------------------------------------------------------------===//
//
// Runs the cases of tests/conformance/cases and reports by area. See README.md beside this file.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "Report.h"
#include "WorkerPool.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <thread>
#include <unistd.h>

using namespace ditron;
using namespace ditron::conformance;

namespace {

/// "1/4": the second of four parts. Every n-th case, so that parts take equally long.
bool parseShard(const std::string &text, size_t &index, size_t &count) {
  return std::sscanf(text.c_str(), "%zu/%zu", &index, &count) == 2 && count > 0 && index < count;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Runs the conformance suite: kernels with references that NumPy computed.");
  std::string folder = DITRON_CONFORMANCE_CASES, filter, shard, report;
  std::vector<std::string> areas;
  PoolOptions pool;
  pool.workers = std::max(1u, std::thread::hardware_concurrency());
  bool third = false, list = false, verbose = false;
  app.add_option("--cases", folder, "folder of .cases files");
  app.add_option("--area", areas, "only these areas: the part of a case's name before the first '/'");
  app.add_option("--filter", filter, "only cases whose name contains this");
  app.add_option("--target", pool.target, "sim:sm_90a, sim:sm_80, cuda, ...");
  app.add_option("--shard", shard, "i/n: the i-th of n parts, from 0");
  app.add_flag("--third", third, "every third case, and none of those marked slow");
  app.add_option("--workers", pool.workers, "processes at a time")->check(CLI::Range(1, 256));
  app.add_option("--limit", pool.limitSeconds, "seconds that a case may take");
  app.add_option("--report", report, "write the results by area to this file (Markdown)");
  app.add_flag("--list", list, "print the names of the cases and run nothing");
  app.add_flag("--verbose", verbose, "print every case, and how long it took");
  CLI11_PARSE(app, argc, argv);

  size_t shardIndex = 0, shardCount = 1;
  if (!shard.empty() && !parseShard(shard, shardIndex, shardCount)) {
    fmt::print(stderr, "--shard {}: expected i/n with i < n\n", shard);
    return 2;
  }
  Expected<std::vector<Case>> all = readCaseFolder(folder);
  if (!all.isOk()) {
    fmt::print(stderr, "{}\n", all.status().message());
    return 2;
  }
  std::vector<Case> cases;
  for (size_t i = 0, taken = 0; i < all->size(); ++i) {
    const Case &one = (*all)[i];
    if (!areas.empty() && std::find(areas.begin(), areas.end(), one.area()) == areas.end())
      continue;
    if (one.name.find(filter) == std::string::npos || (third && (i % 3 != 0 || one.isSlow())))
      continue;
    if (taken++ % shardCount == shardIndex)
      cases.push_back(one);
  }
  if (list) {
    for (const Case &one : cases)
      fmt::print("{}\n", one.name);
    return 0;
  }

  static constexpr const char *outcomes[] = {"passed", "FAILED", "refused", "skipped"};
  const bool terminal = isatty(STDERR_FILENO) != 0;
  size_t done = 0;
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<CaseResult> results = runCases(cases, pool, [&](size_t index, const CaseResult &result) {
    ++done;
    const bool passed = result.outcome == Outcome::Passed;
    if (!passed || verbose)
      fmt::print("{} {} ({:.2f} s) {}\n", outcomes[static_cast<int>(result.outcome)], cases[index].name, result.seconds,
                 result.text);
    if (terminal)
      fmt::print(stderr, "\r{}/{}\x1b[K", done, cases.size());
    std::fflush(stdout);
  });
  if (terminal)
    fmt::print(stderr, "\r\x1b[K");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{}\n", summaryLine(results, seconds));
  if (!report.empty()) {
    std::string command = fmt::format("build/bin/ditron-conformance --target {} --report {}", pool.target, report);
    std::ofstream(report) << reportPage(cases, results, pool.target, command);
  }
  const bool failed = std::any_of(results.begin(), results.end(),
                                  [](const CaseResult &result) { return result.outcome == Outcome::Failed; });
  return failed ? 1 : 0;
}
