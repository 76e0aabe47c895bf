//===- OrderBench.cpp - ditron bench orders -------------------------------------------------------------------------------===//
//
// What the promise of INNER_TREE costs (docs/numerics.md): each kernel is compiled twice, with the knob for strict ordering and
// without, and the two take turns. Both get the library's plan for the shape. The results of the two must agree up to rounding.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/NormalData.h"
#include "bench/KernelBench.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr double allowedDifference = 3e-2;
constexpr double epsilon = 1e-6;

class OrderBench : KernelBench {
public:
  explicit OrderBench(const KernelBenchOptions &options) : KernelBench("orders", options) {}
  Status run(const Knobs &knobs);

private:
  using Prepare = std::function<Expected<ops::PreparedCall>(jit::Jit &)>;

  Status benchRowsOf(int64_t rows, int64_t columns);
  Status benchAttentionOf(const ops::AttentionProblem &problem);
  /// Compiles, compares and times both orders of one kernel whose result is `out`.
  Status compare(const std::string &kernel, const std::string &shape, const runtime::Buffer &out,
                 const Prepare &prepare);
  /// Memory with normal data.
  Expected<runtime::Buffer> operand(uint64_t count, uint64_t salt);

  std::unique_ptr<jit::Jit> strictJit;
  std::optional<NormalData> data;
  nlohmann::ordered_json rowsOfReport = nlohmann::ordered_json::array();
  std::string table;
};

Status OrderBench::run(const Knobs &knobs) {
  Knobs free = knobs, strict = knobs;
  free.strictReductionOrdering = false;
  strict.strictReductionOrdering = true;
  DITRON_RETURN_IF_ERROR(start(free));
  DITRON_ASSIGN_OR_RETURN(strictJit, jit::Jit::create(world->target(), strict));
  DITRON_RETURN_IF_ERROR(ops::verifyOperandType("--dtype", dtype));
  data.emplace(dtype, options.seed);
  table = fmt::format("order of reductions, {}, {}\n{:<12}{:<24}{:>12}{:>14}{:>8}{:>16}{:>14}\n", toString(dtype),
                      machineText(), "kernel", "shape", "default us", "inner_tree us", "ratio", "default bytes",
                      "tree bytes");
  const int64_t megabytes = simulated() ? 0 : 128; // more than caches hold
  shapeCount = 3 * (simulated() ? 1 : 5) + (dtype == DataType::F32 ? 0 : simulated() ? 1 : 2); // comparisons
  for (int64_t columns : simulated() ? std::vector<int64_t>{512} : std::vector<int64_t>{1024, 4096, 8192, 16384, 32768})
    DITRON_RETURN_IF_ERROR(benchRowsOf(std::max<int64_t>(2, (megabytes << 20) / sizeOf(dtype) / columns), columns));
  if (dtype != DataType::F32)
    for (int64_t depth : simulated() ? std::vector<int64_t>{64} : std::vector<int64_t>{64, 128})
      DITRON_RETURN_IF_ERROR(benchAttentionOf({.heads = simulated() ? 1 : 32,
                                               .kvHeads = simulated() ? 1 : 32,
                                               .queries = simulated() ? 128 : 8192,
                                               .keys = simulated() ? 128 : 8192,
                                               .headDim = depth,
                                               .causal = true,
                                               .dtype = dtype,
                                               .scale = std::nullopt}));
  return finish(std::move(rowsOfReport), nlohmann::ordered_json::object(), table);
}

Expected<runtime::Buffer> OrderBench::operand(uint64_t count, uint64_t salt) {
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer, rank().allocate(dtype, count, "operand"));
  DITRON_RETURN_IF_ERROR(data->fill(buffer, salt));
  return buffer;
}

Status OrderBench::benchRowsOf(int64_t rows, int64_t columns) {
  const ops::RowProblem problem = {.rows = rows, .columns = columns, .dtype = dtype};
  const std::string shape = fmt::format("{}x{}", rows, columns);
  progress.activity(shape + ": operands");
  DITRON_ASSIGN_OR_RETURN(const runtime::Buffer x, operand(rows * columns, 1));
  DITRON_ASSIGN_OR_RETURN(const runtime::Buffer y, operand(rows * columns, 1));
  DITRON_ASSIGN_OR_RETURN(const runtime::Buffer weight, operand(columns, 2));
  DITRON_ASSIGN_OR_RETURN(const runtime::Buffer bias, operand(columns, 3));
  DITRON_RETURN_IF_ERROR(compare(
      "softmax", shape, y, [&](jit::Jit &compiler) { return ops::prepareSoftmax(compiler, rank(), problem, x, y); }));
  DITRON_RETURN_IF_ERROR(compare("RMSNorm", shape, y, [&](jit::Jit &compiler) {
    return ops::prepareRmsNorm(compiler, rank(), problem, x, weight, y, epsilon);
  }));
  return compare("layer norm", shape, y, [&](jit::Jit &compiler) {
    return ops::prepareLayerNorm(compiler, rank(), problem, x, weight, bias, y, epsilon);
  });
}

Status OrderBench::benchAttentionOf(const ops::AttentionProblem &problem) {
  const uint64_t count = problem.batch * problem.heads * problem.queries * problem.headDim;
  const std::string shape = fmt::format("{}x{}x{}x{}", problem.batch, problem.heads, problem.queries, problem.headDim);
  progress.activity(shape + ": operands");
  DITRON_ASSIGN_OR_RETURN(const runtime::Buffer q, operand(count, 1));
  DITRON_ASSIGN_OR_RETURN(const runtime::Buffer k, operand(count, 2));
  DITRON_ASSIGN_OR_RETURN(const runtime::Buffer v, operand(count, 3));
  DITRON_ASSIGN_OR_RETURN(const runtime::Buffer out, operand(count, 4));
  return compare("attention", shape, out,
                 [&](jit::Jit &compiler) { return ops::prepareAttention(compiler, rank(), problem, {q, k, v, out}); });
}

Status OrderBench::compare(const std::string &kernel, const std::string &shape, const runtime::Buffer &out,
                           const Prepare &prepare) {
  std::vector<Contender> contenders;
  std::vector<uint64_t> sharedBytes;
  std::vector<std::vector<float>> results;
  reached(0, 1);
  for (auto [name, compiler] : {std::pair("default", jit.get()), std::pair("inner_tree", strictJit.get())}) {
    progress.activity(fmt::format("{} {}: {}", kernel, shape, name));
    DITRON_ASSIGN_OR_RETURN(const ops::PreparedCall call, prepare(*compiler));
    DITRON_RETURN_IF_ERROR(poison(out));
    DITRON_RETURN_IF_ERROR(call.enqueue(rank().stream()));
    DITRON_RETURN_IF_ERROR(world->synchronize());
    DITRON_ASSIGN_OR_RETURN(std::vector<float> result, out.downloadFloats());
    results.push_back(std::move(result));
    sharedBytes.push_back(call.kernel().artifact().sharedBytes);
    contenders.push_back({name, [this, call](uint64_t) { return call.enqueue(rank().stream()); }});
  }
  RelativeError difference(dtype);
  for (size_t i = 0; i < results[0].size(); ++i)
    difference.add(results[0][i], results[1][i]);
  if (!(difference.value() <= allowedDifference))
    return internalError(fmt::format("{} {}: the two orders differ by {:.3g} of the root mean square", kernel, shape,
                                     difference.value()));
  progress.activity(fmt::format("{} {}: timing", kernel, shape));
  DITRON_ASSIGN_OR_RETURN(const std::vector<ContenderTimes> times, timeInterleaved(rank(), contenders, options.timing));
  const double ratio = times[1].median() / times[0].median();
  table += fmt::format("{:<12}{:<24}{:>12.1f}{:>14.1f}{:>8.3f}{:>16}{:>14}\n", kernel, shape, times[0].median(),
                       times[1].median(), ratio, sharedBytes[0], sharedBytes[1]);
  rowsOfReport.push_back({{"kernel", kernel},
                          {"shape", shape},
                          {"default", timesAsJson(times[0])},
                          {"inner_tree", timesAsJson(times[1])},
                          {"ratio", ratio},
                          {"default_shared_bytes", sharedBytes[0]},
                          {"inner_tree_shared_bytes", sharedBytes[1]}});
  ++shapesDone;
  return Status::ok();
}

} // namespace

Status benchOrders(const KernelBenchOptions &options, const Knobs &knobs) { return OrderBench(options).run(knobs); }

} // namespace ditron::tool
