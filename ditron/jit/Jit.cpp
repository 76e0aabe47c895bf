//===- Jit.cpp - Kernels by file and name -------------------------------------------------------------------------===//
//
// The caches: kernel functions by source and name, variants by signature and options.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/jit/Jit.h"

#include "ditron/compiler/Compiler.h"
#include "ditron/frontend/ImportOptions.h"
#include "ditron/jit/ArgumentBinding.h"
#include "ditron/jit/DiskCache.h"
#include "ditron/jit/Tuning.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/sim/HostObject.h"
#include "ditron/support/PreparingKernel.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <future>
#include <mutex>
#include <unordered_map>

namespace ditron::jit {

struct KernelFunction::Storage {
  uint64_t id; ///< Unique in its Jit; stands for source and name in keys of variants.
  compiler::KernelSource source;
  compiler::KernelInterface interface;
  std::shared_ptr<frontend::KernelHeuristics> heuristics; ///< Null without @triton.heuristics.
};

namespace {

/// True if a file that was read, or a variable of the environment that the program reads, is not any more what it was. The texts
/// `given` with the source were not read.
bool hasChanged(const compiler::KernelSource &source, const std::vector<SourceText> &given) {
  std::vector<SourceText> texts = source.imported;
  texts.push_back({source.path, source.text});
  if (frontend::environmentOf(texts) != source.environment)
    return true;
  return std::ranges::any_of(source.imported, [&](const SourceText &file) {
    if (std::ranges::find(given, file) != given.end())
      return false;
    Expected<compiler::KernelSource> now = compiler::KernelSource::read(file.path);
    return !now.isOk() || now->text != file.text;
  });
}

} // namespace

const std::string &KernelFunction::name() const { return storage->interface.name; }
std::vector<std::string> KernelFunction::parameterNames() const { return storage->interface.parameterNames(); }

std::string KernelFunction::configsText() const { return compiler::listConfigs(storage->interface); }

bool KernelFunction::isConstexpr(std::string_view parameter) const {
  const std::optional<size_t> index = storage->interface.find(parameter);
  return index && storage->interface.parameters[*index].isConstexpr;
}

struct Jit::State {
  std::mutex mutex; ///< For all but the observer; never held while something is compiled.
  std::string target;
  Knobs knobs;
  std::unique_ptr<DiskCache> diskCache; ///< Null: every variant is compiled.
  std::unordered_map<std::string, std::shared_ptr<const KernelFunction::Storage>> functions;
  /// By everything that the code depends on. One that is being compiled is waited for, so that none is compiled twice and others are
  /// compiled beside it.
  std::unordered_map<std::string, std::shared_future<Expected<runtime::Kernel>>> variants;
  uint64_t nextFunction = 0;
  JitCounters counters;
  std::mutex observerMutex; ///< For the observer, which hears of one thing at a time.
  Observer observer;

  Expected<runtime::Kernel> variant(const KernelFunction::Storage &function, const frontend::KernelSignature &signature,
                                    const LaunchOptions &options);
  Expected<runtime::Kernel> compileVariant(const VariantRequest &request, const frontend::KernelSignature &signature);
  /// Tells the observer that a compilation begins or, with a report, ends.
  void observe(const std::string &kernel, const compiler::CompileReport *report);
  Expected<runtime::ModuleImage> load(const Artifact &artifact, compiler::CompileReport &report);
};

Jit::Jit(std::unique_ptr<State> state) : state(std::move(state)) {}
Jit::~Jit() = default;

const std::string &Jit::target() const { return state->target; }
const Knobs &Jit::knobs() const { return state->knobs; }

Expected<std::unique_ptr<Jit>> Jit::create(std::string_view target, Knobs knobs) {
  auto state = std::make_unique<State>();
  DITRON_ASSIGN_OR_RETURN(TargetName name, runtime::resolveTarget(target));
  state->target = name.text;
  state->knobs = std::move(knobs);
  state->diskCache = DiskCache::open(state->knobs, state->target);
  return std::unique_ptr<Jit>(new Jit(std::move(state)));
}

Expected<KernelFunction> Jit::load(const compiler::KernelSource &source, std::string_view kernel) {
  // The separator cannot occur in a name or a path.
  std::string key = fmt::format("{}{}{}{}{}", kernel, '\0', source.path, '\0', source.text);
  for (const std::string &path : source.searchPaths)
    key += '\0' + path;
  for (const auto &[name, value] : source.defines)
    key += fmt::format("{}--define{}{}{}{}", '\0', '\0', name, '\0', value);
  for (const SourceText &file : source.imported)
    key += fmt::format("{}--import{}{}{}{}{}{}", '\0', '\0', file.module, '\0', file.path, '\0', file.text);
  std::lock_guard lock(state->mutex);
  auto found = state->functions.find(key);
  if (found == state->functions.end() || hasChanged(found->second->source, source.imported)) {
    compiler::KernelSource complete = compiler::readImports(source);
    DITRON_ASSIGN_OR_RETURN(compiler::KernelInterface interface, compiler::describeKernel(complete, kernel, state->target));
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<frontend::KernelHeuristics> heuristics,
                            heuristicsOf(complete, interface, state->target));
    auto storage = std::make_shared<const KernelFunction::Storage>(KernelFunction::Storage{
        state->nextFunction++, std::move(complete), std::move(interface), std::move(heuristics)});
    found = state->functions.insert_or_assign(std::move(key), std::move(storage)).first;
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
  compile.numWarps = options.warps();
  compile.numStages = options.stages();
  compile.residentBlocks = options.residentBlocks;
  compile.debug = options.debug;
  compile.knobs = knobs;
  const VariantRequest request = {function.source, function.interface.name, signature.str(), compile};
  const std::string key = fmt::format("{}|{}|{}", function.id, request.signature, compile.key());
  std::promise<Expected<runtime::Kernel>> promise;
  {
    std::unique_lock lock(mutex);
    if (auto found = variants.find(key); found != variants.end()) {
      ++counters.cacheHits;
      const auto made = found->second;
      lock.unlock();
      return made.get();
    }
    variants.emplace(key, promise.get_future().share());
  }
  // What fails is not kept: the next call tries again.
  auto forget = [&] {
    std::lock_guard lock(mutex);
    variants.erase(key);
  };
  try {
    Expected<runtime::Kernel> made = compileVariant(request, signature);
    if (!made.isOk())
      forget();
    promise.set_value(made);
    return made;
  } catch (...) {
    forget();
    promise.set_exception(std::current_exception());
    throw;
  }
}

Expected<runtime::Kernel> Jit::State::compileVariant(const VariantRequest &request, const frontend::KernelSignature &signature) {
  const PreparingKernel launchesMayWait;
  observe(request.kernel, nullptr);
  compiler::CompileReport report;
  Expected<Artifact> artifact = findOrCompile(diskCache.get(), request, signature, report);
  {
    std::lock_guard lock(mutex);
    ++(report.isFromCache ? counters.diskHits : counters.compilations);
  }
  Expected<runtime::ModuleImage> loaded =
      artifact.isOk() ? load(*artifact, report) : Expected<runtime::ModuleImage>(artifact.status());
  observe(request.kernel, &report);
  if (knobs.timing)
    fmt::print(stderr, "kernel {} ({})\n{}", request.kernel, request.signature, report.timesText());
  DITRON_ASSIGN_OR_RETURN(runtime::ModuleImage image, std::move(loaded));
  artifact->code.clear(); // linked: the object's bytes are needed no more
  return runtime::Kernel::create(std::move(artifact).value(), std::move(image));
}

void Jit::State::observe(const std::string &kernel, const compiler::CompileReport *report) {
  {
    std::lock_guard lock(mutex);
    counters.compileMilliseconds += report ? report->totalMilliseconds() : 0;
  }
  std::lock_guard lock(observerMutex);
  if (observer)
    observer(kernel, report);
}

Expected<runtime::ModuleImage> Jit::State::load(const Artifact &artifact, compiler::CompileReport &report) {
  const auto start = std::chrono::steady_clock::now();
  Expected<runtime::ModuleImage> image = runtime::makeImage(artifact);
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  if (artifact.codeKind == ArtifactCode::HostObject) // otherwise the device loads it
    report.times.push_back({"linking", elapsed.count(), compiler::Phase::Load});
  return image;
}

Expected<TunedCall> Jit::tune(const KernelFunction &function, const CallArguments &arguments,
                              const LaunchOptions &options) const {
  // Heuristics are evaluated by an interpreter that serves one call at a time.
  std::lock_guard lock(state->mutex);
  return tuneCall(function.storage->interface, function.storage->heuristics.get(), arguments, options);
}

Expected<Specialisation> Jit::specialise(const KernelFunction &function, const CallArguments &arguments,
                                         const LaunchOptions &options) {
  DITRON_ASSIGN_OR_RETURN(TunedCall call, tune(function, arguments, options));
  const compiler::KernelInterface &interface = function.storage->interface;
  Expected<BoundCall> bound = bindArguments(interface, call.arguments);
  if (!bound.isOk() && !interface.tuning.problem.empty())
    return invalidArgument(fmt::format("{}; its decorators could not be evaluated: {}", bound.status().message(),
                                       interface.tuning.problem));
  DITRON_RETURN_IF_ERROR(bound.status());
  DITRON_ASSIGN_OR_RETURN(runtime::Kernel kernel, state->variant(*function.storage, bound->signature, call.options));
  return Specialisation{std::move(kernel), std::move(bound->arguments)};
}

Expected<Specialisation> Jit::specialise(const KernelReference &kernel, const CallArguments &arguments,
                                         const LaunchOptions &options) {
  compiler::KernelSource source = {std::string(kernel.path), std::string(kernel.text)};
  if (kernel.text.empty()) {
    DITRON_ASSIGN_OR_RETURN(source, compiler::KernelSource::read(source.path));
  }
  for (const runtime::ImportableSource &file : kernel.imports)
    source.imported.push_back({std::string(file.path), std::string(file.text)});
  DITRON_ASSIGN_OR_RETURN(const KernelFunction function, load(source, kernel.kernel));
  return specialise(function, arguments, options);
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
  DITRON_ASSIGN_OR_RETURN(TunedCall call, tune(function, arguments));
  DITRON_ASSIGN_OR_RETURN(BoundCall bound, bindArguments(function.storage->interface, call.arguments));
  return bound.signature.str();
}

void Jit::setObserver(Observer observer) {
  std::lock_guard lock(state->observerMutex);
  state->observer = std::move(observer);
}
const JitCounters &Jit::counters() const { return state->counters; }

} // namespace ditron::jit
