//===- CaseRunner.cpp - Runs one case -----------------------------------------------------------------------------------===//
//
// Each case gets a world of its own: an error of a running kernel ends the world.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "CaseRunner.h"

#include "ArrayFill.h"
#include "CapturedOutput.h"
#include "Comparison.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>

namespace ditron::conformance {

using nlohmann::json;
using runtime::Argument;

struct CaseRunner::Array {
  std::string name;
  const json *fields = nullptr;
  DataType type = DataType::F32;
  uint64_t count = 0, offset = 0;
  std::vector<runtime::Buffer> buffers; ///< By rank, or one symmetric array.
  runtime::SymmetricBuffer symmetric;

  runtime::Pointer pointer(uint32_t rank) const {
    return (symmetric.isValid() ? symmetric.on(rank) : buffers[rank].pointer()) + static_cast<int64_t>(offset);
  }
  Status upload(uint32_t rank, const std::vector<std::byte> &data) {
    const uint64_t at = offset * sizeOf(type);
    return symmetric.isValid() ? symmetric.upload(rank, data.data(), data.size(), at)
                               : buffers[rank].upload(data.data(), data.size(), at);
  }
  Status download(uint32_t rank, std::vector<std::byte> &data) const {
    data.resize(count * sizeOf(type));
    const uint64_t at = offset * sizeOf(type);
    return symmetric.isValid() ? symmetric.download(rank, data.data(), data.size(), at)
                               : buffers[rank].download(data.data(), data.size(), at);
  }
};

struct CaseRunner::Launch {
  std::shared_ptr<runtime::World> world;
  uint32_t ranks = 1;
  std::vector<Array> arrays;
  std::vector<std::pair<std::string, Argument>> scalars;
};

CaseRunner::~CaseRunner() = default;

namespace {

/// Texts by which the compiler says "correct, but not here".
bool isRefusal(const Status &status) {
  if (status.code() == StatusCode::Unsupported)
    return true;
  if (status.message().starts_with("compiler bug"))
    return false;
  for (std::string_view words :
       {"not supported by this version", "the simulator cannot run", "not supported in this architecture"})
    if (status.message().find(words) != std::string::npos)
      return true;
  return false;
}

std::vector<std::string> textsOf(const json &value) {
  if (value.is_string())
    return {value.get<std::string>()};
  return value.get<std::vector<std::string>>();
}

/// A message as one line of a report: its first lines, joined.
std::string brief(const std::string &message) {
  std::string text = message.substr(0, 300);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Expected<Argument> scalarArgument(const std::string &name, const json &value) {
  if (value.is_null())
    return Argument(runtime::None());
  if (value.is_boolean())
    return Argument(value.get<bool>());
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return Argument(value.get<uint64_t>());
  if (value.is_number_integer())
    return Argument(value.get<int64_t>());
  if (value.is_number())
    return Argument(value.get<double>());
  if (value.is_string())
    return Argument(value.get<std::string>());
  if (value.is_object() && value.contains("dtype")) {
    DITRON_ASSIGN_OR_RETURN(DataType type, parseDataTypeOrError(value["dtype"].get<std::string>()));
    return Argument(type);
  }
  if (value.is_object() && value.contains("float"))
    return Argument(std::strtod(value["float"].get<std::string>().c_str(), nullptr));
  if (value.is_object() && value.contains("value") && value.contains("as")) {
    DITRON_ASSIGN_OR_RETURN(DataType type, parseDataTypeOrError(value["as"].get<std::string>()));
    DITRON_ASSIGN_OR_RETURN(Argument plain, scalarArgument(name, value["value"]));
    return Argument::typed(type, plain);
  }
  return invalidArgument(fmt::format("argument {}: {} is no argument", name, value.dump()));
}

Expected<CompareRule> compareRule(const json &fields) {
  static const std::pair<std::string_view, CompareMode> modes[] = {{"exact", CompareMode::Exact},
                                                                   {"equal", CompareMode::Equal},
                                                                   {"close", CompareMode::Close},
                                                                   {"sorted", CompareMode::Sorted}};
  CompareRule rule;
  rule.relative = fields.value("rtol", 0.0);
  rule.absolute = fields.value("atol", 0.0);
  const std::string wanted = fields.value("compare", rule.relative > 0 || rule.absolute > 0 ? "close" : "exact");
  for (const auto &[name, mode] : modes)
    if (name == wanted) {
      rule.mode = mode;
      return rule;
    }
  return invalidArgument(fmt::format("no way to compare \"{}\": exact, equal, close, sorted", wanted));
}

} // namespace

CaseResult CaseRunner::run(const Case &one) {
  const auto begin = std::chrono::steady_clock::now();
  Expected<CaseResult> tried = tryRun(one);
  CaseResult result = tried.isOk() ? *tried : CaseResult{Outcome::Failed, brief(tried.status().message())};
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

Expected<CaseResult> CaseRunner::tryRun(const Case &one) {
  const bool simulated = target.starts_with("sim");
  if (const std::string only = one.fields.value("only", ""); !only.empty() && simulated != (only == "sim"))
    return CaseResult{Outcome::Skipped, "for " + only};
  if (!jit) {
    Knobs knobs;
    knobs.boundWaits = !simulated;
    DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(target, knobs));
  }

  Launch launch;
  launch.ranks = one.fields.value("ranks", 1u);
  runtime::WorldOptions options;
  options.timeLimitSeconds = 60;
  options.waitLimitSeconds = 3;
  if (!keptWorld || keptWorld->numRanks() != launch.ranks) {
    keptWorld.reset();
    Expected<std::unique_ptr<runtime::World>> world = runtime::World::local(launch.ranks, target, options);
    if (!world.isOk() && !simulated && launch.ranks > 1)
      return CaseResult{Outcome::Skipped, brief(world.status().message())};
    DITRON_RETURN_IF_ERROR(world.status());
    keptWorld = std::move(world).value();
  }
  launch.world = keptWorld;
  if (simulated) // costs nothing to make, and each case then runs in the same state
    keptWorld.reset();
  DITRON_RETURN_IF_ERROR(makeArguments(one, launch));

  Expected<jit::KernelFunction> function = jit->load({"kernel.py", one.kernelText}, one.entry);
  if (!function.isOk())
    return judgeError(one, function.status(), true);
  jit::LaunchOptions launchOptions;
  launchOptions.numWarps = one.fields.value("warps", 4u);
  launchOptions.numStages = one.fields.value("stages", 3u);
  launchOptions.debug = one.fields.value("debug", false);
  std::vector<jit::Specialisation> variants;
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    jit::CallArguments call;
    call.keywords = launch.scalars;
    for (const Array &array : launch.arrays) {
      const runtime::Pointer pointer = array.pointer(rank);
      if (!array.fields->contains("descriptor")) {
        call.keywords.emplace_back(array.name, pointer);
        continue;
      }
      const json &fields = (*array.fields)["descriptor"];
      runtime::TensorDescriptor descriptor;
      descriptor.base = pointer;
      descriptor.shape = fields["shape"].get<std::vector<int64_t>>();
      descriptor.strides = fields.value("strides", std::vector<int64_t>());
      descriptor.blockShape = fields["block"].get<std::vector<int64_t>>();
      descriptor.fillNan = fields.value("nan", false);
      call.keywords.emplace_back(array.name, descriptor);
    }
    Expected<jit::Specialisation> variant = jit->specialise(*function, call, launchOptions);
    if (!variant.isOk())
      return judgeError(one, variant.status(), true);
    variants.push_back(std::move(variant).value());
  }
  if (one.fields.contains("error"))
    return CaseResult{Outcome::Failed,
                      fmt::format("compiled, but an error is expected: {}", one.fields["error"].dump())};

  runtime::LaunchConfig config;
  const auto grid = one.fields.value("grid", std::vector<uint32_t>{1});
  for (size_t axis = 0; axis < grid.size() && axis < 3; ++axis)
    config.grid[axis] = grid[axis];
  CapturedOutput output;
  Status ran = Status::ok();
  for (uint32_t rank = 0; rank < launch.ranks && ran.isOk(); ++rank)
    ran = launch.world->rank(rank).stream().launch(variants[rank].kernel, config, variants[rank].arguments);
  if (ran.isOk())
    ran = launch.world->synchronize();
  const std::string printed = output.finish();
  if (!ran.isOk())
    return judgeError(one, ran, false);
  if (one.fields.contains("runtimeError"))
    return CaseResult{Outcome::Failed,
                      fmt::format("ran, but an error is expected: {}", one.fields["runtimeError"].dump())};

  CaseResult result{Outcome::Passed};
  if (one.fields.contains("stdout")) {
    std::vector<std::string> expected = textsOf(one.fields["stdout"]), actual = linesOf(printed);
    std::sort(expected.begin(), expected.end()); // programs print in any order
    std::sort(actual.begin(), actual.end());
    if (expected != actual) {
      const auto [left, right] = std::mismatch(actual.begin(), actual.end(), expected.begin(), expected.end());
      return CaseResult{Outcome::Failed,
                        fmt::format("printed {} lines, expected {}; first difference: got '{}', expected '{}'",
                                    actual.size(), expected.size(), left == actual.end() ? "" : *left,
                                    right == expected.end() ? "" : *right)};
    }
  }
  DITRON_RETURN_IF_ERROR(compareOutputs(one, launch, result));
  return result;
}

Status CaseRunner::makeArguments(const Case &one, Launch &launch) {
  const json none = json::object();
  const json &arguments = one.fields.contains("args") ? one.fields["args"] : none;
  for (const auto &[name, value] : arguments.items()) {
    if (!value.is_object() || !value.contains("array")) {
      DITRON_ASSIGN_OR_RETURN(Argument argument, scalarArgument(name, value));
      launch.scalars.emplace_back(name, std::move(argument));
      continue;
    }
    Array &array = launch.arrays.emplace_back();
    array.name = name;
    array.fields = &value;
    DITRON_ASSIGN_OR_RETURN(array.type, parseDataTypeOrError(value["array"].get<std::string>()));
    array.count = value.value("n", uint64_t(1));
    array.offset = value.value("offset", uint64_t(0));
    if (value.value("symmetric", false)) {
      DITRON_ASSIGN_OR_RETURN(array.symmetric,
                              launch.world->allocateSymmetric(array.type, array.count + array.offset, name));
    } else {
      for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
        DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer,
                                launch.world->rank(rank).allocate(array.type, array.count + array.offset, name));
        array.buffers.push_back(std::move(buffer));
      }
    }
    for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
      DITRON_ASSIGN_OR_RETURN(std::vector<std::byte> data,
                              fillArray(value, array.type, array.count, rank * 1000003ull, one.folder));
      DITRON_RETURN_IF_ERROR(array.upload(rank, data));
    }
  }
  return Status::ok();
}

CaseResult CaseRunner::judgeError(const Case &one, const Status &status, bool whileCompiling) const {
  const char *field = whileCompiling ? "error" : "runtimeError";
  const std::string &message = status.message();
  if (!one.fields.contains(field)) {
    const bool refused = whileCompiling && isRefusal(status);
    return {refused ? Outcome::Refused : Outcome::Failed, brief(message)};
  }
  for (const std::string &text : textsOf(one.fields[field]))
    if (message.find(text) == std::string::npos)
      return {Outcome::Failed, fmt::format("the message lacks '{}': {}", text, brief(message))};
  if (one.fields.contains("at")) { // line from the def line, which is 1; column from 0: as Triton counts them
    const auto place = one.fields["at"].get<std::array<uint32_t, 2>>();
    const std::string text = fmt::format("kernel.py:{}:{}:", one.defLine + place[0] - 1, place[1] + 1);
    if (message.find(text) == std::string::npos)
      return {Outcome::Failed,
              fmt::format("the place should be {} (line {} of the function): {}", text, place[0], brief(message))};
  }
  return {Outcome::Passed};
}

Status CaseRunner::compareOutputs(const Case &one, Launch &launch, CaseResult &result) {
  for (const Array &array : launch.arrays) {
    const json &fields = *array.fields;
    if (!fields.contains("ref") && !fields.contains("expect"))
      continue;
    DITRON_ASSIGN_OR_RETURN(CompareRule rule, compareRule(fields));
    const uint32_t size = sizeOf(array.type);
    std::vector<uint64_t> positions;
    if (fields.contains("sample")) { // [how many, how far apart]
      const uint64_t count = fields["sample"][0], step = fields["sample"][1];
      for (uint64_t i = 0; i < count; ++i)
        positions.push_back(i * step % array.count);
    }
    const uint64_t compared = positions.empty() ? array.count : positions.size();
    for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
      std::vector<std::byte> actual;
      DITRON_RETURN_IF_ERROR(array.download(rank, actual));
      if (!positions.empty()) {
        std::vector<std::byte> picked(compared * size);
        for (uint64_t i = 0; i < compared; ++i)
          std::memcpy(picked.data() + i * size, actual.data() + positions[i] * size, size);
        actual = std::move(picked);
      }
      std::vector<std::byte> expected;
      if (fields.contains("expect")) {
        json repeated = {{"values", fields["expect"]}};
        DITRON_ASSIGN_OR_RETURN(expected, fillArray(repeated, array.type, compared, 0, one.folder));
      } else {
        const uint64_t begin = fields["ref"].get<uint64_t>() + rank * compared * size;
        if (!one.references || begin + compared * size > one.references->size())
          return invalidArgument(fmt::format("{}: the references end before those of {}", one.name, array.name));
        expected.assign(one.references->begin() + begin, one.references->begin() + begin + compared * size);
      }
      const Comparison comparison = compareElements(array.type, actual, expected, rule, positions);
      if (rule.mode == CompareMode::Close && comparison.wrong == 0) {
        result.maxUlp = std::max(result.maxUlp, comparison.maxUlp);
        result.maxError = std::max(result.maxError, comparison.maxError);
      }
      if (comparison.wrong > 0 && result.outcome == Outcome::Passed) {
        result.outcome = Outcome::Failed;
        result.text = fmt::format("{}{}: {} of {} differ;{}", array.name,
                                  launch.ranks > 1 ? fmt::format(" on rank {}", rank) : "", comparison.wrong, compared,
                                  comparison.text);
      }
    }
  }
  return Status::ok();
}

} // namespace ditron::conformance
