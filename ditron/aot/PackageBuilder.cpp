//===- PackageBuilder.cpp - Compiles kernels into a package --------------------------------------------------------------===//
#include "ditron/aot/PackageBuilder.h"

#include "ditron/cache/Sha256.h"
#include "ditron/compiler/Compiler.h"
#include "ditron/jit/ArgumentBinding.h"
#include "ditron/jit/Tuning.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::aot {

using frontend::ArgumentSpec;
using package::Item;

namespace {

/// The items of one parameter, or of an element of a tuple.
Status describeSpec(const ArgumentSpec &spec, const std::string &path, std::vector<Item> &items) {
  auto refuse = [&](std::string_view what) {
    return unsupported(fmt::format("parameter '{}' is compiled for {}, which cannot stand in a package", path, what));
  };
  if (spec.isTuple()) {
    for (size_t i = 0; i < spec.elements->size(); ++i) {
      const ArgumentSpec &element = (*spec.elements)[i];
      const std::string name = element.name.empty() ? std::to_string(i) : element.name;
      DITRON_RETURN_IF_ERROR(describeSpec(element, path + "." + name, items));
    }
    return Status::ok();
  }
  Item item;
  item.path = path;
  if (spec.isConstexpr()) {
    if (!spec.constexprValue)
      return refuse(spec.str());
    const std::optional<runtime::Argument> value = jit::toArgument(*spec.constexprValue);
    if (!value)
      return refuse(printConstexpr(*spec.constexprValue));
    item.kind = Item::Kind::Constant;
    item.value = *value;
  } else {
    const frontend::LangType element = spec.isDescriptor ? spec.type.element() : spec.type;
    item.kind = spec.isDescriptor ? Item::Kind::Descriptor : Item::Kind::Number;
    item.type = element.signatureText();
    item.divisibility = spec.divisibility;
    item.sizeDivisibility = spec.sizeDivisibility;
    item.fillNan = spec.fillsNan;
    if (spec.isDescriptor)
      item.block.assign(spec.type.shape().begin(), spec.type.shape().end());
  }
  items.push_back(std::move(item));
  return Status::ok();
}

package::Parameter describeParameter(const compiler::KernelInterface &interface,
                                     const compiler::KernelParameter &parameter) {
  package::Parameter described;
  described.name = parameter.name;
  described.isConstexpr = parameter.isConstexpr;
  described.hasDefault = parameter.hasDefault;
  described.specialiseValue = parameter.specialiseValue;
  described.specialiseAlignment = parameter.specialiseAlignment;
  const std::vector<std::string> tuned = interface.tuning.tunedParameters();
  described.isTuned = std::ranges::find(tuned, parameter.name) != tuned.end();
  described.isComputed =
      std::ranges::find(interface.tuning.heuristics, parameter.name) != interface.tuning.heuristics.end();
  if (parameter.defaultValue)
    described.defaultValue = jit::toArgument(*parameter.defaultValue);
  if (const std::optional<frontend::LangType> type = jit::annotatedType(parameter.annotation);
      type && !parameter.isConstexpr)
    described.type = type->signatureText();
  return described;
}

/// Adds the values of a configuration to a signature that has none of them.
Status completeSignature(const compiler::KernelInterface &interface, frontend::KernelSignature &signature,
                         runtime::LaunchOptions &options) {
  std::vector<std::string> given;
  size_t next = 0;
  for (const ArgumentSpec &spec : signature.arguments) {
    const std::optional<size_t> index = spec.name.empty() ? next : interface.find(spec.name);
    if (!index || *index >= interface.parameters.size())
      return Status::ok(); // wrong, which the compiler says better
    given.push_back(interface.parameters[*index].name);
    next = *index + 1;
  }
  DITRON_ASSIGN_OR_RETURN(const frontend::TuningConfig *config,
                          compiler::chooseConfig(interface, given, options.config));
  if (!config)
    return Status::ok();
  for (const auto &[name, value] : config->values)
    signature.arguments.push_back(ArgumentSpec::constexprOf(value, name));
  options.numWarps = options.numWarps.value_or(config->numWarps);
  options.numStages = options.numStages.value_or(config->numStages);
  options.config = static_cast<uint32_t>(config - interface.tuning.configs.data());
  return Status::ok();
}

} // namespace

Expected<std::vector<Item>> describeSignature(const compiler::KernelInterface &interface,
                                              const frontend::KernelSignature &signature) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<const ArgumentSpec *> specs,
                          compiler::matchSignature(interface, signature));
  std::vector<Item> items;
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::string &name = interface.parameters[i].name;
    if (specs[i]) {
      if (const Status status = describeSpec(*specs[i], name, items); !status.isOk())
        return status.withContext(fmt::format("kernel '{}'", interface.name));
      continue;
    }
    Item item;
    item.path = name;
    item.kind = Item::Kind::Default;
    items.push_back(std::move(item));
  }
  return items;
}

VariantOrder VariantOrder::of(const runtime::KernelReference &kernel, std::string target) {
  VariantOrder order;
  order.source = {std::string(kernel.path), std::string(kernel.text)};
  order.sourceName = kernel.name;
  order.kernel = kernel.kernel;
  order.target = std::move(target);
  for (const runtime::ImportableSource &file : kernel.imports) {
    order.source.imported.push_back({std::string(file.path), std::string(file.text)});
    order.importNames.emplace_back(file.path, file.name);
  }
  return order;
}

PackageBuilder::PackageBuilder(const Knobs &knobs, std::string compiler) : knobs(knobs) {
  built.compiler = std::move(compiler);
}

Expected<package::Kernel *> PackageBuilder::kernelFor(const VariantOrder &order,
                                                      const compiler::KernelInterface &interface) {
  const std::string hash = cache::sha256(order.source.text);
  std::vector<package::SourceStamp> imports;
  for (const SourceText &file : order.source.imported) {
    const auto named = std::ranges::find(order.importNames, file.path, &std::pair<std::string, std::string>::first);
    imports.push_back({named == order.importNames.end() ? file.path : named->second, cache::sha256(file.text)});
  }
  const auto found = std::ranges::find_if(built.kernels, [&](const package::Kernel &kernel) {
    return kernel.name == order.kernel && kernel.source.name == order.sourceName;
  });
  if (found != built.kernels.end()) {
    const auto differs = [&](const package::SourceStamp &stamp) {
      return std::ranges::find(found->imports, stamp) == found->imports.end();
    };
    const auto changed = std::ranges::find_if(imports, differs);
    if (found->source.hash == hash && changed == imports.end())
      return &*found;
    return invalidArgument(
        fmt::format("the package has kernel '{}' from another version of '{}'; build it anew, without --add",
                    order.kernel, found->source.hash == hash ? changed->name : order.sourceName));
  }
  package::Kernel &kernel = built.kernels.emplace_back();
  kernel.name = order.kernel;
  kernel.source = {order.sourceName, hash};
  kernel.imports = std::move(imports);
  for (const compiler::KernelParameter &parameter : interface.parameters)
    kernel.parameters.push_back(describeParameter(interface, parameter));
  return &kernel;
}

Expected<package::Code> PackageBuilder::compile(const VariantOrder &order, const frontend::KernelSignature &signature,
                                                const compiler::CompileOptions &options, Artifact &described) {
  const std::string text = signature.str();
  auto [cache, isNew] = caches.try_emplace(options.target + options.knobs.ptxas);
  if (isNew)
    cache->second = jit::DiskCache::open(options.knobs, options.target);
  const jit::VariantRequest request = {order.source, order.kernel, text, options};
  compiler::CompileReport report;
  if (observer)
    observer(order.kernel, text, nullptr);
  Expected<Artifact> artifact = jit::findOrCompile(cache->second.get(), request, signature, report);
  compiled += artifact.isOk() && !report.isFromCache;
  if (observer)
    observer(order.kernel, text, &report);
  DITRON_RETURN_IF_ERROR(artifact.status());
  described = std::move(*artifact);
  package::Code code = {described.codeKind, std::move(described.code)};
  described.code.clear();
  described.codeKind = ArtifactCode::HostObject;
  return code;
}

Expected<package::Variant *> PackageBuilder::add(const VariantOrder &order, const compiler::KernelInterface &interface,
                                                 const frontend::KernelSignature &signature,
                                                 const runtime::LaunchOptions &launch) {
  package::Variant variant;
  DITRON_ASSIGN_OR_RETURN(variant.items, describeSignature(interface, signature));
  compiler::CompileOptions options;
  options.target = order.target;
  options.numWarps = launch.warps();
  options.numStages = launch.stages();
  options.residentBlocks = launch.residentBlocks;
  options.debug = launch.debug;
  options.knobs = knobs;
  options.knobs.ptxas.clear();
  DITRON_ASSIGN_OR_RETURN(package::Code code, compile(order, signature, options, variant.artifact));
  const bool isForGpu = code.kind != ArtifactCode::HostObject;
  variant.codes.push_back(std::move(code));
  if (isForGpu && !knobs.ptxas.empty()) {
    options.knobs.ptxas = knobs.ptxas;
    Artifact same;
    DITRON_ASSIGN_OR_RETURN(code, compile(order, signature, options, same));
    variant.codes.push_back(std::move(code));
  }
  if (!isForGpu)
    for (const std::string &feature : package::processorFeatures())
      if (std::ranges::find(built.features, feature) == built.features.end())
        built.features.push_back(feature);
  variant.signature = signature.str();
  variant.numStages = options.numStages;
  variant.debug = launch.debug;
  variant.config = launch.config ? static_cast<int32_t>(*launch.config) : -1;
  DITRON_ASSIGN_OR_RETURN(package::Kernel *const kernel, kernelFor(order, interface));
  const auto isSame = [&](const package::Variant &other) {
    return other.signature == variant.signature && other.artifact.target == variant.artifact.target &&
           other.artifact.numWarps == variant.artifact.numWarps && other.numStages == variant.numStages &&
           other.debug == variant.debug;
  };
  const auto found = std::ranges::find_if(kernel->variants, isSame);
  if (found != kernel->variants.end()) {
    *found = std::move(variant);
    return &*found;
  }
  return &kernel->variants.emplace_back(std::move(variant));
}

Status PackageBuilder::addSignature(const VariantOrder &given, std::string_view signatureText,
                                    const runtime::LaunchOptions &givenOptions) {
  VariantOrder order = given;
  runtime::LaunchOptions options = givenOptions;
  order.source = compiler::readImports(order.source);
  DITRON_ASSIGN_OR_RETURN(const compiler::KernelInterface interface,
                          compiler::describeKernel(order.source, order.kernel, order.target));
  DITRON_ASSIGN_OR_RETURN(frontend::KernelSignature signature,
                          frontend::parseSignature(llvm::StringRef(signatureText.data(), signatureText.size())));
  DITRON_RETURN_IF_ERROR(completeSignature(interface, signature, options));
  return add(order, interface, signature, options).status();
}

Expected<PackageBuilder::CallVariant> PackageBuilder::addCall(const VariantOrder &given,
                                                              const runtime::CallArguments &arguments,
                                                              const runtime::LaunchOptions &options) {
  VariantOrder order = given;
  order.source = compiler::readImports(order.source);
  DITRON_ASSIGN_OR_RETURN(const compiler::KernelInterface interface,
                          compiler::describeKernel(order.source, order.kernel, order.target));
  DITRON_ASSIGN_OR_RETURN(const std::shared_ptr<frontend::KernelHeuristics> heuristics,
                          jit::heuristicsOf(order.source, interface, order.target));
  DITRON_ASSIGN_OR_RETURN(const jit::TunedCall call, jit::tuneCall(interface, heuristics.get(), arguments, options));
  DITRON_ASSIGN_OR_RETURN(jit::BoundCall bound, jit::bindArguments(interface, call.arguments));
  DITRON_ASSIGN_OR_RETURN(package::Variant *const variant, add(order, interface, bound.signature, call.options));
  return CallVariant{variant, std::move(bound.arguments)};
}

void PackageBuilder::addPlan(package::OperatorPlan plan) {
  std::erase_if(built.plans, [&](const package::OperatorPlan &other) {
    return other.op == plan.op && other.target == plan.target && other.problem == plan.problem;
  });
  built.plans.push_back(std::move(plan));
}

} // namespace ditron::aot
