//===- RankBench.h - Speed of operators over several ranks ----------------------------------------------------*- C++ -*-===//
//
// What `ditron bench` has for every operator on a world of ranks of this process: the options that all of them have, the world and the compiler, a call timed on all
// ranks at once, and the report as a table for people and JSON for scripts. What is called, and how its result is checked, are each benchmark's own.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_RANKBENCH_H
#define DITRON_TOOLS_DITRON_RANKBENCH_H

#include "base/Command.h"
#include "base/NormalData.h"
#include "base/Progress.h"
#include "overlap/OverlapTiming.h"

#include "ditron/jit/Jit.h"
#include "ditron/runtime/World.h"
#include "ditron/support/TargetName.h"

#include <functional>
#include <nlohmann/json.hpp>

namespace ditron::tool {

/// What all of them have.
struct RankBenchOptions {
  std::string target = "sim:sm_80", dtype = "bf16";
  uint32_t ranks = 4;
  uint64_t seed = 0;
  std::string jsonFile;
  bool quiet = false;
};

/// What the benchmarks have whose call is long enough to be captured one by one; simulated calls are timed by virtual time.
struct LongCallOptions : RankBenchOptions {
  uint32_t timedCalls = 10, sms = 8;
  bool check = false, unfused = false;
};

/// --target and --ranks.
void addRankOptions(CLI::App &command, RankBenchOptions &options, const std::string &ranksHelp = "Number of ranks");
/// --json.
void addJsonOption(CLI::App &command, RankBenchOptions &options);
/// --seed, --json and --quiet.
void addReportOptions(CLI::App &command, RankBenchOptions &options);
/// --timed-calls, --seed and --sms.
void addLongCallOptions(CLI::App &command, LongCallOptions &options, uint32_t leastSms);

/// The parts of a benchmark's run, in the order in which it takes them.
class RankBench {
public:
  explicit RankBench(const RankBenchOptions &options) : progress(options.quiet), base(options) {}

protected:
  using Call = std::function<Status(uint32_t)>;

  /// Reads --dtype, and refuses a --json that could not be written.
  Status checkOptions();
  /// Says what `target` and `simulated` are.
  Status chooseTarget();
  /// The world, the compiler and the data, of the target that was chosen.
  Status start(const Knobs &knobs, const runtime::WorldOptions &worldOptions = {});

  std::string gpu() const { return world->rank(0).attributes().name; }
  /// Makes one call on every rank, and waits for all.
  Status callOnce(const Call &enqueue);
  /// Of a call, however short or long, on GPUs; 0 on simulated ones.
  Expected<double> microsecondsOf(const Call &enqueue);
  /// Of one call, in virtual time; what was recorded before is forgotten.
  Expected<double> simulatedMicroseconds(const Call &enqueue);
  Expected<double> simulatedMicroseconds(TimedCalls &calls) {
    return simulatedMicroseconds([&](uint32_t id) { return calls.enqueue(id); });
  }

  /// For tables and JSON, of a time, a rate or a ratio; 0 was not measured: "-" and null.
  static std::string shown(double value, int digits);
  static nlohmann::ordered_json orNull(double value);

  /// The report so far: operator, target, GPU, number of ranks.
  nlohmann::ordered_json reportOf(std::string_view name) const;
  /// Prints the table, and writes the report with the rows behind it.
  Status finish(nlohmann::ordered_json report);

  Progress progress;
  DataType dtype = DataType::BF16;
  TargetName target;
  bool simulated = false;
  std::unique_ptr<runtime::World> world;
  std::unique_ptr<jit::Jit> jit;
  std::optional<NormalData> data;
  std::string table;
  nlohmann::ordered_json reportRows = nlohmann::ordered_json::array();

private:
  const RankBenchOptions &base;
};

/// Refuses a result whose RelativeError is more than is allowed, or not a number.
Status verifyError(double error, double allowed);
/// The same of one of several calls.
Status verifyErrorOfCall(int call, double error, double allowed);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_RANKBENCH_H
