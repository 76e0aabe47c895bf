//===- KernelInterface.cpp - The parameters of a kernel as its file declares them ---------------------------------===//
//
// Takes the frontend's description, and chooses among the configurations that it found.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/KernelInterface.h"

#include "ditron/frontend/Import.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::compiler {

using namespace frontend;

std::optional<size_t> KernelInterface::find(std::string_view parameter) const {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == parameter)
      return i;
  return std::nullopt;
}

std::vector<std::string> KernelInterface::parameterNames() const {
  std::vector<std::string> names;
  for (const KernelParameter &parameter : parameters)
    names.push_back(parameter.name);
  return names;
}

/// The compute capability of a target: the digits of "cuda:sm_90a"; 0 for one that has none.
static unsigned capabilityOf(llvm::StringRef target) {
  unsigned capability = 0;
  llvm::StringRef digits = target.rsplit("sm_").second.take_while(llvm::isDigit);
  return digits.getAsInteger(10, capability) ? 0 : capability;
}

frontend::ImportOptions importOptions(const KernelSource &source, std::string_view target) {
  ImportOptions options;
  options.searchPaths = source.searchPaths;
  options.imported = source.imported;
  options.defines = source.defines;
  if (unsigned capability = capabilityOf(target))
    options.capability = capability;
  return options;
}

Expected<KernelInterface> describeKernel(const KernelSource &source, std::string_view kernel, std::string_view target) {
  SourceManager sources;
  DITRON_ASSIGN_OR_RETURN(FileId file, sources.add(source.path, source.text));
  DiagnosticEngine diagnostics(sources);
  DITRON_ASSIGN_OR_RETURN(KernelInfo info, frontend::describeKernel(sources.file(file), kernel, diagnostics,
                                                                    importOptions(source, target)));
  KernelInterface result;
  result.name = info.name;
  result.tuning = std::move(info.tuning);
  for (ParameterInfo &parameter : info.parameters) {
    KernelParameter &added = result.parameters.emplace_back();
    added.name = std::move(parameter.name);
    added.isConstexpr = parameter.isConstexpr;
    added.annotation = std::move(parameter.annotation);
    added.hasDefault = parameter.hasDefault();
    added.defaultValue = std::move(parameter.defaultValue);
    added.specialiseValue = parameter.specialiseValue;
    added.specialiseAlignment = parameter.specialiseAlignment;
  }
  return result;
}

Expected<std::vector<std::string>> kernelNames(const KernelSource &source) {
  SourceManager sources;
  DITRON_ASSIGN_OR_RETURN(FileId file, sources.add(source.path, source.text));
  DiagnosticEngine diagnostics(sources);
  ImportOptions options;
  options.searchPaths = source.searchPaths;
  DITRON_ASSIGN_OR_RETURN(std::vector<KernelInfo> kernels,
                          frontend::listKernels(sources.file(file), diagnostics, options));
  std::vector<std::string> names;
  for (KernelInfo &kernel : kernels)
    names.push_back(std::move(kernel.name));
  return names;
}

KernelSource readImports(KernelSource source) {
  source.imported = frontend::importedFiles({source.path, source.text}, source.searchPaths, std::move(source.imported));
  std::vector<SourceText> texts = source.imported;
  texts.push_back({source.path, source.text});
  source.environment = frontend::environmentOf(texts);
  return source;
}

Expected<const TuningConfig *> chooseConfig(const KernelInterface &kernel, std::span<const std::string> given,
                                            std::optional<uint32_t> wanted) {
  const TuningSpace &space = kernel.tuning;
  std::vector<std::string> both;
  for (const std::string &name : space.tunedParameters())
    if (std::find(given.begin(), given.end(), name) != given.end())
      both.push_back(name);
  if (!wanted) {
    if (space.configs.empty() || !both.empty())
      return nullptr;
    const TuningConfig *first = space.first();
    if (!first)
      return unsupported(fmt::format("none of the configurations of kernel '{}' can be compiled:\n{}", kernel.name,
                                     listConfigs(kernel)));
    return first;
  }
  if (space.configs.empty())
    return invalidArgument(
        space.problem.empty()
            ? fmt::format("kernel '{}' has no configurations: no decorator @triton.autotune lists any", kernel.name)
            : fmt::format("the configurations of kernel '{}' could not be read: {}", kernel.name, space.problem));
  if (*wanted >= space.configs.size())
    return invalidArgument(fmt::format("kernel '{}' has {} configurations, numbered from 0, but {} is asked for", kernel.name,
                                       space.configs.size(), *wanted));
  const TuningConfig &config = space.configs[*wanted];
  for (const auto &[name, value] : config.values)
    if (std::find(both.begin(), both.end(), name) != both.end())
      return invalidArgument(fmt::format("parameter '{}' of kernel '{}' is given, and configuration {} sets it to {}", name,
                                         kernel.name, *wanted, printConstexpr(value)));
  if (!config.refusal.empty())
    return unsupported(
        fmt::format("configuration {} of kernel '{}' cannot be compiled: {}", *wanted, kernel.name, config.refusal));
  return &config;
}

std::string listConfigs(const KernelInterface &kernel) {
  const TuningSpace &space = kernel.tuning;
  std::string text;
  for (size_t i = 0; i < space.configs.size(); ++i)
    text += fmt::format("{}: {}{}\n", i, space.configs[i].str(),
                        space.configs[i].refusal.empty() ? "" : fmt::format(" (refused: {})", space.configs[i].refusal));
  return text;
}

Expected<std::vector<const ArgumentSpec *>> matchSignature(const KernelInterface &kernel,
                                                           const KernelSignature &signature) {
  std::vector<const ArgumentSpec *> result(kernel.parameters.size());
  size_t next = 0;
  for (const ArgumentSpec &spec : signature.arguments) {
    size_t index = next;
    if (!spec.name.empty()) {
      std::optional<size_t> named = kernel.find(spec.name);
      if (!named)
        return invalidArgument(fmt::format("kernel '{}' has no parameter '{}'{}; it has {}", kernel.name, spec.name,
                                           didYouMean(spec.name, kernel.parameterNames()),
                                           fmt::join(kernel.parameterNames(), ", ")));
      index = *named;
    }
    if (index >= result.size())
      return invalidArgument(fmt::format("the signature has more than the {} parameters of kernel '{}' ({})",
                                         result.size(), kernel.name, fmt::join(kernel.parameterNames(), ", ")));
    if (result[index])
      return invalidArgument(fmt::format("the signature gives parameter '{}' of kernel '{}' twice",
                                         kernel.parameters[index].name, kernel.name));
    result[index] = &spec;
    next = index + 1;
  }
  for (size_t i = 0; i < result.size(); ++i)
    if (!result[i] && !kernel.parameters[i].hasDefault)
      return invalidArgument(fmt::format(
          "the signature lacks parameter '{}' of kernel '{}' ({}){}", kernel.parameters[i].name, kernel.name,
          fmt::join(kernel.parameterNames(), ", "),
          kernel.parameters[i].isConstexpr ? fmt::format("; write constexpr {}=VALUE", kernel.parameters[i].name)
                                           : ""));
  return result;
}

} // namespace ditron::compiler
