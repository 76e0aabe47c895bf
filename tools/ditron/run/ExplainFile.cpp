//===- ExplainFile.cpp - Why a run did not go on, for programs ------------------------------------------------------===//
#include "run/ExplainFile.h"

#include "base/Command.h"

#include "ditron/explain/waits/WaitReport.h"
#include "ditron/support/OutputFile.h"

#include <cstdio>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

using Render = std::string (*)(const explain::WaitReport &);

std::string asText(const explain::WaitReport &report) { return textOf(report) + "\n"; }

/// By the ending of the file's name; null for another.
Render renderFor(const std::string &path) {
  if (path.ends_with(".dot"))
    return explain::dotOf;
  if (path.ends_with(".json") || path == standardOutput)
    return explain::jsonOf;
  return path.ends_with(".txt") ? asText : nullptr;
}

explain::WaitReport withoutWaits(const sim::Machine &machine, const Status &ran) {
  explain::WaitReport report = machine.reportWaits();
  report.kind = ran.isOk() ? "end" : ran.code() == StatusCode::DataRace ? "data race" : "error";
  report.headline = ran.isOk() ? "the run came to its end" : ran.message();
  return report;
}

} // namespace

Status checkExplainFile(const std::string &path, bool isSimulated) {
  if (path.empty())
    return Status::ok();
  if (!isSimulated)
    return invalidArgument(
        "--explain is for simulated GPUs; `ditron explain --pid` says what kernels on real ones wait for");
  if (!renderFor(path))
    return invalidArgument(
        fmt::format("--explain {}: accepted are names that end in .dot (a graph for Graphviz), .json or .txt, and -, "
                    "JSON on standard output",
                    path));
  return checkCanWrite("--explain", path);
}

Status writeExplainFile(const std::string &path, const sim::Machine *machine, const Status &ran) {
  if (path.empty() || !machine)
    return Status::ok();
  const std::shared_ptr<const explain::WaitReport> report = machine->waitReport();
  const std::string text = renderFor(path)(report ? *report : withoutWaits(*machine, ran));
  if (path == standardOutput) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return Status::ok();
  }
  DITRON_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  DITRON_RETURN_IF_ERROR(file.write(text));
  return file.commit();
}

} // namespace ditron::tool
