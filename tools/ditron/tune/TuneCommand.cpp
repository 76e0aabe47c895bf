//===- TuneCommand.cpp - ditron tune ----------------------------------------------------------------------------------------===//
#include "tune/TuneCommand.h"

#include "Version.h"
#include "base/ByteSize.h"
#include "base/VisibleGpus.h"
#include "tune/Tuner.h"

#include "ditron/ops/collectives/AllReduceRmsNorm.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/World.h"

#include <fmt/format.h>
#include <limits>
#include <tuple>

namespace ditron::tool {

namespace {

struct TuneArguments {
  std::string op;
  bool isCollective = false;
  uint32_t ranks = 4;
  std::string target = "sim:sm_80", dtype = "bf16";
  std::vector<int64_t> rows;
  int64_t n = 0, k = 0, experts = 8, topK = 2, columns = 8192;
  int64_t batch = 1, heads = 32, kvHeads = 0, dim = 128;
  std::vector<std::string> sizes, plants;
  bool quiet = false;
  TuneOptions tune;
};

bool isGrouped(std::string_view op) { return op == "grouped_gemm" || op == "gathered_gemm"; }
bool isAttention(std::string_view op) { return op == "attention" || op == "causal_attention"; }

Status readProblems(TuneArguments &arguments) {
  DITRON_ASSIGN_OR_RETURN(const DataType dtype, parseDataTypeOrError(arguments.dtype));
  std::vector<TuneProblem> &problems = arguments.tune.problems;
  TuneProblem one = {.op = arguments.op, .ranks = arguments.ranks, .dtype = dtype};
  if (arguments.isCollective) {
    for (const std::string &text : arguments.sizes) {
      DITRON_ASSIGN_OR_RETURN(const uint64_t bytes, parseByteSize("--bytes", text));
      DITRON_RETURN_IF_ERROR(verifyWholeElements(bytes, dtype));
      one.bytes = static_cast<int64_t>(bytes);
      problems.push_back(one);
    }
    std::ranges::sort(problems, {}, &TuneProblem::bytes);
    problems.erase(std::ranges::unique(problems, {}, &TuneProblem::bytes).begin(), problems.end());
    return Status::ok();
  }
  if (arguments.op == ops::rmsNormOperator) {
    one.columns = arguments.columns;
    constexpr int64_t rowAlignment = ops::AllReduceRmsNorm::rowAlignment;
    if (one.columns * static_cast<int64_t>(sizeOf(dtype)) % rowAlignment != 0)
      return invalidArgument(fmt::format("--columns {}: rows of {} bytes; multiples of {} are accepted", one.columns,
                                         one.columns * sizeOf(dtype), rowAlignment));
  } else if (isAttention(arguments.op)) {
    one.batch = arguments.batch;
    one.heads = arguments.heads;
    one.kvHeads = arguments.kvHeads ? arguments.kvHeads : arguments.heads;
    one.dim = arguments.dim;
  } else {
    one.n = arguments.n;
    one.k = arguments.k;
  }
  if (isGrouped(arguments.op)) {
    one.experts = arguments.experts;
    one.topK = arguments.topK;
    if (one.topK > one.experts)
      return invalidArgument(
          fmt::format("--top-k {}: of {} experts; 1 to {} are accepted", one.topK, one.experts, one.experts));
  }
  for (const int64_t rows : arguments.rows) {
    if (one.isRmsNorm())
      one.bytes = rows * one.columns * static_cast<int64_t>(sizeOf(dtype));
    else
      (isAttention(arguments.op) ? one.queries : one.m) = rows;
    problems.push_back(one);
  }
  std::ranges::sort(problems, {}, &TuneProblem::firstSize);
  problems.erase(std::ranges::unique(problems, {}, &TuneProblem::firstSize).begin(), problems.end());
  return Status::ok();
}

/// The words of plans as tables have them.
Status checkPlans(TuneArguments &arguments) {
  const auto op = std::ranges::find(ops::plannedOperators(), arguments.op, &ops::PlannedOperator::name);
  const auto check = [&](std::string_view option, const std::string &plan) {
    return op->verify(arguments.op, plan, arguments.ranks, 1).withContext(option);
  };
  for (std::string &plan : arguments.tune.plans) {
    DITRON_RETURN_IF_ERROR(check("--plan", plan));
    DITRON_ASSIGN_OR_RETURN(plan, canonicalPlan(arguments.op, plan));
  }
  for (const std::string &text : arguments.plants) {
    const size_t colon = text.find(':');
    if (colon == std::string::npos)
      return invalidArgument(fmt::format("--plant '{}': KIND:PLAN is accepted", text));
    DITRON_RETURN_IF_ERROR(check("--plant", text.substr(colon + 1)));
    DITRON_ASSIGN_OR_RETURN(const std::string plan, canonicalPlan(arguments.op, text.substr(colon + 1)));
    arguments.tune.planted[plan] = text.substr(0, colon);
  }
  return Status::ok();
}

/// A row must be one for the GPU that was measured, and what a simulator measured for no other.
Status checkGpu(std::string_view given, std::string name, bool simulated) {
  constexpr std::string_view simulators = "simulated";
  if (given.find_first_of("#\t\n") != std::string::npos || given == ":")
    return invalidArgument(fmt::format("--gpu '{}': a word without '#' is accepted, which begins a remark", given));
  std::ranges::replace(name, ' ', '_');
  if (given.empty() || (given == "*" && !simulated))
    return Status::ok();
  if (simulated && !given.starts_with(simulators))
    return invalidArgument(fmt::format("--gpu '{}': the times of '{}' say nothing about GPUs, whose calls would take "
                                       "these rows; '{}' or more of that name is accepted",
                                       given, name, simulators));
  std::string word(given);
  std::ranges::replace(word, ' ', '_');
  if (name.find(word) == std::string::npos)
    return invalidArgument(fmt::format(
        "--gpu '{}': this GPU would not take these rows; a part of its name, '{}', is accepted", given, name));
  return Status::ok();
}

std::string describe(const TunedProblem &tuned) {
  std::string text = fmt::format("{}\n{:>12}{:>12}  {}\n", tuned.problem.text(), "us", "predicted", "plan");
  std::vector<TunedPlan> plans = tuned.plans;
  std::ranges::sort(plans, {}, [](const TunedPlan &plan) {
    return std::tuple(plan.result.microseconds.value_or(std::numeric_limits<double>::infinity()),
                      plan.predictedMicroseconds, plan.plan);
  });
  for (const TunedPlan &plan : plans)
    text +=
        fmt::format("{:>12}{:>12.2f}  {}{}{}\n",
                    plan.result.microseconds ? fmt::format("{:.2f}", *plan.result.microseconds) : "failed",
                    plan.predictedMicroseconds, plan.plan, plan.result.microseconds ? "" : ": " + plan.result.failure,
                    plan.isFromJournal ? "  (from the journal)" : "");
  return text + (tuned.best ? fmt::format("best: {}\n", tuned.best->plan) : "no plan gave a right result\n");
}

Status runTune(TuneArguments &arguments) {
  DITRON_RETURN_IF_ERROR(readProblems(arguments));
  DITRON_RETURN_IF_ERROR(checkPlans(arguments));
  DITRON_RETURN_IF_ERROR(checkCanWrite("--out", arguments.tune.outFile));
  seeOnlyGpusOf(arguments.target, arguments.ranks);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(arguments.target));
  runtime::DeviceAttributes gpu;
  {
    // Gone before the first trial, which has the GPUs for itself.
    DITRON_ASSIGN_OR_RETURN(const auto world, runtime::World::local(1, target.text, {}));
    gpu = world->rank(0).attributes();
  }
  DITRON_RETURN_IF_ERROR(checkGpu(arguments.tune.gpu, gpu.name, target.simulated));
  DITRON_ASSIGN_OR_RETURN(const TuneMachine machine, tuneMachine(target, gpu));
  arguments.tune.trial.program = "/proc/self/exe"; // even when a build has replaced the file meanwhile
  arguments.tune.trial.target = target.text;

  Progress progress(arguments.quiet);
  size_t withoutPlan = 0;
  DITRON_RETURN_IF_ERROR(tune(arguments.tune, machine, versionText(), progress, [&](const TunedProblem &tuned) {
    withoutPlan += tuned.best ? 0 : 1;
    if (!arguments.quiet)
      fmt::print("{} on {} x {}, {}, {}", arguments.op, arguments.ranks, gpu.name, arguments.dtype, describe(tuned));
    std::fflush(stdout);
  }));
  progress.stop();
  if (withoutPlan > 0)
    return invalidArgument(fmt::format("{} of {} shapes have no row: no plan gave a right result; see '{}.journal'",
                                       withoutPlan, arguments.tune.problems.size(), arguments.tune.outFile));
  return Status::ok();
}

void addOperator(CLI::App &tuneCommand, CommandContext &context, const ops::PlannedOperator &op) {
  auto arguments = std::make_shared<TuneArguments>();
  arguments->op = op.name;
  arguments->isCollective = ops::parseCollectiveKind(op.name).isOk();
  CLI::App *command = tuneCommand.add_subcommand(op.name, fmt::format("Plans of {}", op.name));
  if (op.name == "gemm" || isGrouped(op.name) || isAttention(op.name))
    arguments->ranks = 1;
  else
    command->add_option("--ranks", arguments->ranks, "Number of GPUs")
        ->check(integerBetween(1, 64))
        ->capture_default_str();
  command->add_option("--target", arguments->target, "What to run on: sim, cuda (this machine's GPUs), or a full name")
      ->capture_default_str();
  command->add_option("--dtype", arguments->dtype, "Of the operands")->capture_default_str();
  if (arguments->isCollective) {
    command->add_option("--bytes", arguments->sizes, "Sizes, like 64K,1M, as `ditron bench` takes them")
        ->delimiter(',')
        ->required();
  } else if (op.name == ops::rmsNormOperator) {
    command->add_option("--rows", arguments->rows, "Numbers of rows, like 1,32,2048")
        ->delimiter(',')
        ->check(integerBetween(1, INT32_MAX))
        ->required();
    command->add_option("--columns", arguments->columns, "Of a row")
        ->check(integerBetween(1, ops::AllReduceRmsNorm::mostColumns))
        ->capture_default_str();
  } else if (isAttention(op.name)) {
    command->add_option("--queries", arguments->rows, "Queries of a sequence, and keys, like 1024,8192")
        ->delimiter(',')
        ->check(integerBetween(1, INT32_MAX))
        ->required();
    const auto size = [&](const char *name, int64_t &value, const char *help, int64_t least = 1) {
      command->add_option(name, value, help)->check(integerBetween(least, 65535))->capture_default_str();
    };
    size("--batch", arguments->batch, "Sequences");
    size("--heads", arguments->heads, "Query heads");
    size("--kv-heads", arguments->kvHeads, "Heads of K and V; 0: as many", 0);
    size("--head-dim", arguments->dim, "Elements of a head");
  } else {
    command
        ->add_option(isGrouped(op.name) ? "--tokens" : "--m", arguments->rows,
                     isGrouped(op.name) ? "Tokens, each with --top-k rows, like 64,8192"
                                        : "Rows of the product, like 1,64,8192")
        ->delimiter(',')
        ->check(integerBetween(1, INT32_MAX))
        ->required();
    if (isGrouped(op.name)) {
      command->add_option("--experts", arguments->experts, "Experts, whose weights the rows multiply")
          ->check(integerBetween(1, 1024))
          ->capture_default_str();
      command->add_option("--top-k", arguments->topK, "Experts of a token")
          ->check(integerBetween(1, 64))
          ->capture_default_str();
    }
    command->add_option("--n", arguments->n, "Columns of the product")->check(integerBetween(1, INT32_MAX))->required();
    command->add_option("--k", arguments->k, "Depth of the product")->check(integerBetween(1, INT32_MAX))->required();
  }
  command
      ->add_option("--out", arguments->tune.outFile,
                   "The table; rows that it has for other shapes stay. Beside it FILE.journal: what "
                   "was measured, so that the same command goes on where it was interrupted")
      ->type_name("FILE")
      ->required();
  command->add_option("--gpu", arguments->tune.gpu,
                      "What rows name the GPU by, a part of its name; else the whole name");
  command
      ->add_option("--candidates", arguments->tune.mostCandidates,
                   "Plans of a shape that are tried, those predicted to be best")
      ->check(integerBetween(1, 100000))
      ->capture_default_str();
  command->add_option("--plan", arguments->tune.plans, "Try this one too; may be given several times")
      ->type_name("PLAN");
  command
      ->add_option("--trial-limit", arguments->tune.trial.limitSeconds,
                   "A plan that takes longer to compile, check and time has failed")
      ->check(CLI::Range(0.01, 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_flag("--start-over", arguments->tune.startOver, "Forget the journal");
  command->add_option("--plant", arguments->plants)->group("");
  command->add_flag("--quiet", arguments->quiet, "Print errors only");
  command->callback([&context, arguments] { context.finish(runTune(*arguments)); });
}

} // namespace

void addTuneCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command =
      app.add_subcommand("tune", "Find the best plan of an operator on this machine and write it into a table");
  command->require_subcommand(1);
  for (const ops::PlannedOperator &op : ops::plannedOperators())
    if (op.isSearched)
      addOperator(*command, context, op);
}

} // namespace ditron::tool
