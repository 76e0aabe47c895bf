//===- RankBench.cpp - Speed of operators over several ranks ---------------------------------------------------------------===//
#include "bench/RankBench.h"
#include "base/VisibleGpus.h"
#include "bench/BenchPage.h"

#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/Timeline.h"
#include "ditron/sim/Machine.h"

#include <chrono>
#include <fmt/format.h>

namespace ditron::tool {

/// A call of this length by the clock on the wall, what the host takes for it included, is timed by itself.
constexpr std::chrono::microseconds longCall{500};
/// How many of those are timed: so many, or what fits into this time.
constexpr int64_t leastCalls = 3, mostCalls = 10;
constexpr std::chrono::milliseconds longCalls{300};

void addRankOptions(CLI::App &command, RankBenchOptions &options, const std::string &ranksHelp) {
  command.add_option("--target", options.target, "What to run on: sim, cuda (this machine's GPUs), or a full name")
      ->capture_default_str();
  command.add_option("--ranks", options.ranks, ranksHelp)->check(integerBetween(1, 64))->capture_default_str();
}

void addJsonOption(CLI::App &command, RankBenchOptions &options) {
  command.add_option("--json", options.jsonFile, "Write the result to this file; - is standard output")
      ->type_name("FILE");
}

void addReportOptions(CLI::App &command, RankBenchOptions &options) {
  command.add_option("--seed", options.seed, "Chooses the data")->capture_default_str();
  addJsonOption(command, options);
  command.add_flag("--quiet", options.quiet, "Print errors only");
}

void addLongCallOptions(CLI::App &command, LongCallOptions &options, uint32_t leastSms) {
  command.add_option("--timed-calls", options.timedCalls, "Real GPUs: calls to time; 0 for none")
      ->check(integerBetween(0, 1000000))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Chooses the data, the experts and the interleaving")
      ->check(integerBetween(0, UINT32_MAX))
      ->capture_default_str();
  command.add_option("--sms", options.sms, "Simulated SMs per rank")
      ->check(integerBetween(leastSms, 1024))
      ->capture_default_str();
}

Status RankBench::checkOptions() {
  DITRON_RETURN_IF_ERROR(checkCanWrite("--json", base.jsonFile));
  DITRON_ASSIGN_OR_RETURN(dtype, parseDataTypeOrError(base.dtype));
  return Status::ok();
}

Status RankBench::chooseTarget() {
  seeOnlyGpusOf(base.target, base.ranks);
  DITRON_ASSIGN_OR_RETURN(target, runtime::resolveTarget(base.target));
  simulated = target.simulated;
  return Status::ok();
}

Status RankBench::start(const Knobs &knobs, const runtime::WorldOptions &worldOptions) {
  DITRON_ASSIGN_OR_RETURN(world, runtime::World::local(base.ranks, target.text, worldOptions));
  DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(world->target(), knobs));
  data.emplace(dtype, base.seed);
  return Status::ok();
}

Status RankBench::callOnce(const Call &enqueue) {
  for (uint32_t id : world->localRanks())
    DITRON_RETURN_IF_ERROR(enqueue(id));
  return world->synchronize();
}

Expected<double> RankBench::microsecondsOf(const Call &enqueue) {
  struct Calls final : ShortCalls {
    explicit Calls(const Call &one) : one(one) {}
    Status enqueueOne(uint32_t id) override { return one(id); }
    // A call may be a graph or many operations, of which the queues hold few; what is reported are calls in a graph and in a row.
    uint32_t headStart() const override { return 0; }
    const Call &one;
  };
  struct SingleCalls final : TimedCalls {
    explicit SingleCalls(const Call &one) : one(one) {}
    Status enqueue(uint32_t id) override { return one(id); }
    const Call &one;
  };
  if (simulated)
    return 0.0;
  DITRON_RETURN_IF_ERROR(callOnce(enqueue)); // the first one may prepare
  const auto began = std::chrono::steady_clock::now();
  DITRON_RETURN_IF_ERROR(callOnce(enqueue));
  const auto took = std::chrono::steady_clock::now() - began;
  if (took < longCall) {
    Calls calls(enqueue);
    DITRON_ASSIGN_OR_RETURN(const OverlapTimes times, timeShortCalls(*world, calls));
    return times.best();
  }
  SingleCalls calls(enqueue);
  const auto count = static_cast<uint32_t>(std::clamp<int64_t>(longCalls / took, leastCalls, mostCalls));
  DITRON_ASSIGN_OR_RETURN(const OverlapTimes times, timeOverlap(*world, calls, count));
  return times.best();
}

Expected<double> RankBench::simulatedMicroseconds(const Call &enqueue) {
  world->machine()->clearTrace();
  DITRON_RETURN_IF_ERROR(callOnce(enqueue));
  DITRON_ASSIGN_OR_RETURN(const int64_t picoseconds, runtime::spanOfRecordedWork(*world));
  return static_cast<double>(picoseconds) * 1e-6;
}

std::string RankBench::shown(double value, int digits) {
  return value > 0 ? fmt::format("{:.{}f}", value, digits) : "-";
}

nlohmann::ordered_json RankBench::orNull(double value) {
  return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json RankBench::reportOf(std::string_view name) const {
  return {{"operator", name}, {"target", target.text}, {"gpu", gpu()}, {"ranks", base.ranks}};
}

Status RankBench::finish(nlohmann::ordered_json report) {
  progress.stop();
  if (!base.quiet)
    fmt::print(textStream(base.jsonFile, ""), "{}", table);
  report["rows"] = std::move(reportRows);
  return writeReport("--json", base.jsonFile, report.dump(1) + "\n");
}

Status verifyError(double error, double allowed) {
  if (error <= allowed)
    return Status::ok();
  return internalError(fmt::format("wrong result, error {:.3g} of the root mean square", error));
}

Status verifyErrorOfCall(int call, double error, double allowed) {
  if (error <= allowed)
    return Status::ok();
  return internalError(fmt::format("call {} gave a wrong result: error {:.3g} of the root mean square; {} is allowed",
                                   call, error, allowed));
}

} // namespace ditron::tool
