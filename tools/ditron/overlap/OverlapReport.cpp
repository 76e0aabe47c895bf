//===- OverlapReport.cpp - The results of an overlapped operator as text ------------------------------------------------===//
//
// For people, and as JSON for scripts.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "overlap/OverlapOperands.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ditron::tool {

namespace {
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
  const bool allReduce = options.op == OverlapOperator::GemmAllReduce;
  text += fmt::format("{} on {} x {}, {}\n",
                      gather      ? "AllGather+GEMM"
                      : allReduce ? "GEMM+AllReduce"
                                  : "GEMM+ReduceScatter",
                      options.ranks, options.target, result.plan);
  line("shapes",
       gather ? fmt::format("A {}x{} {} gathered from {} shards, B {}x{} in {} column slices", options.m, options.k,
                            ditron::toString(options.dtype), options.ranks, options.k, options.n, options.ranks)
              : fmt::format("A {}x{} {} and B {}x{} in {} slices of K, result {}", options.m, options.k,
                            ditron::toString(options.dtype), options.k, options.n, options.ranks,
                            allReduce ? "on all of them" : fmt::format("in {} row shards", options.ranks)));
  const ops::GemmEpilogue epilogue = options.epilogue();
  if (options.typeOfResult() != options.dtype || options.scales != ops::Scaling::None || epilogue.bias ||
      options.activation != ops::Activation::None)
    line("result", fmt::format("{}, scales {}, {}, activation {}", ditron::toString(options.typeOfResult()),
                               ops::toString(options.scales), epilogue.bias ? "with a bias" : "no bias",
                               ops::toString(options.activation)));
  if (options.weights == ops::MatrixOrder::Transposed || options.padding)
    line("layout", fmt::format("B is [{}], {} elements behind each row",
                               options.weights == ops::MatrixOrder::Transposed ? "N, K" : "K, N", options.padding));
  if (options.calls > 1)
    line("calls", fmt::format("{}, each with new data", options.calls));
  if (result.checked && result.sampledError)
    line("max error", fmt::format("{:.3g} of the results' root mean square, {} elements of each rank; at most {:g}: {}",
                                  *result.sampledError, samplesPerRank, sampledTolerance(options.typeOfResult()),
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
  if (result.networkBytes)
    line("between nodes", fmt::format("{} bytes over the network of {} nodes", *result.networkBytes, options.nodes));
  if (result.virtualMicroseconds > 0)
    line("simulated time", fmt::format("{:.1f} us on the machine model", result.virtualMicroseconds));
  if (result.gpuName.empty())
    line("simulation", fmt::format("{:.2f} s ({:.2f} GFLOP/s), compiled in {:.2f} s", result.wallSeconds,
                                   result.flops / std::max(result.wallSeconds, 1e-9) * 1e-9, result.compileSeconds));
  else
    line("GPU", fmt::format("{}, compiled in {:.2f} s", result.gpuName, result.compileSeconds));
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
  // What was not looked at is null, neither right nor wrong, and so is what was not measured.
  auto ifChecked = [&](auto value) { return result.checked ? nlohmann::json(value) : nlohmann::json(); };
  auto ifCompared = [&](double value) { return result.sampledError ? nlohmann::json() : ifChecked(value); };
  auto ifMeasured = [](double value) { return value > 0 ? nlohmann::json(value) : nlohmann::json(); };
  nlohmann::ordered_json json = {
      {"operator", toString(options.op)},
      {"target", options.target},
      {"ranks", options.ranks},
      {"nodes", options.nodes},
      {"m", options.m},
      {"n", options.n},
      {"k", options.k},
      {"dtype", ditron::toString(options.dtype)},
      {"result_type", ditron::toString(options.typeOfResult())},
      {"scales", ops::toString(options.scales)},
      {"bias", options.bias},
      {"activation", ops::toString(options.activation)},
      {"weights", options.weights == ops::MatrixOrder::Plain ? "plain" : "transposed"},
      {"padding", options.padding},
      {"schedule", ops::toString(options.schedule)},
      {"seed", options.world.seed},
      {"calls", options.calls},
      {"checked", result.checked},
      {"passed", ifChecked(result.passed(options))},
      {"max_error", ifCompared(result.comparison.maxError)},
      {"worst_error_over_tolerance", ifCompared(result.comparison.worstRatio)},
      {"sampled_error", result.sampledError ? nlohmann::json(*result.sampledError) : nullptr},
      {"simulated_microseconds", ifMeasured(result.virtualMicroseconds)},
      {"network_bytes", result.networkBytes ? nlohmann::json(*result.networkBytes) : nlohmann::json()},
      {"wall_seconds", result.wallSeconds},
      {"compile_seconds", result.compileSeconds},
      {"gpu", result.gpuName},
      {"timed_calls", options.timedCalls},
      {"plan", result.plan},
      {"processes", options.processes},
      {"single_microseconds", ifMeasured(result.times.single)},
      {"in_a_row_microseconds", ifMeasured(result.times.inARow)},
      {"graph_microseconds", ifMeasured(result.times.asGraph)},
      {"teraflops_per_gpu", ifMeasured(teraflopsPerGpu(options, result))},
      {"gflops", result.flops / std::max(result.wallSeconds, 1e-9) * 1e-9}};
  for (const runtime::Overlap &overlap : result.overlap)
    json["overlap"].push_back({{"blocks", overlap.blocks},
                               {"started_before_last_copy", overlap.startedBeforeLastCopy},
                               {"started_after_first_copy", overlap.startedAfterFirstCopy}});
  return json.dump();
}

} // namespace ditron::tool
