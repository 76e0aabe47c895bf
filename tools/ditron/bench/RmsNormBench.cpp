//===- RmsNormBench.cpp - ditron bench all_reduce_rms_norm ------------------------------------------------------------------===//
//
// AllReduce, residual and RMSNorm in one launch, by numbers of rows, each by the library's plan or by plans of the command line; and beside it the library's AllReduce and
// then its RMSNorm, which add no residual. Every result is compared with the three steps one after the other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/KernelBench.h"
#include "bench/RankBench.h"
#include "overlap/OverlapCommands.h"

#include "ditron/ops/Reference.h"
#include "ditron/ops/RowWise.h"
#include "ditron/ops/collectives/AllReduceRmsNorm.h"
#include "ditron/ops/collectives/Collective.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr double allowedError = 2e-2;

/// Salts of the data; X of rank 0.
enum : uint64_t { Weight = 1, Residual, X };

struct RmsNormBenchOptions : RankBenchOptions {
  std::vector<int64_t> rows = {1, 32, 128, 512, 2048};
  int64_t columns = 8192;
  std::vector<std::string> plans;
};

class RmsNormBench : RankBench {
public:
  explicit RmsNormBench(const RmsNormBenchOptions &options) : RankBench(options), options(options) {}
  Status run(const Knobs &knobs);

private:
  struct Memory {
    runtime::Buffer x, residual, weight, out, residualOut, sum;
  };

  Status makeOperands(int64_t rows);
  Status benchRows(int64_t rows);
  struct Measured {
    std::string plan;
    double microseconds, simulated, error; ///< Of the former two one is 0, on simulated GPUs and on others.
  };
  Expected<Measured> measurePlan(int64_t rows, const std::optional<ops::CollectivePlan> &plan);
  /// 0 on simulated GPUs.
  Expected<double> microsecondsApart(int64_t rows);
  Expected<double> errorOf(int64_t rows) const;

  const RmsNormBenchOptions &options;
  std::vector<std::optional<ops::CollectivePlan>> plans;
  std::vector<Memory> memory;
};

Status RmsNormBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkOptions());
  for (const std::string &text : options.plans) {
    DITRON_ASSIGN_OR_RETURN(const ops::CollectivePlan plan, ops::parseCollectivePlan(text));
    plans.emplace_back(plan);
  }
  if (plans.empty())
    plans.emplace_back();
  DITRON_RETURN_IF_ERROR(chooseTarget());
  runtime::WorldOptions recorded;
  recorded.trace = simulated;
  DITRON_RETURN_IF_ERROR(start(knobs, recorded));
  table = fmt::format("all_reduce_rms_norm of {} columns, {}, {} x {}\n{:>7}  {:<32}{:>12}{:>12}{:>16}{:>10}\n",
                      options.columns, toString(dtype), options.ranks, gpu(), "rows", "form blocks warps chunk", "us",
                      "apart us", "apart/together", "error");
  for (const int64_t rows : options.rows)
    DITRON_RETURN_IF_ERROR(benchRows(rows).withContext(fmt::format("{} rows", rows)));
  table += errorNote(dtype, "all elements");
  nlohmann::ordered_json report = reportOf("all_reduce_rms_norm");
  report["dtype"] = toString(dtype);
  report["columns"] = options.columns;
  return finish(std::move(report));
}

Status RmsNormBench::makeOperands(int64_t rows) {
  memory.clear();
  for (uint32_t id = 0; id < options.ranks; ++id) {
    Memory each;
    const auto make = [&](runtime::Buffer &buffer, int64_t ofRows, std::string_view name, uint64_t salt) -> Status {
      DITRON_ASSIGN_OR_RETURN(buffer, world->rank(id).allocate(dtype, ofRows * options.columns, name));
      return data->fill(buffer, salt);
    };
    DITRON_RETURN_IF_ERROR(make(each.x, rows, "x", X + id));
    DITRON_RETURN_IF_ERROR(make(each.residual, rows, "residual", Residual));
    DITRON_RETURN_IF_ERROR(make(each.weight, 1, "weight", Weight));
    for (runtime::Buffer Memory::*result : {&Memory::out, &Memory::residualOut, &Memory::sum})
      DITRON_RETURN_IF_ERROR(make(each.*result, rows, "result", Weight));
    memory.push_back(std::move(each));
  }
  return world->synchronize();
}

Status RmsNormBench::benchRows(int64_t rows) {
  progress.activity(fmt::format("{} rows", rows));
  DITRON_RETURN_IF_ERROR(makeOperands(rows));
  std::vector<Measured> together;
  for (const auto &plan : plans) {
    DITRON_ASSIGN_OR_RETURN(Measured measured, measurePlan(rows, plan));
    together.push_back(std::move(measured));
  }
  DITRON_ASSIGN_OR_RETURN(const double apart, microsecondsApart(rows));
  for (const auto &[plan, microseconds, simulatedTime, error] : together) {
    table += fmt::format("{:>7}  {:<32}{:>12}{:>12}{:>16}{:>10.1e}\n", rows, plan, shown(microseconds, 2),
                         shown(apart, 2), shown(microseconds > 0 ? apart / microseconds : 0, 2), error);
    reportRows.push_back({{"rows", rows},
                          {"plan", plan},
                          {"microseconds", orNull(microseconds)},
                          {"simulated_microseconds", orNull(simulatedTime)},
                          {"apart_microseconds", orNull(apart)},
                          {"error", error}});
  }
  return Status::ok();
}

Expected<double> RmsNormBench::microsecondsApart(int64_t rows) {
  if (simulated)
    return 0.0;
  const int64_t elements = rows * options.columns;
  DITRON_ASSIGN_OR_RETURN(ops::Collective sum,
                          ops::Collective::create(*world, *jit, {.dtype = dtype, .maxElements = elements}));
  std::vector<ops::PreparedCall> norms;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    DITRON_RETURN_IF_ERROR(sum.prepare(rank, elements));
    const Memory &own = memory[id];
    DITRON_ASSIGN_OR_RETURN(ops::PreparedCall norm,
                            ops::prepareRmsNorm(*jit, rank, {.rows = rows, .columns = options.columns, .dtype = dtype},
                                                own.sum, own.weight, own.out));
    norms.push_back(std::move(norm));
  }
  return microsecondsOf([&](uint32_t id) -> Status {
    runtime::Rank &rank = world->rank(id);
    DITRON_RETURN_IF_ERROR(sum.enqueue(rank, rank.stream(), memory[id].x, memory[id].sum, elements));
    return norms[id].enqueue(rank.stream());
  });
}

/// The worst of all ranks. Rounded where three steps one after the other round.
Expected<double> RmsNormBench::errorOf(int64_t rows) const {
  const ops::AllReduceRmsNormOptions defaults;
  RelativeError ofResidual(dtype), ofResult(dtype);
  std::vector<std::vector<float>> out, residualOut;
  for (const Memory &own : memory) {
    DITRON_ASSIGN_OR_RETURN(out.emplace_back(), own.out.downloadFloats());
    DITRON_ASSIGN_OR_RETURN(residualOut.emplace_back(), own.residualOut.downloadFloats());
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = row * options.columns;
    std::vector<double> residuals;
    double square = 0;
    for (int64_t i = begin; i < begin + options.columns; ++i) {
      float sum = 0;
      for (uint32_t id = 0; id < options.ranks; ++id)
        sum += data->at(X + id, i);
      residuals.push_back(ops::roundedTo(dtype, ops::roundedTo(dtype, sum) + data->at(Residual, i)));
      square += residuals.back() * residuals.back();
    }
    const double factor = 1 / std::sqrt(square / static_cast<double>(options.columns) + defaults.epsilon);
    for (int64_t column = 0; column < options.columns; ++column)
      for (uint32_t id = 0; id < options.ranks; ++id) {
        ofResidual.add(residualOut[id][begin + column], residuals[column]);
        ofResult.add(out[id][begin + column], residuals[column] * factor * data->at(Weight, column));
      }
  }
  return std::max(ofResidual.value(), ofResult.value());
}

Expected<RmsNormBench::Measured> RmsNormBench::measurePlan(int64_t rows,
                                                           const std::optional<ops::CollectivePlan> &plan) {
  DITRON_ASSIGN_OR_RETURN(
      ops::AllReduceRmsNorm op,
      ops::AllReduceRmsNorm::create(*world, *jit,
                                    {.dtype = dtype, .columns = options.columns, .maxRows = rows, .plan = plan}));
  const std::string text = op.planFor(rows).text();
  for (uint32_t id = 0; id < options.ranks; ++id)
    DITRON_RETURN_IF_ERROR(op.prepare(world->rank(id), rows));
  const Call call = [&](uint32_t id) {
    runtime::Rank &rank = world->rank(id);
    const Memory &own = memory[id];
    return op.enqueue(rank, rank.stream(), {own.x, own.residual, own.weight, own.out, own.residualOut}, rows);
  };
  for (Memory &own : memory)
    for (runtime::Buffer Memory::*result : {&Memory::out, &Memory::residualOut})
      DITRON_RETURN_IF_ERROR(data->fill(own.*result, Weight));
  DITRON_RETURN_IF_ERROR(callOnce(call));
  DITRON_ASSIGN_OR_RETURN(const double error, errorOf(rows));
  DITRON_RETURN_IF_ERROR(verifyError(error, allowedError).withContext(text));
  DITRON_ASSIGN_OR_RETURN(const double microseconds, microsecondsOf(call));
  double simulatedTime = 0;
  if (simulated) {
    DITRON_ASSIGN_OR_RETURN(simulatedTime, simulatedMicroseconds(call));
  }
  return Measured{text, microseconds, simulatedTime, error};
}

} // namespace

void addRmsNormBenchCommand(CLI::App &bench, CommandContext &context) {
  CLI::App *command =
      bench.add_subcommand("all_reduce_rms_norm", "AllReduce, residual and RMSNorm in one launch, by rows");
  auto arguments = std::make_shared<RmsNormBenchOptions>();
  RmsNormBenchOptions &options = *arguments;
  addRankOptions(*command, options);
  command->add_option("--dtype", options.dtype, "bf16, fp16 or fp32")->capture_default_str();
  command->add_option("--rows", options.rows, "Numbers of rows, like 1,32,128")
      ->delimiter(',')
      ->check(integerBetween(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--columns", options.columns, "Of a row")->check(integerBetween(1, 32768))->capture_default_str();
  command
      ->add_option(
          "--plan", options.plans,
          "How to do it: FORM BLOCKS WARPS [BYTES], like 'lamport 64 4'; several are compared. Forms: lamport, "
          "two_shot_lamport, chunks")
      ->type_name("PLAN");
  addReportOptions(*command, options);
  command->callback([&context, arguments] { context.finish(RmsNormBench(*arguments).run(context.knobs)); });
}

} // namespace ditron::tool
