//===- ProgramCommand.cpp - ditron run PROGRAM.json ---------------------------------------------------------------===//
//
// The work is ditron/program's; here are the options, and what people read.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "run/ProgramCommand.h"

#include "run/ExplainFile.h"

#include "base/VisibleGpus.h"
#include "base/WorldText.h"
#include "run/SourceLine.h"

#include "ditron/frontend/Signature.h"
#include "ditron/program/Reader.h"
#include "ditron/program/Run.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/sim/Machine.h"
#include "ditron/support/Plural.h"

#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::tool {

namespace {

/// What a run file says itself.
constexpr std::pair<const char *, const char *> refusals[] = {
    {"--then", "write another step {\"launch\": ...}"},
    {"--grid", "write it into the step: \"grid\""},
    {"--num-warps", "write it into the step: \"num_warps\""},
    {"--num-stages", "write it into the step: \"num_stages\""},
    {"--config", "write it into the step: \"config\""},
    {"--barrier", "write a step {\"barrier\": \"NAME\"}"},
    {"--arg", "write \"buffers\", and \"args\" into the step"},
    {"--constexpr", "write it into the step: \"constexprs\""},
    {"--memory", "write it into \"buffers\""},
    {"--out", "write a step {\"save\": \"NAME\", \"to\": \"FILE.npy\"}"},
    {"--print", "write a step {\"print\": \"NAME\"}"},
    {"--expect", "write a step {\"expect\": \"NAME\", \"value\": ...}"},
    {"--tolerance", "write it into the step 'expect': \"tolerance\""},
    {"--result", "write it into the file: \"results\": [\"NAME\"]"},
    {"--cooperative", "write it into the step: \"cooperative\": true"},
    {"--package", "run files compile their kernels"},
};

Status checkOptions(const std::string &path, const CLI::App &command) {
  for (const auto &[option, instead] : refusals)
    if (const CLI::Option *given = command.get_option_no_throw(option); given && given->count() > 0)
      return invalidArgument(fmt::format("{} is about one kernel, and {} is a run file; {}", option, path, instead));
  return Status::ok();
}

class ProgramCommand {
public:
  ProgramCommand(const std::string &path, const RunOptions &options, const CLI::App &command, CommandContext &context)
      : path(path), options(options), command(command), context(context), progress(options.quiet) {}

  Status run() {
    const auto start = std::chrono::steady_clock::now();
    DITRON_RETURN_IF_ERROR(read());
    settings.world.schedule = context.schedule;
    DITRON_ASSIGN_OR_RETURN(running, program::Run::create(program, *jit, settings));
    if (sim::Machine *machine = running->world().machine())
      machine->observeProgress([this](double fraction) { progress.reached(fraction); });
    progress.activity(
        fmt::format("running {} on {} of {}", path, plural(program.ranks, "rank"), running->world().target()));
    outcome = running->execute();
    Status ran = outcome.status;
    if (Status traced = writeTrace(); !traced.isOk() && ran.isOk())
      ran = traced;
    if (Status explained = writeExplainFile(options.explain, running->world().machine(), ran);
        !explained.isOk() && ran.isOk())
      ran = explained;
    progress.stop();
    DITRON_RETURN_IF_ERROR(describe(ran));
    if (!options.quiet)
      printSummary(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return outcome.mismatches.empty() ? Status::ok() : mismatches();
  }

  /// Reads the run file and makes the compiler.
  Status read() {
    DITRON_RETURN_IF_ERROR(checkOptions(path, command));
    progress.activity("reading " + path);
    program::ReadOptions reading;
    if (command.count("--ranks"))
      reading.ranks = options.ranks;
    if (command.count("--ranks-per-node"))
      reading.ranksPerNode = options.ranksPerNode;
    DITRON_ASSIGN_OR_RETURN(program, program::readProgram(path, reading));
    return prepare();
  }

  /// Runs what has been read, and prints nothing.
  RunOutcome runOnce(const sim::Schedule &schedule) {
    settings.print = [](const std::string &) {};
    settings.world.schedule = schedule;
    RunOutcome result;
    Expected<std::unique_ptr<program::Run>> made = program::Run::create(program, *jit, settings);
    result.status = made.status();
    if (!made.isOk())
      return result;
    running = std::move(*made);
    outcome = running->execute();
    result.status = describe(outcome.status);
    result.kernelFailed = hasFailed();
    result.mismatched = hasMismatch();
    if (result.mismatched)
      result.status = mismatches();
    else if (result.status.isOk() && outcome.expectations == 0) {
      result.results = arrays();
      result.oldValues = oldValuesNote(running->world());
    }
    return result;
  }

  const std::string &target() const { return settings.target; }
  uint32_t ranks() const { return program.ranks; }
  uint32_t smsPerRank() const { return settings.world.sms; }
  bool isSimulated() const { return running && running->world().machine(); }
  void addSources(Replay &replay) const {
    addFile(replay, path, program.source.text);
    if (running)
      for (const compiler::KernelSource *source : running->sources())
        addFiles(replay, *source);
  }

  /// Whether the error of run() is one of the running program.
  bool hasFailed() const {
    return outcome.hasStarted && !outcome.status.isOk() && outcome.status.code() != StatusCode::Internal;
  }
  bool hasMismatch() const { return outcome.status.isOk() && !outcome.mismatches.empty(); }

private:
  /// With the line of the kernel's source.
  Status describe(Status status) const {
    for (const compiler::KernelSource *source : running->sources())
      status = withSourceLine(status, *source);
    return status;
  }

  Status mismatches() const {
    return invalidArgument(fmt::format("{}{}", fmt::join(outcome.mismatches, "\n"), oldValuesNote(running->world())));
  }

  /// The results, or all that has not been freed.
  std::vector<RunOutcome::Result> arrays() const {
    std::vector<RunOutcome::Result> results;
    std::vector<std::string> names = program.results;
    if (names.empty())
      for (const program::BufferDeclaration &buffer : program.buffers)
        names.push_back(buffer.name);
    for (const std::string &name : names)
      for (uint32_t rank = 0; rank < program.ranks; ++rank)
        if (Expected<NpyArray> values = running->array(name, rank); values.isOk())
          results.push_back({fmt::format("{} on rank {}", name, rank), std::move(*values)});
    return results;
  }

  Status prepare() {
    settings.target =
        program::targetOf(program, command.count("--target") ? std::optional(options.target) : std::nullopt);
    seeOnlyGpusOf(settings.target, program.ranks);
    DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(settings.target));
    DITRON_RETURN_IF_ERROR(checkForRealGpus(target.simulated, options.shareGpus, options.boundWaits > 0));
    runtime::WorldOptions &world = settings.world;
    world.ranksPerNode = program.ranksPerNode;
    world.sms = command.count("--sms") ? options.sms : program.sms.value_or(options.sms);
    world.seed = options.seed;
    world.checkBounds = !options.noBoundsCheck;
    world.checkRaces = !options.noRaceCheck;
    world.trace = !options.trace.empty();
    world.shareGpus = options.shareGpus;
    world.timeLimitSeconds = options.timeLimit;
    Knobs knobs = context.knobs;
    knobs.traceGpu |= world.trace && !target.simulated;
    if (options.boundWaits > 0) {
      knobs.boundWaits = true;
      world.waitLimitSeconds = options.boundWaits;
    }
    DITRON_ASSIGN_OR_RETURN(world.slowRanks, parseSlowRanks(options.slowRanks, program.ranks));
    settings.dataSeed = options.dataSeed;
    settings.debug = options.debug;
    settings.searchPaths = options.source.paths;
    DITRON_ASSIGN_OR_RETURN(settings.defines, frontend::parseDefines(options.source.defines));
    settings.print = [this](const std::string &text) { fmt::print(listing(), "{}", text); };
    DITRON_RETURN_IF_ERROR(checkCanWrite("--trace", options.trace));
    DITRON_RETURN_IF_ERROR(checkExplainFile(options.explain, target.simulated));
    DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(target.text, knobs));
    jit->setObserver([this](const std::string &kernel, const compiler::CompileReport *report) {
      if (!report)
        progress.activity("compiling " + kernel);
      else
        fmt::print(stderr, "{}{}", report->printed,
                   shownMessages.insert(report->messages).second ? report->messages : "");
    });
    return Status::ok();
  }

  Status writeTrace() {
    if (options.trace == standardOutput) {
      DITRON_ASSIGN_OR_RETURN(const std::string trace, running->world().chromeTrace());
      fmt::print("{}", trace);
      return Status::ok();
    }
    return options.trace.empty() ? Status::ok() : running->world().writeTrace(options.trace);
  }

  /// What people read: stderr when standard output takes the trace.
  std::FILE *listing() const {
    return options.trace == standardOutput || options.explain == standardOutput ? stderr : stdout;
  }

  void printSummary(double seconds) {
    const sim::Machine *machine = running->world().machine();
    fmt::print(listing(), "{}: {} of {} on {}: {}{:.2f} s here ({:.2f} s compiling)\n", path,
               plural(program.ranks, "rank"), plural(running->world().rank(0).attributes().multiprocessors, "SM"),
               running->world().target(),
               machine ? fmt::format("{:.1f} us of simulated time, ", static_cast<double>(machine->now()) / 1e6) : "",
               seconds, jit->counters().compileMilliseconds / 1000);
    if (outcome.expectations > 0 && outcome.mismatches.empty())
      fmt::print(listing(), "{} as expected\n", plural(outcome.expectations, "array part"));
    if (!options.trace.empty() && options.trace != standardOutput)
      fmt::print(listing(), "trace: {} (open it with https://ui.perfetto.dev)\n", options.trace);
  }

  const std::string &path;
  const RunOptions &options;
  const CLI::App &command;
  CommandContext &context;
  Progress progress;
  program::Program program;
  program::RunOptions settings;
  std::unique_ptr<jit::Jit> jit;
  std::unique_ptr<program::Run> running;
  program::Outcome outcome;
  std::set<std::string> shownMessages; ///< Warnings that were printed.
};

} // namespace

bool isRunFile(std::string_view kernel) { return kernel.ends_with(".json"); }

void exploreRunFile(const std::string &path, const RunOptions &options, const ExploreArguments &arguments,
                    const CLI::App &command, CommandContext &context) {
  ProgramCommand program(path, options, command, context);
  Status wrong = program.read();
  if (wrong.isOk())
    wrong = checkExploration(options, program.target());
  if (!wrong.isOk())
    return context.finish(wrong);
  exploreProgram(
      {arguments.schedules,
       options.seed,
       program.ranks(),
       program.smsPerRank(),
       arguments.resultsMayDiffer,
       {},
       "\"results\": [NAMES] in the file"},
      arguments, [&](const sim::Schedule &schedule) { return program.runOnce(schedule); }, options.quiet,
      [&](Replay &replay) { program.addSources(replay); }, context);
}

void runProgram(const std::string &path, const RunOptions &options, const CLI::App &command, CommandContext &context) {
  ProgramCommand program(path, options, command, context);
  const Status status = program.run();
  context.finish(status, program.hasFailed());
  if (program.hasMismatch())
    context.exitCode = ExitMismatch;
  if ((program.hasFailed() || program.hasMismatch()) && program.isSimulated())
    nameSchedule(options.seed, context);
}

} // namespace ditron::tool
