//===- Tuning.cpp - Configurations and heuristics of a launch ------------------------------------------------------===//
//
// What the call gives itself always wins over what is chosen for it; only a configuration that was asked for by its number
// may not be contradicted.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/jit/Tuning.h"

#include "ditron/jit/ArgumentBinding.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::jit {

using frontend::ConstexprArgument;

namespace {

Status conflict(const compiler::KernelInterface &kernel, uint32_t config, std::string_view option) {
  return invalidArgument(fmt::format("{} is given, and configuration {} of kernel '{}' sets it", option, config, kernel.name));
}

/// The arguments as heuristics see them: what is given, then defaults, then the options.
std::vector<frontend::HeuristicArgument> visibleArguments(const compiler::KernelInterface &kernel, const TunedCall &call) {
  std::vector<frontend::HeuristicArgument> result;
  auto add = [&](const std::string &name, const runtime::Argument &argument) {
    frontend::HeuristicArgument visible;
    visible.name = name;
    visible.value = toConstexpr(argument);
    if (!visible.value) {
      const DataType type = argument.is<runtime::Pointer>() ? argument.get<runtime::Pointer>().type
                                                            : argument.get<runtime::TensorDescriptor>().base.type;
      visible.element = *frontend::parseSignatureType(std::string(toString(type)));
    }
    result.push_back(std::move(visible));
  };
  for (size_t i = 0; i < call.arguments.positional.size() && i < kernel.parameters.size(); ++i)
    add(kernel.parameters[i].name, call.arguments.positional[i]);
  for (const auto &[name, argument] : call.arguments.keywords)
    add(name, argument);
  for (const compiler::KernelParameter &parameter : kernel.parameters)
    if (parameter.defaultValue && std::ranges::none_of(result, [&](const auto &each) { return each.name == parameter.name; }))
      result.push_back({parameter.name, parameter.defaultValue, {}});
  result.push_back({"num_warps", ConstexprArgument(frontend::ConstValue::integer(int64_t(call.options.warps()))), {}});
  result.push_back({"num_stages", ConstexprArgument(frontend::ConstValue::integer(int64_t(call.options.stages()))), {}});
  return result;
}

} // namespace

Expected<std::shared_ptr<frontend::KernelHeuristics>> heuristicsOf(const compiler::KernelSource &source,
                                                                   const compiler::KernelInterface &kernel,
                                                                   std::string_view target) {
  if (kernel.tuning.heuristics.empty())
    return std::shared_ptr<frontend::KernelHeuristics>();
  return frontend::KernelHeuristics::create({source.path, source.text}, kernel.name,
                                            compiler::importOptions(source, target));
}

Expected<TunedCall> tuneCall(const compiler::KernelInterface &kernel, frontend::KernelHeuristics *heuristics,
                             const CallArguments &arguments, const LaunchOptions &options) {
  TunedCall call = {arguments, options, ""};
  std::vector<std::string> given;
  for (size_t i = 0; i < arguments.positional.size() && i < kernel.parameters.size(); ++i)
    given.push_back(kernel.parameters[i].name);
  for (const auto &[name, argument] : arguments.keywords)
    given.push_back(name);
  auto set = [&](const std::string &name, const ConstexprArgument &value) -> Status {
    std::optional<runtime::Argument> argument = toArgument(value);
    if (!argument)
      return invalidArgument(fmt::format("kernel '{}', parameter '{}': {} does not fit into 64 bits", kernel.name, name,
                                         printConstexpr(value)));
    call.arguments.keywords.emplace_back(name, std::move(*argument));
    given.push_back(name);
    return Status::ok();
  };

  DITRON_ASSIGN_OR_RETURN(const frontend::TuningConfig *config, compiler::chooseConfig(kernel, given, options.config));
  if (config) {
    if (options.config && options.numWarps)
      return conflict(kernel, *options.config, "num_warps");
    if (options.config && options.numStages)
      return conflict(kernel, *options.config, "num_stages");
    for (const auto &[name, value] : config->values)
      DITRON_RETURN_IF_ERROR(set(name, value));
    call.options.numWarps = options.numWarps.value_or(config->numWarps);
    call.options.numStages = options.numStages.value_or(config->numStages);
    call.config = config->str();
  }
  const std::vector<std::string> &computed = kernel.tuning.heuristics;
  const bool needsHeuristics = std::ranges::any_of(
      computed, [&](const std::string &name) { return std::ranges::find(given, name) == given.end(); });
  if (!heuristics || !needsHeuristics)
    return call;
  Expected<std::vector<std::pair<std::string, ConstexprArgument>>> values =
      heuristics->evaluate(visibleArguments(kernel, call));
  if (!values.isOk())
    return values.status().withContext(fmt::format("kernel '{}'", kernel.name));
  for (const auto &[name, value] : *values)
    if (std::ranges::find(given, name) == given.end())
      DITRON_RETURN_IF_ERROR(set(name, value));
  return call;
}

} // namespace ditron::jit
