//===- AttentionBench.cpp - ditron bench attention ------------------------------------------------------------------------===//
#include "base/NormalData.h"
#include "bench/KernelBench.h"

#include "ditron/ops/attention/AttentionReference.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

/// The powers are rounded to the operands' type before they multiply V.
constexpr double allowedError = 3e-2;
constexpr std::string_view shapeForm = "BATCHxHEADSxKV_HEADSxSEQUENCExHEAD_DIM";

class AttentionBench : KernelBench {
public:
  AttentionBench(const AttentionBenchOptions &options) : KernelBench("attention", options), causal(options.causal) {}
  Status run(const Knobs &knobs);

private:
  Status benchShape(const std::string &shape);
  Expected<double> error(const ops::AttentionProblem &problem);
  ops::AttentionReference reference(const ops::AttentionProblem &problem) const;

  bool causal;
  std::optional<NormalData> data;
  runtime::Buffer q, k, v, out;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string table;
};

Status AttentionBench::run(const Knobs &knobs) {
  // What the command line says is read once before anything is compiled.
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 5, shapeForm).status());
  for (const std::string &plan : options.plans)
    DITRON_RETURN_IF_ERROR(ops::parseAttentionPlan(plan).status().withContext("--plan"));
  DITRON_RETURN_IF_ERROR(start(knobs));
  data.emplace(dtype, options.seed);
  table = fmt::format("attention, forward, {}, {}, {}\n{:<24}{:<38}{:>10}{:>9}  {}\n", causal ? "causal" : "not causal",
                      toString(dtype), machineText(), "batch heads kv seq dim", "plan", "us", "TFLOP/s", "error");
  std::vector<std::string> shapes = options.shapes;
  if (shapes.empty() && simulated())
    shapes = {"1x2x1x200x64"};
  else if (shapes.empty())
    shapes = {"1x32x32x8192x128", "1x32x8x8192x128", "2x32x32x8192x64"};
  shapeCount = shapes.size();
  for (const std::string &shape : shapes) {
    DITRON_RETURN_IF_ERROR(benchShape(shape).withContext(shape));
    ++shapesDone;
  }
  table += errorNote(dtype, "of 96 queries");
  return finish(std::move(rows), nlohmann::ordered_json::object(), table);
}

ops::AttentionReference AttentionBench::reference(const ops::AttentionProblem &problem) const {
  auto operand = [this, depth = problem.headDim](uint64_t stream, int64_t heads, int64_t rows) {
    return [this, depth, stream, heads, rows](int64_t batch, int64_t head, int64_t row, int64_t column) -> double {
      return data->at(stream, ((batch * heads + head) * rows + row) * depth + column);
    };
  };
  return {problem, operand(1, problem.heads, problem.queries), operand(2, problem.kvHeads, problem.keys),
          operand(3, problem.kvHeads, problem.keys)};
}

Expected<double> AttentionBench::error(const ops::AttentionProblem &problem) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, out.downloadFloats());
  for (float value : actual)
    if (std::isnan(value))
      return INFINITY;
  RelativeError error(dtype);
  const ops::AttentionReference plain = reference(problem);
  constexpr int64_t samples = 96;
  const int64_t total = problem.batch * problem.heads * problem.queries;
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t index = i * (total - 1) / (samples - 1), query = index % problem.queries;
    const int64_t head = index / problem.queries;
    const std::vector<double> expected = plain.row(head / problem.heads, head % problem.heads, query).out;
    for (int64_t d = 0; d < problem.headDim; ++d)
      error.add(actual[index * problem.headDim + d], expected[d]);
  }
  return error.value();
}

Status AttentionBench::benchShape(const std::string &shape) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 5, shapeForm));
  const ops::AttentionProblem problem = {.batch = sizes[0],
                                         .heads = sizes[1],
                                         .kvHeads = sizes[2],
                                         .queries = sizes[3],
                                         .keys = sizes[3],
                                         .headDim = sizes[4],
                                         .causal = causal,
                                         .dtype = dtype,
                                         .scale = std::nullopt};
  progress.activity(shape + ": operands");
  for (runtime::Buffer *buffer : {&q, &k, &v, &out})
    *buffer = runtime::Buffer();
  const uint64_t queryCount = problem.batch * problem.heads * problem.queries * problem.headDim;
  const uint64_t keyCount = problem.batch * problem.kvHeads * problem.keys * problem.headDim;
  DITRON_ASSIGN_OR_RETURN(q, rank().allocate(dtype, queryCount, "q"));
  DITRON_ASSIGN_OR_RETURN(k, rank().allocate(dtype, keyCount, "k"));
  DITRON_ASSIGN_OR_RETURN(v, rank().allocate(dtype, keyCount, "v"));
  DITRON_ASSIGN_OR_RETURN(out, rank().allocate(dtype, queryCount, "out"));
  DITRON_RETURN_IF_ERROR(data->fill(q, 1));
  DITRON_RETURN_IF_ERROR(data->fill(k, 2));
  DITRON_RETURN_IF_ERROR(data->fill(v, 3));

  std::vector<ops::AttentionPlan> plans;
  for (const std::string &text : options.plans) {
    DITRON_ASSIGN_OR_RETURN(ops::AttentionPlan plan, ops::parseAttentionPlan(text));
    plans.push_back(plan);
  }
  if (plans.empty())
    plans.push_back(ops::chooseAttentionPlan(problem, jit->target()));
  std::vector<Contender> contenders;
  std::vector<double> errors;
  Status lastProblem;
  nlohmann::ordered_json row = {{"shape", shape}, {"causal", causal}};
  for (const ops::AttentionPlan &plan : plans) {
    progress.activity(fmt::format("{}: {}", shape, plan.text()));
    reached(&plan - plans.data(), plans.size() + 1);
    DITRON_RETURN_IF_ERROR(poison(out));
    Expected<ops::PreparedCall> call = ops::prepareAttention(*jit, rank(), problem, {q, k, v, out}, plan);
    if (!call.isOk()) {
      lastProblem = call.status();
      note(fmt::format("{}: {}: {}", shape, plan.text(), call.status().message()));
      row["failed"].push_back({{"plan", plan.text()}, {"error", call.status().message()}});
      continue;
    }
    DITRON_RETURN_IF_ERROR(call->enqueue(rank().stream()));
    DITRON_RETURN_IF_ERROR(world->synchronize());
    DITRON_ASSIGN_OR_RETURN(const double wrong, error(problem));
    if (!(wrong <= allowedError))
      return internalError(fmt::format("{}: wrong result, error {:.3g} of the root mean square", plan.text(), wrong));
    errors.push_back(wrong);
    contenders.push_back({plan.text(), [this, call = *call](uint64_t) { return call.enqueue(rank().stream()); }});
  }
  if (contenders.empty())
    return lastProblem.withContext("no plan could be compiled");
  progress.activity(shape + ": timing");
  reached(plans.size(), plans.size() + 1);
  DITRON_ASSIGN_OR_RETURN(const std::vector<ContenderTimes> times, timeInterleaved(rank(), contenders, options.timing));
  size_t best = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].median() < times[best].median())
      best = i;
    const double teraflops = problem.flops() / times[i].median() * 1e-6;
    nlohmann::ordered_json entry = timesAsJson(times[i]);
    entry["teraflops"] = teraflops;
    entry["error"] = errors[i];
    row["plans"].push_back(entry);
    table += fmt::format("{:<24}{:<38}{:>10.1f}{:>9.1f}  {:.1e}\n", i == 0 ? shape : "", times[i].name,
                         times[i].median(), teraflops, errors[i]);
  }
  row["best"] = times[best].name;
  row["microseconds"] = times[best].median();
  row["teraflops"] = problem.flops() / times[best].median() * 1e-6;
  rows.push_back(row);
  return Status::ok();
}

} // namespace

Status benchAttention(const AttentionBenchOptions &options, const Knobs &knobs) {
  return AttentionBench(options).run(knobs);
}

} // namespace ditron::tool
