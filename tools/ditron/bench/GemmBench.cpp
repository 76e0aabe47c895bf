//===- GemmBench.cpp - ditron bench gemm ----------------------------------------------------------------------------------===//
//
// Operands are normally distributed; where they are small there are several sets of them, used in turns, so that no call finds
// its operands in the L2 cache. A result is checked in two ways: some elements against sums in double precision, and, when
// there is a peer, every element against the peer's, which is checked in the first way before.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/NormalData.h"
#include "bench/KernelBench.h"
#include "bench/VendorGemm.h"

#include "ditron/ops/Reference.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

/// Per-GPU shapes of the papers' tensor-parallel layers on eight GPUs, M x N x K.
const char *const gpuShapes[] = {"8192x1376x4096",  "8192x1792x4096",  "8192x3584x8192", "8192x3696x8192",
                                 "8192x6656x16384", "8192x4096x1376",  "8192x4096x1792", "8192x8192x3584",
                                 "8192x8192x3696",  "8192x16384x6656", "8192x8192x8192"};
const char *const simulatedShapes[] = {"512x384x256"};

/// Beyond the rounding of the result an element may be wrong by this much of the results' root mean square: the order of the
/// sum, the rounding of fp32 operands to tf32, and of fp8 the shorter sums in the tensor cores between promotions to fp32. Sums of
/// int8 are exact.
double allowedError(DataType type) {
  switch (type) {
  case DataType::F32: return 4e-3;
  case DataType::F8E4NV:
  case DataType::F8E5: return 1e-2;
  case DataType::I8: return 1e-6;
  default: return 2e-3;
  }
}
/// Of a peer that adds all products of fp8 in the tensor cores: nearly 2 % at K = 4096 (DeepSeek-V3 Technical Report,
/// section 3.3.2), and more with more products.
constexpr double allowedFastAccumulation = 0.1;

struct OperandSet {
  runtime::Buffer a, b, c, peer;
};

struct ResultError {
  double sampled = 0; ///< At some elements, against sums in double precision.
  double whole = 0;   ///< At all elements, against the peer.
  double largest() const { return std::max(sampled, whole); }
};

class GemmBench : KernelBench {
public:
  GemmBench(const GemmBenchOptions &options) : KernelBench("gemm", options), gemm(options) {}
  Status run(const Knobs &knobs);

private:
  Status benchShape(const std::string &shape);
  Expected<std::vector<ops::GemmPlan>> plansFor(const ops::GemmProblem &problem);
  ops::GemmProblem problemOf(const std::vector<int64_t> &sizes) const;
  Status readScales();
  Status makeOperands(const ops::GemmProblem &problem);
  Expected<runtime::Buffer> uploadScales(const std::vector<float> &values, std::string_view name);
  /// Of the first set's result.
  double sampledError(const ops::GemmProblem &problem, const std::vector<float> &actual) const;
  Expected<ResultError> errorOf(const ops::GemmProblem &problem, const runtime::Buffer &c);
  bool isRight(const ResultError &error) const;
  /// Prepares the peer for the shape and gets its result of the first set, if it supports the shape and its result is right; else
  /// `why` says why the row has no peer.
  Status runPeer(const ops::GemmProblem &problem, std::string &why);
  float scaleA(int64_t row) const { return scalesA.empty() ? 1 : scalesA[scalesA.size() == 1 ? 0 : row]; }
  float scaleB(int64_t column) const { return scalesB.empty() ? 1 : scalesB[scalesB.size() == 1 ? 0 : column]; }
  ops::EpilogueOperands extras() const;

  const GemmBenchOptions &gemm;
  ops::Scaling scaling = ops::Scaling::None;
  ops::MultiplyPrecision precision = ops::MultiplyPrecision::Tf32;
  DataType resultType = DataType::BF16;
  std::optional<NormalData> data;
  std::unique_ptr<VendorGemm> peer;
  std::vector<OperandSet> sets;
  std::vector<float> scalesA, scalesB; ///< None, one, or one for each row and column.
  runtime::Buffer scalesBufferA, scalesBufferB;
  std::vector<float> peerResult; ///< For the first set; empty where the shape has no peer.
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string table;
  std::vector<std::pair<double, std::string>> ratios; ///< Speed relative to the peer, and the shape.
  Status failure;                                     ///< Of a shape that no plan gave a right result for.
};

Status GemmBench::run(const Knobs &knobs) {
  // What the command line says is read once before anything is compiled.
  for (const std::string &shape : gemm.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 3, "MxNxK").status());
  for (const std::string &plan : gemm.plans)
    DITRON_RETURN_IF_ERROR(ops::parseGemmPlan(plan, ops::GemmPlan()).status().withContext("--plan"));
  DITRON_RETURN_IF_ERROR(start(knobs));
  DITRON_RETURN_IF_ERROR(readScales());
  DITRON_ASSIGN_OR_RETURN(precision, parsePrecision(gemm.precision, dtype));
  data.emplace(dtype, gemm.seed);
  if (gemm.peer != "none" && !simulated()) {
    Expected<std::unique_ptr<VendorGemm>> opened =
        VendorGemm::open(gemm.peer == "auto" ? "" : gemm.peer, rank(), dtype, gemm.peerFastAccumulation);
    if (opened.isOk())
      peer = std::move(opened).value();
    else if (gemm.peer != "auto")
      return opened.status();
    else
      note(opened.status().message());
  }
  const std::string scalesText =
      sizeOf(dtype) == 1 ? fmt::format(", scales {}, result {}", ops::toString(scaling), toString(resultType)) : "";
  table = fmt::format("C = A * B, {}{}, B is {}, {}{}\n{:<18}{:<50}{:>10}{:>9}{:>9}{:>7}  {}\n", toString(dtype),
                      scalesText, gemm.order == "nk" ? "[N, K]" : "[K, N]", machineText(),
                      peer ? ", beside " + peer->name() : "", "M x N x K", "plan", "us", "TFLOP/s", peer ? "peer" : "",
                      peer ? "ratio" : "", "error");
  std::vector<std::string> shapes = gemm.shapes;
  if (shapes.empty() && simulated())
    shapes.assign(std::begin(simulatedShapes), std::end(simulatedShapes));
  else if (shapes.empty())
    shapes.assign(std::begin(gpuShapes), std::end(gpuShapes));
  shapeCount = shapes.size();
  for (const std::string &shape : shapes) {
    sets.clear();
    peerResult.clear();
    DITRON_RETURN_IF_ERROR(benchShape(shape).withContext(shape));
    ++shapesDone;
  }
  nlohmann::ordered_json summary = {{"scales", ops::toString(scaling)}, {"result_type", toString(resultType)}};
  if (peer) {
    summary["peer"] = peer->name();
    summary["peer_result_type"] = toString(peer->resultType({.dtype = dtype, .resultType = resultType}));
  }
  if (!ratios.empty()) {
    double logarithms = 0;
    for (const auto &[ratio, shape] : ratios)
      logarithms += std::log(ratio);
    const double mean = std::exp(logarithms / static_cast<double>(ratios.size()));
    const auto least = *std::min_element(ratios.begin(), ratios.end());
    const std::string which =
        ratios.size() < shapes.size() ? fmt::format(" over {} of {} shapes", ratios.size(), shapes.size()) : "";
    table += fmt::format("geometric mean {:.3f} of {}{}, least {:.3f} ({})\n", mean, peer->name(), which, least.first,
                         least.second);
    summary.update({{"geometric_mean", mean},
                    {"least", least.first},
                    {"least_shape", least.second},
                    {"shapes_compared", ratios.size()}});
  }
  if (peer && gemm.peerFastAccumulation)
    table += fmt::format("the peer's sums are shorter than fp32: against it an error of {:g} is accepted\n",
                         allowedFastAccumulation);
  if (peer && dtype == DataType::I8)
    table += "the peer's result is int32, four bytes an element, without scales\n";
  table += errorNote(resultType, peer ? "of 512 elements; all elements against the peer" : "of 512 elements");
  DITRON_RETURN_IF_ERROR(finish(std::move(rows), std::move(summary), table));
  return failure;
}

Expected<std::vector<ops::GemmPlan>> GemmBench::plansFor(const ops::GemmProblem &problem) {
  std::vector<ops::GemmPlan> ranked = ops::rankGemmPlans(problem, world->target(), rank().attributes().multiprocessors);
  DITRON_ASSIGN_OR_RETURN(const ops::GemmPlan library, ops::libraryGemmPlan(problem, *world));
  // The library's choice first, wherever the model ranks it.
  std::erase_if(ranked, [&](const ops::GemmPlan &plan) { return plan.text() == library.text(); });
  ranked.insert(ranked.begin(), library);
  std::vector<ops::GemmPlan> plans;
  for (const std::string &text : gemm.plans) {
    DITRON_ASSIGN_OR_RETURN(ops::GemmPlan plan, ops::parseGemmPlan(text, ranked.front()));
    plans.push_back(plan);
  }
  const size_t wanted = plans.empty() ? std::max(gemm.sweep, 1u) : gemm.sweep;
  size_t taken = 0;
  for (size_t i = 0; i < ranked.size() && taken < wanted; ++i)
    if (gemm.movement.empty() || toString(ranked[i].movement) == gemm.movement)
      plans.push_back(ranked[i]), ++taken;
  if (taken < gemm.sweep)
    note(fmt::format("--sweep {}: the model knows {} for {}x{}x{} of {}", gemm.sweep, taken, problem.m, problem.n,
                     problem.k, toString(dtype)));
  if (plans.empty()) {
    // A form that the target would not choose by itself.
    DITRON_ASSIGN_OR_RETURN(ops::GemmPlan plan, ops::parseGemmPlan(gemm.movement, ranked.front()));
    plans.push_back(plan);
  }
  return plans;
}

Status GemmBench::readScales() {
  resultType = ops::defaultResultType(dtype);
  const bool narrow = sizeOf(dtype) == 1;
  if (gemm.scales.empty())
    scaling = narrow ? ops::Scaling::Tensor : ops::Scaling::None;
  else {
    DITRON_ASSIGN_OR_RETURN(scaling, ops::parseScaling(gemm.scales));
  }
  DITRON_RETURN_IF_ERROR(ops::verifyEpilogue(
      "--dtype", dtype, resultType, {scaling, scaling, std::nullopt, ops::Activation::None}, /*reduces=*/false));
  if (!narrow && scaling != ops::Scaling::None)
    return invalidArgument(
        fmt::format("--scales {}: {} is measured without scales; fp8e4nv, fp8e5 and i8 may have them",
                    ops::toString(scaling), toString(dtype)));
  const bool isFloat8 = dtype == DataType::F8E4NV || dtype == DataType::F8E5;
  if (gemm.peerFastAccumulation && !isFloat8)
    return invalidArgument(
        fmt::format("--peer-fast-accumulation: {} has no such sums; fp8e4nv and fp8e5 are accepted", toString(dtype)));
  return Status::ok();
}

ops::GemmProblem GemmBench::problemOf(const std::vector<int64_t> &sizes) const {
  return {.m = sizes[0],
          .n = sizes[1],
          .k = sizes[2],
          .dtype = dtype,
          .resultType = resultType,
          .order = gemm.order == "nk" ? ops::MatrixOrder::Transposed : ops::MatrixOrder::Plain,
          .precision = precision,
          .epilogue = {scaling, scaling, std::nullopt, ops::Activation::None}};
}

ops::EpilogueOperands GemmBench::extras() const {
  if (scaling == ops::Scaling::None)
    return {};
  return {scalesBufferA, scalesBufferB, {}};
}

Expected<runtime::Buffer> GemmBench::uploadScales(const std::vector<float> &values, std::string_view name) {
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer, rank().allocate(DataType::F32, values.size(), name));
  DITRON_RETURN_IF_ERROR(buffer.uploadFloats(values));
  return buffer;
}

Status GemmBench::makeOperands(const ops::GemmProblem &problem) {
  constexpr uint64_t wantedBytes = uint64_t(256) << 20; // several times any L2 cache
  const uint64_t countA = problem.m * problem.k, countB = problem.n * problem.k, countC = problem.m * problem.n;
  const uint64_t bytes = (countA + countB) * sizeOf(problem.dtype) + countC * sizeOf(problem.typeOfResult());
  const uint64_t count = simulated() ? 1 : std::clamp<uint64_t>((wantedBytes + bytes - 1) / bytes, 1, 8);
  for (uint64_t i = 0; i < count; ++i) {
    OperandSet set;
    DITRON_ASSIGN_OR_RETURN(set.a, rank().allocate(problem.dtype, countA, "a"));
    DITRON_ASSIGN_OR_RETURN(set.b, rank().allocate(problem.dtype, countB, "b"));
    DITRON_ASSIGN_OR_RETURN(set.c, rank().allocate(problem.typeOfResult(), countC, "c"));
    if (peer) {
      DITRON_ASSIGN_OR_RETURN(set.peer, rank().allocate(peer->resultType(problem), countC, "peer's c"));
    }
    DITRON_RETURN_IF_ERROR(data->fill(set.a, 2 * i + 1));
    DITRON_RETURN_IF_ERROR(data->fill(set.b, 2 * i + 2));
    sets.push_back(std::move(set));
  }
  if (scaling == ops::Scaling::None)
    return Status::ok();
  // In [0.5, 1.5); those of int8 bring the values, which have a deviation of 40, near those of the other types.
  auto scales = [&](int64_t count, uint64_t salt) {
    std::vector<float> values =
        ops::randomValues(DataType::F32, scaling == ops::Scaling::Vector ? count : 1, gemm.seed * 2 + salt);
    for (float &value : values)
      value = (value + 1) * (dtype == DataType::I8 ? 1.0f / 64 : 1.0f);
    return values;
  };
  scalesA = scales(problem.m, 1);
  scalesB = scales(problem.n, 2);
  DITRON_ASSIGN_OR_RETURN(scalesBufferA, uploadScales(scalesA, "scales of a"));
  DITRON_ASSIGN_OR_RETURN(scalesBufferB, uploadScales(scalesB, "scales of b"));
  return Status::ok();
}

double GemmBench::sampledError(const ops::GemmProblem &problem, const std::vector<float> &actual) const {
  RelativeError error(resultType);
  constexpr uint64_t samples = 512;
  uint64_t state = gemm.seed + 1;
  for (uint64_t i = 0; i < samples; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const uint64_t index = i == 0 ? 0 : i == 1 ? actual.size() - 1 : (state >> 20) % actual.size();
    const uint64_t row = index / problem.n, column = index % problem.n;
    double sum = 0;
    for (int64_t k = 0; k < problem.k; ++k)
      sum +=
          double(data->at(1, row * problem.k + k)) *
          data->at(2, problem.order == ops::MatrixOrder::Transposed ? column * problem.k + k : k * problem.n + column);
    error.add(actual[index], sum * scaleA(row) * scaleB(column));
  }
  return error.value();
}

Expected<ResultError> GemmBench::errorOf(const ops::GemmProblem &problem, const runtime::Buffer &c) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, c.downloadFloats());
  RelativeError whole(resultType);
  // Without a peer at least everything must have been written.
  for (size_t i = 0; i < actual.size(); ++i)
    whole.add(actual[i], peerResult.empty() ? actual[i] : peerResult[i]);
  return ResultError{sampledError(problem, actual), whole.value()};
}

bool GemmBench::isRight(const ResultError &error) const {
  return error.sampled <= allowedError(dtype) &&
         error.whole <= (gemm.peerFastAccumulation ? allowedFastAccumulation : allowedError(dtype));
}

Status GemmBench::runPeer(const ops::GemmProblem &problem, std::string &why) {
  const OperandSet &set = sets.front();
  DITRON_RETURN_IF_ERROR(poison(set.peer));
  Status enqueued = peer->prepare(problem, extras());
  if (enqueued.isOk())
    enqueued = peer->enqueue(set.a, set.b, set.peer);
  if (!enqueued.isOk()) {
    why = enqueued.message();
    return Status::ok();
  }
  DITRON_RETURN_IF_ERROR(world->synchronize());
  DITRON_ASSIGN_OR_RETURN(std::vector<float> result, set.peer.downloadFloats());
  if (set.peer.type() == DataType::I32)
    for (size_t i = 0; i < result.size(); ++i)
      result[i] *= scaleA(static_cast<int64_t>(i / problem.n)) * scaleB(static_cast<int64_t>(i % problem.n));
  const double error = sampledError(problem, result);
  if (error <= (gemm.peerFastAccumulation ? allowedFastAccumulation : allowedError(dtype)))
    peerResult = std::move(result);
  else
    why = fmt::format("its result is WRONG, error {:.3g} of the root mean square", error);
  return Status::ok();
}

Status GemmBench::benchShape(const std::string &shape) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 3, "MxNxK"));
  const ops::GemmProblem problem = problemOf(sizes);
  DITRON_ASSIGN_OR_RETURN(const std::vector<ops::GemmPlan> plans, plansFor(problem));
  progress.activity(shape + ": operands");
  DITRON_RETURN_IF_ERROR(makeOperands(problem));
  nlohmann::ordered_json row = {{"shape", shape}, {"m", problem.m}, {"n", problem.n}, {"k", problem.k}};
  if (std::string why; peer) {
    DITRON_RETURN_IF_ERROR(runPeer(problem, why).withContext(peer->name()));
    if (!why.empty()) {
      note(fmt::format("{}: no peer: {}: {}", shape, peer->name(), why));
      row["peer_missing"] = why;
    }
  }
  const bool compared = !peerResult.empty();

  std::vector<Contender> contenders;
  std::vector<double> errors;
  StatusCode lastProblem = StatusCode::Ok;
  runtime::Buffer planted;
  for (const ops::GemmPlan &plan : plans) {
    progress.activity(fmt::format("{}: {}", shape, plan.text()));
    reached(&plan - plans.data(), plans.size() + 1);
    std::vector<ops::PreparedCall> calls;
    Status prepared = Status::ok();
    for (const OperandSet &set : sets) {
      auto call = ops::prepareGemm(*jit, rank(), problem, set.a, set.b, set.c, plan, extras());
      if (!(prepared = call.status()).isOk())
        break;
      calls.push_back(std::move(call).value());
    }
    if (prepared.isOk())
      prepared = poison(sets[0].c);
    if (prepared.isOk())
      prepared = plantBefore(gemm.fault, *world, planted);
    if (prepared.isOk())
      prepared = calls[0].enqueue(rank().stream());
    if (prepared.isOk())
      prepared = world->synchronize();
    if (!prepared.isOk()) {
      // One plan that cannot be compiled must not cost the others, but nothing survives a kernel that failed.
      lastProblem = gemm.plans.empty() ? prepared.code() : blamedOnPlan(prepared).code();
      note(fmt::format("{}: {}: {}", shape, plan.text(), prepared.message()));
      row["failed"].push_back({{"plan", plan.text()}, {"error", prepared.message()}});
      DITRON_RETURN_IF_ERROR(world->status());
      continue;
    }
    DITRON_RETURN_IF_ERROR(plantBehind(gemm.fault, sets[0].c));
    DITRON_ASSIGN_OR_RETURN(const ResultError error, errorOf(problem, sets[0].c));
    if (!isRight(error)) {
      lastProblem = StatusCode::Internal;
      note(fmt::format("{}: {}: WRONG, error {:.3g} of the root mean square", shape, plan.text(), error.largest()));
      row["failed"].push_back({{"plan", plan.text()}, {"error", fmt::format("wrong result: {:.3g}", error.largest())}});
      continue;
    }
    errors.push_back(error.largest());
    contenders.push_back({plan.text(), [this, calls = std::move(calls)](uint64_t call) {
                            return calls[call % calls.size()].enqueue(rank().stream());
                          }});
  }
  if (contenders.empty()) {
    rows.push_back(row);
    table += fmt::format("{:<18}no plan gave a right result\n", shape);
    failure = Status(lastProblem, fmt::format("{}: no plan gave a right result, for the reasons above", shape));
    return Status::ok(); // other shapes may have one
  }
  if (compared)
    contenders.push_back({peer->name(), [&](uint64_t call) {
                            const OperandSet &set = sets[call % sets.size()];
                            return peer->enqueue(set.a, set.b, set.peer);
                          }});
  progress.activity(shape + ": timing");
  reached(plans.size(), plans.size() + 1);
  DITRON_ASSIGN_OR_RETURN(const std::vector<ContenderTimes> times, timeInterleaved(rank(), contenders, gemm.timing));
  const double flops = 2.0 * double(problem.m) * double(problem.n) * double(problem.k);
  const double peerTime = compared ? times.back().median() : 0;
  size_t best = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (times[i].median() < times[best].median())
      best = i;
    nlohmann::ordered_json entry = timesAsJson(times[i]);
    entry["teraflops"] = flops / times[i].median() * 1e-6;
    entry["error"] = errors[i];
    if (compared)
      entry["ratio"] = peerTime / times[i].median();
    row["plans"].push_back(entry);
    table += fmt::format("{:<18}{:<50}{:>10.1f}{:>9.1f}", i == 0 ? shape : "", times[i].name, times[i].median(),
                         flops / times[i].median() * 1e-6);
    table += compared ? fmt::format("{:>9.1f}{:>7.3f}", flops / peerTime * 1e-6, peerTime / times[i].median())
                      : fmt::format("{:16}", "");
    table += fmt::format("  {:.1e}\n", errors[i]);
  }
  row["best"] = times[best].name;
  row["teraflops"] = flops / times[best].median() * 1e-6;
  if (compared) {
    row["peer"] = timesAsJson(times.back());
    row["peer"]["teraflops"] = flops / peerTime * 1e-6;
    row["ratio"] = peerTime / times[best].median();
    ratios.emplace_back(peerTime / times[best].median(), shape);
  }
  rows.push_back(row);
  return Status::ok();
}

} // namespace

Status benchGemm(const GemmBenchOptions &options, const Knobs &knobs) { return GemmBench(options).run(knobs); }

} // namespace ditron::tool
