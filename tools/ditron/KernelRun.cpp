//===- KernelRun.cpp - One launch of a kernel on every rank -------------------------------------------------------===//
//
// Everything that can be wrong with the command line is found before anything is compiled or run.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "KernelRun.h"

#include "Command.h"
#include "TupleText.h"
#include "WorldText.h"

#include "ditron/frontend/syntax/Diagnostics.h"
#include "ditron/sim/Machine.h"
#include "ditron/support/Suggest.h"

#include <chrono>
#include <cstdio>
#include <fmt/format.h>

namespace ditron::tool {

using runtime::Argument;

namespace {

std::string formatElement(DataType type, const std::byte *address) {
  if (type == DataType::I64)
    return fmt::format("{}", *reinterpret_cast<const int64_t *>(address));
  if (type == DataType::U64)
    return fmt::format("{}", *reinterpret_cast<const uint64_t *>(address));
  const double value = loadElement(type, address);
  return isInteger(type) ? fmt::format("{}", static_cast<int64_t>(value)) : fmt::format("{:.6g}", value);
}

/// An error of a running kernel, which begins with "FILE:LINE:COLUMN: ", with that line of the source and a caret
/// below.
Status withSourceLine(const Status &status, const compiler::KernelSource &source) {
  unsigned line = 0, column = 0;
  if (status.isOk() || !status.message().starts_with(source.path + ":") ||
      std::sscanf(status.message().c_str() + source.path.size(), ":%u:%u:", &line, &column) != 2)
    return status;
  frontend::SourceManager sources;
  Expected<frontend::FileId> file = sources.add(source.path, source.text);
  if (!file.isOk())
    return status;
  const uint32_t offset = sources.file(*file).offsetOf({line, column});
  // The rendered message begins with the same place.
  const size_t text = status.message().find(": ", source.path.size()) + 2;
  return Status(status.code(),
                frontend::renderMessage(sources, frontend::Severity::Error, sources.file(*file).range(offset, offset),
                                        status.message().substr(text)));
}

/// The innermost dimension on a line, at most this many elements and lines.
constexpr int64_t mostPrintedColumns = 16;
constexpr int64_t mostPrintedRows = 16;

} // namespace

Expected<std::vector<std::byte>> KernelRun::Array::download(uint32_t rank) const {
  std::vector<std::byte> data(static_cast<size_t>(elementCount(shapes[rank])) * sizeOf(type));
  DITRON_RETURN_IF_ERROR(symmetric.isValid() ? symmetric.download(rank, data.data(), data.size())
                                             : buffers[rank].download(data.data(), data.size()));
  return data;
}

Status KernelRun::run() {
  const auto start = std::chrono::steady_clock::now();
  progress.activity("reading arguments");
  DITRON_RETURN_IF_ERROR(makeWorld());
  DITRON_RETURN_IF_ERROR(bindArguments());
  DITRON_RETURN_IF_ERROR(bindOutputs());
  DITRON_RETURN_IF_ERROR(launch());
  Status ran = world->synchronize();
  // The simulator knows its own faults; of a kernel that traps a driver says no more than that it failed.
  kernelFailed = !ran.isOk() && (ran.code() != StatusCode::Internal || !world->machine());
  // A trace of a run that failed is when it is needed most.
  if (!options.trace.empty())
    if (Status traced = world->writeTrace(options.trace); !traced.isOk() && ran.isOk())
      ran = traced;
  progress.stop();
  DITRON_RETURN_IF_ERROR(withSourceLine(ran, source));
  DITRON_RETURN_IF_ERROR(writeOutputs());
  for (const std::string &name : options.prints)
    DITRON_RETURN_IF_ERROR(printArray(*findArray(name)));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (!options.quiet)
    printSummary(elapsed.count());
  return Status::ok();
}

Status KernelRun::makeWorld() {
  DITRON_ASSIGN_OR_RETURN(KernelReference reference, readKernelReference(options.kernel, options.source));
  runtime::WorldOptions worldOptions;
  worldOptions.sms = options.sms;
  worldOptions.seed = options.seed;
  worldOptions.checkBounds = !options.noBoundsCheck;
  worldOptions.trace = !options.trace.empty();
  worldOptions.shareGpus = options.shareGpus;
  worldOptions.timeLimitSeconds = options.timeLimit;
  Knobs compileKnobs = knobs;
  if (options.boundWaits > 0) {
    compileKnobs.boundWaits = true;
    worldOptions.waitLimitSeconds = options.boundWaits;
  }
  DITRON_ASSIGN_OR_RETURN(worldOptions.slowRanks, parseSlowRanks(options.slowRanks, options.ranks));
  DITRON_ASSIGN_OR_RETURN(world, runtime::World::local(options.ranks, options.target, worldOptions));
  DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(world->target(), compileKnobs));
  source = std::move(reference.source);
  DITRON_ASSIGN_OR_RETURN(function, jit->load(source, reference.kernel));
  jit->setObserver([this](const std::string &kernel, const compiler::CompileReport *report) {
    if (!report) {
      progress.activity("compiling " + kernel);
      return;
    }
    fmt::print(stderr, "{}{}", report->printed, report->messages);
    compileReport.isFromCache = report->isFromCache;
    compileReport.times.insert(compileReport.times.end(), report->times.begin(), report->times.end());
  });
  integers["RANKS"] = options.ranks;
  integers["SMS"] = world->rank(0).attributes().multiprocessors;
  return Status::ok();
}

Status KernelRun::checkKnown(std::string_view option, const std::string &name) const {
  const std::vector<std::string> names = function.parameterNames();
  if (std::find(names.begin(), names.end(), name) != names.end())
    return Status::ok();
  return invalidArgument(fmt::format("{} {}: kernel '{}' has no such parameter{}; it has {}", option, name,
                                     function.name(), didYouMean(name, names), fmt::join(names, ", ")));
}

Status KernelRun::checkAssignment(const std::string &name, const std::string &value, bool isConstexpr) {
  const std::string option = isConstexpr ? "--constexpr" : "--arg";
  DITRON_RETURN_IF_ERROR(checkKnown(option, name));
  if (isConstexpr && !function.isConstexpr(name))
    return invalidArgument(
        fmt::format("--constexpr {}: the parameter is not declared tl.constexpr; use --arg {}={}", name, name, value));
  if (!isConstexpr && function.isConstexpr(name))
    return invalidArgument(
        fmt::format("--arg {}: the parameter is declared tl.constexpr; use --constexpr {}={}", name, name, value));
  if (!assigned.insert(name).second)
    return invalidArgument(fmt::format("{} {} is given twice", option, name));
  return Status::ok();
}

Status KernelRun::bindArgument(const std::string &text, bool isConstexpr) {
  DITRON_ASSIGN_OR_RETURN(auto assignment, splitAssignment(isConstexpr ? "--constexpr" : "--arg", text));
  const auto &[name, value] = assignment;
  DITRON_RETURN_IF_ERROR(checkAssignment(name, value, isConstexpr));
  // The binding of arguments knows the elements of a tuple by their paths.
  DITRON_ASSIGN_OR_RETURN(std::vector<TupleLeaf> leaves, parseTupleText(name, value));
  for (const TupleLeaf &leaf : leaves) {
    const bool isQuoted = leaf.path != name && (leaf.text.starts_with('"') || leaf.text.starts_with('\''));
    ArgumentText parsed;
    if (isConstexpr || isQuoted) {
      DITRON_ASSIGN_OR_RETURN(parsed, parseConstexprText(leaf.path, leaf.text));
    } else {
      DITRON_ASSIGN_OR_RETURN(parsed, parseArgumentText(leaf.path, leaf.text));
    }
    if (const auto *array = std::get_if<ArrayText>(&parsed)) {
      given.push_back({leaf.path, Argument(), arrays.size()});
      DITRON_RETURN_IF_ERROR(makeArray(leaf.path, *array));
    } else {
      addScalar(leaf.path, std::get<Argument>(parsed));
    }
  }
  return Status::ok();
}

void KernelRun::addScalar(const std::string &name, Argument value) {
  if (value.is<int64_t>())
    integers[name] = value.get<int64_t>();
  given.push_back({name, std::move(value), std::nullopt});
}

jit::CallArguments KernelRun::callOn(uint32_t rank) const {
  jit::CallArguments call;
  for (const Given &each : given)
    call.keywords.emplace_back(each.name, each.array ? arrays[*each.array].argument(rank) : each.value);
  return call;
}

Status KernelRun::bindArguments() {
  for (const std::string &text : options.constexprs)
    DITRON_RETURN_IF_ERROR(bindArgument(text, /*isConstexpr=*/true));
  for (const std::string &text : options.arguments)
    DITRON_RETURN_IF_ERROR(bindArgument(text, /*isConstexpr=*/false));
  DITRON_RETURN_IF_ERROR(tune());
  DITRON_ASSIGN_OR_RETURN(grid, evaluateGrid(options.grid, integers));
  return Status::ok();
}

Status KernelRun::makeArray(const std::string &name, const ArrayText &text) {
  std::vector<NpyArray> data;
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    DITRON_ASSIGN_OR_RETURN(NpyArray array, text.make(rank, options.seed, name));
    if (!data.empty() && array.type != data.front().type)
      return invalidArgument(fmt::format("argument {}: elements are {} on rank 0 but {} on rank {}", name,
                                         toString(data.front().type), toString(array.type), rank));
    if (text.symmetric && !data.empty() && array.shape != data.front().shape)
      return invalidArgument(
          fmt::format("argument {}: symmetric arrays have one shape, but it is {} on rank 0 and {} on "
                      "rank {}",
                      name, shapeToString(data.front().shape), shapeToString(array.shape), rank));
    data.push_back(std::move(array));
  }
  Array &array = arrays.emplace_back();
  array.name = name;
  array.type = data.front().type;
  array.block = text.block;
  array.fillNan = text.fillNan;
  for (const NpyArray &part : data)
    array.shapes.push_back(part.shape);
  if (text.symmetric) {
    DITRON_ASSIGN_OR_RETURN(array.symmetric, world->allocateSymmetric(array.type, data.front().elementCount(), name));
    for (uint32_t rank = 0; rank < options.ranks; ++rank)
      DITRON_RETURN_IF_ERROR(array.symmetric.upload(rank, data[rank].data.data(), data[rank].data.size()));
    return Status::ok();
  }
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer,
                            world->rank(rank).allocate(array.type, data[rank].elementCount(), name));
    DITRON_RETURN_IF_ERROR(buffer.upload(data[rank].data.data(), data[rank].data.size()));
    array.buffers.push_back(std::move(buffer));
  }
  return Status::ok();
}

const KernelRun::Array *KernelRun::findArray(std::string_view name) const {
  for (const Array &array : arrays)
    if (array.name == name)
      return &array;
  return nullptr;
}

Status KernelRun::bindOutputs() {
  auto requireArray = [&](std::string_view option, const std::string &name) -> Status {
    if (findArray(name))
      return Status::ok();
    std::vector<std::string> names;
    for (const Array &array : arrays)
      names.push_back(array.name);
    return invalidArgument(fmt::format("{} {}: no array argument has this name{}; arrays are {}", option, name,
                                       didYouMean(name, names),
                                       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  };
  for (const std::string &text : options.outputs) {
    DITRON_ASSIGN_OR_RETURN(auto assignment, splitAssignment("--out", text));
    const auto &[name, value] = assignment;
    DITRON_RETURN_IF_ERROR(requireArray("--out", name));
    DITRON_ASSIGN_OR_RETURN(OutputText output, parseOutputText(name, value));
    if (options.ranks > 1 && !hasRank(output.path))
      return invalidArgument(fmt::format("--out {}={}: {} ranks would write one file; put {{rank}} into the path", name,
                                         value, options.ranks));
    outputs.push_back({findArray(name), std::move(output)});
  }
  for (const std::string &name : options.prints)
    DITRON_RETURN_IF_ERROR(requireArray("--print", name));
  return Status::ok();
}

Status KernelRun::tune() {
  launchOptions.numWarps = options.numWarps;
  launchOptions.numStages = options.numStages;
  launchOptions.debug = options.debug;
  launchOptions.config = options.config;
  const jit::CallArguments call = callOn(0);
  DITRON_ASSIGN_OR_RETURN(jit::TunedCall tuned, jit->tune(function, call, launchOptions));
  for (size_t i = call.keywords.size(); i < tuned.arguments.keywords.size(); ++i)
    addScalar(tuned.arguments.keywords[i].first, tuned.arguments.keywords[i].second);
  launchOptions = tuned.options;
  launchOptions.config.reset(); // its values are among the arguments now
  if (!options.quiet && !tuned.config.empty())
    fmt::print(stderr, "configuration: {}\n", tuned.config);
  return Status::ok();
}

Status KernelRun::launch() {
  runtime::LaunchConfig config;
  config.grid = grid;
  config.cooperative = options.cooperative;
  // All is compiled and loaded before the first rank starts, since its kernel may wait for the others'.
  std::vector<jit::Specialisation> variants;
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    DITRON_ASSIGN_OR_RETURN(jit::Specialisation variant, jit->specialise(function, callOn(rank), launchOptions));
    const auto begin = std::chrono::steady_clock::now();
    DITRON_RETURN_IF_ERROR(world->rank(rank).device()->load(variant.kernel));
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
    if (!world->machine())
      compileReport.times.push_back({fmt::format("driver, rank {}", rank), elapsed.count(), compiler::Phase::Load});
    variants.push_back(std::move(variant));
  }
  if (options.time)
    fmt::print(stderr, "{}", compileReport.timesText());
  const bool timed = world->machine() == nullptr;
  for (uint32_t rank = 0; rank < options.ranks && timed; ++rank) {
    DITRON_ASSIGN_OR_RETURN(runtime::Event begin, world->rank(rank).createEvent("begin"));
    DITRON_ASSIGN_OR_RETURN(runtime::Event end, world->rank(rank).createEvent("end"));
    begins.push_back(std::move(begin));
    ends.push_back(std::move(end));
  }
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    runtime::Stream &stream = world->rank(rank).stream();
    if (timed)
      DITRON_RETURN_IF_ERROR(stream.record(begins[rank]));
    DITRON_RETURN_IF_ERROR(stream.launch(variants[rank].kernel, config, variants[rank].arguments));
    if (timed)
      DITRON_RETURN_IF_ERROR(stream.record(ends[rank]));
  }
  progress.activity(fmt::format("running {} on {} ranks of {}", function.name(), options.ranks, world->target()));
  return Status::ok();
}

Status KernelRun::writeOutputs() {
  for (const Output &output : outputs) {
    for (uint32_t rank = 0; rank < options.ranks; ++rank) {
      NpyArray array{output.array->type, output.array->shapes[rank], {}};
      DITRON_ASSIGN_OR_RETURN(array.data, output.array->download(rank));
      if (output.text.type) {
        DITRON_ASSIGN_OR_RETURN(NpyArray converted,
                                interpretArray(std::move(array), *output.text.type, output.array->name));
        array = std::move(converted);
      }
      DITRON_RETURN_IF_ERROR(writeNpy(pathForRank(output.text.path, rank), array.type, array.shape, array.data));
    }
  }
  return Status::ok();
}

Status KernelRun::printArray(const Array &array) {
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    DITRON_ASSIGN_OR_RETURN(std::vector<std::byte> data, array.download(rank));
    const std::vector<int64_t> &shape = array.shapes[rank];
    const int64_t columns = shape.empty() ? 1 : shape.back();
    const int64_t rows = data.empty() ? 0 : elementCount(shape) / columns;
    fmt::print("{} on rank {}: {} {}{}\n", array.name, rank, toString(array.type), shapeToString(shape),
               data.empty() ? ", 0 elements" : "");
    for (int64_t row = 0; row < std::min(rows, mostPrintedRows); ++row) {
      std::string line;
      for (int64_t column = 0; column < std::min(columns, mostPrintedColumns); ++column)
        line += " " + formatElement(array.type, data.data() + (row * columns + column) * sizeOf(array.type));
      fmt::print(" {}{}\n", line, columns > mostPrintedColumns ? " ..." : "");
    }
    if (rows > mostPrintedRows)
      fmt::print("  ... {} more rows\n", rows - mostPrintedRows);
  }
  return Status::ok();
}

std::string KernelRun::deviceTime() const {
  if (const sim::Machine *machine = world->machine())
    return fmt::format("{:.1f} us of simulated time", static_cast<double>(machine->now()) / 1e6);
  int64_t slowest = 0;
  for (size_t rank = 0; rank < ends.size(); ++rank)
    if (Expected<int64_t> elapsed = ends[rank].elapsedSince(begins[rank]); elapsed.isOk())
      slowest = std::max(slowest, *elapsed);
  return fmt::format("{:.1f} us on the slowest GPU (one cold launch)", static_cast<double>(slowest) / 1e6);
}

void KernelRun::printSummary(double seconds) {
  const uint32_t sms = world->rank(0).attributes().multiprocessors;
  fmt::print("{}: {} {} of {} on {}, grid {}x{}x{}, {} warps per block: {}, {:.2f} s here ({:.2f} s "
             "compiling)\n",
             function.name(), options.ranks, options.ranks == 1 ? "rank" : "ranks", sms == 1 ? "1 SM" : fmt::format("{} SMs", sms),
             world->target(), grid[0], grid[1], grid[2], launchOptions.warps(), deviceTime(), seconds,
             jit->counters().compileMilliseconds / 1000);
  for (const Output &output : outputs)
    fmt::print("wrote {} to {}\n", output.array->name, output.text.path);
  if (!options.trace.empty())
    fmt::print("trace: {} (open it with https://ui.perfetto.dev)\n", options.trace);
}

} // namespace ditron::tool
