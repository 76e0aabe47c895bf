//===- KernelBench.h - Speed of the library's kernels on one GPU ----------------------------------------------*- C++ -*-===//
//
// `ditron bench gemm|grouped_gemm|softmax|rmsnorm|attention|orders`: for each shape, one or more plans of ours, checked against a plain reference
// and timed in turns with what there is to compare with: cuBLAS for the product, a copy of as many bytes for kernels that are
// limited by the memory, for `orders` the other order of reductions. Results are a table for people and JSON for scripts (bench/gpu).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_KERNELBENCH_H
#define DITRON_TOOLS_DITRON_KERNELBENCH_H

#include "base/PlanFault.h"
#include "base/Progress.h"
#include "bench/InterleavedTiming.h"
#include "overlap/PlantedFault.h"

#include "ditron/jit/Jit.h"
#include "ditron/ops/Gemm.h"
#include "ditron/ops/RowWise.h"
#include "ditron/ops/attention/Attention.h"
#include "ditron/support/Knobs.h"

#include <nlohmann/json.hpp>

namespace ditron::tool {

/// What all of them have.
struct KernelBenchOptions {
  std::string target = "sim:sm_80";
  std::vector<std::string> shapes; ///< Empty: a list that suits the target.
  std::vector<std::string> plans;  ///< Empty: the library's choice.
  std::string dtype = "bf16";
  TimingOptions timing;
  uint64_t seed = 0;
  std::string jsonFile, htmlFile;
  bool quiet = false;
};

struct GemmBenchOptions : KernelBenchOptions {
  PlantedFault fault = PlantedFault::None;
  std::string order = "nk"; ///< How B lies in memory.
  /// Path of cuBLAS, for 8-bit operands of cuBLASLt; "auto" where it usually is, "none" for no comparison.
  std::string peer = "auto";
  bool peerFastAccumulation = false; ///< The peer adds fp8 in the tensor cores alone.
  std::string scales;                ///< none, tensor or vector; empty: tensor for 8-bit operands, else none.
  std::string precision = "tf32";
  uint32_t sweep = 0;   ///< Also try this many plans, those predicted to be best.
  std::string movement; ///< Only plans that move tiles this way: descriptors or pointers.
};

struct GroupedGemmBenchOptions : KernelBenchOptions {
  PlantedFault fault = PlantedFault::None;
  std::string order = "nk"; ///< How the weights of an expert lie in memory.
  std::string form;         ///< rows or gathered; empty: both.
};

enum class RowOperator { Softmax, RmsNorm };

struct AttentionBenchOptions : KernelBenchOptions {
  bool causal = true;
  bool backward = false;
  std::optional<int64_t> window, valueDim, pageSize;
  std::optional<double> softCap;
  bool sinks = false, slopes = false;
  bool rowsFirst = false;
  bool packed = false; ///< Batches of different lengths, one behind the other.
  bool valuesTransposed = false;
};

Status benchGemm(const GemmBenchOptions &options, const Knobs &knobs);
Status benchGroupedGemm(const GroupedGemmBenchOptions &options, const Knobs &knobs);
Status benchRows(RowOperator op, const KernelBenchOptions &options, const Knobs &knobs);
Status benchAttention(const AttentionBenchOptions &options, const Knobs &knobs);
/// Kernels with reductions, in their default order and in that of INNER_TREE.
Status benchOrders(const KernelBenchOptions &options, const Knobs &knobs);

/// "tf32" or "ieee", of --precision. Operands of other types than fp32 are multiplied in one way only: refuses "ieee" for them.
Expected<ops::MultiplyPrecision> parsePrecision(std::string_view name, DataType dtype);

/// The world of one GPU, the compiler, and the report of a benchmark.
class KernelBench {
public:
  KernelBench(std::string name, const KernelBenchOptions &options)
      : options(options), progress(options.quiet), name(std::move(name)) {}

  Status start(const Knobs &knobs);
  runtime::Rank &rank() { return world->rank(0); }
  bool simulated() const { return world->machine() != nullptr; }
  /// "NVIDIA H200 (132 SMs)"
  std::string machineText();

  /// Says how far the benchmark is: `part` of `parts` of a shape.
  void reached(size_t part, size_t parts);

  /// Fills the memory with a pattern that is NaN in every type: an element that was not written shows.
  Status poison(const runtime::Buffer &buffer);
  /// Says at once what is wrong, and goes on.
  void note(const std::string &line);
  /// A plan cannot be carried out: of several it is noted, the only one's error is the benchmark's own.
  void notePlan(size_t plans, const std::string &plan, const Status &problem);
  /// None of a shape's plans can be carried out, the last one for that reason.
  static Status noPlan(size_t plans, const Status &last);
  /// Writes the table and the file.
  Status finish(nlohmann::ordered_json rows, nlohmann::ordered_json summary, const std::string &table);

  const KernelBenchOptions &options;
  Progress progress;
  std::unique_ptr<runtime::World> world;
  std::unique_ptr<jit::Jit> jit;
  DataType dtype = DataType::BF16;
  size_t shapeCount = 1, shapesDone = 0;

private:
  std::string name;
};

/// Sizes separated by x: "8192x1376x4096", `count` of them.
Expected<std::vector<int64_t>> parseShape(const std::string &text, size_t count, std::string_view form);
/// What the column of errors is, below a table; `elements` are those that are checked.
std::string errorNote(DataType type, std::string_view elements);
/// One entry of the JSON report for a timed contender.
nlohmann::ordered_json timesAsJson(const ContenderTimes &times);

/// Largest |actual - expected|, beyond what rounding to the type makes of an element, over the root mean square of the expected
/// values; NaN counts as infinite.
class RelativeError {
public:
  explicit RelativeError(DataType type);
  void add(double actual, double expected);
  double value() const;
  uint64_t count() const { return elements; }

private:
  double rounding; ///< Distance of neighbouring values of the type, relative.
  double largest = 0, squares = 0;
  uint64_t elements = 0;
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_KERNELBENCH_H
