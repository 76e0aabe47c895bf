//===- KernelStage.cpp - One kernel of a run ----------------------------------------------------------------------===//
#include "run/KernelStage.h"

#include "base/Command.h"

#include "ditron/support/Plural.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::tool {

Status KernelStage::checkAssignment(const std::string &text, bool isConstexpr,
                                    std::map<std::string, std::string> &given) {
  const std::string option = isConstexpr ? "--constexpr" : "--arg";
  DITRON_ASSIGN_OR_RETURN(auto assignment, splitAssignment(option, text));
  const auto &[name, value] = assignment;
  const std::vector<std::string> names = function.parameterNames();
  if (std::ranges::find(names, name) == names.end())
    return invalidArgument(fmt::format("{} {}: kernel '{}' has no such parameter{}; it has {}", option, name,
                                       function.name(), didYouMean(name, names), fmt::join(names, ", ")));
  if (isConstexpr && !function.isConstexpr(name))
    return invalidArgument(
        fmt::format("--constexpr {}: the parameter is not declared tl.constexpr; use --arg {}={}", name, name, value));
  if (!isConstexpr && function.isConstexpr(name))
    return invalidArgument(
        fmt::format("--arg {}: the parameter is declared tl.constexpr; use --constexpr {}={}", name, name, value));
  if (!given.emplace(name, value).second)
    return invalidArgument(fmt::format("{} {} is given twice", option, name));
  order.push_back(name);
  return Status::ok();
}

Status KernelStage::check() {
  for (const std::string &text : options.constexprs)
    DITRON_RETURN_IF_ERROR(checkAssignment(text, /*isConstexpr=*/true, constexprTexts));
  for (const std::string &text : options.arguments)
    DITRON_RETURN_IF_ERROR(checkAssignment(text, /*isConstexpr=*/false, argumentTexts));
  return Status::ok();
}

Status KernelStage::bind(RunArrays &arrays, uint32_t numRanks, bool withAddresses, SharedArguments &shared) {
  for (const std::string &name : order) {
    const auto constant = constexprTexts.find(name);
    if (constant != constexprTexts.end()) {
      if (withAddresses)
        continue;
      DITRON_ASSIGN_OR_RETURN(bound[name],
                              bindParameter(arrays, numRanks, ParameterKind::Constexpr, name, constant->second));
      continue;
    }
    const std::string &text = argumentTexts.at(name);
    if (mentionsAddress(text) != withAddresses)
      continue;
    DITRON_ASSIGN_OR_RETURN(bound[name], bindParameter(arrays, numRanks, ParameterKind::Argument, name, text));
    shared[name] = bound[name];
  }
  return Status::ok();
}

Status KernelStage::complete(const jit::Jit &jit, const SharedArguments &shared, const values::IntegerNames &constants,
                             uint32_t numRanks, bool debug) {
  for (const std::string &name : function.parameterNames())
    if (auto earlier = shared.find(name);
        earlier != shared.end() && !bound.contains(name) && !function.isConstexpr(name)) {
      bound[name] = earlier->second;
      order.push_back(name);
    }
  jit::LaunchOptions launch;
  launch.numWarps = options.numWarps;
  launch.numStages = options.numStages;
  launch.debug = debug;
  launch.config = options.config;
  for (uint32_t rank = 0; rank < numRanks; ++rank) {
    jit::CallArguments given;
    values::IntegerNames integers = constants;
    integers["RANK"] = rank;
    for (const auto &[name, earlier] : shared)
      addIntegers(integers, earlier.perRank[rank]); // whether or not this kernel has such a parameter
    for (const std::string &name : order) {
      const std::vector<BoundParameter::Leaf> &leaves = bound[name].perRank[rank];
      given.keywords.insert(given.keywords.end(), leaves.begin(), leaves.end());
    }
    Call &call = calls.emplace_back();
    DITRON_ASSIGN_OR_RETURN(call.tuned, jit.tune(function, given, launch));
    call.tuned.options.config.reset(); // its values are among the arguments now
    addIntegers(integers, call.tuned.arguments.keywords);
    DITRON_ASSIGN_OR_RETURN(call.grid, values::evaluateGrid(options.grid.value_or("1"), integers));
  }
  return Status::ok();
}

Status KernelStage::specialise(jit::Jit &jit, runtime::KernelProvider *packaged, uint32_t rank) {
  Call &call = calls[rank];
  if (packaged) {
    const std::string name = std::filesystem::path(source.path).filename();
    const runtime::KernelReference reference = {name, source.path, source.text, function.name()};
    DITRON_ASSIGN_OR_RETURN(call.variant, packaged->specialise(reference, call.tuned.arguments, call.tuned.options));
    return Status::ok();
  }
  DITRON_ASSIGN_OR_RETURN(call.variant, jit.specialise(function, call.tuned.arguments, call.tuned.options));
  return Status::ok();
}

Status KernelStage::launch(runtime::World &world, uint32_t rank, bool cooperative) const {
  runtime::LaunchConfig config;
  config.grid = calls[rank].grid;
  config.cooperative = cooperative;
  return world.rank(rank).stream().launch(kernel(rank), config, calls[rank].variant.arguments);
}

/// From its name to the next line that begins something else.
static std::string_view textOfFunction(std::string_view text, const std::string &name) {
  const size_t begin = std::min(text.size(), text.find("\ndef " + name + "("));
  size_t end = text.find('\n', begin + 1);
  while (end != std::string_view::npos && end + 1 < text.size() && std::string_view(" \t\n#)").find(text[end + 1]) != std::string_view::npos)
    end = text.find('\n', end + 1);
  return text.substr(begin, end == std::string_view::npos ? end : end - begin);
}

std::string KernelStage::describe() const {
  const Call &first = calls[0];
  const bool differ = std::ranges::any_of(calls, [&](const Call &call) {
    return call.grid != first.grid || call.tuned.options.warps() != first.tuned.options.warps();
  });
  const uint32_t warps = first.tuned.options.warps();
  const bool forgotten = !options.grid && textOfFunction(source.text, function.name()).find("program_id") != std::string::npos;
  return fmt::format("grid {}x{}x{}{}, {} per block{}", first.grid[0], first.grid[1], first.grid[2],
                     forgotten ? " (no --grid)" : "", plural(warps, "warp"),
                     differ ? " on rank 0, others elsewhere" : "");
}

} // namespace ditron::tool
