//===- BenchCommand.cpp - ditron bench --------------------------------------------------------------------------------===//
//
// Runs one overlapped operator with the shapes, types and machine of the command line.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/Progress.h"
#include "base/VisibleGpus.h"
#include "base/WorldText.h"
#include "bench/BenchPage.h"
#include "bench/KernelBench.h"
#include "overlap/OverlapCommands.h"
#include "overlap/OverlapRun.h"

#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/bootstrap/RankEnvironment.h"
#include "ditron/support/OutputFile.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

/// The command line of one `ditron bench` subcommand.
struct BenchArguments {
  OverlapRunOptions run;
  std::string dtype = "bf16", resultType, scales = "none", activation = "none", weights = "plain";
  std::vector<std::string> slowRanks;
  std::string jsonFile, htmlFile;
  std::string precision = "tf32", form = "auto";
  double boundWaits = 0;
  std::vector<int64_t> rows; ///< Instead of run.m; a run each.
  std::string plan;
  ops::TileConfig tile;
  std::vector<CLI::Option *> tileOptions;
  bool unfused = false;
  bool quiet = false;
};

Status report(const BenchArguments &arguments, const std::vector<OverlapRunOptions> &runs,
              const std::vector<OverlapRunResult> &results, bool sweeps) {
  std::string text;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (size_t i = 0; i < runs.size(); ++i) {
    text += describeRun(runs[i], results[i]);
    json.push_back(nlohmann::ordered_json::parse(runAsJson(runs[i], results[i])));
  }
  if (!sweeps)
    json = nlohmann::ordered_json(json.front());
  if (!arguments.quiet)
    fmt::print(textStream(arguments.jsonFile, arguments.htmlFile), "{}", text);
  DITRON_RETURN_IF_ERROR(writeReport("--json", arguments.jsonFile, json.dump() + "\n"));
  if (arguments.htmlFile.empty())
    return Status::ok();
  return writeReport("--html", arguments.htmlFile,
                     benchPage(fmt::format("ditron bench {}", toString(runs.front().op)), json, text));
}

/// Ranks of a simulated node; 0 where there is one.
Expected<uint32_t> nodeSize(const OverlapRunOptions &run) {
  if (run.nodes == 1)
    return 0;
  if (run.ranks % run.nodes != 0)
    return invalidArgument(fmt::format(
        "--nodes {}: {} ranks cannot be spread evenly over them; the number of nodes must divide that of ranks",
        run.nodes, run.ranks));
  return run.ranks / run.nodes;
}

Status runBench(BenchArguments &arguments) {
  OverlapRunOptions &run = arguments.run;
  DITRON_RETURN_IF_ERROR(checkReportFiles(arguments.jsonFile, arguments.htmlFile));
  DITRON_RETURN_IF_ERROR(checkCanWrite("--trace", run.traceFile));
  DITRON_ASSIGN_OR_RETURN(run.dtype, parseDataTypeOrError(arguments.dtype));
  if (!arguments.resultType.empty()) {
    DITRON_ASSIGN_OR_RETURN(run.resultType, parseDataTypeOrError(arguments.resultType));
  }
  DITRON_ASSIGN_OR_RETURN(run.scales, ops::parseScaling(arguments.scales));
  DITRON_ASSIGN_OR_RETURN(run.activation, ops::parseActivation(arguments.activation));
  run.weights = arguments.weights == "plain" ? ops::MatrixOrder::Plain : ops::MatrixOrder::Transposed;
  DITRON_ASSIGN_OR_RETURN(run.world.slowRanks, parseSlowRanks(arguments.slowRanks, run.ranks));
  if (!arguments.plan.empty()) {
    auto plan = ops::parseTensorParallelPlan(toString(run.op), arguments.plan);
    if (!plan.isOk())
      return plan.status().withContext("--plan");
    run.plan = *plan;
  }
  if (std::ranges::any_of(arguments.tileOptions, [](const CLI::Option *option) { return option->count() > 0; }))
    run.tile = arguments.tile;
  run.schedule = arguments.unfused ? ops::Schedule::Unfused : ops::Schedule::Overlapped;
  run.form = *ops::parseAllReduceForm(arguments.form);
  DITRON_ASSIGN_OR_RETURN(run.precision, parsePrecision(arguments.precision, run.dtype));
  seeOnlyGpusOf(run.target, run.ranks);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(run.target));
  run.target = target.text;
  run.world.trace = target.simulated || !run.traceFile.empty(); // of simulated GPUs the overlap is part of the report
  run.knobs.traceGpu |= !target.simulated && run.world.trace;
  if (target.simulated) {
    run.timedCalls = 0;
    DITRON_ASSIGN_OR_RETURN(run.world.ranksPerNode, nodeSize(run));
  }
  DITRON_RETURN_IF_ERROR(checkForRealGpus(target.simulated, run.world.shareGpus, arguments.boundWaits > 0));
  warnOfIdenticalWorlds(target.simulated, run.ranks);
  bool silent = false;
  if (!target.simulated) {
    // One rank of a job of processes speaks for all.
    DITRON_ASSIGN_OR_RETURN(const bootstrap::RankEnvironment place, bootstrap::RankEnvironment::fromProcess());
    run.processes = place.launched();
    if (run.processes && run.world.heapBytes == 0)
      run.world.heapBytes = uint64_t(1) << 30;
    silent = place.rank != 0;
  }
  std::vector<NamedFile> files;
  for (const auto &[option, path] : {std::pair("--json", &arguments.jsonFile), std::pair("--html", &arguments.htmlFile),
                                     std::pair("--trace", &run.traceFile)})
    if (!path->empty())
      files.push_back({option, *path});
  DITRON_RETURN_IF_ERROR(checkDistinctFiles(files));
  run.boundWaits = arguments.boundWaits > 0;
  if (run.boundWaits)
    run.world.waitLimitSeconds = arguments.boundWaits;

  const bool sweeps = !arguments.rows.empty();
  if (!sweeps)
    arguments.rows = {run.m};
  std::vector<OverlapRunOptions> runs;
  std::vector<OverlapRunResult> results;
  {
    Progress progress(arguments.quiet || silent);
    DITRON_ASSIGN_OR_RETURN(OverlapSession session, OverlapSession::create(run));
    for (const int64_t rows : arguments.rows) {
      runs.push_back(run);
      runs.back().m = rows;
      const double done = static_cast<double>(results.size()), all = static_cast<double>(arguments.rows.size());
      DITRON_ASSIGN_OR_RETURN(OverlapRunResult result,
                              session.run(runs.back(), [&](std::string_view text, double fraction) {
                                progress.activity(std::string(text));
                                progress.reached((done + fraction) / all);
                              }));
      results.push_back(std::move(result));
    }
    progress.stop();
  }
  if (!silent)
    DITRON_RETURN_IF_ERROR(report(arguments, runs, results, sweeps));
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].passed(runs[i]))
      return internalError(
          fmt::format("{} of {} rows gave a wrong result: an element is off by {:.2f} times its tolerance",
                      toString(run.op), runs[i].m,
                      results[i].sampledError ? *results[i].sampledError / sampledTolerance(run.typeOfResult())
                                              : results[i].comparison.worstRatio));
  return Status::ok();
}

void addOperator(CLI::App &bench, CommandContext &context, OverlapOperator op, const std::string &description) {
  CLI::App *command = bench.add_subcommand(std::string(toString(op)), description);
  auto arguments = std::make_shared<BenchArguments>();
  OverlapRunOptions &run = arguments->run;
  run.op = op;
  run.check = false;
  CLI::Option *m = command->add_option("--m", run.m, "Rows of the product")
                       ->check(integerBetween(1, INT32_MAX))
                       ->capture_default_str();
  command->add_option("--n", run.n, "Columns of the product (ag_gemm deals them out to the ranks)")
      ->check(integerBetween(1, INT32_MAX))
      ->capture_default_str();
  command->add_option("--k", run.k, "Depth of the product (gemm_rs and gemm_ar deal it out to the ranks)")
      ->check(integerBetween(1, INT32_MAX))
      ->capture_default_str();
  command->add_option("--dtype", arguments->dtype, "Of A and B: bf16, fp16, fp32, fp8e4nv, fp8e5 or i8")
      ->capture_default_str();
  command->add_option("--result-type", arguments->resultType,
                      "bf16, fp16 or fp32; default: that of the operands, of 8-bit ones bf16");
  command
      ->add_option("--scales", arguments->scales,
                   "Of A and B: none, tensor (one for each) or vector (one for each row of A and column of B)")
      ->check(CLI::IsMember({"none", "tensor", "vector"}))
      ->capture_default_str();
  command->add_flag("--bias", run.bias, "Add a bias, of the result's type");
  if (op == OverlapOperator::AllGatherGemm) {
    command->add_option("--activation", arguments->activation, "none, relu, gelu, silu or swiglu")
        ->check(CLI::IsMember({"none", "relu", "gelu", "silu", "swiglu"}))
        ->capture_default_str();
    command->add_flag_callback("--swiglu", [arguments] { arguments->activation = "swiglu"; }, "--activation swiglu");
  }
  command->add_option("--weights", arguments->weights, "B is plain, [K, N], or transposed, [N, K]")
      ->check(CLI::IsMember({"plain", "transposed"}))
      ->capture_default_str();
  command->add_option("--padding", run.padding, "Elements behind each row of A, B and the result")
      ->check(integerBetween(0, 65536))
      ->capture_default_str();
  command->add_option("--precision", arguments->precision, "How fp32 operands are multiplied")
      ->check(CLI::IsMember({"tf32", "ieee"}))
      ->capture_default_str();
  command->add_option("--ranks", run.ranks, "Number of GPUs")->check(integerBetween(1, 1024))->capture_default_str();
  command->add_option("--target", run.target, "What to run on: sim, cuda (this machine's GPUs), or a full name")
      ->capture_default_str();
  if (op != OverlapOperator::GemmAllReduce)
    command
        ->add_option(
            "--nodes", run.nodes,
            "Simulated nodes that the ranks are spread over; on GPUs of one machine it changes the order of tiles only")
        ->check(integerBetween(1, 1024))
        ->capture_default_str();
  if (op == OverlapOperator::AllGatherGemm)
    command->add_option("--chunks", run.chunks, "Signals per shard; 0: the library's choice")
        ->check(integerBetween(0, 1024))
        ->capture_default_str();
  command
      ->add_option("--concurrent-calls", run.concurrentCalls,
                   "One launch: of so many calls at once all blocks must find places; 1 lets a call have the GPU")
      ->check(integerBetween(1, 64))
      ->capture_default_str();
  if (op != OverlapOperator::GemmAllReduce)
    command
        ->add_option("--one-launch-rows", run.oneLaunchRows,
                     "Calls of at most so many rows are one launch; 0: none; not given: by the tables of plans")
        ->check(integerBetween(0, 128));
  if (op == OverlapOperator::GemmAllReduce) {
    command->add_option("--form", arguments->form, "auto, one_shot, fused_two_shot, two_shot, pushed or unfused")
        ->check(CLI::IsMember({"auto", "one_shot", "fused_two_shot", "two_shot", "pushed", "unfused"}))
        ->capture_default_str();
    command->add_option("--row-chunks", run.rowChunks, "two_shot, pushed: parts of the rows; 0: by their number")
        ->check(integerBetween(0, 128))
        ->capture_default_str();
    command
        ->add_option("--exchange-blocks", run.exchangeBlocks,
                     "two_shot: blocks that exchange while others multiply; 0: by the GPU")
        ->check(integerBetween(0, 128))
        ->capture_default_str();
    command
        ->add_option(
            "--splits", run.splits,
            "One launch: blocks of a tile, and the tile is that of --block-m and so on; 0: the library's choice")
        ->check(integerBetween(0, 64))
        ->capture_default_str();
  }
  command->add_option("--calls", run.calls, "Calls in a row, each with new data")
      ->check(integerBetween(1, 1000000))
      ->capture_default_str();
  run.timedCalls = 20;
  command->add_option("--timed-calls", run.timedCalls, "Real GPUs: calls to time after those; 0 for none")
      ->check(integerBetween(0, 1000000))
      ->capture_default_str();
  command
      ->add_option("--bound-waits", arguments->boundWaits,
                   "Real GPUs: a wait that takes longer is an error with a report; 0 for no limit")
      ->check(secondsFromZero())
      ->type_name("SECONDS");
  command
      ->add_option("--time-limit", run.world.timeLimitSeconds,
                   "Longest that a call may take, by the clock on the wall; 0 for no limit")
      ->check(secondsFromZero())
      ->type_name("SECONDS");
  command->add_flag("--share-gpus", run.world.shareGpus, "Real GPUs: several ranks on one GPU when there are too few");
  command->add_option("--sms", run.world.sms, "Simulated SMs per rank")
      ->check(integerBetween(1, 1024))
      ->capture_default_str();
  command->add_option("--seed", run.world.seed, "Chooses the data and the interleaving")
      ->check(integerBetween(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--slow-rank", arguments->slowRanks, "R:FACTOR, may be given several times");
  arguments->tileOptions.push_back(command->add_option("--block-m", arguments->tile.blockM, "Rows of a tile")
                                       ->check(integerBetween(1, 1024))
                                       ->capture_default_str());
  arguments->tileOptions.push_back(command->add_option("--block-n", arguments->tile.blockN, "Columns of a tile")
                                       ->check(integerBetween(1, 1024))
                                       ->capture_default_str());
  arguments->tileOptions.push_back(command->add_option("--block-k", arguments->tile.blockK, "Depth of a tile")
                                       ->check(integerBetween(1, 1024))
                                       ->capture_default_str());
  arguments->tileOptions.push_back(command->add_option("--num-warps", arguments->tile.numWarps, "Warps per block")
                                       ->check(powerOfTwoTo(32))
                                       ->capture_default_str());
  arguments->tileOptions.push_back(
      command->add_option("--num-stages", arguments->tile.numStages, "Stages of the load pipeline")
          ->check(integerBetween(1, 16))
          ->capture_default_str());
  CLI::Option *plan =
      command->add_option("--plan", arguments->plan,
                          "How to do it, as in tables of plans (docs/tuner.md), like 'unfused 64x64x32'; "
                          "else as the tables and the options here say");
  for (const char *other : {"--block-m", "--block-n", "--block-k", "--num-warps", "--num-stages", "--chunks", "--form",
                            "--row-chunks", "--exchange-blocks", "--splits", "--one-launch-rows"})
    if (CLI::Option *option = command->get_option_no_throw(other))
      plan->excludes(option);
  addPlantOption(command, run.fault);
  CLI::Option *unfused = command->add_flag("--unfused", arguments->unfused,
                                           "Communication before or after the whole GEMM, to compare with");
  for (const char *other : {"--plan", "--form", "--row-chunks", "--exchange-blocks", "--splits", "--one-launch-rows"})
    if (CLI::Option *option = command->get_option_no_throw(other))
      unfused->excludes(option);
  command->add_flag("--check", run.check, "Compare with a plain reference; a wrong result is an error");
  command->add_option("--json", arguments->jsonFile, "Write the result to this file; - is standard output")
      ->type_name("FILE");
  command->add_option("--html", arguments->htmlFile, "Write a page with plots to this file; - is standard output")
      ->type_name("FILE");
  command
      ->add_option(
          "--trace", run.traceFile,
          "Write a timeline for Perfetto to this file; on real GPUs of the last calls, with one file for each process")
      ->type_name("FILE");
  CLI::Option *html = command->get_option("--html"), *trace = command->get_option("--trace");
  command
      ->add_option("--rows", arguments->rows,
                   "Numbers of rows, like 1,32,8192: a run each in one process; the JSON is an array of them")
      ->delimiter(',')
      ->check(integerBetween(1, INT32_MAX))
      ->excludes(m)
      ->excludes(html)
      ->excludes(trace);
  command->add_flag("--quiet", arguments->quiet, "Print errors only");
  command->callback([&context, arguments] {
    arguments->run.knobs = context.knobs;
    context.finish(runBench(*arguments));
  });
}

} // namespace

void addBenchCommand(CLI::App &app, CommandContext &context) {
  CLI::App *bench = app.add_subcommand("bench", "Run an operator or kernel of the library and report error and speed");
  bench->require_subcommand(1);
  bench->add_flag("--time", context.knobs.timing,
                  "Print the time of every stage of every compilation, as DITRON_TIMING does");
  addOperator(*bench, context, OverlapOperator::AllGatherGemm, "C = allgather(A) * B");
  addOperator(*bench, context, OverlapOperator::GemmReduceScatter, "C = reduce_scatter(A * B)");
  addOperator(*bench, context, OverlapOperator::GemmAllReduce, "C = all_reduce(A * B)");
  addCollectiveBenchCommands(*bench, context);
  addRmsNormBenchCommand(*bench, context);
  addTransferBenchCommands(*bench, context);
  addMoeBenchCommands(*bench, context);
  addExpertParallelBenchCommands(*bench, context);
  addFusedExpertParallelBenchCommand(*bench, context);
  addKernelBenchCommands(*bench, context);
  addAttentionDecodeBenchCommand(*bench, context);
  addAttentionLayerBenchCommand(*bench, context);
  addUlyssesBenchCommands(*bench, context);
  addTokenAttentionBenchCommands(*bench, context);
  for (CLI::App *command : bench->get_subcommands([](CLI::App *) { return true; }))
    command->fallthrough(); // --time may come behind the operator's name
}

} // namespace ditron::tool
