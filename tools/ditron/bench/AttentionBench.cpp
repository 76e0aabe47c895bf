//===- AttentionBench.cpp - ditron bench attention ------------------------------------------------------------------------===//
#include "bench/AttentionOperands.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

/// The powers are rounded to the operands' type before they multiply V, and so are the slopes of the backward before they multiply K and Q.
double allowedError(DataType type) { return type == DataType::F8E4NV ? 0.2 : 3e-2; }
constexpr std::string_view shapeForm = "BATCHxHEADSxKV_HEADSxSEQUENCExHEAD_DIM";
/// Rows that are compared with the reference.
constexpr int64_t forwardSamples = 96, backwardSamples = 24;

class AttentionBench : KernelBench {
public:
  AttentionBench(const AttentionBenchOptions &options) : KernelBench("attention", options), options(options) {}
  Status run(const Knobs &knobs);

private:
  Status benchShape(const std::string &shape);
  /// What a plan's call is, and whether it computed what it should.
  struct Checked {
    std::function<Status()> enqueue;
    double error;
  };
  Expected<Checked> checkForward(const AttentionOperands &operands, const std::optional<ops::AttentionPlan> &plan);
  Expected<Checked> checkBackward(const AttentionOperands &operands,
                                  const std::optional<ops::AttentionBackwardPlan> &plan);
  Expected<double> forwardError(const AttentionOperands &operands);
  Expected<double> backwardError(const AttentionOperands &operands);
  Expected<std::vector<std::string>> plansOf(const ops::AttentionProblem &problem) const;
  /// Of the table's column.
  int planWidth() const { return options.backward ? 66 : 38; }

  const AttentionBenchOptions &options;
  std::optional<NormalData> data;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string table;
};

/// `count` of the numbers below `total`, the first and the last among them.
std::vector<int64_t> sampled(int64_t total, int64_t count) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(i * (total - 1) / (count - 1));
  return result;
}

Status AttentionBench::run(const Knobs &knobs) {
  // What the command line says is read once before anything is compiled.
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 5, shapeForm).status());
  for (const std::string &plan : options.plans)
    DITRON_RETURN_IF_ERROR(
        (options.backward ? ops::parseAttentionBackwardPlan(plan).status() : ops::parseAttentionPlan(plan).status())
            .withContext("--plan"));
  DITRON_RETURN_IF_ERROR(start(knobs));
  data.emplace(dtype, options.seed);
  table =
      fmt::format("attention, {}, {}, {}, {}\n{:<24}{:<{}}{:>10}{:>9}  {}\n", options.backward ? "backward" : "forward",
                  options.causal ? "causal" : "not causal", toString(dtype), machineText(), "batch heads kv seq dim",
                  "plan", planWidth(), "us", "TFLOP/s", "error");
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
  table +=
      errorNote(dtype, options.backward ? fmt::format("of {} queries and {} keys", backwardSamples, backwardSamples)
                                        : fmt::format("of {} queries", forwardSamples));
  return finish(std::move(rows), nlohmann::ordered_json::object(), table);
}

Expected<double> AttentionBench::forwardError(const AttentionOperands &operands) {
  const ops::AttentionProblem &problem = operands.problem;
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, operands.out.downloadFloats());
  for (float value : actual)
    if (std::isnan(value))
      return INFINITY;
  RelativeError error(problem.typeOfResult());
  const ops::AttentionReference plain = operands.reference(*data);
  const int64_t width = problem.dimOfValues();
  for (int64_t index : sampled(problem.batch * problem.heads * problem.queries, forwardSamples)) {
    const int64_t head = index / problem.queries % problem.heads, batch = index / problem.queries / problem.heads;
    const int64_t query = std::min(index % problem.queries, operands.rowsOf(batch) - 1);
    const std::vector<double> expected = plain.row(batch, head, query).out;
    for (int64_t d = 0; d < width; ++d)
      error.add(actual[operands.queryPlace(batch, head, query, d, width)], expected[d]);
  }
  return error.value();
}

Expected<double> AttentionBench::backwardError(const AttentionOperands &operands) {
  const ops::AttentionProblem &problem = operands.problem;
  const int64_t dim = problem.headDim;
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> dq, operands.dq.downloadFloats());
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> dk, operands.dk.downloadFloats());
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> dv, operands.dv.downloadFloats());
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> out, operands.out.downloadFloats());
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> lse, operands.lse.downloadFloats());
  for (const std::vector<float> *actual : {&dq, &dk, &dv})
    for (float value : *actual)
      if (std::isnan(value))
        return INFINITY;
  RelativeError ofQueries(dtype), ofKeys(dtype), ofValues(dtype);
  const ops::AttentionReference plain = operands.reference(*data);
  const ops::AttentionElement gradient = operands.gradientElement(*data);
  for (int64_t index : sampled(problem.batch * problem.heads * problem.queries, backwardSamples)) {
    const int64_t head = index / problem.queries % problem.heads, batch = index / problem.queries / problem.heads;
    const int64_t query = std::min(index % problem.queries, operands.rowsOf(batch) - 1);
    const std::vector<double> expected = plain.queryGradient(gradient, batch, head, query);
    for (int64_t d = 0; d < dim; ++d)
      ofQueries.add(dq[operands.queryPlace(batch, head, query, d, dim)], expected[d]);
  }
  for (int64_t index : sampled(problem.batch * problem.kvHeads * problem.keys, backwardSamples)) {
    const int64_t head = index / problem.keys % problem.kvHeads, batch = index / problem.keys / problem.kvHeads;
    const int64_t key = std::min(index % problem.keys, operands.rowsOf(batch) - 1);
    // The forward call's rows, which have been compared themselves.
    const auto lseOf = [&](int64_t h, int64_t query) -> double { return lse[operands.lsePlace(batch, h, query)]; };
    const auto deltaOf = [&](int64_t h, int64_t query) {
      double sum = 0;
      for (int64_t d = 0; d < dim; ++d)
        sum += out[operands.queryPlace(batch, h, query, d, dim)] * gradient(batch, h, query, d);
      return sum;
    };
    const auto [ofKey, ofValue] = plain.keyGradients(gradient, batch, head, key, lseOf, deltaOf);
    for (int64_t d = 0; d < dim; ++d) {
      ofKeys.add(dk[operands.keyPlace(batch, head, key, d, dim)], ofKey[d]);
      ofValues.add(dv[operands.keyPlace(batch, head, key, d, dim)], ofValue[d]);
    }
  }
  return std::max({ofQueries.value(), ofKeys.value(), ofValues.value()});
}

Expected<AttentionBench::Checked> AttentionBench::checkForward(const AttentionOperands &operands,
                                                               const std::optional<ops::AttentionPlan> &plan) {
  DITRON_RETURN_IF_ERROR(poison(operands.out));
  DITRON_ASSIGN_OR_RETURN(const ops::PreparedCall call,
                          ops::prepareAttention(*jit, rank(), operands.problem, operands.forward(), plan));
  DITRON_RETURN_IF_ERROR(call.enqueue(rank().stream()));
  DITRON_RETURN_IF_ERROR(world->synchronize());
  DITRON_ASSIGN_OR_RETURN(const double error, forwardError(operands));
  return Checked{[this, call] { return call.enqueue(rank().stream()); }, error};
}

Expected<AttentionBench::Checked> AttentionBench::checkBackward(const AttentionOperands &operands,
                                                                const std::optional<ops::AttentionBackwardPlan> &plan) {
  for (const runtime::Buffer *buffer : {&operands.dq, &operands.dk, &operands.dv})
    DITRON_RETURN_IF_ERROR(poison(*buffer));
  DITRON_ASSIGN_OR_RETURN(const ops::AttentionBackwardCall call,
                          ops::prepareAttentionBackward(*jit, rank(), operands.problem, operands.backward(), plan));
  DITRON_RETURN_IF_ERROR(call.enqueue(rank().stream()));
  DITRON_RETURN_IF_ERROR(world->synchronize());
  DITRON_ASSIGN_OR_RETURN(const double error, backwardError(operands));
  return Checked{[this, call] { return call.enqueue(rank().stream()); }, error};
}

Expected<std::vector<std::string>> AttentionBench::plansOf(const ops::AttentionProblem &problem) const {
  if (!options.plans.empty())
    return options.plans;
  if (options.backward)
    return std::vector{ops::chooseAttentionBackwardPlan(problem, jit->target()).text()};
  DITRON_ASSIGN_OR_RETURN(const ops::AttentionPlan plan, ops::libraryAttentionPlan(problem, *world));
  return std::vector{plan.text()};
}

Status AttentionBench::benchShape(const std::string &shape) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 5, shapeForm));
  progress.activity(shape + ": operands");
  DITRON_ASSIGN_OR_RETURN(const AttentionOperands operands,
                          AttentionOperands::create(options, rank(), *data, sizes, dtype));
  if (options.backward) { // which takes what the forward leaves
    DITRON_ASSIGN_OR_RETURN(const Checked forward, checkForward(operands, std::nullopt));
    if (!(forward.error <= allowedError(dtype)))
      return internalError(
          fmt::format("wrong result of the forward, error {:.3g} of the root mean square", forward.error));
  }
  DITRON_ASSIGN_OR_RETURN(const std::vector<std::string> plans, plansOf(operands.problem));
  std::vector<Contender> contenders;
  std::vector<double> errors;
  Status lastProblem;
  nlohmann::ordered_json row = {{"shape", shape}, {"causal", options.causal}, {"backward", options.backward}};
  for (const std::string &plan : plans) {
    progress.activity(fmt::format("{}: {}", shape, plan));
    reached(&plan - plans.data(), plans.size() + 1);
    Expected<Checked> checked = options.backward ? checkBackward(operands, *ops::parseAttentionBackwardPlan(plan))
                                                 : checkForward(operands, *ops::parseAttentionPlan(plan));
    if (!checked.isOk()) {
      lastProblem = options.plans.empty() ? checked.status() : blamedOnPlan(checked.status()).withContext(plan);
      notePlan(plans.size(), shape, lastProblem);
      row["failed"].push_back({{"plan", plan}, {"error", lastProblem.message()}});
      continue;
    }
    if (!(checked->error <= allowedError(dtype)))
      return internalError(fmt::format("{}: wrong result, error {:.3g} of the root mean square", plan, checked->error));
    errors.push_back(checked->error);
    contenders.push_back({plan, [enqueue = checked->enqueue](uint64_t) { return enqueue(); }});
  }
  if (contenders.empty())
    return noPlan(plans.size(), lastProblem);
  progress.activity(shape + ": timing");
  reached(plans.size(), plans.size() + 1);
  DITRON_ASSIGN_OR_RETURN(const std::vector<ContenderTimes> times, timeInterleaved(rank(), contenders, options.timing));
  // The backward has five products where the forward has two.
  const double flops = operands.flops() * (options.backward ? 2.5 : 1);
  size_t best = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].median() < times[best].median())
      best = i;
    const double teraflops = flops / times[i].median() * 1e-6;
    nlohmann::ordered_json entry = timesAsJson(times[i]);
    entry["teraflops"] = teraflops;
    entry["error"] = errors[i];
    row["plans"].push_back(entry);
    table += fmt::format("{:<24}{:<{}}{:>10.1f}{:>9.1f}  {:.1e}\n", i == 0 ? shape : "", times[i].name, planWidth(),
                         times[i].median(), teraflops, errors[i]);
  }
  row["best"] = times[best].name;
  row["microseconds"] = times[best].median();
  row["teraflops"] = flops / times[best].median() * 1e-6;
  rows.push_back(row);
  return Status::ok();
}

} // namespace

Status benchAttention(const AttentionBenchOptions &options, const Knobs &knobs) {
  return AttentionBench(options).run(knobs);
}

} // namespace ditron::tool
