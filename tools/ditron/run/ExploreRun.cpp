//===- ExploreRun.cpp - ditron run --explore, ditron replay -----------------------------------------------------------===//

#include "run/ExploreRun.h"

#include "ditron/sim/engine/TimeLimit.h"
#include "ditron/support/Plural.h"

#include <chrono>
#include <fmt/format.h>

namespace ditron::tool {

void addExploreOptions(CLI::App *command, ExploreArguments &arguments) {
  command
      ->add_option("--explore", arguments.schedules,
                   "Simulated GPUs: run under N schedules, of the seeds from --seed on, and say what fails under which")
      ->check(integerBetween(1, 1'000'000'000))
      ->type_name("N");
  command
      ->add_option("--replay-file", arguments.replayFile,
                   "Where --explore writes what repeats a failure, for `ditron replay`")
      ->type_name("FILE.json")
      ->capture_default_str();
  command->add_flag("--results-may-differ", arguments.resultsMayDiffer,
                    "--explore accepts that arrays differ between schedules, as by atomic sums of floats");
}

Status checkExploration(const RunOptions &options, const std::string &target) {
  const std::pair<const char *, bool> ofOneRun[] = {
      {"--trace", !options.trace.empty()}, {"--explain", !options.explain.empty()}, {"--time", options.time}};
  for (const auto &[name, isGiven] : ofOneRun)
    if (isGiven)
      return invalidArgument(fmt::format(
          "{} is for one run, --explore for many: explore, then give {} to a run with the --seed that failed", name,
          name));
  if (!target.starts_with("sim"))
    return invalidArgument(fmt::format("--explore is for simulated GPUs; the target is {}", target));
  return Status::ok();
}

void nameSchedule(uint64_t seed, const CommandContext &context) {
  fmt::print(stderr, "ditron: {}\n",
             context.schedule ? "this was the schedule " + context.schedule->toJson()
                              : fmt::format("this was --seed {}", seed));
}

namespace {

/// Runs the schedule of a replay, and the one that its results are compared with.
void compareSchedules(ExplorationOptions options, const RunOnce &run, CommandContext &context) {
  options.given = {*context.reference, *context.schedule};
  options.schedules = options.given.size();
  options.resultsMayDiffer = false;
  Expected<ExplorationResult> found = explore(options, run, [](double) {});
  if (!found.isOk())
    return context.finish(found.status());
  fmt::print("compared the schedules {} and {}: {}\n", context.reference->toJson(), context.schedule->toJson(),
             found->failed ? "not the same results" : "the same results");
  std::fflush(stdout);
  context.finish(found->outcome.status, found->outcome.kernelFailed);
  if (found->outcome.mismatched)
    context.exitCode = ExitMismatch;
}

} // namespace

void exploreProgram(const ExplorationOptions &options, const ExploreArguments &arguments, const RunOnce &run,
                    bool isQuiet, const std::function<void(Replay &)> &addSources, CommandContext &context) {
  if (context.reference)
    return compareSchedules(options, run, context);
  const auto start = std::chrono::steady_clock::now();
  Progress progress(isQuiet);
  progress.activity(fmt::format("exploring {}", plural(options.schedules, "schedule")));
  Expected<ExplorationResult> found = explore(options, run, [&](double share) { progress.reached(share); });
  progress.stop();
  if (!found.isOk())
    return context.finish(found.status());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (!isQuiet || found->failed || found->interrupted)
    fmt::print("{}", found->summary());
  if (!isQuiet)
    fmt::print("{:.2f} s, {:.2f} ms a schedule\n", elapsed.count(),
               elapsed.count() * 1000 / static_cast<double>(std::max<uint64_t>(1, found->schedules)));
  if (found->failed) {
    Replay replay{wordsToReplay(context.words), found->schedule, found->reference, {}, found->failures.front().what};
    addSources(replay);
    if (const Status written = writeReplay(replay, arguments.replayFile); written.isOk())
      fmt::print("repeat it with: ditron replay {}\n", arguments.replayFile);
    else
      fmt::print(stderr, "ditron: warning: {}\n", written.message());
    std::fflush(stdout);
    context.finish(found->outcome.status, found->outcome.kernelFailed);
    if (found->outcome.mismatched)
      context.exitCode = ExitMismatch;
  }
  if (found->unfinished) {
    std::fflush(stdout);
    context.finish(found->unfinished->status);
    fmt::print(stderr, "ditron: this was --seed {}\n", found->unfinished->seed);
  }
  if (found->interrupted)
    context.exitCode = exitOfSignal(sim::TimeLimit::interruption());
}

void exploreKernels(const RunOptions &options, const ExploreArguments &arguments, CommandContext &context) {
  if (const Status wrong = checkExploration(options, options.target); !wrong.isOk())
    return context.finish(wrong);
  RunOptions quiet = options;
  quiet.quiet = true;
  std::shared_ptr<jit::Jit> jit;
  std::vector<compiler::KernelSource> sources;
  const RunOnce once = [&](const sim::Schedule &schedule) {
    quiet.schedule = schedule;
    KernelRun run(quiet, context.knobs, jit);
    RunOutcome outcome = run.runOnce();
    if (!jit) {
      jit = run.kernels();
      sources = run.sources();
    }
    return outcome;
  };
  exploreProgram(
      {arguments.schedules, options.seed, options.ranks, options.sms,
       arguments.resultsMayDiffer || !options.expectations.empty()},
      arguments, once, options.quiet,
      [&](Replay &replay) {
        for (const compiler::KernelSource &source : sources)
          addFiles(replay, source);
      },
      context);
}

void addReplayCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("replay", "Repeat the failed run that `ditron run --explore` found");
  auto file = std::make_shared<std::string>();
  command->add_option("file", *file, "What --explore has written")->required()->type_name("FILE.json");
  command->callback([file, &context] {
    Expected<Replay> replay = readReplay(*file);
    if (!replay.isOk())
      return context.finish(replay.status());
    context.schedule = replay->schedule;
    context.reference = replay->reference;
    context.next = replay->command;
  });
}

} // namespace ditron::tool
