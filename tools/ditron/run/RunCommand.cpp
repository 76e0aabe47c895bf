//===- RunCommand.cpp - ditron run --------------------------------------------------------------------------------===//
//
// The options of `ditron run`. Those of one kernel may be given for each: they belong to the kernel that they follow, and so
// the order of the command line is walked again after it was parsed.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "run/RunCommand.h"

#include "base/Command.h"
#include "run/ExploreRun.h"
#include "run/KernelRun.h"
#include "run/ProgramCommand.h"

#include <charconv>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

/// An option that may be given several times, one value each.
CLI::Option *addRepeated(CLI::App *command, const std::string &name, std::vector<std::string> &values,
                         const std::string &type, const std::string &help) {
  return command->add_option(name, values, help)->take_all()->allow_extra_args(false)->type_name(type);
}

/// The options of one kernel, of all kernels in the order of the command line.
struct StageTexts {
  std::string kernel;
  std::vector<std::string> then, grid, numWarps, numStages, config, arguments, constexprs;
  bool barrier = false;
};

void addStageOptions(CLI::App *command, StageTexts &texts) {
  command
      ->add_option(
          "kernel", texts.kernel,
          "Kernel file and function: FILE.py:KERNEL; the file - is standard input, the function may be left out if it "
          "is the only one. Or a run file, PROGRAM.json: what the hosts of a program do (docs/run-files.md)")
      ->required()
      ->type_name("FILE.py:KERNEL");
  addRepeated(command, "--then", texts.then, "FILE.py:KERNEL",
              "Another kernel, launched behind the one before (see below)");
  addRepeated(command, "--grid", texts.grid, "X,Y,Z",
              "Blocks in x, y and z: integer expressions of the arguments, RANK, RANKS and SMS")
      ->default_str("1");
  addRepeated(command, "--num-warps", texts.numWarps, "N", "Warps per block")
      ->check(powerOfTwoTo(32))
      ->default_str("4");
  addRepeated(command, "--num-stages", texts.numStages, "N", "Stages of pipelined loops")
      ->check(integerBetween(1, 16))
      ->default_str("3");
  addRepeated(command, "--config", texts.config, "N",
              "Which configuration of @triton.autotune to use; `ditron compile --list-configs` shows them")
      ->check(integerBetween(0, 65535));
  command->add_flag("--barrier", texts.barrier, "All ranks wait for each other before this kernel");
  addRepeated(command, "--arg", texts.arguments, "NAME=SPEC", "Value of a run-time parameter (see below)");
  addRepeated(command, "--constexpr", texts.constexprs, "NAME=VALUE", "Value of a tl.constexpr parameter");
}

void addResultOptions(CLI::App *command, RunOptions &options) {
  addRepeated(command, "--memory", options.memory, "NAME=SPEC", "An array that arguments point to, as ptr:NAME");
  addRepeated(command, "--out", options.outputs, "NAME=FILE.npy",
              "Write an array after the run; {rank} in the path; TYPE@FILE.npy converts floats; - is standard output");
  addRepeated(command, "--print", options.prints, "NAME[I:J]@RANK", "Print an array, or a part, after the run");
  addRepeated(command, "--expect", options.expectations, "NAME=FILE.npy",
              "Compare an array with what it must be after the run; exit code 5 if it is not");
  addRepeated(command, "--tolerance", options.tolerances, "ABSOLUTE,RELATIVE",
              "What elements may be off by: one for all --expect, or one for each");
  addRepeated(command, "--result", options.results, "NAME",
              "An array that --explore compares between schedules, and others not; without it those of --out and "
              "--print, or all");
  command->add_option("--data-seed", options.dataSeed, "Chooses the numbers of rand:")
      ->check(integerBetween(0, UINT64_MAX))
      ->capture_default_str();
}

void addMachineOptions(CLI::App *command, RunOptions &options) {
  command
      ->add_option("--target", options.target,
                   "What to run on: sim, cuda (this machine's GPUs), or a full name such as cuda:sm_80")
      ->capture_default_str();
  command->add_option("--ranks", options.ranks, "Number of GPUs")
      ->check(integerBetween(1, 1024))
      ->capture_default_str();
  command
      ->add_option(
          "--ranks-per-node", options.ranksPerNode,
          "Simulated nodes of so many ranks, with puts, gets and signals between them; without it there is one node")
      ->check(integerBetween(1, 1024));
  command->add_option("--seed", options.seed, "Chooses the interleaving")
      ->check(integerBetween(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--sms", options.sms, "Simulated SMs per rank")
      ->check(integerBetween(1, 1024))
      ->capture_default_str();
  addRepeated(command, "--slow-rank", options.slowRanks, "R:FACTOR", "Make a rank slower by a factor");
  command->add_option("--trace", options.trace, "Write a Chrome/Perfetto trace of the run; - is standard output")->type_name("FILE.json");
  command
      ->add_option("--explain", options.explain,
                   "Write who waits for what, and who could end it, when the run fails: a graph, JSON or text")
      ->type_name("FILE.dot|json|txt");
  command
      ->add_option("--bound-waits", options.boundWaits,
                   "Real GPUs: a wait that takes longer is an error with a report; 0 for no limit")
      ->check(secondsFromZero())
      ->type_name("SECONDS");
  command->add_option("--time-limit", options.timeLimit, "Longest that the run may take, by the clock on the wall; 0 for no limit")
      ->check(secondsFromZero())
      ->type_name("SECONDS");
  command->add_option("--package", options.packages, "Take the kernels from this ahead-of-time package, and compile none; may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_flag("--share-gpus", options.shareGpus, "Real GPUs: several ranks on one GPU when there are too few");
  command->add_flag("--cooperative", options.cooperative, "All blocks must be resident at once");
  command->add_flag("--no-bounds-check", options.noBoundsCheck, "Do not check the kernel's memory accesses");
  command->add_flag("--no-publish-waits", options.noPublishWaits,
                    "Real GPUs: kernels do not say what they wait for (ditron explain --pid)");
  command->add_flag("--no-race-check", options.noRaceCheck, "Do not look for data races (simulated GPUs)");
  command->add_flag("--debug", options.debug, "Check assertions of the kernel, and integers for overflow");
  command->add_flag("--time", options.time, "Print the time from source to loaded code, by stage");
  command->add_flag("--quiet", options.quiet, "Print neither progress nor the summary");
}

uint32_t numberOf(const std::string &text) {
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value); // checked by the option
  return value;
}

/// Gives each kernel the options that follow it.
Expected<std::vector<StageOptions>> dealOut(const CLI::App &command, const StageTexts &texts) {
  std::vector<StageOptions> stages(1);
  std::vector<bool> hasGrid(1, false);
  stages.front().kernel = texts.kernel;
  std::map<const CLI::Option *, size_t> taken;
  for (const CLI::Option *option : command.parse_order()) {
    const std::string name = option->get_name();
    StageOptions &stage = stages.back();
    const std::string value = option->get_items_expected_max() > 0 ? option->results()[taken[option]++] : "";
    auto once = [&](auto &&present) -> Status {
      return present ? invalidArgument(fmt::format("{} is given twice for the kernel {}", name, stage.kernel))
                     : Status::ok();
    };
    if (name == "--then") {
      stages.emplace_back().kernel = withStandardInput(value);
      hasGrid.push_back(false);
    } else if (name == "--grid") {
      DITRON_RETURN_IF_ERROR(once(hasGrid.back()));
      hasGrid.back() = true;
      stage.grid = value;
    } else if (name == "--num-warps") {
      DITRON_RETURN_IF_ERROR(once(stage.numWarps));
      stage.numWarps = numberOf(value);
    } else if (name == "--num-stages") {
      DITRON_RETURN_IF_ERROR(once(stage.numStages));
      stage.numStages = numberOf(value);
    } else if (name == "--config") {
      DITRON_RETURN_IF_ERROR(once(stage.config));
      stage.config = numberOf(value);
    } else if (name == "--barrier") {
      stage.barrier = true;
    } else if (name == "--arg") {
      stage.arguments.push_back(value);
    } else if (name == "--constexpr") {
      stage.constexprs.push_back(value);
    }
  }
  return stages;
}

} // namespace

void addRunCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("run", "Compile kernels and run them on simulated or real GPUs");
  auto options = std::make_shared<RunOptions>();
  auto texts = std::make_shared<StageTexts>();
  addStageOptions(command, *texts);
  addResultOptions(command, *options);
  addMachineOptions(command, *options);
  addSourceOptions(command, options->source);
  auto exploring = std::make_shared<ExploreArguments>();
  addExploreOptions(command, *exploring);
  command->footer(runHelp);
  command->callback([options, texts, command, exploring, &context] {
    if (!options->results.empty() && !exploring->schedules && !context.schedule)
      return context.finish(
          invalidArgument("--result says what --explore compares between schedules; there is no --explore"));
    if (isRunFile(texts->kernel))
      return exploring->schedules || context.reference
                 ? exploreRunFile(texts->kernel, *options, *exploring, *command, context)
                 : runProgram(texts->kernel, *options, *command, context);
    Expected<std::vector<StageOptions>> stages = dealOut(*command, *texts);
    if (!stages.isOk())
      return context.finish(stages.status());
    options->stages = std::move(*stages);
    options->schedule = context.schedule;
    if (exploring->schedules || context.reference)
      return exploreKernels(*options, *exploring, context);
    // The run is over, and its progress line gone, before its error is printed.
    KernelRun run(*options, context.knobs);
    const Status status = run.run();
    context.finish(status, run.hasKernelFailed());
    if (run.hasMismatch())
      context.exitCode = ExitMismatch;
    if ((run.hasKernelFailed() || run.hasMismatch()) && run.isSimulated())
      nameSchedule(options->seed, context);
  });
}

} // namespace ditron::tool
