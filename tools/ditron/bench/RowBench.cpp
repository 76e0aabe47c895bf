//===- RowBench.cpp - ditron bench softmax and rmsnorm --------------------------------------------------------------------===//
//
// These kernels read the matrix once and write it once, as a copy does: the copy of as many bytes, timed in turns with them, is
// the limit.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/NormalData.h"
#include "bench/KernelBench.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr double epsilon = 1e-6;
constexpr double allowedError = 1e-4;

bool parseCount(std::string_view text, uint32_t &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// "pairs warps 32 blocks 1", "plain warps 8"
Expected<ops::RowPlan> parseRowPlan(const std::string &text) {
  ops::RowPlan plan;
  const std::vector<std::string_view> words = [&] {
    std::vector<std::string_view> all;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(' ', begin), text.size());
      all.push_back(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
    return all;
  }();
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "pairs" || words[i] == "plain")
      plan.pairs = words[i] == "pairs";
    else if ((words[i] == "warps" || words[i] == "blocks") && i + 1 < words.size() &&
             parseCount(words[i + 1], words[i] == "warps" ? plan.numWarps : plan.blocksPerMultiprocessor))
      ++i;
    else
      return invalidArgument(fmt::format("--plan '{}': '{}' is not understood; a plan is written like 'pairs warps 32 blocks 1' "
                                         "or 'plain warps 8'",
                                         text, words[i]));
  }
  if (!std::has_single_bit(plan.numWarps) || plan.numWarps > 32)
    return invalidArgument(fmt::format("--plan '{}': {} warps are not accepted; write a power of two from 1 to 32", text,
                                       plan.numWarps));
  return plan;
}

class RowBench : KernelBench {
public:
  RowBench(RowOperator op, const KernelBenchOptions &options)
      : KernelBench(op == RowOperator::Softmax ? "softmax" : "rmsnorm", options), op(op) {}
  Status run(const Knobs &knobs);

private:
  /// Reads what the command line says, before anything is compiled.
  Status readProblems(std::vector<std::string> shapes);
  Status benchShape(const std::string &shape, const ops::RowProblem &problem);
  Expected<ops::PreparedCall> prepare(const ops::RowProblem &problem, const ops::RowPlan &plan);
  Expected<double> error(const ops::RowProblem &problem);
  std::vector<double> expectedRow(const ops::RowProblem &problem, int64_t row) const;

  RowOperator op;
  std::vector<std::pair<std::string, ops::RowProblem>> problems;
  std::vector<ops::RowPlan> givenPlans;
  std::optional<NormalData> data;
  runtime::Buffer x, weight, y;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string table;
  double leastShare = INFINITY;
  std::string leastShape;
};

Status RowBench::readProblems(std::vector<std::string> shapes) {
  problems.clear();
  for (const std::string &shape : shapes) {
    DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 2, "ROWSxCOLUMNS"));
    if (sizes[0] > INT32_MAX || sizes[1] > ops::widestRow)
      return invalidArgument(fmt::format("--shape '{}': 1 to {} rows of 1 to {} columns are accepted", shape, INT32_MAX,
                                         ops::widestRow));
    problems.emplace_back(shape, ops::RowProblem{.rows = sizes[0], .columns = sizes[1], .dtype = dtype});
  }
  givenPlans.clear();
  for (const std::string &text : options.plans) {
    DITRON_ASSIGN_OR_RETURN(ops::RowPlan plan, parseRowPlan(text));
    givenPlans.push_back(plan);
  }
  return Status::ok();
}

Status RowBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(readProblems(options.shapes));
  DITRON_RETURN_IF_ERROR(start(knobs));
  DITRON_RETURN_IF_ERROR(ops::verifyOperandType("--dtype", dtype));
  data.emplace(dtype, options.seed);
  table = fmt::format("{} of rows, {}, {}\n{:<18}{:<34}{:>10}{:>9}{:>10}{:>9}  {}\n",
                      op == RowOperator::Softmax ? "softmax" : "RMSNorm", toString(dtype), machineText(),
                      "rows x columns", "plan", "us", "GB/s", "copy GB/s", "of copy", "error");
  std::vector<std::string> shapes = options.shapes;
  if (shapes.empty() && simulated())
    shapes = {"16x1000", "8x4096"};
  else if (shapes.empty())
    for (int64_t columns : {4096, 8192, 16384, 32768}) // half a gigabyte each of input and result, in bf16
      shapes.push_back(fmt::format("{}x{}", (int64_t(512) << 20) / sizeOf(dtype) / columns, columns));
  DITRON_RETURN_IF_ERROR(readProblems(shapes)); // with the type that is known now
  shapeCount = problems.size();
  for (const auto &[shape, problem] : problems) {
    DITRON_RETURN_IF_ERROR(benchShape(shape, problem).withContext(shape));
    ++shapesDone;
  }
  nlohmann::ordered_json summary = {{"least_share_of_copy", leastShare}, {"least_shape", leastShape}};
  table += fmt::format("least {:.3f} of the copy's bandwidth ({})\n", leastShare, leastShape);
  table += errorNote(dtype, "of up to 61 rows");
  return finish(std::move(rows), std::move(summary), table);
}

Expected<ops::PreparedCall> RowBench::prepare(const ops::RowProblem &problem, const ops::RowPlan &plan) {
  return op == RowOperator::Softmax ? ops::prepareSoftmax(*jit, rank(), problem, x, y, plan)
                                    : ops::prepareRmsNorm(*jit, rank(), problem, x, weight, y, epsilon, plan);
}

std::vector<double> RowBench::expectedRow(const ops::RowProblem &problem, int64_t row) const {
  std::vector<double> values(problem.columns);
  double largest = -INFINITY, squares = 0, sum = 0;
  for (int64_t i = 0; i < problem.columns; ++i) {
    values[i] = data->at(1, row * problem.columns + i);
    largest = std::max(largest, values[i]);
    squares += values[i] * values[i];
  }
  const double scale = 1 / std::sqrt(squares / static_cast<double>(problem.columns) + epsilon);
  for (int64_t i = 0; i < problem.columns; ++i) {
    values[i] = op == RowOperator::Softmax ? std::exp(values[i] - largest) : values[i] * scale * data->at(2, i);
    sum += values[i];
  }
  if (op == RowOperator::Softmax)
    for (double &value : values)
      value /= sum;
  return values;
}

Expected<double> RowBench::error(const ops::RowProblem &problem) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, y.downloadFloats());
  for (float value : actual)
    if (std::isnan(value))
      return INFINITY;
  RelativeError error(dtype);
  const int64_t samples = std::min<int64_t>(problem.rows, 61);
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int64_t row = samples == 1 ? 0 : sample * (problem.rows - 1) / (samples - 1);
    const std::vector<double> expected = expectedRow(problem, row);
    for (int64_t i = 0; i < problem.columns; ++i)
      error.add(actual[row * problem.columns + i], expected[i]);
  }
  return error.value();
}

Status RowBench::benchShape(const std::string &shape, const ops::RowProblem &problem) {
  progress.activity(shape + ": operands");
  for (runtime::Buffer *buffer : {&x, &weight, &y})
    *buffer = runtime::Buffer();
  const uint64_t count = problem.rows * problem.columns;
  DITRON_ASSIGN_OR_RETURN(x, rank().allocate(dtype, count, "x"));
  DITRON_ASSIGN_OR_RETURN(y, rank().allocate(dtype, count, "y"));
  DITRON_ASSIGN_OR_RETURN(weight, rank().allocate(dtype, problem.columns, "weight"));
  DITRON_RETURN_IF_ERROR(data->fill(x, 1));
  DITRON_RETURN_IF_ERROR(data->fill(weight, 2));

  std::vector<ops::RowPlan> plans = givenPlans;
  if (plans.empty())
    plans.push_back(ops::chooseRowPlan(problem));
  std::vector<Contender> contenders;
  std::vector<double> errors;
  Status lastProblem;
  nlohmann::ordered_json row = {{"shape", shape}, {"rows", problem.rows}, {"columns", problem.columns}};
  for (const ops::RowPlan &plan : plans) {
    progress.activity(fmt::format("{}: {}", shape, plan.text()));
    reached(&plan - plans.data(), plans.size() + 1);
    DITRON_RETURN_IF_ERROR(poison(y));
    Expected<ops::PreparedCall> call = prepare(problem, plan);
    if (!call.isOk()) {
      lastProblem = givenPlans.empty() ? call.status() : blamedOnPlan(call.status()).withContext(plan.text());
      notePlan(plans.size(), shape, lastProblem);
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
    return noPlan(plans.size(), lastProblem);
  contenders.push_back({"copy", [&](uint64_t) { return rank().stream().copy(y, x, count); }});
  progress.activity(shape + ": timing");
  reached(plans.size(), plans.size() + 1);
  DITRON_ASSIGN_OR_RETURN(const std::vector<ContenderTimes> times, timeInterleaved(rank(), contenders, options.timing));
  const double bytes = 2.0 * static_cast<double>(count * sizeOf(dtype)); // read and written
  auto rate = [&](const ContenderTimes &each) { return bytes / each.median() * 1e-3; };
  size_t best = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (times[i].median() < times[best].median())
      best = i;
    nlohmann::ordered_json entry = timesAsJson(times[i]);
    entry["gigabytes_per_second"] = rate(times[i]);
    entry["share_of_copy"] = rate(times[i]) / rate(times.back());
    entry["error"] = errors[i];
    row["plans"].push_back(entry);
    table += fmt::format("{:<18}{:<34}{:>10.1f}{:>9.0f}{:>10.0f}{:>9.3f}  {:.1e}\n", i == 0 ? shape : "", times[i].name,
                         times[i].median(), rate(times[i]), rate(times.back()), rate(times[i]) / rate(times.back()),
                         errors[i]);
  }
  row["best"] = times[best].name;
  row["microseconds"] = times[best].median();
  row["gigabytes_per_second"] = rate(times[best]);
  row["copy"] = timesAsJson(times.back());
  row["copy"]["gigabytes_per_second"] = rate(times.back());
  row["share_of_copy"] = rate(times[best]) / rate(times.back());
  if (rate(times[best]) / rate(times.back()) < leastShare)
    leastShare = rate(times[best]) / rate(times.back()), leastShape = shape;
  rows.push_back(row);
  return Status::ok();
}

} // namespace

Status benchRows(RowOperator op, const KernelBenchOptions &options, const Knobs &knobs) {
  return RowBench(op, options).run(knobs);
}

} // namespace ditron::tool
