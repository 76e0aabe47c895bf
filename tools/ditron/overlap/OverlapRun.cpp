//===- OverlapRun.cpp - One verified run of an overlapped operator ----------------------------------------------------===//
#include "overlap/OverlapRun.h"

#include "overlap/OverlapOperands.h"

#include "ditron/sim/Machine.h"

#include <chrono>
#include <filesystem>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Status checkSizes(const OverlapRunOptions &options) {
  bool gather = options.op == OverlapOperator::AllGatherGemm;
  int64_t dealt = gather ? options.n : options.k;
  if (options.m < 1 || options.n < 1 || options.k < 1)
    return invalidArgument(fmt::format("M={}, N={}, K={}; all must be positive", options.m, options.n, options.k));
  if (dealt < options.ranks)
    return invalidArgument(fmt::format("{}={} is dealt out to {} ranks, so it must be at least {}", gather ? "N" : "K",
                                       dealt, options.ranks, options.ranks));
  if (options.activation == ops::Activation::SwiGlu &&
      (options.n % 2 != 0 || (gather && options.n / 2 < options.ranks)))
    return invalidArgument(fmt::format("N={}: swiglu takes pairs of columns, at least one for each of {} ranks",
                                       options.n, gather ? options.ranks : 1));
  if (options.calls == 0)
    return invalidArgument("0 calls; at least 1 is accepted");
  if (options.check && options.dtype == DataType::I8 && options.typeOfResult() == DataType::F16 &&
      options.scales == ops::Scaling::None)
    return invalidArgument(
        "--check of int8 products as fp16, which ends at 65504: without --scales tensor or vector their sums pass it");
  return Status::ok();
}

/// An option that the chosen plan has no place for would be ignored in silence.
Status checkPlanHasPlaces(const OverlapRunOptions &options, std::string_view plan) {
  if (options.plan || options.schedule == ops::Schedule::Unfused)
    return Status::ok();
  const std::string_view form = plan.substr(0, plan.find(' '));
  const auto isForm = [&](ops::TensorParallelForm each) { return form == toString(each); };
  using Form = ops::TensorParallelForm;
  const bool isOneLaunch = isForm(Form::OneLaunch) || isForm(Form::OneShot) || isForm(Form::FusedTwoShot);
  const auto refused = [&](std::string_view option, std::string_view accepted) {
    return invalidArgument(fmt::format("{}: calls of {} rows are '{}', which this says nothing of; {}", option,
                                       options.m, plan, accepted));
  };
  if (isOneLaunch && options.tile != ops::libraryTile && options.splits == 0)
    return refused("--block-m, --block-n, --block-k, --num-warps or --num-stages",
                   options.op == OverlapOperator::GemmAllReduce
                       ? "with --splits they are its tile, and --form two_shot has another"
                       : "--plan 'one_launch 16x64x64' names its tile, and with --one-launch-rows 0 it is none");
  if (isOneLaunch && options.chunks > 0)
    return refused(fmt::format("--chunks {}", options.chunks), "with --one-launch-rows 0 there are chunks");
  if (options.rowChunks > 0 && !isForm(Form::TwoShot) && !isForm(Form::Pushed))
    return refused(fmt::format("--row-chunks {}", options.rowChunks), "--form two_shot and --form pushed have chunks");
  if (options.rowChunks > 0 &&
      fmt::format("{} ", plan).find(fmt::format(" chunks {} ", options.rowChunks)) == std::string::npos)
    return invalidArgument(fmt::format("--row-chunks {}: calls of {} rows are '{}': each rank's part of a chunk has at "
                                       "least a row of tiles",
                                       options.rowChunks, options.m, plan));
  if (options.exchangeBlocks > 0 && !isForm(Form::TwoShot))
    return refused(fmt::format("--exchange-blocks {}", options.exchangeBlocks), "--form two_shot has them");
  return Status::ok();
}

/// The ranks of one process, or this process's rank of a job.
Expected<std::unique_ptr<runtime::World>> makeWorld(const OverlapRunOptions &options) {
  if (!options.processes)
    return runtime::World::local(options.ranks, options.target, options.world);
  DITRON_ASSIGN_OR_RETURN(auto world, runtime::World::fromEnvironment(options.target, options.world));
  if (world->numRanks() != options.ranks)
    return invalidArgument(fmt::format("--ranks {}: the job has {} processes", options.ranks, world->numRanks()));
  return world;
}

/// Simulated ranks: one call of each as a graph, so that what is timed is the call and not its enqueueing.
Expected<std::vector<runtime::Graph>> captureCalls(runtime::World &world, OverlapOperands &run) {
  std::vector<runtime::Graph> graphs;
  for (uint32_t id : world.localRanks()) {
    runtime::Stream &stream = world.rank(id).stream();
    DITRON_RETURN_IF_ERROR(stream.beginCapture());
    const Status enqueued = run.enqueue(id);
    Expected<runtime::Graph> graph = stream.endCapture(); // also ends a capture that failed
    DITRON_RETURN_IF_ERROR(enqueued);
    DITRON_RETURN_IF_ERROR(graph.status());
    graphs.push_back(std::move(graph).value());
  }
  return graphs;
}

/// One call on every rank; of simulated ones each has host code of its own.
Status makeCall(runtime::World &world, OverlapOperands &run, const std::vector<runtime::Graph> &graphs) {
  if (world.machine())
    DITRON_RETURN_IF_ERROR(
        world.runRanks([&](runtime::Rank &rank) { return rank.stream().launch(graphs[rank.id()]); }));
  else
    for (uint32_t id : world.localRanks())
      DITRON_RETURN_IF_ERROR(run.enqueue(id));
  return world.synchronize();
}

/// Makes the calls whose results are compared.
Status checkCalls(const OverlapRunOptions &options, runtime::World &world, OverlapOperands &run, bool sampled,
                  const OverlapProgress &progress, OverlapRunResult &result) {
  // On GPUs the timing that follows takes about as long.
  const double share = (world.machine() ? 1.0 : 0.5) / options.calls;
  std::vector<runtime::Graph> graphs;
  if (world.machine()) {
    DITRON_ASSIGN_OR_RETURN(graphs, captureCalls(world, run));
  }
  runtime::Buffer planted;
  for (uint32_t call = 0; call < options.calls; ++call) {
    std::vector<float> a, b;
    if (!sampled) {
      a = ops::randomValues(options.dtype, options.m * options.k, options.world.seed + 2 * call + 1);
      b = ops::randomValues(options.dtype, options.k * options.n, options.world.seed + 2 * call + 2);
    }
    if (world.machine())
      world.machine()->clearTrace(); // what is reported and traced is the last call
    progress(world.machine() ? "simulating" : "running", call * share);
    const uint64_t networkBytes = world.machine() ? world.machine()->counters().networkBytes : 0;
    auto start = Clock::now();
    DITRON_RETURN_IF_ERROR(sampled ? run.uploadSamples(call) : run.upload(a, b));
    DITRON_RETURN_IF_ERROR(plantBefore(options.fault, world, planted));
    DITRON_RETURN_IF_ERROR(makeCall(world, run, graphs));
    DITRON_RETURN_IF_ERROR(plantBehind(options.fault, run.firstResult()));
    result.wallSeconds += secondsSince(start);
    if (world.numNodes() > 1)
      result.networkBytes = world.machine()->counters().networkBytes - networkBytes;
    if (!options.check)
      continue;
    progress("checking", (call + 0.5) * share);
    result.checked = true;
    if (sampled) {
      DITRON_ASSIGN_OR_RETURN(const double error, run.verifySamples(call));
      result.sampledError = std::max(result.sampledError.value_or(0), error);
      continue;
    }
    DITRON_ASSIGN_OR_RETURN(ops::Comparison comparison,
                            run.verify(ops::referenceProduct(a, b, options.m, options.n, options.k)));
    result.comparison.merge(comparison);
  }
  return Status::ok();
}

} // namespace

/// A process of a job has a file of its own: trace.json becomes trace.rank3.json.
static std::string traceFileOf(const OverlapRunOptions &options, const runtime::World &world) {
  if (!options.processes)
    return options.traceFile;
  std::filesystem::path path = options.traceFile;
  return path.replace_filename(
      fmt::format("{}.rank{}{}", path.stem().string(), world.localRanks().front(), path.extension().string()));
}

double sampledTolerance(DataType dtype) { return dtype == DataType::F32 ? 4e-3 : dtype == DataType::F16 ? 6e-3 : 3e-2; }

bool OverlapRunResult::passed(const OverlapRunOptions &options) const {
  if (!checked)
    return true;
  return sampledError ? *sampledError <= sampledTolerance(options.typeOfResult()) : comparison.passed();
}

ops::Tolerance toleranceOf(const OverlapRunOptions &options) {
  // What the result's rounding loses, or the operands': tf32 that of fp32, fp8 what tensor cores drop between two promotions.
  const DataType result = options.typeOfResult();
  const bool isFp8 = options.dtype == DataType::F8E4NV || options.dtype == DataType::F8E5;
  const double operands = options.dtype == DataType::F32 ? ops::toleranceFor(DataType::F32, options.precision).relative
                          : isFp8                        ? 1e-3
                                                         : 2e-5;
  const double rounding = result == DataType::F32 ? 0 : ops::toleranceFor(result, options.precision).relative;
  return {std::max(operands, rounding) * (options.activation == ops::Activation::SwiGlu ? 2 : 1)};
}

std::string_view toString(OverlapOperator op) {
  return op == OverlapOperator::AllGatherGemm       ? "ag_gemm"
         : op == OverlapOperator::GemmReduceScatter ? "gemm_rs"
                                                    : "gemm_ar";
}

Expected<OverlapRunResult> runOverlap(const OverlapRunOptions &options, const OverlapProgress &progress) {
  DITRON_RETURN_IF_ERROR(checkSizes(options));
  DITRON_ASSIGN_OR_RETURN(OverlapSession session, OverlapSession::create(options));
  return session.run(options, progress);
}

Expected<OverlapSession> OverlapSession::create(const OverlapRunOptions &options) {
  OverlapSession session;
  DITRON_ASSIGN_OR_RETURN(session.world, makeWorld(options));
  Knobs knobs = options.knobs;
  knobs.boundWaits |= options.boundWaits;
  DITRON_ASSIGN_OR_RETURN(session.compiler, jit::Jit::create(session.world->target(), knobs));
  return session;
}

Expected<OverlapRunResult> OverlapSession::run(const OverlapRunOptions &options, const OverlapProgress &progress) {
  DITRON_RETURN_IF_ERROR(checkSizes(options));
  OverlapRunResult result;
  result.flops = 2.0 * options.m * options.n * options.k * options.calls;
  const bool sampled = !world->machine() && result.flops / options.calls > mostCheckedFlops;
  if (sampled && !data)
    data = std::make_unique<NormalData>(options.dtype, options.world.seed);
  const std::unique_ptr<OverlapOperands> run =
      makeOverlapOperands(options, *world, *compiler, sampled ? data.get() : nullptr);
  progress("compiling", 0);
  auto compileStart = Clock::now();
  DITRON_RETURN_IF_ERROR(run->create());
  result.compileSeconds = secondsSince(compileStart);
  result.plan = run->plan();
  DITRON_RETURN_IF_ERROR(checkPlanHasPlaces(options, result.plan));
  DITRON_RETURN_IF_ERROR(checkCalls(options, *world, *run, sampled, progress, result));
  result.tolerance = toleranceOf(options);

  if (!world->machine()) {
    result.gpuName = world->rank(world->localRanks().front()).attributes().name;
    progress("timing", 0.5);
    if (options.timedCalls > 0) {
      DITRON_ASSIGN_OR_RETURN(result.times, timeOverlap(*world, *run, options.timedCalls));
    }
  }
  if (options.world.trace && world->machine()) {
    const bool gather = options.op == OverlapOperator::AllGatherGemm;
    const auto [kernel, copies] = gather ? std::pair(ops::AllGatherGemm::kernelName, ops::AllGatherGemm::copyName)
                                  : options.op == OverlapOperator::GemmReduceScatter
                                      ? std::pair(ops::GemmReduceScatter::kernelName, ops::GemmReduceScatter::copyName)
                                      : std::pair(ops::GemmAllReduce::kernelName, ops::GemmAllReduce::copyName);
    // The forms of one launch, and a product with a collective behind or before it, have no copies that anything could overlap with.
    const bool hasCollective = result.plan.find(", ") != std::string::npos;
    const bool hasCopies =
        world->ranksPerNode() > 1 &&
        (result.plan.starts_with("two_shot") || result.plan.starts_with("overlapped") ||
         (options.op != OverlapOperator::GemmAllReduce && result.plan.starts_with("unfused") && !hasCollective));
    const uint32_t reported = hasCopies ? options.ranks : 0;
    for (uint32_t id = 0; id < reported; ++id) {
      auto overlap = runtime::overlapWithCopies(
          *world, id, kernel, gather ? runtime::CopyDirection::Incoming : runtime::CopyDirection::Outgoing, copies);
      if (!overlap.isOk())
        return overlap.status();
      result.overlap.push_back(*overlap);
    }
    DITRON_ASSIGN_OR_RETURN(int64_t picoseconds, runtime::spanOfRecordedWork(*world));
    result.virtualMicroseconds = picoseconds * 1e-6;
  }
  if (!options.traceFile.empty())
    DITRON_RETURN_IF_ERROR(world->writeTrace(traceFileOf(options, *world)));
  return result;
}

} // namespace ditron::tool
