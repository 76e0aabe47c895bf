//===- GroupedGemmBench.cpp - ditron bench grouped_gemm --------------------------------------------------------------------===//
//
// Rows of several experts times the weights of their own, on one GPU, in two forms: the rows lie sorted (rows), or they are gathered from
// the tokens and the results of a token are added with its weights (gathered). Experts are chosen at random, every topK of a token others; the
// rows are sorted before the clock starts. Weights are far larger than the L2 cache where it matters, so there is one set of operands.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/NormalData.h"
#include "bench/KernelBench.h"

#include "ditron/ops/moe/GroupedGemm.h"
#include "ditron/ops/moe/Routing.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <random>

namespace ditron::tool {

namespace {

/// 1 to 4096 tokens of an expert.
const char *const gpuShapes[] = {"32x1536x2048x256x8",   "64x1536x2048x128x8", "256x2816x2048x64x4",
                                 "2048x1536x2048x256x8", "512x4096x7168x32x8", "8192x1408x2048x60x4",
                                 "8192x3584x4096x8x2",   "16384x4096x6144x8x2"};
const char *const simulatedShapes[] = {"60x64x48x4x2"};
constexpr std::string_view shapeForm = "TOKENSxNxKxEXPERTSxTOPK";
constexpr uint64_t tokensSalt = 1, weightsSalt = 2, rowsSalt = 3, samples = 512;

struct Shape {
  int64_t tokens, n, k;
  uint32_t experts, topK;
  int64_t rows() const { return tokens * topK; }
};

Expected<Shape> parse(const std::string &text) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(text, 5, shapeForm));
  if (sizes[3] > ops::mostExperts || sizes[4] > std::min<int64_t>(sizes[3], ops::mostTopK))
    return invalidArgument(fmt::format("--shape '{}': up to {} experts are accepted, and up to {} of them for a token",
                                       text, ops::mostExperts, std::min<int64_t>(sizes[3], ops::mostTopK)));
  return Shape{sizes[0], sizes[1], sizes[2], static_cast<uint32_t>(sizes[3]), static_cast<uint32_t>(sizes[4])};
}

class GroupedGemmBench : KernelBench {
public:
  GroupedGemmBench(const GroupedGemmBenchOptions &options) : KernelBench("grouped_gemm", options), grouped(options) {}
  Status run(const Knobs &knobs);

private:
  /// One way to compute a shape.
  struct Way {
    bool gathers = false;
    ops::GemmPlan plan;
    std::optional<ops::Routing> routing; ///< For the plan's tiles.
    ops::PreparedCall product, sum;
    double error = 0;
  };

  Status benchShape(const std::string &text, const Shape &shape);
  Status makeOperands(const Shape &shape);
  void chooseExperts(const Shape &shape);
  ops::GroupedGemmProblem problemOf(const Shape &shape, bool gathers) const;
  Expected<Way> prepare(const Shape &shape, bool gathers, const std::optional<ops::GemmPlan> &plan);
  Status enqueue(const Way &way);
  Expected<double> errorOf(const Shape &shape, const Way &way);
  double product(const Shape &shape, bool gathers, int32_t slot, int64_t column) const;

  const GroupedGemmBenchOptions &grouped;
  std::optional<NormalData> data;
  std::vector<int32_t> chosen, slotOfRow, rowOfSlot;
  std::vector<float> slotWeights;
  runtime::Buffer ids, slotWeightsOf, tokens, sortedRows, weights, c, out;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string table;
};

Status GroupedGemmBench::run(const Knobs &knobs) {
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(parse(shape).status());
  for (const std::string &plan : options.plans)
    DITRON_RETURN_IF_ERROR(ops::parseGemmPlan(plan, ops::GemmPlan()).status().withContext("--plan"));
  DITRON_RETURN_IF_ERROR(start(knobs));
  DITRON_RETURN_IF_ERROR(ops::verifyOperandType("--dtype", dtype));
  data.emplace(dtype, options.seed);
  std::vector<std::string> shapes = options.shapes;
  if (shapes.empty() && simulated())
    shapes.assign(std::begin(simulatedShapes), std::end(simulatedShapes));
  else if (shapes.empty())
    shapes.assign(std::begin(gpuShapes), std::end(gpuShapes));
  table = fmt::format("rows of experts times their weights, {}, weights {}, {}\n{:<24}{:<10}{:<50}{:>10}{:>9}  {}\n",
                      toString(dtype), grouped.order == "nk" ? "[experts, N, K]" : "[experts, K, N]", machineText(),
                      "tokens x N x K x E x k", "form", "plan", "us", "TFLOP/s", "error");
  shapeCount = shapes.size();
  for (const std::string &text : shapes) {
    DITRON_ASSIGN_OR_RETURN(const Shape shape, parse(text));
    DITRON_RETURN_IF_ERROR(benchShape(text, shape).withContext(text));
    ++shapesDone;
  }
  table += errorNote(dtype, "of 512 elements");
  return finish(std::move(rows), nlohmann::ordered_json::object(), table);
}

void GroupedGemmBench::chooseExperts(const Shape &shape) {
  std::mt19937 random(static_cast<uint32_t>(options.seed + 1));
  std::vector<int32_t> all(shape.experts);
  std::iota(all.begin(), all.end(), 0);
  chosen.clear();
  slotWeights.clear();
  for (int64_t token = 0; token < shape.tokens; ++token)
    for (uint32_t j = 0; j < shape.topK; ++j) {
      std::swap(all[j], all[j + random() % (shape.experts - j)]);
      chosen.push_back(all[j]);
      slotWeights.push_back(static_cast<float>(1 + random() % 7) / 8);
    }
  slotOfRow.resize(chosen.size());
  std::iota(slotOfRow.begin(), slotOfRow.end(), 0);
  std::ranges::sort(slotOfRow, {}, [&](int32_t slot) { return std::pair(chosen[slot], slot); });
  rowOfSlot.resize(chosen.size());
  for (size_t row = 0; row < slotOfRow.size(); ++row)
    rowOfSlot[slotOfRow[row]] = static_cast<int32_t>(row);
}

Status GroupedGemmBench::makeOperands(const Shape &shape) {
  chooseExperts(shape);
  for (runtime::Buffer *buffer : {&ids, &slotWeightsOf, &tokens, &sortedRows, &weights, &c, &out})
    *buffer = runtime::Buffer();
  DITRON_ASSIGN_OR_RETURN(ids, rank().allocate(DataType::I32, shape.rows(), "ids"));
  DITRON_ASSIGN_OR_RETURN(slotWeightsOf, rank().allocate(DataType::F32, shape.rows(), "slot weights"));
  DITRON_ASSIGN_OR_RETURN(tokens, rank().allocate(dtype, shape.tokens * shape.k, "tokens"));
  DITRON_ASSIGN_OR_RETURN(sortedRows, rank().allocate(dtype, shape.rows() * shape.k, "rows"));
  DITRON_ASSIGN_OR_RETURN(weights, rank().allocate(dtype, shape.experts * shape.n * shape.k, "weights"));
  DITRON_ASSIGN_OR_RETURN(c, rank().allocate(dtype, shape.rows() * shape.n, "c"));
  DITRON_ASSIGN_OR_RETURN(out, rank().allocate(dtype, shape.tokens * shape.n, "out"));
  DITRON_RETURN_IF_ERROR(ids.upload(chosen.data(), ids.bytes()));
  DITRON_RETURN_IF_ERROR(slotWeightsOf.uploadFloats(slotWeights));
  DITRON_RETURN_IF_ERROR(data->fill(tokens, tokensSalt));
  DITRON_RETURN_IF_ERROR(data->fill(sortedRows, rowsSalt));
  return data->fill(weights, weightsSalt);
}

ops::GroupedGemmProblem GroupedGemmBench::problemOf(const Shape &shape, bool gathers) const {
  ops::GroupedGemmProblem problem;
  problem.maxRows = shape.rows();
  problem.experts = shape.experts;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.dtype = problem.resultType = dtype;
  problem.order = grouped.order == "nk" ? ops::MatrixOrder::Transposed : ops::MatrixOrder::Plain;
  problem.slots = gathers ? shape.topK : 0;
  return problem;
}

Expected<GroupedGemmBench::Way> GroupedGemmBench::prepare(const Shape &shape, bool gathers,
                                                          const std::optional<ops::GemmPlan> &plan) {
  const ops::GroupedGemmProblem problem = problemOf(shape, gathers);
  Way way;
  way.gathers = gathers;
  if (plan) {
    way.plan = *plan;
  } else {
    DITRON_ASSIGN_OR_RETURN(way.plan, ops::libraryGroupedGemmPlan(problem, *world));
  }
  DITRON_RETURN_IF_ERROR(ops::verifyGroupedGemm(problem, way.plan));
  DITRON_ASSIGN_OR_RETURN(
      way.routing,
      ops::Routing::create(
          rank(), *jit,
          {.experts = shape.experts, .topK = shape.topK, .maxTokens = shape.tokens, .blockM = way.plan.tile.blockM}));
  DITRON_RETURN_IF_ERROR(way.routing->enqueue(rank().stream(), ids, shape.tokens));
  ops::GroupedGemmOperands operands;
  operands.a = gathers ? tokens : sortedRows;
  operands.b = weights;
  operands.c = c;
  operands.offsets = way.routing->offsets();
  operands.tiles = way.routing->tiles();
  operands.slotOfRow = way.routing->slotOfRow();
  DITRON_ASSIGN_OR_RETURN(way.product, ops::prepareGroupedGemm(*jit, rank(), problem, operands, way.plan));
  if (gathers) {
    DITRON_ASSIGN_OR_RETURN(way.sum, ops::prepareSlotSum(*jit, rank(), {shape.tokens, shape.n, shape.topK}, c,
                                                         way.routing->rowOfSlot(), slotWeightsOf, out));
  }
  return way;
}

Status GroupedGemmBench::enqueue(const Way &way) {
  DITRON_RETURN_IF_ERROR(way.product.enqueue(rank().stream()));
  return way.gathers ? way.sum.enqueue(rank().stream()) : Status::ok();
}

double GroupedGemmBench::product(const Shape &shape, bool gathers, int32_t slot, int64_t column) const {
  const int64_t expert = chosen[slot], row = gathers ? slot / shape.topK : rowOfSlot[slot];
  double sum = 0;
  for (int64_t k = 0; k < shape.k; ++k)
    sum += double(data->at(gathers ? tokensSalt : rowsSalt, row * shape.k + k)) *
           data->at(weightsSalt,
                    expert * shape.n * shape.k + (grouped.order == "nk" ? column * shape.k + k : k * shape.n + column));
  return sum;
}

Expected<double> GroupedGemmBench::errorOf(const Shape &shape, const Way &way) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, (way.gathers ? out : c).downloadFloats());
  // What was not written is NaN.
  if (std::ranges::any_of(actual, [](float value) { return std::isnan(value); }))
    return std::numeric_limits<double>::infinity();
  RelativeError error(dtype);
  uint64_t state = options.seed + 1;
  for (uint64_t i = 0; i < samples; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const uint64_t index = i == 0 ? 0 : i == 1 ? actual.size() - 1 : (state >> 20) % actual.size();
    const auto row = static_cast<int64_t>(index) / shape.n, column = static_cast<int64_t>(index) % shape.n;
    double expected = 0;
    if (way.gathers)
      for (auto slot = static_cast<int32_t>(row * shape.topK); slot < (row + 1) * shape.topK; ++slot)
        expected += slotWeights[slot] * product(shape, true, slot, column);
    else
      expected = product(shape, false, slotOfRow[row], column);
    error.add(actual[index], expected);
  }
  return error.value();
}

Status GroupedGemmBench::benchShape(const std::string &text, const Shape &shape) {
  progress.activity(text + ": operands");
  DITRON_RETURN_IF_ERROR(makeOperands(shape));
  std::vector<std::optional<ops::GemmPlan>> plans;
  for (const std::string &plan : options.plans) {
    DITRON_ASSIGN_OR_RETURN(const ops::GemmPlan parsed, ops::parseGemmPlan(plan, ops::GemmPlan()));
    plans.emplace_back(parsed);
  }
  if (plans.empty())
    plans.emplace_back(std::nullopt);
  // Beyond rounding a sum over the slots may be wrong by the rounding of what is added.
  constexpr double allowedOfRows = 2e-3, allowedOfSums = 2e-2, allowedOfTf32 = 4e-3;
  std::vector<std::unique_ptr<Way>> ways;
  nlohmann::ordered_json row = {{"shape", text}, {"tokens", shape.tokens},   {"n", shape.n},
                                {"k", shape.k},  {"experts", shape.experts}, {"top_k", shape.topK}};
  Status lastProblem;
  const size_t tried = plans.size() * (grouped.form.empty() ? 2 : 1);
  for (const bool gathers : {false, true})
    for (const std::optional<ops::GemmPlan> &plan : plans) {
      const char *form = gathers ? "gathered" : "rows";
      if (!grouped.form.empty() && grouped.form != form)
        continue;
      progress.activity(fmt::format("{}: {}", text, form));
      Expected<Way> made = prepare(shape, gathers, plan);
      if (!made.isOk()) {
        lastProblem = plan ? blamedOnPlan(made.status()).withContext(plan->text()) : made.status();
        notePlan(tried, fmt::format("{}: {}", text, form), lastProblem);
        continue;
      }
      auto way = std::make_unique<Way>(std::move(*made));
      DITRON_RETURN_IF_ERROR(poison(c));
      DITRON_RETURN_IF_ERROR(poison(out));
      DITRON_RETURN_IF_ERROR(enqueue(*way));
      DITRON_RETURN_IF_ERROR(world->synchronize());
      DITRON_RETURN_IF_ERROR(plantBehind(grouped.fault, gathers ? out : c));
      DITRON_ASSIGN_OR_RETURN(way->error, errorOf(shape, *way));
      const double allowed = gathers ? allowedOfSums : dtype == DataType::F32 ? allowedOfTf32 : allowedOfRows;
      if (!(way->error <= allowed))
        return internalError(fmt::format("{}, {}: wrong result, error {:.3g} of the root mean square; {} is allowed",
                                         form, way->plan.text(), way->error, allowed));
      ways.push_back(std::move(way));
    }
  if (ways.empty())
    return noPlan(tried, lastProblem);
  std::vector<Contender> contenders;
  for (const std::unique_ptr<Way> &way : ways)
    contenders.push_back({way->plan.text(), [this, each = way.get()](uint64_t) { return enqueue(*each); }});
  progress.activity(text + ": timing");
  DITRON_ASSIGN_OR_RETURN(const std::vector<ContenderTimes> times, timeInterleaved(rank(), contenders, options.timing));
  for (size_t i = 0; i < ways.size(); ++i) {
    const double us = times[i].median(),
                 teraflops = 2.0 * static_cast<double>(shape.rows()) * double(shape.n) * double(shape.k) / us * 1e-6;
    nlohmann::ordered_json &form = row[ways[i]->gathers ? "gathered" : "rows"];
    nlohmann::ordered_json entry = timesAsJson(times[i]);
    entry["teraflops"] = teraflops;
    entry["error"] = ways[i]->error;
    form["plans"].push_back(std::move(entry));
    if (!form.contains("us") || us < form["us"].get<double>()) {
      form["us"] = us;
      form["plan"] = times[i].name;
    }
    table += fmt::format("{:<24}{:<10}{:<50}{:>10.1f}{:>9.1f}  {:.1e}\n", i == 0 ? text : "",
                         ways[i]->gathers ? "gathered" : "rows", times[i].name, us, teraflops, ways[i]->error);
  }
  rows.push_back(std::move(row));
  return Status::ok();
}

} // namespace

Status benchGroupedGemm(const GroupedGemmBenchOptions &options, const Knobs &knobs) {
  return GroupedGemmBench(options).run(knobs);
}

} // namespace ditron::tool
