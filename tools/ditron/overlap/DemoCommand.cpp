//===- DemoCommand.cpp - ditron demo ----------------------------------------------------------------------------------===//
//
// The main job on real input in one command: both overlapped operators on 8 simulated GPUs, verified against a plain
// reference, with the proof that communication and computation overlapped.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/Progress.h"
#include "base/WorldText.h"
#include "overlap/OverlapCommands.h"
#include "overlap/OverlapRun.h"

#include <chrono>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

/// Whether communication and computation ran beside each other on every rank.
bool overlapped(const OverlapRunOptions &options, const OverlapRunResult &result) {
  for (const runtime::Overlap &overlap : result.overlap) {
    bool gather = options.op == OverlapOperator::AllGatherGemm;
    if ((gather ? overlap.startedBeforeLastCopy : overlap.startedAfterFirstCopy) == 0)
      return false;
  }
  return !result.overlap.empty();
}

Status runDemo(const std::string &traceFolder, bool quiet) {
  warnOfIdenticalWorlds(/*simulated=*/true, OverlapRunOptions().ranks);
  const auto begin = std::chrono::steady_clock::now();
  for (OverlapOperator op : {OverlapOperator::AllGatherGemm, OverlapOperator::GemmReduceScatter}) {
    const double done = op == OverlapOperator::AllGatherGemm ? 0 : 0.5;
    OverlapRunOptions options;
    options.op = op;
    options.world.trace = true;
    options.traceFile = fmt::format("{}/{}.trace.json", traceFolder, toString(op));
    OverlapRunResult result;
    {
      Progress progress(quiet, begin);
      DITRON_ASSIGN_OR_RETURN(result, runOverlap(options, [&](std::string_view text, double fraction) {
                                progress.activity(fmt::format("{}: {}", toString(op), text));
                                progress.reached(done + fraction / 2);
                              }));
      progress.stop();
    }
    fmt::print("{}\n", describeRun(options, result));
    if (!result.passed(options))
      return internalError(fmt::format("{} gave a wrong result", toString(op)));
    if (!overlapped(options, result))
      return internalError(fmt::format("{}: a rank computed nothing while communication was in flight", toString(op)));
  }
  return Status::ok();
}

} // namespace

void addDemoCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command =
      app.add_subcommand("demo", "AllGather+GEMM and GEMM+ReduceScatter on 8 simulated GPUs, verified, with traces");
  auto folder = std::make_shared<std::string>(".");
  auto quiet = std::make_shared<bool>(false);
  command->add_option("--trace-folder", *folder, "Where the traces go")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
  command->add_flag("--quiet", *quiet, "No progress");
  command->callback([&context, folder, quiet] { context.finish(runDemo(*folder, *quiet)); });
}

} // namespace ditron::tool
