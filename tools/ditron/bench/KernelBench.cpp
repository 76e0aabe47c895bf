//===- KernelBench.cpp - Speed of the library's kernels on one GPU --------------------------------------------------------===//
#include "bench/KernelBench.h"

#include "base/VisibleGpus.h"
#include "base/WorldText.h"
#include "bench/BenchPage.h"

#include "ditron/runtime/TargetChoice.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace ditron::tool {

Status KernelBench::start(const Knobs &knobs) {
  progress.activity("preparing");
  DITRON_RETURN_IF_ERROR(checkReportFiles(options.jsonFile, options.htmlFile));
  DITRON_ASSIGN_OR_RETURN(dtype, parseDataTypeOrError(options.dtype));
  seeOnlyGpusOf(options.target, 1);
  takeFewQueues();
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(options.target));
  runtime::WorldOptions worldOptions;
  worldOptions.seed = options.seed;
  worldOptions.timeLimitSeconds = target.simulated ? 0 : 60;
  DITRON_ASSIGN_OR_RETURN(world, runtime::World::local(1, target.text, worldOptions));
  warnOfIdenticalWorlds(target.simulated, 1);
  DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(world->target(), knobs));
  return Status::ok();
}

std::string KernelBench::machineText() {
  const runtime::DeviceAttributes &attributes = rank().attributes();
  return fmt::format("{} ({} SMs)", attributes.name, attributes.multiprocessors);
}

void KernelBench::reached(size_t part, size_t parts) {
  progress.reached((static_cast<double>(shapesDone) + static_cast<double>(part) / static_cast<double>(parts)) /
                   static_cast<double>(shapeCount));
}

Status KernelBench::poison(const runtime::Buffer &buffer) {
  DITRON_RETURN_IF_ERROR(rank().stream().fill(buffer, 0xFF, buffer.count()));
  return world->synchronize();
}

void KernelBench::note(const std::string &line) {
  progress.stop();
  fmt::print(stderr, "{}\n", line);
}

void KernelBench::notePlan(size_t plans, const std::string &plan, const Status &problem) {
  if (plans > 1)
    note(fmt::format("{}: {}", plan, problem.message()));
}

Status KernelBench::noPlan(size_t plans, const Status &last) {
  if (plans == 1)
    return last;
  return {last.code(), fmt::format("none of the {} plans can be carried out, for the reasons above", plans)};
}

Status KernelBench::finish(nlohmann::ordered_json rows, nlohmann::ordered_json summary, const std::string &table) {
  progress.stop();
  if (!options.quiet)
    fmt::print(textStream(options.jsonFile, options.htmlFile), "{}", table);
  if (options.jsonFile.empty() && options.htmlFile.empty())
    return Status::ok();
  const runtime::DeviceAttributes &attributes = rank().attributes();
  nlohmann::ordered_json report = {{"benchmark", name},
                                   {"target", world->target()},
                                   {"gpu", attributes.name},
                                   {"multiprocessors", attributes.multiprocessors},
                                   {"dtype", toString(dtype)},
                                   {"rounds", simulated() ? nlohmann::ordered_json() : nlohmann::ordered_json(options.timing.rounds)},
                                   {"milliseconds_per_round",
                                    simulated() ? nlohmann::ordered_json() : nlohmann::ordered_json(options.timing.millisecondsPerRound)},
                                   {"compilations", jit->counters().compilations},
                                   {"compile_milliseconds", jit->counters().compileMilliseconds},
                                   {"summary", std::move(summary)},
                                   {"rows", std::move(rows)}};
  DITRON_RETURN_IF_ERROR(writeReport("--json", options.jsonFile, report.dump(1) + "\n"));
  return writeReport("--html", options.htmlFile, options.htmlFile.empty() ? "" : benchPage("ditron bench " + name, report, table));
}

Expected<std::vector<int64_t>> parseShape(const std::string &text, size_t count, std::string_view form) {
  std::vector<int64_t> sizes;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    int64_t value = 0;
    auto [next, error] = std::from_chars(at, end, value);
    if (error == std::errc::result_out_of_range || (error == std::errc() && value < 1))
      return invalidArgument(fmt::format("--shape '{}': the size {} is not accepted; sizes are from 1 to {}", text,
                                         std::string_view(at, next - at), INT64_MAX));
    if (error != std::errc() || (next != end && *next != 'x'))
      break;
    sizes.push_back(value);
    at = next == end ? end : next + 1;
  }
  if (at != end || sizes.size() != count || text.ends_with('x'))
    return invalidArgument(fmt::format("--shape '{}': a shape is written {}", text, form));
  constexpr int64_t largestProduct = int64_t(1) << 60; // so that no count of elements or bytes overflows
  int64_t product = 1;
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(product, size, &product) || product > largestProduct)
      return invalidArgument(fmt::format("--shape '{}': the product of its sizes is more than 2^60", text));
  return sizes;
}

Expected<ops::MultiplyPrecision> parsePrecision(std::string_view name, DataType dtype) {
  if (name == toString(ops::MultiplyPrecision::Tf32))
    return ops::MultiplyPrecision::Tf32;
  if (dtype != DataType::F32)
    return invalidArgument(
        fmt::format("--precision {}: says how fp32 operands are multiplied; these are {}", name, toString(dtype)));
  return ops::MultiplyPrecision::Ieee;
}

std::string errorNote(DataType type, std::string_view elements) {
  return fmt::format("the column error: {}, against sums in double precision: the largest difference beyond the rounding to {}, over the root "
                     "mean square; 0: rounding only\n",
                     elements, toString(type));
}

nlohmann::ordered_json timesAsJson(const ContenderTimes &times) {
  return {{"name", times.name}, {"median_microseconds", times.median()}, {"microseconds", times.microseconds}};
}

RelativeError::RelativeError(DataType type)
    : rounding(type == DataType::BF16 ? 0x1p-7 : type == DataType::F16 ? 0x1p-10 : 0x1p-23) {}

void RelativeError::add(double actual, double expected) {
  const double error = std::abs(actual - expected) - rounding * std::abs(expected);
  largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
  squares += expected * expected;
  ++elements;
}

double RelativeError::value() const {
  const double rootMeanSquare = elements ? std::sqrt(squares / static_cast<double>(elements)) : 0;
  return rootMeanSquare > 0 ? largest / rootMeanSquare : largest;
}

} // namespace ditron::tool
