//===- KernelRun.cpp - A run of kernels on every rank -------------------------------------------------------------===//
//
// Everything that can be wrong with the command line is found before anything is compiled or run.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "run/KernelRun.h"

#include "run/ExplainFile.h"

#include "base/VisibleGpus.h"
#include "base/WorldText.h"
#include "run/SourceLine.h"

#include "ditron/runtime/TargetChoice.h"
#include "ditron/sim/Machine.h"
#include "ditron/support/OutputFile.h"
#include "ditron/support/Plural.h"
#include "ditron/values/ArrayPrint.h"

#include <chrono>
#include <cstdio>
#include <fmt/format.h>

namespace ditron::tool {

Status KernelRun::run() {
  const auto start = std::chrono::steady_clock::now();
  DITRON_RETURN_IF_ERROR(prepare());
  Status ran = execute();
  // A trace of a run that failed is when it is needed most.
  if (Status traced = writeTrace(); !traced.isOk() && ran.isOk())
    ran = traced;
  if (Status explained = writeExplainFile(options.explain, world->machine(), ran); !explained.isOk() && ran.isOk())
    ran = explained;
  progress.stop();
  for (const KernelStage &stage : stages)
    ran = withSourceLine(ran, stage.sourceText());
  DITRON_RETURN_IF_ERROR(ran);
  DITRON_RETURN_IF_ERROR(writeOutputs());
  for (const values::SliceText &slice : prints)
    DITRON_RETURN_IF_ERROR(print(slice));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (!options.quiet)
    printSummary(elapsed.count());
  return compareWithExpectations();
}

Status KernelRun::prepare() {
  progress.activity("reading arguments");
  DITRON_RETURN_IF_ERROR(makeWorld());
  DITRON_RETURN_IF_ERROR(loadKernels());
  DITRON_RETURN_IF_ERROR(bindArguments());
  DITRON_RETURN_IF_ERROR(bindOutputs());
  return compile();
}

RunOutcome KernelRun::runOnce() {
  RunOutcome outcome;
  outcome.status = prepare();
  if (!outcome.status.isOk())
    return outcome;
  outcome.status = execute();
  for (const KernelStage &stage : stages)
    outcome.status = withSourceLine(outcome.status, stage.sourceText());
  if (outcome.status.isOk())
    outcome.status = compareWithExpectations();
  outcome.kernelFailed = kernelFailed;
  outcome.mismatched = mismatched;
  if (!outcome.status.isOk())
    return outcome;
  outcome.oldValues = oldValuesNote(*world);
  Expected<std::vector<RunOutcome::Result>> results = downloadResults();
  if (results.isOk())
    outcome.results = std::move(*results);
  else
    outcome.status = results.status();
  return outcome;
}

Expected<std::vector<RunOutcome::Result>> KernelRun::downloadResults() const {
  std::vector<const RunArray *> wanted;
  for (const std::string &name : options.results)
    wanted.push_back(arrays->find(name));
  if (wanted.empty()) {
    for (const Output &output : outputs)
      wanted.push_back(output.array);
    for (const values::SliceText &slice : prints)
      wanted.push_back(arrays->find(slice.name));
  }
  if (wanted.empty())
    for (const RunArray &array : arrays->all())
      wanted.push_back(&array);
  std::vector<RunOutcome::Result> results;
  for (const RunArray *array : wanted)
    for (uint32_t rank = 0; rank < options.ranks; ++rank) {
      DITRON_ASSIGN_OR_RETURN(NpyArray values, array->download(rank));
      results.push_back({fmt::format("{} on rank {}", array->name, rank), std::move(values)});
    }
  return results;
}

std::vector<compiler::KernelSource> KernelRun::sources() const {
  std::vector<compiler::KernelSource> sources;
  for (const KernelStage &stage : stages)
    sources.push_back(stage.sourceText());
  return sources;
}

Status KernelRun::makeWorld() {
  runtime::WorldOptions worldOptions;
  worldOptions.sms = options.sms;
  worldOptions.ranksPerNode = options.ranksPerNode;
  worldOptions.seed = options.seed;
  worldOptions.schedule = options.schedule;
  worldOptions.checkBounds = !options.noBoundsCheck;
  worldOptions.checkRaces = !options.noRaceCheck;
  worldOptions.trace = !options.trace.empty();
  worldOptions.shareGpus = options.shareGpus;
  worldOptions.timeLimitSeconds = options.timeLimit;
  seeOnlyGpusOf(options.target, options.ranks);
  if (options.ranks == 1)
    takeFewQueues();
  const auto begin = std::chrono::steady_clock::now();
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(options.target));
  const std::chrono::duration<double, std::milli> driverStart = std::chrono::steady_clock::now() - begin;
  if (!target.simulated)
    compileReport.times.push_back({"the GPUs' driver", driverStart.count(), compiler::Phase::Load});
  DITRON_RETURN_IF_ERROR(checkForRealGpus(target.simulated, options.shareGpus, options.boundWaits > 0));
  Knobs compileKnobs = knobs;
  compileKnobs.publishWaits = !options.noPublishWaits; // who runs a kernel from here wants to know why it hangs
  compileKnobs.traceGpu |= worldOptions.trace && !target.simulated;
  if (options.boundWaits > 0) {
    compileKnobs.boundWaits = true;
    worldOptions.waitLimitSeconds = options.boundWaits;
  }
  DITRON_ASSIGN_OR_RETURN(worldOptions.slowRanks, parseSlowRanks(options.slowRanks, options.ranks));
  DITRON_ASSIGN_OR_RETURN(world, runtime::World::local(options.ranks, options.target, worldOptions));
  for (uint32_t rank = 0; rank < options.ranks; ++rank)
    for (const runtime::StartTime &step : world->rank(rank).device()->startTimes())
      compileReport.times.push_back({fmt::format("{}, rank {}", step.what, rank), step.milliseconds, compiler::Phase::Load});
  warnOfIdenticalWorlds(world->machine() != nullptr, options.ranks);
  if (!jit) {
    DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(world->target(), compileKnobs));
  }
  if (!options.packages.empty()) {
    DITRON_ASSIGN_OR_RETURN(packaged, package::PackageProvider::open(options.packages, {.target = world->target()}));
  }
  if (world->machine())
    world->machine()->observeProgress([this](double fraction) { progress.reached(fraction); });
  arrays = std::make_unique<RunArrays>(*world, options.dataSeed);
  return Status::ok();
}

Status KernelRun::loadKernels() {
  for (const StageOptions &stage : options.stages) {
    DITRON_ASSIGN_OR_RETURN(KernelReference reference, readKernelReference(stage.kernel, options.source));
    DITRON_ASSIGN_OR_RETURN(jit::KernelFunction function, jit->load(reference.source, reference.kernel));
    stages.emplace_back(stage, std::move(reference.source), std::move(function));
  }
  jit->setObserver([this](const std::string &kernel, const compiler::CompileReport *report) {
    if (!report) {
      progress.activity("compiling " + kernel);
      return;
    }
    // The variants of a kernel give the same warnings.
    fmt::print(stderr, "{}{}", report->printed, shownMessages.insert(report->messages).second ? report->messages : "");
    compileReport.isFromCache = report->isFromCache;
    compileReport.times.insert(compileReport.times.end(), report->times.begin(), report->times.end());
  });
  return Status::ok();
}

Status KernelRun::bindArguments() {
  for (KernelStage &stage : stages)
    DITRON_RETURN_IF_ERROR(stage.check());
  // What a kernel is given, later ones get too; a value that is given anew is that of the kernels from there on.
  std::vector<SharedArguments> shared(stages.size());
  for (const bool withAddresses : {false, true}) {
    for (const std::string &text : options.memory) {
      DITRON_ASSIGN_OR_RETURN(auto assignment, splitAssignment("--memory", text));
      if (mentionsAddress(assignment.second) == withAddresses)
        DITRON_RETURN_IF_ERROR(
            bindParameter(*arrays, options.ranks, ParameterKind::Memory, assignment.first, assignment.second).status());
    }
    for (size_t i = 0; i < stages.size(); ++i)
      DITRON_RETURN_IF_ERROR(stages[i].bind(*arrays, options.ranks, withAddresses, shared[i]));
  }
  const values::IntegerNames constants = {{"RANKS", options.ranks}, {"SMS", world->rank(0).attributes().multiprocessors}};
  SharedArguments earlier;
  for (size_t i = 0; i < stages.size(); ++i) {
    for (auto &[name, value] : shared[i])
      earlier[name] = std::move(value);
    DITRON_RETURN_IF_ERROR(stages[i].complete(*jit, earlier, constants, options.ranks, options.debug));
    if (!options.quiet && !stages[i].configuration().empty())
      fmt::print(stderr, "configuration: {}\n", stages[i].configuration());
  }
  return Status::ok();
}

Status KernelRun::bindOutputs() {
  for (const std::string &text : options.outputs) {
    DITRON_ASSIGN_OR_RETURN(auto assignment, splitAssignment("--out", text));
    const auto &[name, value] = assignment;
    DITRON_ASSIGN_OR_RETURN(const RunArray *array, arrays->require("--out", name));
    DITRON_ASSIGN_OR_RETURN(values::OutputText output, values::parseOutputText(name, value));
    if (options.ranks > 1 && !values::hasRank(output.path))
      return invalidArgument(fmt::format("--out {}={}: {} ranks would write one file; put {{rank}} into the path", name,
                                         value, options.ranks));
    outputs.push_back({array, std::move(output)});
  }
  for (const std::string &text : options.prints) {
    DITRON_ASSIGN_OR_RETURN(values::SliceText slice, values::parseSliceText(text));
    DITRON_ASSIGN_OR_RETURN(const RunArray *array, arrays->require("--print", slice.name));
    DITRON_RETURN_IF_ERROR(values::checkSlice(slice, array->shapes));
    prints.push_back(std::move(slice));
  }
  for (const std::string &name : options.results)
    DITRON_RETURN_IF_ERROR(arrays->require("--result", name).status());
  DITRON_ASSIGN_OR_RETURN(const std::vector<values::Tolerance> tolerances,
                          values::parseTolerances(options.tolerances, options.expectations.size()));
  for (size_t i = 0; i < options.expectations.size(); ++i) {
    DITRON_ASSIGN_OR_RETURN(Expectation expectation,
                            readExpectation(*arrays, options.ranks, options.dataSeed, options.expectations[i], tolerances[i]));
    expectations.push_back(std::move(expectation));
  }
  return checkOutputFiles();
}

Status KernelRun::checkOutputFiles() {
  DITRON_RETURN_IF_ERROR(checkExplainFile(options.explain, isSimulated()));
  std::vector<NamedFile> files;
  std::vector<std::string> streamed;
  if (options.trace == standardOutput)
    streamed.push_back("--trace -");
  if (options.explain == standardOutput)
    streamed.push_back("--explain -");
  for (const Output &output : outputs)
    if (output.text.path == standardOutput)
      streamed.push_back(fmt::format("--out {}=-", output.array->name));
  if (streamed.size() > 1)
    return invalidArgument(fmt::format("{} and {}: only one of them can be standard output", streamed[0], streamed[1]));
  if (!streamed.empty())
    listing = stderr;
  for (const Output &output : outputs)
    for (uint32_t rank = 0; rank < (values::hasRank(output.text.path) ? options.ranks : 1); ++rank)
      files.push_back({"--out " + output.array->name, values::pathForRank(output.text.path, rank)});
  if (!options.trace.empty())
    files.push_back({"--trace", options.trace});
  if (!options.explain.empty())
    files.push_back({"--explain", options.explain});
  std::erase_if(files, [](const NamedFile &file) { return file.path == standardOutput; });
  for (const NamedFile &file : files)
    DITRON_RETURN_IF_ERROR(checkCanWrite(file.what, file.path));
  for (const KernelStage &stage : stages)
    files.push_back({"the kernel file", stage.sourceText().path, /*isRead=*/true});
  return checkDistinctFiles(files);
}

Status KernelRun::compile() {
  // All is compiled and loaded before the first rank starts, since its kernel may wait for the others'.
  for (KernelStage &stage : stages) {
    for (uint32_t rank = 0; rank < options.ranks; ++rank) {
      DITRON_RETURN_IF_ERROR(stage.specialise(*jit, packaged.get(), rank));
      const auto begin = std::chrono::steady_clock::now();
      DITRON_RETURN_IF_ERROR(world->rank(rank).device()->load(stage.kernel(rank)));
      const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
      if (!world->machine())
        compileReport.times.push_back({fmt::format("driver, rank {}", rank), elapsed.count(), compiler::Phase::Load});
    }
  }
  if (options.time)
    fmt::print(stderr, "{}", compileReport.timesText());
  return Status::ok();
}

Status KernelRun::launch() {
  const bool timed = world->machine() == nullptr;
  for (uint32_t rank = 0; rank < options.ranks && timed; ++rank) {
    DITRON_ASSIGN_OR_RETURN(runtime::Event begin, world->rank(rank).createEvent("begin"));
    DITRON_ASSIGN_OR_RETURN(runtime::Event end, world->rank(rank).createEvent("end"));
    DITRON_RETURN_IF_ERROR(world->rank(rank).stream().record(begin));
    begins.push_back(std::move(begin));
    ends.push_back(std::move(end));
  }
  for (const KernelStage &stage : stages) {
    if (stage.waitsForAll())
      DITRON_RETURN_IF_ERROR(world->synchronize());
    for (uint32_t rank = 0; rank < options.ranks; ++rank)
      if (Status launched = stage.launch(*world, rank, options.cooperative); !launched.isOk()) {
        // Refused for what was asked, its grid perhaps: no kernel failed.
        launchRefused = launched.code() == StatusCode::InvalidArgument && world->status().isOk();
        return launched;
      }
    progress.activity(fmt::format("running {} on {} of {}", stage.name(),
                                  plural(options.ranks, "rank"), world->target()));
  }
  for (uint32_t rank = 0; rank < options.ranks && timed; ++rank)
    DITRON_RETURN_IF_ERROR(world->rank(rank).stream().record(ends[rank]));
  return Status::ok();
}

Status KernelRun::execute() {
  const Status launched = launch();
  const Status ran = launched.isOk() ? world->synchronize() : launched;
  // The simulator knows its own faults; of a kernel that traps a driver says no more than that it failed.
  kernelFailed = !ran.isOk() && !launchRefused && (ran.code() != StatusCode::Internal || !world->machine());
  return ran;
}

Status KernelRun::writeTrace() {
  if (options.trace == standardOutput) {
    DITRON_ASSIGN_OR_RETURN(const std::string trace, world->chromeTrace());
    std::fwrite(trace.data(), 1, trace.size(), stdout);
    return Status::ok();
  }
  return options.trace.empty() ? Status::ok() : world->writeTrace(options.trace);
}

Status KernelRun::writeOutputs() {
  // All are written before the first takes its place: a disk that is full leaves what was there.
  std::vector<OutputFile> files;
  for (const Output &output : outputs) {
    for (uint32_t rank = 0; rank < options.ranks; ++rank) {
      DITRON_ASSIGN_OR_RETURN(NpyArray array, output.array->download(rank));
      if (output.text.type) {
        std::string overflow;
        DITRON_ASSIGN_OR_RETURN(array, values::interpretArray(std::move(array), *output.text.type, output.array->name, &overflow));
        if (!overflow.empty())
          fmt::print(stderr, "ditron: warning: --out {}, on rank {}\n", overflow, rank);
      }
      const auto bytes = formatNpy(array.type, array.shape, array.data);
      if (output.text.path == standardOutput) {
        std::fwrite(bytes.data(), 1, bytes.size(), stdout);
        continue;
      }
      DITRON_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(values::pathForRank(output.text.path, rank)));
      DITRON_RETURN_IF_ERROR(file.write(bytes));
      DITRON_RETURN_IF_ERROR(file.complete());
      files.push_back(std::move(file));
    }
  }
  for (OutputFile &file : files)
    DITRON_RETURN_IF_ERROR(file.commit());
  return Status::ok();
}

Status KernelRun::print(const values::SliceText &slice) {
  const RunArray &array = *arrays->find(slice.name);
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    if (slice.rank && *slice.rank != rank)
      continue;
    DITRON_ASSIGN_OR_RETURN(const NpyArray whole, array.download(rank));
    const NpyArray part = values::takeSlice(slice, whole);
    fmt::print(listing, "{}{} on rank {}: {} {}{}\n", slice.name, slice.brackets, rank, toString(part.type),
               shapeToString(part.shape), part.elementCount() == 0 ? ", 0 elements" : "");
    fmt::print(listing, "{}\n", values::arrayText(part, slice.brackets.empty() ? values::Abbreviate::Long : values::Abbreviate::Never));
  }
  return Status::ok();
}

Status KernelRun::compareWithExpectations() {
  std::string problems;
  for (const Expectation &expectation : expectations) {
    DITRON_ASSIGN_OR_RETURN(const std::vector<std::string> found, expectation.compare(*arrays, options.ranks));
    for (const std::string &problem : found)
      problems += (problems.empty() ? "" : "\nditron: error: ") + problem;
    if (found.empty() && !options.quiet)
      fmt::print(listing, "{}\n", expectation.describeMatch(options.ranks));
  }
  mismatched = !problems.empty();
  return mismatched ? invalidArgument(problems + oldValuesNote(*world)) : Status::ok();
}

std::string KernelRun::deviceTime() const {
  if (const sim::Machine *machine = world->machine())
    return fmt::format("{:.1f} us of simulated time", static_cast<double>(machine->now()) / 1e6);
  int64_t slowest = 0;
  for (size_t rank = 0; rank < ends.size(); ++rank)
    if (Expected<int64_t> elapsed = ends[rank].elapsedSince(begins[rank]); elapsed.isOk())
      slowest = std::max(slowest, *elapsed);
  return fmt::format("{:.1f} us on the slowest GPU ({})", static_cast<double>(slowest) / 1e6,
                     stages.size() == 1 ? "one cold launch" : fmt::format("{} cold launches", stages.size()));
}

void KernelRun::printSummary(double seconds) {
  const uint32_t sms = world->rank(0).attributes().multiprocessors;
  std::string names;
  for (const KernelStage &stage : stages) {
    if (stages.size() > 1)
      fmt::print(listing, "{}: {}\n", stage.name(), stage.describe());
    names += (names.empty() ? "" : ", ") + stage.name();
  }
  fmt::print(listing, "{}: {} of {} on {}{}: {}, {:.2f} s here ({:.2f} s compiling)\n", names, plural(options.ranks, "rank"),
             plural(sms, "SM"), world->target(),
             stages.size() == 1 ? ", " + stages[0].describe() : "", deviceTime(), seconds,
             jit->counters().compileMilliseconds / 1000);
  for (const Output &output : outputs)
    if (output.text.path != standardOutput)
      fmt::print(listing, "wrote {} to {}\n", output.array->name, output.text.path);
  if (!options.trace.empty() && options.trace != standardOutput)
    fmt::print(listing, "trace: {} (open it with https://ui.perfetto.dev)\n", options.trace);
}

} // namespace ditron::tool
