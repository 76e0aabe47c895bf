//===- OverlapRun.cpp - One verified run of an overlapped operator ----------------------------------------------------===//
#include "OverlapRun.h"

#include "ditron/sim/Machine.h"

#include <chrono>
#include <fmt/format.h>
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

/// One operator with its operands on all ranks. The derived classes know how the matrices are dealt out.
class Run {
public:
  Run(const OverlapRunOptions &options, runtime::World &world, jit::Jit &jit) : options(options), world(world), jit(jit) {}
  virtual ~Run() = default;

  /// Makes the operator and the ranks' buffers, and compiles.
  virtual Status create() = 0;
  /// Puts the operands of one call on the ranks.
  virtual Status upload(const std::vector<float> &a, const std::vector<float> &b) = 0;
  /// Enqueues one call on a rank.
  virtual Status enqueue(uint32_t id) = 0;
  /// Compares the ranks' results with C = A * B.
  virtual Expected<ops::Comparison> verify(const std::vector<double> &c) = 0;

protected:
  struct Operands {
    runtime::Buffer a, b, result;
  };

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
  std::vector<Operands> operands;
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
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
      runtime::Rank &rank = world.rank(id);
      Operands own;
      DITRON_ASSIGN_OR_RETURN(own.a, allocate(rank, shards.rowsOf(id) * options.k, "a"));
      DITRON_ASSIGN_OR_RETURN(own.b, allocate(rank, options.k * columnsOf(id).size, "b"));
      DITRON_ASSIGN_OR_RETURN(own.result, allocate(rank, options.m * columnsOf(id).size, "c"));
      operands.push_back(std::move(own));
      DITRON_RETURN_IF_ERROR(op.prepare(rank, options.m, columnsOf(id).size));
    }
    return Status::ok();
  }

  Status upload(const std::vector<float> &a, const std::vector<float> &b) override {
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
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
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
      DITRON_ASSIGN_OR_RETURN(auto comparison, compareBlock(c, 0, options.m, columnsOf(id), operands[id].result));
      worst.merge(comparison);
    }
    return worst;
  }

private:
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
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
      runtime::Rank &rank = world.rank(id);
      Operands own;
      DITRON_ASSIGN_OR_RETURN(own.a, allocate(rank, options.m * depthOf(id).size, "a"));
      DITRON_ASSIGN_OR_RETURN(own.b, allocate(rank, depthOf(id).size * options.n, "b"));
      DITRON_ASSIGN_OR_RETURN(own.result, allocate(rank, shards.rowsOf(id) * options.n, "out"));
      operands.push_back(std::move(own));
      DITRON_RETURN_IF_ERROR(op.prepare(rank, options.m, depthOf(id).size));
    }
    return Status::ok();
  }

  Status upload(const std::vector<float> &a, const std::vector<float> &b) override {
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
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
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
      DITRON_ASSIGN_OR_RETURN(auto comparison, compareBlock(c, shards.firstRowOf(id), shards.rowsOf(id),
                                                            Slice(options.n, 0, 1), operands[id].result));
      worst.merge(comparison);
    }
    return worst;
  }

private:
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
    return invalidArgument(fmt::format("{}={} is dealt out to {} ranks, so it must be at least {}", gather ? "N" : "K", dealt,
                                       options.ranks, options.ranks));
  if (options.calls == 0)
    return invalidArgument("0 calls; at least 1 is accepted");
  return Status::ok();
}

/// Times calls on real GPUs. Each one starts on all ranks at the same moment: the streams stand at a signal while the host
/// enqueues for all of them, which takes longer than the call. The L2 caches are overwritten before.
Status timeCalls(const OverlapRunOptions &options, runtime::World &world, Run &run, OverlapRunResult &result) {
  constexpr uint32_t warmUpCalls = 3;
  constexpr uint64_t flushBytes = uint64_t(256) << 20;
  struct Timed {
    runtime::Buffer flush;
    runtime::Event begin, end;
    runtime::Stream starter;
  };
  std::vector<Timed> ranks;
  DITRON_ASSIGN_OR_RETURN(runtime::SymmetricBuffer start, world.allocateSymmetric(DataType::I64, 1, "bench_start"));
  for (uint32_t id = 0; id < options.ranks; ++id) {
    Timed timed;
    DITRON_ASSIGN_OR_RETURN(timed.flush, world.rank(id).allocate(DataType::U8, flushBytes, "bench_flush"));
    DITRON_ASSIGN_OR_RETURN(timed.begin, world.rank(id).createEvent("begin"));
    DITRON_ASSIGN_OR_RETURN(timed.end, world.rank(id).createEvent("end"));
    DITRON_ASSIGN_OR_RETURN(timed.starter, world.rank(id).createStream("bench start", 2));
    ranks.push_back(std::move(timed));
  }
  std::vector<double> microseconds;
  for (uint32_t call = 0; call < warmUpCalls + options.timedCalls; ++call) {
    for (uint32_t id = 0; id < options.ranks; ++id) {
      runtime::Stream &stream = world.rank(id).stream();
      DITRON_RETURN_IF_ERROR(stream.fill(ranks[id].flush, static_cast<int>(call), flushBytes));
      DITRON_RETURN_IF_ERROR(stream.signalWait(start.on(id), runtime::Compare::GreaterEqual, call + 1));
      DITRON_RETURN_IF_ERROR(stream.record(ranks[id].begin));
      DITRON_RETURN_IF_ERROR(run.enqueue(id));
      DITRON_RETURN_IF_ERROR(stream.record(ranks[id].end));
    }
    for (uint32_t id = 0; id < options.ranks; ++id)
      DITRON_RETURN_IF_ERROR(ranks[id].starter.signalWrite(start.on(id), call + 1));
    DITRON_RETURN_IF_ERROR(world.synchronize());
    int64_t slowest = 0;
    for (const Timed &timed : ranks) {
      DITRON_ASSIGN_OR_RETURN(const int64_t elapsed, timed.end.elapsedSince(timed.begin));
      slowest = std::max(slowest, elapsed);
    }
    if (call >= warmUpCalls)
      microseconds.push_back(static_cast<double>(slowest) * 1e-6);
  }
  std::sort(microseconds.begin(), microseconds.end());
  result.medianMicroseconds = microseconds[microseconds.size() / 2];
  result.bestMicroseconds = microseconds.front();
  return Status::ok();
}

} // namespace

std::string_view toString(OverlapOperator op) { return op == OverlapOperator::AllGatherGemm ? "ag_gemm" : "gemm_rs"; }

Expected<OverlapRunResult> runOverlap(const OverlapRunOptions &options,
                                      const std::function<void(std::string_view)> &progress) {
  DITRON_RETURN_IF_ERROR(checkSizes(options));
  DITRON_ASSIGN_OR_RETURN(auto world, runtime::World::local(options.ranks, options.target, options.world));
  Knobs knobs = options.knobs;
  knobs.boundWaits |= options.boundWaits;
  DITRON_ASSIGN_OR_RETURN(auto jit, jit::Jit::create(world->target(), knobs));

  OverlapRunResult result;
  std::unique_ptr<Run> run;
  if (options.op == OverlapOperator::AllGatherGemm)
    run = std::make_unique<AllGatherRun>(options, *world, *jit);
  else
    run = std::make_unique<ReduceScatterRun>(options, *world, *jit);
  progress("compiling");
  auto compileStart = Clock::now();
  DITRON_RETURN_IF_ERROR(run->create());
  result.compileSeconds = secondsSince(compileStart);

  for (uint32_t call = 0; call < options.calls; ++call) {
    std::vector<float> a = ops::randomValues(options.dtype, options.m * options.k, options.world.seed + 2 * call + 1);
    std::vector<float> b = ops::randomValues(options.dtype, options.k * options.n, options.world.seed + 2 * call + 2);
    if (world->machine())
      world->machine()->clearTrace(); // what is reported and traced is the last call
    progress(world->machine() ? "simulating" : "running");
    auto start = Clock::now();
    DITRON_RETURN_IF_ERROR(run->upload(a, b));
    for (uint32_t id = 0; id < options.ranks; ++id)
      DITRON_RETURN_IF_ERROR(run->enqueue(id));
    DITRON_RETURN_IF_ERROR(world->synchronize());
    result.wallSeconds += secondsSince(start);
    if (!options.check)
      continue;
    progress("checking");
    DITRON_ASSIGN_OR_RETURN(ops::Comparison comparison,
                            run->verify(ops::referenceProduct(a, b, options.m, options.n, options.k)));
    result.comparison.merge(comparison);
    result.checked = true;
  }
  result.tolerance = ops::toleranceFor(options.dtype, options.precision);
  result.flops = 2.0 * options.m * options.n * options.k * options.calls;

  if (!world->machine()) {
    result.gpuName = world->rank(0).attributes().name;
    progress("timing");
    if (options.timedCalls > 0)
      DITRON_RETURN_IF_ERROR(timeCalls(options, *world, *run, result));
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
double teraflopsPerGpu(const OverlapRunOptions &options, const OverlapRunResult &result) {
  return result.medianMicroseconds > 0
             ? 2.0 * options.m * options.n * options.k / options.ranks / result.medianMicroseconds * 1e-6
             : 0;
}
} // namespace

std::string describeRun(const OverlapRunOptions &options, const OverlapRunResult &result) {
  bool gather = options.op == OverlapOperator::AllGatherGemm;
  std::string text;
  auto line = [&](std::string_view name, const std::string &value) { text += fmt::format("  {:<22}{}\n", name, value); };
  text += fmt::format("{} on {} x {}, {}\n", gather ? "AllGather+GEMM" : "GEMM+ReduceScatter", options.ranks, options.target,
                      toString(options.schedule));
  line("shapes", gather ? fmt::format("A {}x{} {} gathered from {} shards, B {}x{} in {} column slices", options.m, options.k,
                                      ditron::toString(options.dtype), options.ranks, options.k, options.n, options.ranks)
                        : fmt::format("A {}x{} {} and B {}x{} in {} slices of K, result in {} row shards", options.m,
                                      options.k, ditron::toString(options.dtype), options.k, options.n, options.ranks,
                                      options.ranks));
  if (options.calls > 1)
    line("calls", fmt::format("{}, each with new data", options.calls));
  if (result.checked)
    line("max error",
         fmt::format("{:.3g}; worst element has {:.2f} of its tolerance ({:g} relative to |c| + rms): {}",
                     result.comparison.maxError, result.comparison.worstRatio, result.tolerance.relative,
                     result.passed() ? "ok" : "WRONG"));
  for (size_t id = 0; id < result.overlap.size(); ++id) {
    const runtime::Overlap &overlap = result.overlap[id];
    std::string value =
        gather ? fmt::format("{} of {} tiles started before the last shard had arrived", overlap.startedBeforeLastCopy,
                             overlap.blocks)
               : fmt::format("{} of {} tiles started after the first segment had been sent", overlap.startedAfterFirstCopy,
                             overlap.blocks);
    line(fmt::format("overlap, rank {}", id), value);
  }
  if (result.virtualMicroseconds > 0)
    line("simulated time", fmt::format("{:.1f} us on the machine model", result.virtualMicroseconds));
  if (result.gpuName.empty())
    line("simulation", fmt::format("{:.2f} s ({:.2f} GFLOP/s), compiled in {:.2f} s", result.wallSeconds,
                                   result.flops / std::max(result.wallSeconds, 1e-9) * 1e-9, result.compileSeconds));
  else
    line("GPU", fmt::format("{}, compiled in {:.2f} s", result.gpuName, result.compileSeconds));
  if (result.medianMicroseconds > 0)
    line("time of a call", fmt::format("{:.1f} us (median of {}; best {:.1f}), slowest rank, {:.1f} TFLOP/s per GPU",
                                       result.medianMicroseconds, options.timedCalls, result.bestMicroseconds,
                                       teraflopsPerGpu(options, result)));
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
                                 {"passed", result.passed()},
                                 {"max_error", result.comparison.maxError},
                                 {"worst_error_over_tolerance", result.comparison.worstRatio},
                                 {"simulated_microseconds", result.virtualMicroseconds},
                                 {"wall_seconds", result.wallSeconds},
                                 {"compile_seconds", result.compileSeconds},
                                 {"gpu", result.gpuName},
                                 {"timed_calls", options.timedCalls},
                                 {"median_microseconds", result.medianMicroseconds},
                                 {"best_microseconds", result.bestMicroseconds},
                                 {"teraflops_per_gpu", teraflopsPerGpu(options, result)},
                                 {"gflops", result.flops / std::max(result.wallSeconds, 1e-9) * 1e-9}};
  for (const runtime::Overlap &overlap : result.overlap)
    json["overlap"].push_back({{"blocks", overlap.blocks},
                               {"started_before_last_copy", overlap.startedBeforeLastCopy},
                               {"started_after_first_copy", overlap.startedAfterFirstCopy}});
  return json.dump();
}

} // namespace ditron::tool
