//===- OverlapRun.cpp - One verified run of an overlapped operator ----------------------------------------------------===//
#include "OverlapRun.h"

#include "NormalData.h"

#include "ditron/ops/Gemm.h"
#include "ditron/sim/Machine.h"

#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace ditron::tool {

namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A range of the columns or the depth: rank r of R gets [r * total / R, (r + 1) * total / R).
struct Slice {
  int64_t begin, size;
  Slice(int64_t total, uint32_t rank, uint32_t ranks)
      : begin(total * rank / ranks), size(total * (rank + 1) / ranks - begin) {}
};

/// Columns [begin, begin + size) of a row-major [rows, columns] matrix.
std::vector<float> sliceColumns(const std::vector<float> &matrix, int64_t rows, int64_t columns, Slice slice) {
  std::vector<float> result(rows * slice.size);
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(matrix.begin() + row * columns + slice.begin, slice.size, result.begin() + row * slice.size);
  return result;
}

/// Products of more operations than this are compared at sampled elements only.
constexpr double mostCheckedFlops = 4e9;
constexpr uint32_t samplesPerRank = 512;

/// One operator with its operands on the ranks of this process. The derived classes know how the matrices are dealt out.
///
/// Operands come in two ways. Small problems have whole matrices, which are dealt out and whose product is compared everywhere.
/// Large ones have operands of a known table on each rank, of which no host has all: sampled elements of the result are compared.
class Run : public TimedCalls {
public:
  Run(const OverlapRunOptions &options, runtime::World &world, jit::Jit &jit, const NormalData *data)
      : options(options), world(world), jit(jit), data(data) {}

  /// Makes the operator and the ranks' buffers, and compiles.
  virtual Status create() = 0;
  /// Puts the operands of one call on the ranks.
  virtual Status upload(const std::vector<float> &a, const std::vector<float> &b) = 0;
  /// Compares the ranks' results with C = A * B.
  virtual Expected<ops::Comparison> verify(const std::vector<double> &c) = 0;

  /// The same for operands from the table. `call` chooses them.
  Status uploadSamples(uint32_t call) {
    for (uint32_t id : world.localRanks()) {
      DITRON_RETURN_IF_ERROR(data->fill(operands[id].a, saltOf(call, id, 0)));
      DITRON_RETURN_IF_ERROR(data->fill(operands[id].b, saltOf(call, id, 1)));
      DITRON_RETURN_IF_ERROR(world.rank(id).stream().fill(operands[id].result, 0xFF, operands[id].result.count()));
    }
    return Status::ok();
  }
  /// Largest error of sampled elements over the root mean square of the results; infinite when an element was never written.
  Expected<double> verifySamples(uint32_t call) {
    double largest = 0, squares = 0;
    uint64_t samples = 0;
    for (uint32_t id : world.localRanks()) {
      DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, operands[id].result.downloadFloats());
      const auto [rows, columns] = resultShape(id);
      uint64_t state = 977 * call + id + 1;
      for (uint32_t sample = 0; sample < samplesPerRank && rows * columns > 0; ++sample) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        const int64_t last = rows * columns - 1;
        const int64_t index = sample == 0 ? 0 : sample == 1 ? last : static_cast<int64_t>((state >> 20) % (last + 1));
        const double expected = sampledSum(call, id, index / columns, index % columns);
        largest = std::max(largest, std::abs(actual[index] - expected));
        squares += expected * expected;
        ++samples;
      }
      for (int64_t i = 0; i < rows * columns; ++i)
        if (std::isnan(actual[i]))
          return std::numeric_limits<double>::infinity();
    }
    return samples ? largest / std::sqrt(squares / static_cast<double>(samples)) : 0;
  }

protected:
  struct Operands {
    runtime::Buffer a, b, result;
  };

  virtual std::pair<int64_t, int64_t> resultShape(uint32_t id) const = 0;
  /// Element (row, column) of rank id's result, in double precision, for operands from the table.
  virtual double sampledSum(uint32_t call, uint32_t id, int64_t row, int64_t column) const = 0;
  static uint64_t saltOf(uint32_t call, uint32_t id, uint32_t operand) {
    return 1 + 2 * (uint64_t(call) * 1024 + id) + operand;
  }

  /// The part of `c` [options.m, options.n] that is rows [row, row + rows), columns of `slice`, against a rank's result.
  Expected<ops::Comparison> compareBlock(const std::vector<double> &c, int64_t row, int64_t rows, Slice slice,
                                         const runtime::Buffer &result) {
    if (rows == 0 || slice.size == 0)
      return ops::Comparison();
    DITRON_ASSIGN_OR_RETURN(std::vector<float> actual, result.downloadFloats());
    actual.resize(rows * slice.size);
    std::vector<double> expected;
    expected.reserve(actual.size());
    for (int64_t i = 0; i < rows; ++i) {
      auto begin = c.begin() + (row + i) * options.n + slice.begin;
      expected.insert(expected.end(), begin, begin + slice.size);
    }
    return ops::compare(actual, expected, ops::toleranceFor(options.dtype, options.precision));
  }

  /// A rank may hold nothing of a matrix; its buffer then has one element, which nobody looks at.
  Expected<runtime::Buffer> allocate(runtime::Rank &rank, int64_t count, std::string_view name) {
    return rank.allocate(options.dtype, std::max<int64_t>(count, 1), name);
  }
  static Status fill(runtime::Buffer &buffer, std::span<const float> values) {
    return values.empty() ? Status::ok() : buffer.uploadFloats(values);
  }

  const OverlapRunOptions &options;
  runtime::World &world;
  jit::Jit &jit;
  const NormalData *data; ///< Null for whole matrices.
  std::vector<Operands> operands = std::vector<Operands>(world.numRanks());
};

class AllGatherRun : public Run {
public:
  using Run::Run;

  Status create() override {
    ops::AllGatherGemmOptions config{.dtype = options.dtype,
                                     .maxRows = options.m,
                                     .depth = options.k,
                                     .chunksPerRank = options.chunks,
                                     .numNodes = options.nodes,
                                     .precision = options.precision,
                                     .schedule = options.schedule,
                                     .tile = options.tile};
    DITRON_ASSIGN_OR_RETURN(op, ops::AllGatherGemm::create(world, jit, config));
    for (uint32_t id : world.localRanks()) {
      runtime::Rank &rank = world.rank(id);
      Operands &own = operands[id];
      DITRON_ASSIGN_OR_RETURN(own.a, allocate(rank, shards.rowsOf(id) * options.k, "a"));
      DITRON_ASSIGN_OR_RETURN(own.b, allocate(rank, options.k * columnsOf(id).size, "b"));
      DITRON_ASSIGN_OR_RETURN(own.result, allocate(rank, options.m * columnsOf(id).size, "c"));
      DITRON_RETURN_IF_ERROR(op.prepare(rank, options.m, columnsOf(id).size));
    }
    return Status::ok();
  }

  Status upload(const std::vector<float> &a, const std::vector<float> &b) override {
    for (uint32_t id : world.localRanks()) {
      auto shard = std::span(a).subspan(shards.firstRowOf(id) * options.k, shards.rowsOf(id) * options.k);
      DITRON_RETURN_IF_ERROR(fill(operands[id].a, shard));
      DITRON_RETURN_IF_ERROR(fill(operands[id].b, sliceColumns(b, options.k, options.n, columnsOf(id))));
    }
    return Status::ok();
  }

  Status enqueue(uint32_t id) override {
    runtime::Rank &rank = world.rank(id);
    const Operands &own = operands[id];
    return op.enqueue(rank, rank.stream(), own.a, own.b, own.result, options.m, columnsOf(id).size);
  }

  Expected<ops::Comparison> verify(const std::vector<double> &c) override {
    ops::Comparison worst;
    for (uint32_t id : world.localRanks()) {
      DITRON_ASSIGN_OR_RETURN(auto comparison, compareBlock(c, 0, options.m, columnsOf(id), operands[id].result));
      worst.merge(comparison);
    }
    return worst;
  }

private:
  std::pair<int64_t, int64_t> resultShape(uint32_t id) const override { return {options.m, columnsOf(id).size}; }
  double sampledSum(uint32_t call, uint32_t id, int64_t row, int64_t column) const override {
    const auto owner = static_cast<uint32_t>(row / shards.rowsPerRank);
    const int64_t first = (row - shards.firstRowOf(owner)) * options.k, columns = columnsOf(id).size;
    double sum = 0;
    for (int64_t k = 0; k < options.k; ++k)
      sum += double(data->at(saltOf(call, owner, 0), first + k)) * data->at(saltOf(call, id, 1), k * columns + column);
    return sum;
  }
  Slice columnsOf(uint32_t id) const { return Slice(options.n, id, world.numRanks()); }

  ops::AllGatherGemm op;
  ops::RowShards shards{options.m, world.numRanks()};
};

class ReduceScatterRun : public Run {
public:
  using Run::Run;

  Status create() override {
    ops::GemmReduceScatterOptions config{.dtype = options.dtype,
                                         .partialType = {},
                                         .maxRows = options.m,
                                         .columns = options.n,
                                         .numNodes = options.nodes,
                                         .precision = options.precision,
                                         .schedule = options.schedule,
                                         .tile = options.tile};
    DITRON_ASSIGN_OR_RETURN(op, ops::GemmReduceScatter::create(world, jit, config));
    for (uint32_t id : world.localRanks()) {
      runtime::Rank &rank = world.rank(id);
      Operands &own = operands[id];
      DITRON_ASSIGN_OR_RETURN(own.a, allocate(rank, options.m * depthOf(id).size, "a"));
      DITRON_ASSIGN_OR_RETURN(own.b, allocate(rank, depthOf(id).size * options.n, "b"));
      DITRON_ASSIGN_OR_RETURN(own.result, allocate(rank, shards.rowsOf(id) * options.n, "out"));
      DITRON_RETURN_IF_ERROR(op.prepare(rank, options.m, depthOf(id).size));
    }
    return Status::ok();
  }

  Status upload(const std::vector<float> &a, const std::vector<float> &b) override {
    for (uint32_t id : world.localRanks()) {
      Slice depth = depthOf(id);
      DITRON_RETURN_IF_ERROR(fill(operands[id].a, sliceColumns(a, options.m, options.k, depth)));
      auto rows = std::span(b).subspan(depth.begin * options.n, depth.size * options.n);
      DITRON_RETURN_IF_ERROR(fill(operands[id].b, rows));
    }
    return Status::ok();
  }

  Status enqueue(uint32_t id) override {
    runtime::Rank &rank = world.rank(id);
    const Operands &own = operands[id];
    return op.enqueue(rank, rank.stream(), own.a, own.b, own.result, options.m, depthOf(id).size);
  }

  Expected<ops::Comparison> verify(const std::vector<double> &c) override {
    ops::Comparison worst;
    for (uint32_t id : world.localRanks()) {
      DITRON_ASSIGN_OR_RETURN(auto comparison, compareBlock(c, shards.firstRowOf(id), shards.rowsOf(id),
                                                            Slice(options.n, 0, 1), operands[id].result));
      worst.merge(comparison);
    }
    return worst;
  }

private:
  std::pair<int64_t, int64_t> resultShape(uint32_t id) const override { return {shards.rowsOf(id), options.n}; }
  double sampledSum(uint32_t call, uint32_t id, int64_t row, int64_t column) const override {
    double sum = 0;
    for (uint32_t each = 0; each < world.numRanks(); ++each) {
      const int64_t depth = depthOf(each).size, first = (shards.firstRowOf(id) + row) * depth;
      for (int64_t k = 0; k < depth; ++k)
        sum += double(data->at(saltOf(call, each, 0), first + k)) *
               data->at(saltOf(call, each, 1), k * options.n + column);
    }
    return sum;
  }
  Slice depthOf(uint32_t id) const { return Slice(options.k, id, world.numRanks()); }

  ops::GemmReduceScatter op;
  ops::RowShards shards{options.m, world.numRanks()};
};

Status checkSizes(const OverlapRunOptions &options) {
  bool gather = options.op == OverlapOperator::AllGatherGemm;
  int64_t dealt = gather ? options.n : options.k;
  if (options.m < 1 || options.n < 1 || options.k < 1)
    return invalidArgument(fmt::format("M={}, N={}, K={}; all must be positive", options.m, options.n, options.k));
  if (dealt < options.ranks)
    return invalidArgument(fmt::format("{}={} is dealt out to {} ranks, so it must be at least {}", gather ? "N" : "K",
                                       dealt, options.ranks, options.ranks));
  if (options.calls == 0)
    return invalidArgument("0 calls; at least 1 is accepted");
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

/// The library's choice for the product that one rank computes.
ops::TileConfig chosenTile(const OverlapRunOptions &options, runtime::World &world) {
  const bool gather = options.op == OverlapOperator::AllGatherGemm;
  const int64_t ranks = world.numRanks();
  const ops::GemmProblem problem = {.m = options.m,
                                    .n = gather ? ops::ceilDivide(options.n, ranks) : options.n,
                                    .k = gather ? options.k : ops::ceilDivide(options.k, ranks),
                                    .dtype = options.dtype,
                                    .order = ops::MatrixOrder::Plain,
                                    .precision = options.precision};
  const runtime::Rank &rank = world.rank(world.localRanks().front());
  return ops::chooseGemmPlan(problem, world.target(), rank.attributes().multiprocessors).tile;
}

/// Makes the calls whose results are compared.
Status checkCalls(const OverlapRunOptions &options, runtime::World &world, Run &run, bool sampled,
                  const std::function<void(std::string_view)> &progress, OverlapRunResult &result) {
  for (uint32_t call = 0; call < options.calls; ++call) {
    std::vector<float> a, b;
    if (!sampled) {
      a = ops::randomValues(options.dtype, options.m * options.k, options.world.seed + 2 * call + 1);
      b = ops::randomValues(options.dtype, options.k * options.n, options.world.seed + 2 * call + 2);
    }
    if (world.machine())
      world.machine()->clearTrace(); // what is reported and traced is the last call
    progress(world.machine() ? "simulating" : "running");
    auto start = Clock::now();
    DITRON_RETURN_IF_ERROR(sampled ? run.uploadSamples(call) : run.upload(a, b));
    for (uint32_t id : world.localRanks())
      DITRON_RETURN_IF_ERROR(run.enqueue(id));
    DITRON_RETURN_IF_ERROR(world.synchronize());
    result.wallSeconds += secondsSince(start);
    if (!options.check)
      continue;
    progress("checking");
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

double sampledTolerance(DataType dtype) { return dtype == DataType::F32 ? 4e-3 : dtype == DataType::F16 ? 6e-3 : 3e-2; }

bool OverlapRunResult::passed(const OverlapRunOptions &options) const {
  if (!checked)
    return true;
  return sampledError ? *sampledError <= sampledTolerance(options.dtype) : comparison.passed();
}

std::string_view toString(OverlapOperator op) { return op == OverlapOperator::AllGatherGemm ? "ag_gemm" : "gemm_rs"; }

Expected<OverlapRunResult> runOverlap(const OverlapRunOptions &given,
                                      const std::function<void(std::string_view)> &progress) {
  DITRON_RETURN_IF_ERROR(checkSizes(given));
  OverlapRunOptions options = given;
  DITRON_ASSIGN_OR_RETURN(auto world, makeWorld(options));
  if (options.chooseTile)
    options.tile = chosenTile(options, *world);
  Knobs knobs = options.knobs;
  knobs.boundWaits |= options.boundWaits;
  DITRON_ASSIGN_OR_RETURN(auto jit, jit::Jit::create(world->target(), knobs));

  OverlapRunResult result;
  result.flops = 2.0 * options.m * options.n * options.k * options.calls;
  const bool sampled = !world->machine() && result.flops / options.calls > mostCheckedFlops;
  std::optional<NormalData> data;
  if (sampled)
    data.emplace(options.dtype, options.world.seed);
  std::unique_ptr<Run> run;
  if (options.op == OverlapOperator::AllGatherGemm)
    run = std::make_unique<AllGatherRun>(options, *world, *jit, sampled ? &*data : nullptr);
  else
    run = std::make_unique<ReduceScatterRun>(options, *world, *jit, sampled ? &*data : nullptr);
  progress("compiling");
  auto compileStart = Clock::now();
  DITRON_RETURN_IF_ERROR(run->create());
  result.compileSeconds = secondsSince(compileStart);
  DITRON_RETURN_IF_ERROR(checkCalls(options, *world, *run, sampled, progress, result));
  result.tolerance = ops::toleranceFor(options.dtype, options.precision);
  result.tile = options.tile;

  if (!world->machine()) {
    result.gpuName = world->rank(world->localRanks().front()).attributes().name;
    progress("timing");
    if (options.timedCalls > 0) {
      DITRON_ASSIGN_OR_RETURN(result.times, timeOverlap(*world, *run, options.timedCalls));
    }
  }
  if (options.world.trace) {
    bool gather = options.op == OverlapOperator::AllGatherGemm;
    for (uint32_t id = 0; id < options.ranks; ++id) {
      auto overlap = runtime::overlapWithCopies(
          *world, id, gather ? ops::AllGatherGemm::kernelName : ops::GemmReduceScatter::kernelName,
          gather ? runtime::CopyDirection::Incoming : runtime::CopyDirection::Outgoing,
          gather ? ops::AllGatherGemm::copyName : ops::GemmReduceScatter::copyName);
      if (!overlap.isOk())
        return overlap.status();
      result.overlap.push_back(*overlap);
    }
    DITRON_ASSIGN_OR_RETURN(int64_t picoseconds, runtime::spanOfRecordedWork(*world));
    result.virtualMicroseconds = picoseconds * 1e-6;
  }
  if (!options.traceFile.empty())
    DITRON_RETURN_IF_ERROR(world->writeTrace(options.traceFile));
  return result;
}

namespace {
std::string tileText(const ops::TileConfig &tile) {
  return fmt::format("{}x{}x{} warps {} stages {} group {}", tile.blockM, tile.blockN, tile.blockK, tile.numWarps,
                     tile.numStages, tile.groupM);
}

double teraflopsPerGpu(const OverlapRunOptions &options, const OverlapRunResult &result) {
  return result.times.best() > 0 ? 2.0 * options.m * options.n * options.k / options.ranks / result.times.best() * 1e-6
                                 : 0;
}
} // namespace

std::string describeRun(const OverlapRunOptions &options, const OverlapRunResult &result) {
  bool gather = options.op == OverlapOperator::AllGatherGemm;
  std::string text;
  auto line = [&](std::string_view name, const std::string &value) {
    text += fmt::format("  {:<22}{}\n", name, value);
  };
  text += fmt::format("{} on {} x {}, {}\n", gather ? "AllGather+GEMM" : "GEMM+ReduceScatter", options.ranks,
                      options.target, toString(options.schedule));
  line("shapes",
       gather ? fmt::format("A {}x{} {} gathered from {} shards, B {}x{} in {} column slices", options.m, options.k,
                            ditron::toString(options.dtype), options.ranks, options.k, options.n, options.ranks)
              : fmt::format("A {}x{} {} and B {}x{} in {} slices of K, result in {} row shards", options.m, options.k,
                            ditron::toString(options.dtype), options.k, options.n, options.ranks, options.ranks));
  if (options.calls > 1)
    line("calls", fmt::format("{}, each with new data", options.calls));
  if (result.checked && result.sampledError)
    line("max error", fmt::format("{:.3g} of the results' root mean square, {} elements of each rank; at most {:g}: {}",
                                  *result.sampledError, samplesPerRank, sampledTolerance(options.dtype),
                                  result.passed(options) ? "ok" : "WRONG"));
  else if (result.checked)
    line("max error", fmt::format("{:.3g}; worst element has {:.2f} of its tolerance ({:g} relative to |c| + rms): {}",
                                  result.comparison.maxError, result.comparison.worstRatio, result.tolerance.relative,
                                  result.passed(options) ? "ok" : "WRONG"));
  for (size_t id = 0; id < result.overlap.size(); ++id) {
    const runtime::Overlap &overlap = result.overlap[id];
    std::string value = gather ? fmt::format("{} of {} tiles started before the last shard had arrived",
                                             overlap.startedBeforeLastCopy, overlap.blocks)
                               : fmt::format("{} of {} tiles started after the first segment had been sent",
                                             overlap.startedAfterFirstCopy, overlap.blocks);
    line(fmt::format("overlap, rank {}", id), value);
  }
  if (result.virtualMicroseconds > 0)
    line("simulated time", fmt::format("{:.1f} us on the machine model", result.virtualMicroseconds));
  if (result.gpuName.empty())
    line("simulation", fmt::format("{:.2f} s ({:.2f} GFLOP/s), compiled in {:.2f} s", result.wallSeconds,
                                   result.flops / std::max(result.wallSeconds, 1e-9) * 1e-9, result.compileSeconds));
  else
    line("GPU", fmt::format("{}, compiled in {:.2f} s", result.gpuName, result.compileSeconds));
  if (!result.gpuName.empty())
    line("tile", tileText(result.tile));
  if (result.times.single > 0) {
    line("one call", fmt::format("{:.1f} us (median of {}), from the common start to the slowest rank's end",
                                 result.times.single, options.timedCalls));
    line("calls in a row", fmt::format("{:.1f} us each; replayed as a graph {:.1f} us; {:.1f} TFLOP/s per GPU",
                                       result.times.inARow, result.times.asGraph, teraflopsPerGpu(options, result)));
  }
  if (!options.traceFile.empty())
    line("trace", fmt::format("{} (open it in Perfetto)", options.traceFile));
  return text;
}

std::string runAsJson(const OverlapRunOptions &options, const OverlapRunResult &result) {
  nlohmann::ordered_json json = {{"operator", toString(options.op)},
                                 {"target", options.target},
                                 {"ranks", options.ranks},
                                 {"m", options.m},
                                 {"n", options.n},
                                 {"k", options.k},
                                 {"dtype", ditron::toString(options.dtype)},
                                 {"schedule", ops::toString(options.schedule)},
                                 {"seed", options.world.seed},
                                 {"calls", options.calls},
                                 {"checked", result.checked},
                                 {"passed", result.passed(options)},
                                 {"max_error", result.comparison.maxError},
                                 {"worst_error_over_tolerance", result.comparison.worstRatio},
                                 {"sampled_error", result.sampledError.value_or(0)},
                                 {"simulated_microseconds", result.virtualMicroseconds},
                                 {"wall_seconds", result.wallSeconds},
                                 {"compile_seconds", result.compileSeconds},
                                 {"gpu", result.gpuName},
                                 {"timed_calls", options.timedCalls},
                                 {"tile", tileText(result.tile)},
                                 {"processes", options.processes},
                                 {"single_microseconds", result.times.single},
                                 {"in_a_row_microseconds", result.times.inARow},
                                 {"graph_microseconds", result.times.asGraph},
                                 {"teraflops_per_gpu", teraflopsPerGpu(options, result)},
                                 {"gflops", result.flops / std::max(result.wallSeconds, 1e-9) * 1e-9}};
  for (const runtime::Overlap &overlap : result.overlap)
    json["overlap"].push_back({{"blocks", overlap.blocks},
                               {"started_before_last_copy", overlap.startedBeforeLastCopy},
                               {"started_after_first_copy", overlap.startedAfterFirstCopy}});
  return json.dump();
}

} // namespace ditron::tool
