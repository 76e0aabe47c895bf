//===- OverlapRun.h - One verified run of an overlapped operator ---------------------------------------------*- C++ -*-===//
//
// What `ditron bench ag_gemm|gemm_rs|gemm_ar` and `ditron demo` share: make a world, random operands and the operator, make a number of
// calls with fresh data, compare each rank's result with a plain reference, and say how much of the computation was done
// before the communication had ended.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_OVERLAPRUN_H
#define DITRON_TOOLS_DITRON_OVERLAPRUN_H

#include "base/NormalData.h"
#include "overlap/OverlapTiming.h"
#include "overlap/PlantedFault.h"

#include "ditron/jit/Jit.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"
#include "ditron/runtime/Timeline.h"
#include "ditron/support/Knobs.h"

#include <functional>
#include <optional>

namespace ditron::tool {

enum class OverlapOperator { AllGatherGemm, GemmReduceScatter, GemmAllReduce };
/// "ag_gemm", "gemm_rs", "gemm_ar".
std::string_view toString(OverlapOperator op);

struct OverlapRunOptions {
  OverlapOperator op = OverlapOperator::AllGatherGemm;
  int64_t m = 1024;                ///< Rows of the gathered A, or of the unreduced product.
  int64_t n = 1024;                ///< Columns in total: AllGather+GEMM deals them out to the ranks.
  int64_t k = 1024;                ///< Depth in total: GEMM+ReduceScatter and GEMM+AllReduce deal it out to the ranks.
  DataType dtype = DataType::BF16; ///< Of A and B.
  std::optional<DataType> resultType = std::nullopt;
  ops::Scaling scales = ops::Scaling::None; ///< Of A and of B.
  bool bias = false;                        ///< Of the result's type.
  ops::Activation activation = ops::Activation::None;
  ops::MatrixOrder weights = ops::MatrixOrder::Plain;
  int64_t padding = 0; ///< Elements behind each row of A, B and the result.
  uint32_t ranks = 8;
  std::string target = "sim:sm_80";
  runtime::WorldOptions world;
  std::optional<ops::TensorParallelPlan>
      plan; ///< Of all calls; else what the tables say, where the following do not say more.
  ops::TileConfig tile = ops::libraryTile;
  ops::MultiplyPrecision precision = ops::MultiplyPrecision::Tf32;
  ops::Schedule schedule = ops::Schedule::Overlapped;
  uint32_t chunks = 0;                                ///< Per shard, AllGather+GEMM only; 0: the library's choice.
  ops::AllReduceForm form = ops::AllReduceForm::Auto; ///< Of GEMM+AllReduce, as are the next two and `splits`.
  uint32_t rowChunks = 0, exchangeBlocks = 0;         ///< 0: the library's choice.
  std::optional<int64_t> oneLaunchRows;               ///< Of the other operators.
  uint32_t concurrentCalls = 1;                       ///< Of all where a call is one launch.
  PlantedFault fault = PlantedFault::None;
  uint32_t splits = 0; ///< Of the forms of one launch, whose tile `tile` is then; 0: the library's choice of both.
  uint32_t nodes = 1;  ///< For the order of tiles; simulated ones are those of `world`.
  uint32_t calls = 1;  ///< Each with new data.
  bool check = true;
  uint32_t timedCalls = 0; ///< On real GPUs: calls that are timed, after the others.
  bool processes = false;  ///< This process is one rank of a job (World::fromEnvironment).
  Knobs knobs;
  bool boundWaits = false; ///< A wait that passes WorldOptions::waitLimitSeconds is an error with a report.
  std::string traceFile;

  DataType typeOfResult() const { return resultType.value_or(ops::defaultResultType(dtype)); }
  ops::GemmEpilogue epilogue() const {
    return {scales, scales, bias ? std::optional(typeOfResult()) : std::nullopt, activation};
  }
};

struct OverlapRunResult {
  bool checked = false;
  ops::Comparison comparison; ///< Worst over calls and ranks.
  ops::Tolerance tolerance;
  /// Of the last call, per rank: the GEMM's blocks against the copies into (AllGather) or out of (ReduceScatter) the rank. Empty when the world
  /// records no timeline.
  std::vector<runtime::Overlap> overlap;
  /// For products that are too large to be compared everywhere: error of sampled elements over the results' root mean square.
  std::optional<double> sampledError;
  std::string plan;                     ///< How the calls were carried out, in the words of tables of plans.
  OverlapTimes times;                   ///< Of the timed calls on real GPUs.
  std::string gpuName;                  ///< Empty for simulated ones.
  double virtualMicroseconds = 0;       ///< Span of the last call on the simulated clock; 0 without a timeline.
  std::optional<uint64_t> networkBytes; ///< Between simulated nodes, in the last call; none where there is one.
  double wallSeconds = 0;               ///< Of the calls here, without compilation and checking.
  double compileSeconds = 0;
  double flops = 0; ///< Multiply and add operations of all ranks in all calls.

  bool passed(const OverlapRunOptions &options) const;
};

/// What an element may be off by.
ops::Tolerance toleranceOf(const OverlapRunOptions &options);
/// What a sampled error may be, of a result of that type.
double sampledTolerance(DataType dtype);

/// Is told in a few words what is going on, and which part of the run is done, from 0 to 1.
using OverlapProgress = std::function<void(std::string_view activity, double fraction)>;

/// A world, its compiler and the table that large operands come from: runs of several shapes share them, and compiled kernels.
class OverlapSession {
public:
  /// What concerns the machine is taken from the options, and what concerns the shape is not looked at.
  static Expected<OverlapSession> create(const OverlapRunOptions &options);
  /// Makes one run. The options may differ from those of the session in sizes, operator and plan.
  Expected<OverlapRunResult> run(const OverlapRunOptions &options, const OverlapProgress &progress);

private:
  std::unique_ptr<runtime::World> world;
  std::unique_ptr<jit::Jit> compiler;
  std::unique_ptr<NormalData> data; ///< Made when the first product needs it.
};

/// Makes one run in a session of its own.
Expected<OverlapRunResult> runOverlap(const OverlapRunOptions &options, const OverlapProgress &progress);

/// Several lines for people: shapes, error against tolerance, overlap.
std::string describeRun(const OverlapRunOptions &options, const OverlapRunResult &result);
/// The same as one JSON object in one line, for comparison between commits.
std::string runAsJson(const OverlapRunOptions &options, const OverlapRunResult &result);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_OVERLAPRUN_H
