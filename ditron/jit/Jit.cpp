//===- Jit.cpp - Kernels by file and name -------------------------------------------------------------------------===//
//
// The caches: kernel functions by source and name, variants by signature and options.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/jit/Jit.h"

#include "ditron/compiler/Compiler.h"
#include "ditron/jit/ArgumentBinding.h"
#include "ditron/jit/CodeLoader.h"
#include "ditron/runtime/TargetChoice.h"

#include <cstdio>
#include <fmt/format.h>
#include <mutex>
#include <unordered_map>

namespace ditron::jit {

struct KernelFunction::Storage {
  uint64_t id; ///< Unique in its Jit; stands for source and name in keys of variants.
  compiler::KernelSource source;
  compiler::KernelInterface interface;
};

const std::string &KernelFunction::name() const { return storage->interface.name; }
std::vector<std::string> KernelFunction::parameterNames() const { return storage->interface.parameterNames(); }

bool KernelFunction::isConstexpr(std::string_view parameter) const {
  const std::optional<size_t> index = storage->interface.find(parameter);
  return index && storage->interface.parameters[*index].isConstexpr;
}

struct Jit::State {
  std::mutex mutex; ///< Ranks on real GPUs have host threads of their own.
  std::string target;
  Knobs knobs;
  std::unique_ptr<CodeLoader> loader;
  std::unordered_map<std::string, std::shared_ptr<const KernelFunction::Storage>> functions;
  std::unordered_map<std::string, runtime::Kernel> variants;
  Observer observer;
  JitCounters counters;

  Expected<runtime::Kernel> variant(const KernelFunction::Storage &function, const frontend::KernelSignature &signature,
                                    const LaunchOptions &options);
};

Jit::Jit(std::unique_ptr<State> state) : state(std::move(state)) {}
Jit::~Jit() = default;

Expected<std::unique_ptr<Jit>> Jit::create(std::string_view target, Knobs knobs) {
  auto state = std::make_unique<State>();
  DITRON_ASSIGN_OR_RETURN(TargetName name, runtime::resolveTarget(target));
  state->target = name.text;
  state->knobs = std::move(knobs);
  DITRON_ASSIGN_OR_RETURN(state->loader, CodeLoader::create());
  return std::unique_ptr<Jit>(new Jit(std::move(state)));
}

Expected<KernelFunction> Jit::load(const compiler::KernelSource &source, std::string_view kernel) {
  // The separator cannot occur in a name or a path.
  std::string key = fmt::format("{}{}{}{}{}", kernel, '\0', source.path, '\0', source.text);
  std::lock_guard lock(state->mutex);
  auto found = state->functions.find(key);
  if (found == state->functions.end()) {
    DITRON_ASSIGN_OR_RETURN(compiler::KernelInterface interface, compiler::describeKernel(source, kernel));
    auto storage = std::make_shared<const KernelFunction::Storage>(
        KernelFunction::Storage{state->functions.size(), source, std::move(interface)});
    found = state->functions.emplace(std::move(key), std::move(storage)).first;
  }
  KernelFunction function;
  function.storage = found->second;
  return function;
}

Expected<runtime::Kernel> Jit::State::variant(const KernelFunction::Storage &function,
                                              const frontend::KernelSignature &signature,
                                              const LaunchOptions &options) {
  compiler::CompileOptions compile;
  compile.target = target;
  compile.numWarps = options.numWarps;
  compile.numStages = options.numStages;
  compile.knobs = knobs;
  std::lock_guard lock(mutex);
  std::string key = fmt::format("{}|{}|{}", function.id, signature.str(), compile.key());
  if (auto found = variants.find(key); found != variants.end()) {
    ++counters.cacheHits;
    return found->second;
  }
  if (observer)
    observer(function.interface.name, nullptr);
  compiler::CompileReport report;
  Expected<Artifact> artifact =
      compiler::compileKernel(function.source, function.interface.name, signature, compile, &report);
  ++counters.compilations;
  counters.compileMilliseconds += report.totalMilliseconds();
  if (observer)
    observer(function.interface.name, &report);
  if (knobs.timing)
    fmt::print(stderr, "kernel {} ({})\n{}", function.interface.name, signature.str(), report.timesText());
  DITRON_RETURN_IF_ERROR(artifact.status());
  DITRON_ASSIGN_OR_RETURN(runtime::ModuleImage image, loader->load(*artifact));
  artifact->code.clear(); // linked: the object's bytes are needed no more
  DITRON_ASSIGN_OR_RETURN(runtime::Kernel kernel,
                          runtime::Kernel::create(std::move(artifact).value(), std::move(image)));
  variants.emplace(std::move(key), kernel);
  return kernel;
}

Expected<Specialisation> Jit::specialise(const KernelFunction &function, const CallArguments &arguments,
                                         const LaunchOptions &options) {
  DITRON_ASSIGN_OR_RETURN(BoundCall bound, bindArguments(function.storage->interface, arguments));
  DITRON_ASSIGN_OR_RETURN(runtime::Kernel kernel, state->variant(*function.storage, bound.signature, options));
  return Specialisation{std::move(kernel), std::move(bound.arguments)};
}

Status Jit::launch(runtime::Stream &stream, const KernelFunction &function, const runtime::LaunchConfig &config,
                   const CallArguments &arguments, const LaunchOptions &options) {
  DITRON_ASSIGN_OR_RETURN(Specialisation variant, specialise(function, arguments, options));
  return stream.launch(variant.kernel, config, variant.arguments);
}

Expected<runtime::Kernel> Jit::compile(const KernelFunction &function, std::string_view signature,
                                       const LaunchOptions &options) {
  DITRON_ASSIGN_OR_RETURN(frontend::KernelSignature parsed,
                          frontend::parseSignature(llvm::StringRef(signature.data(), signature.size())));
  return state->variant(*function.storage, parsed, options);
}

Expected<std::string> Jit::signatureFor(const KernelFunction &function, const CallArguments &arguments) const {
  DITRON_ASSIGN_OR_RETURN(BoundCall bound, bindArguments(function.storage->interface, arguments));
  return bound.signature.str();
}

void Jit::setObserver(Observer observer) { state->observer = std::move(observer); }
const JitCounters &Jit::counters() const { return state->counters; }

} // namespace ditron::jit
