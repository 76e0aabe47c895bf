//===- GemmBench.cpp - ditron bench gemm ----------------------------------------------------------------------------------===//
//
// Operands are normally distributed; where they are small there are several sets of them, used in turns, so that no call finds
// its operands in the L2 cache. A result is checked in two ways: some elements against sums in double precision, and, when
// there is a peer, every element against the peer's.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/NormalData.h"
#include "bench/KernelBench.h"
#include "bench/VendorGemm.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

/// Per-GPU shapes of the papers' tensor-parallel layers on eight GPUs, M x N x K.
const char *const gpuShapes[] = {"8192x1376x4096", "8192x1792x4096", "8192x3584x8192",   "8192x3696x8192",
                                 "8192x6656x16384", "8192x4096x1376", "8192x4096x1792",  "8192x8192x3584",
                                 "8192x8192x3696",  "8192x16384x6656", "8192x8192x8192"};
const char *const simulatedShapes[] = {"512x384x256"};

/// Beyond the rounding of the result an element may be wrong by this much of the results' root mean square: the order of the
/// sum, and the rounding of fp32 operands to tf32.
double allowedError(DataType type) { return type == DataType::F32 ? 4e-3 : 2e-3; }

struct OperandSet {
  runtime::Buffer a, b, c, peer;
};

class GemmBench : KernelBench {
public:
  GemmBench(const GemmBenchOptions &options) : KernelBench("gemm", options), gemm(options) {}
  Status run(const Knobs &knobs);

private:
  Status benchShape(const std::string &shape);
  Expected<std::vector<ops::GemmPlan>> plansFor(const ops::GemmProblem &problem);
  Status makeOperands(const ops::GemmProblem &problem);
  /// Error of a result: at sampled elements in double precision, at all elements against the peer.
  Expected<double> errorOf(const ops::GemmProblem &problem, const runtime::Buffer &c);
  /// Gets the peer's result of the first set.
  Status runPeer(const ops::GemmProblem &problem);

  const GemmBenchOptions &gemm;
  std::optional<NormalData> data;
  std::optional<VendorGemm> peer;
  std::vector<OperandSet> sets;
  std::vector<float> peerResult; ///< For the first set.
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string table;
  std::vector<std::pair<double, std::string>> ratios; ///< Speed relative to the peer, and the shape.
};

Status GemmBench::run(const Knobs &knobs) {
  // What the command line says is read once before anything is compiled.
  for (const std::string &shape : gemm.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 3, "MxNxK").status());
  for (const std::string &plan : gemm.plans)
    DITRON_RETURN_IF_ERROR(ops::parseGemmPlan(plan, ops::GemmPlan()).status().withContext("--plan"));
  DITRON_RETURN_IF_ERROR(start(knobs));
  DITRON_RETURN_IF_ERROR(ops::verifyOperandType("--dtype", dtype));
  data.emplace(dtype, gemm.seed);
  if (gemm.peer != "none" && !simulated()) {
    Expected<VendorGemm> opened = VendorGemm::open(gemm.peer == "auto" ? "" : gemm.peer, rank().stream());
    if (opened.isOk())
      peer.emplace(std::move(opened).value());
    else if (gemm.peer != "auto")
      return opened.status();
    else
      note(opened.status().message());
  }
  table = fmt::format("C = A * B, {}, B is {}, {}{}\n{:<18}{:<50}{:>10}{:>9}{:>9}{:>7}  {}\n", toString(dtype),
                      gemm.order == "nk" ? "[N, K]" : "[K, N]", machineText(), peer ? ", beside " + peer->name() : "",
                      "M x N x K", "plan", "us", "TFLOP/s", peer ? "peer" : "", peer ? "ratio" : "", "error");
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
  nlohmann::ordered_json summary = nlohmann::ordered_json::object();
  if (!ratios.empty()) {
    double logarithms = 0;
    for (const auto &[ratio, shape] : ratios)
      logarithms += std::log(ratio);
    const double mean = std::exp(logarithms / static_cast<double>(ratios.size()));
    const auto least = *std::min_element(ratios.begin(), ratios.end());
    table += fmt::format("geometric mean {:.3f} of {}, least {:.3f} ({})\n", mean, peer->name(), least.first, least.second);
    summary = {{"peer", peer->name()}, {"geometric_mean", mean}, {"least", least.first}, {"least_shape", least.second}};
  }
  table += errorNote(dtype, peer ? "of 512 elements; all elements against the peer" : "of 512 elements");
  return finish(std::move(rows), std::move(summary), table);
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
  for (size_t i = 0, taken = 0; i < ranked.size() && taken < wanted; ++i)
    if (gemm.movement.empty() || toString(ranked[i].movement) == gemm.movement)
      plans.push_back(ranked[i]), ++taken;
  if (plans.empty()) {
    // A form that the target would not choose by itself.
    DITRON_ASSIGN_OR_RETURN(ops::GemmPlan plan, ops::parseGemmPlan(gemm.movement, ranked.front()));
    plans.push_back(plan);
  }
  return plans;
}

Status GemmBench::makeOperands(const ops::GemmProblem &problem) {
  constexpr uint64_t wantedBytes = uint64_t(256) << 20; // several times any L2 cache
  const uint64_t countA = problem.m * problem.k, countB = problem.n * problem.k, countC = problem.m * problem.n;
  const uint64_t bytes = (countA + countB + countC) * sizeOf(problem.dtype);
  const uint64_t count = simulated() ? 1 : std::clamp<uint64_t>((wantedBytes + bytes - 1) / bytes, 1, 8);
  for (uint64_t i = 0; i < count; ++i) {
    OperandSet set;
    DITRON_ASSIGN_OR_RETURN(set.a, rank().allocate(problem.dtype, countA, "a"));
    DITRON_ASSIGN_OR_RETURN(set.b, rank().allocate(problem.dtype, countB, "b"));
    DITRON_ASSIGN_OR_RETURN(set.c, rank().allocate(problem.dtype, countC, "c"));
    if (peer) {
      DITRON_ASSIGN_OR_RETURN(set.peer, rank().allocate(problem.dtype, countC, "peer's c"));
    }
    DITRON_RETURN_IF_ERROR(data->fill(set.a, 2 * i + 1));
    DITRON_RETURN_IF_ERROR(data->fill(set.b, 2 * i + 2));
    sets.push_back(std::move(set));
  }
  return Status::ok();
}

Expected<double> GemmBench::errorOf(const ops::GemmProblem &problem, const runtime::Buffer &c) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, c.downloadFloats());
  RelativeError sampled(dtype), whole(dtype);
  constexpr uint64_t samples = 512;
  uint64_t state = gemm.seed + 1;
  for (uint64_t i = 0; i < samples; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const uint64_t index = i == 0 ? 0 : i == 1 ? actual.size() - 1 : (state >> 20) % actual.size();
    const uint64_t row = index / problem.n, column = index % problem.n;
    double sum = 0;
    for (int64_t k = 0; k < problem.k; ++k)
      sum += double(data->at(1, row * problem.k + k)) *
             data->at(2, problem.order == ops::MatrixOrder::Transposed ? column * problem.k + k : k * problem.n + column);
    sampled.add(actual[index], sum);
  }
  // Without a peer at least everything must have been written.
  for (size_t i = 0; i < actual.size(); ++i)
    whole.add(actual[i], peerResult.empty() ? actual[i] : peerResult[i]);
  return std::max(sampled.value(), whole.value());
}

Status GemmBench::runPeer(const ops::GemmProblem &problem) {
  const OperandSet &set = sets.front();
  DITRON_RETURN_IF_ERROR(poison(set.peer));
  DITRON_RETURN_IF_ERROR(peer->enqueue(problem, set.a, set.b, set.peer));
  DITRON_RETURN_IF_ERROR(world->synchronize());
  DITRON_ASSIGN_OR_RETURN(peerResult, set.peer.downloadFloats());
  return Status::ok();
}

Status GemmBench::benchShape(const std::string &shape) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 3, "MxNxK"));
  const ops::GemmProblem problem = {
      .m = sizes[0],
      .n = sizes[1],
      .k = sizes[2],
      .dtype = dtype,
      .order = gemm.order == "nk" ? ops::MatrixOrder::Transposed : ops::MatrixOrder::Plain,
      .precision = gemm.precision == "ieee" ? ops::MultiplyPrecision::Ieee : ops::MultiplyPrecision::Tf32};
  DITRON_ASSIGN_OR_RETURN(const std::vector<ops::GemmPlan> plans, plansFor(problem));
  progress.activity(shape + ": operands");
  DITRON_RETURN_IF_ERROR(makeOperands(problem));
  if (peer)
    DITRON_RETURN_IF_ERROR(runPeer(problem));

  std::vector<Contender> contenders;
  std::vector<double> errors;
  nlohmann::ordered_json row = {{"shape", shape}, {"m", problem.m}, {"n", problem.n}, {"k", problem.k}};
  runtime::Buffer planted;
  for (const ops::GemmPlan &plan : plans) {
    progress.activity(fmt::format("{}: {}", shape, plan.text()));
    reached(&plan - plans.data(), plans.size() + 1);
    std::vector<ops::PreparedCall> calls;
    Status prepared = Status::ok();
    for (const OperandSet &set : sets) {
      auto call = ops::prepareGemm(*jit, rank(), problem, set.a, set.b, set.c, plan);
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
      note(fmt::format("{}: {}: {}", shape, plan.text(), prepared.message()));
      row["failed"].push_back({{"plan", plan.text()}, {"error", prepared.message()}});
      DITRON_RETURN_IF_ERROR(world->status());
      continue;
    }
    DITRON_RETURN_IF_ERROR(plantBehind(gemm.fault, sets[0].c));
    DITRON_ASSIGN_OR_RETURN(const double error, errorOf(problem, sets[0].c));
    if (!(error <= allowedError(dtype))) {
      note(fmt::format("{}: {}: WRONG, error {:.3g} of the root mean square", shape, plan.text(), error));
      row["failed"].push_back({{"plan", plan.text()}, {"error", fmt::format("wrong result: {:.3g}", error)}});
      continue;
    }
    errors.push_back(error);
    contenders.push_back({plan.text(), [this, calls = std::move(calls)](uint64_t call) {
                            return calls[call % calls.size()].enqueue(rank().stream());
                          }});
  }
  if (contenders.empty()) {
    rows.push_back(row);
    table += fmt::format("{:<18}no plan gave a right result\n", shape);
    return Status::ok();
  }
  if (peer)
    contenders.push_back({peer->name(), [&](uint64_t call) {
                            const OperandSet &set = sets[call % sets.size()];
                            return peer->enqueue(problem, set.a, set.b, set.peer);
                          }});
  progress.activity(shape + ": timing");
  reached(plans.size(), plans.size() + 1);
  DITRON_ASSIGN_OR_RETURN(const std::vector<ContenderTimes> times, timeInterleaved(rank(), contenders, gemm.timing));
  const double flops = 2.0 * double(problem.m) * double(problem.n) * double(problem.k);
  const double peerTime = peer ? times.back().median() : 0;
  size_t best = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (times[i].median() < times[best].median())
      best = i;
    nlohmann::ordered_json entry = timesAsJson(times[i]);
    entry["teraflops"] = flops / times[i].median() * 1e-6;
    entry["error"] = errors[i];
    if (peer)
      entry["ratio"] = peerTime / times[i].median();
    row["plans"].push_back(entry);
    table += fmt::format("{:<18}{:<50}{:>10.1f}{:>9.1f}", i == 0 ? shape : "", times[i].name, times[i].median(),
                         flops / times[i].median() * 1e-6);
    table += peer ? fmt::format("{:>9.1f}{:>7.3f}", flops / peerTime * 1e-6, peerTime / times[i].median())
                  : fmt::format("{:16}", "");
    table += fmt::format("  {:.1e}\n", errors[i]);
  }
  row["best"] = times[best].name;
  row["teraflops"] = flops / times[best].median() * 1e-6;
  if (peer) {
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
