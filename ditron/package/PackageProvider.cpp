//===- PackageProvider.cpp - Kernels from packages ------------------------------------------------------------------------===//
//
// Find the kernel by name, the best variant by comparison, and load its code when it is first asked for.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/package/PackageProvider.h"

#include "ditron/cache/Sha256.h"
#include "ditron/package/PackageFile.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/sim/HostObject.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
#include <mutex>
#include <set>

namespace ditron::package {

namespace {

constexpr std::string_view policyNames[] = {"aot-only", "jit-warn", "jit"};

/// 90 of "cuda:sm_90"; nothing of "cuda:sm_90a", whose code runs there only, and of other targets.
std::optional<uint32_t> portableArchitecture(std::string_view target) {
  constexpr std::string_view prefix = "cuda:sm_";
  uint32_t number = 0;
  if (!target.starts_with(prefix))
    return std::nullopt;
  const auto [end, error] = std::from_chars(target.data() + prefix.size(), target.data() + target.size(), number);
  return error == std::errc() && end == target.data() + target.size() ? std::optional(number) : std::nullopt;
}

const Code *findCode(const Variant &variant, ArtifactCode kind) {
  const auto found = std::ranges::find(variant.codes, kind, &Code::kind);
  return found == variant.codes.end() ? nullptr : &*found;
}

/// For a shell: 'it'\''s'.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// A variant that was found, and where.
struct Choice {
  const Package *package = nullptr;
  const Kernel *kernel = nullptr;
  const Variant *variant = nullptr;
  uint32_t distance = 0;
  BoundCall::Score score;
  std::optional<BoundCall> call; ///< Bound to the kernel's parameters.
};

} // namespace

std::string_view toString(Policy policy) { return policyNames[static_cast<size_t>(policy)]; }

Expected<Policy> parsePolicy(std::string_view text) {
  for (size_t i = 0; i < std::size(policyNames); ++i)
    if (policyNames[i] == text)
      return static_cast<Policy>(i);
  const std::vector<std::string> names(std::begin(policyNames), std::end(policyNames));
  return invalidArgument(
      fmt::format("unknown policy '{}'{}; accepted are {}", text, didYouMean(text, names), fmt::join(names, ", ")));
}

std::optional<uint32_t> targetDistance(const Variant &variant, std::string_view wanted) {
  if (variant.artifact.target == wanted)
    return 0;
  const std::optional<uint32_t> own = portableArchitecture(variant.artifact.target);
  // What ends in 'a' runs code of its number without it.
  const std::optional<uint32_t> device =
      portableArchitecture(wanted.ends_with('a') ? wanted.substr(0, wanted.size() - 1) : wanted);
  if (!own || !device || *own > *device || !findCode(variant, ArtifactCode::Ptx))
    return std::nullopt;
  return *device - *own + 1;
}

struct PackageProvider::State {
  std::string target;
  PackageOptions options;
  std::vector<std::pair<std::string, Package>> packages;
  std::vector<std::string> features; ///< Of this machine.

  std::mutex mutex;
  std::map<const Variant *, runtime::Kernel> loaded;
  /// The text that was last asked for, and whether it is the kernel's: comparing is faster than hashing.
  std::map<const Kernel *, std::pair<std::string, bool>> compared;
  std::set<std::string> warned;

  Expected<Choice> find(const runtime::KernelReference &reference, const runtime::CallArguments &arguments,
                        const runtime::LaunchOptions &options);
  Status missing(const runtime::KernelReference &reference, const BoundCall *call,
                 const runtime::LaunchOptions &options, std::vector<std::string> reasons) const;
  bool isSameSource(const Kernel &kernel, const runtime::KernelReference &reference);
  Expected<runtime::Kernel> load(const Choice &choice);
  void warn(const Status &problem);
};

namespace {

/// The name under which a package has the source.
std::string sourceName(const runtime::KernelReference &reference) {
  if (!reference.name.empty())
    return std::string(reference.name);
  return std::string(reference.path.substr(reference.path.rfind('/') + 1));
}

/// The command that compiles the variant into the package.
std::string buildCommand(const runtime::KernelReference &reference, const std::string &signature,
                         const runtime::LaunchOptions &options, std::string_view target, const std::string &package) {
  const bool isLibrary = reference.name.starts_with("ditron:");
  const std::string source(isLibrary || reference.path.empty() ? reference.name : reference.path);
  std::string command = fmt::format("ditron build {} --signature {}",
                                    quoted(fmt::format("{}:{}", source, reference.kernel)), quoted(signature));
  if (options.config)
    command += fmt::format(" --config {}", *options.config);
  if (options.numWarps)
    command += fmt::format(" --num-warps {}", *options.numWarps);
  if (options.numStages)
    command += fmt::format(" --num-stages {}", *options.numStages);
  return command + fmt::format("{} --target {} --add -o {}", options.debug ? " --debug" : "", target, quoted(package));
}

} // namespace

bool PackageProvider::State::isSameSource(const Kernel &kernel, const runtime::KernelReference &reference) {
  const std::string_view text = reference.text;
  if (text.empty())
    return true; // the caller does not know it
  std::lock_guard lock(mutex);
  if (const auto found = compared.find(&kernel); found != compared.end() && found->second.first == text)
    return found->second.second;
  // Files that the source imports count where they came with it or still are.
  const bool same =
      cache::sha256(text) == kernel.source.hash && std::ranges::none_of(kernel.imports, [&](const SourceStamp &import) {
        const auto given = std::ranges::find(reference.imports, import.name, &runtime::ImportableSource::name);
        if (given != reference.imports.end())
          return cache::sha256(given->text) != import.hash;
        const Expected<std::string> now = readKernelFile(import.name);
        return now.isOk() && cache::sha256(*now) != import.hash;
      });
  compared[&kernel] = {std::string(text), same};
  return same;
}

Expected<Choice> PackageProvider::State::find(const runtime::KernelReference &reference,
                                              const runtime::CallArguments &arguments,
                                              const runtime::LaunchOptions &options) {
  const std::string name = sourceName(reference);
  Choice best;
  std::vector<std::string> reasons;
  // Reasons cost texts: they are asked for in a second round, when nothing was found in the first.
  for (const bool asksWhy : {false, true}) {
    std::optional<BoundCall> last;
    for (const auto &[path, package] : packages)
      for (const Kernel &kernel : package.kernels) {
        if (kernel.name != reference.kernel || kernel.source.name != name)
          continue;
        if (!isSameSource(kernel, reference)) {
          reasons.push_back(fmt::format(
              "package '{}' was built from another version of '{}' or of a file that it imports", path, name));
          continue;
        }
        DITRON_ASSIGN_OR_RETURN(BoundCall call, BoundCall::bind(kernel, arguments, options));
        for (const Variant &variant : kernel.variants) {
          const std::optional<uint32_t> distance = targetDistance(variant, target);
          std::string reason;
          const std::optional<BoundCall::Score> score =
              distance ? call.score(variant, asksWhy ? &reason : nullptr) : std::nullopt;
          if (score && (!best.variant || std::pair(*distance, best.score) < std::pair(best.distance, *score)))
            best = {&package, &kernel, &variant, *distance, *score, {}};
          else if (asksWhy)
            reasons.push_back(distance ? std::move(reason) : fmt::format("it is for {}", variant.artifact.target));
        }
        if (best.kernel == &kernel)
          best.call = call;
        last = std::move(call);
      }
    if (best.variant)
      return best;
    if (asksWhy)
      return missing(reference, last ? &*last : nullptr, options, std::move(reasons));
  }
  return best;
}

Status PackageProvider::State::missing(const runtime::KernelReference &reference, const BoundCall *call,
                                       const runtime::LaunchOptions &options, std::vector<std::string> reasons) const {
  constexpr size_t mostReasons = 3;
  std::vector<std::string> paths;
  for (const auto &[path, package] : packages)
    paths.push_back("'" + path + "'");
  std::ranges::sort(reasons);
  reasons.erase(std::ranges::unique(reasons).begin(), reasons.end());
  std::string text =
      fmt::format("kernel '{}' of '{}' for {}: {} {} no variant for this call", reference.kernel, sourceName(reference),
                  target, fmt::join(paths, ", "), paths.size() == 1 ? "has" : "have");
  for (size_t i = 0; i < std::min(reasons.size(), mostReasons); ++i)
    text += fmt::format("\n  {}", reasons[i]);
  if (reasons.size() > mostReasons)
    text += fmt::format("\n  ... and {} more reasons", reasons.size() - mostReasons);
  text += fmt::format("\nto add it: {}", buildCommand(reference, call ? call->signatureText() : "...", options, target,
                                                      packages.empty() ? "app.ditron" : packages.front().first));
  return notFound(text);
}

Expected<runtime::Kernel> PackageProvider::State::load(const Choice &choice) {
  std::lock_guard lock(mutex);
  if (const auto found = loaded.find(choice.variant); found != loaded.end())
    return found->second;
  const Variant &variant = *choice.variant;
  const Code *code = choice.distance == 0 ? findCode(variant, ArtifactCode::Cubin) : nullptr;
  if (!code)
    code = findCode(variant, ArtifactCode::Ptx);
  if (!code)
    code = &variant.codes.front();
  if (code->kind == ArtifactCode::HostObject)
    for (const std::string &feature : choice.package->features)
      if (std::ranges::find(features, feature) == features.end())
        return unsupported(
            fmt::format("kernel '{}' was built on a processor with {}, which this one lacks; build the package on "
                        "a machine like this",
                        choice.kernel->name, feature));
  Artifact artifact = variant.artifact;
  artifact.codeKind = code->kind;
  artifact.code = code->bytes;
  DITRON_ASSIGN_OR_RETURN(runtime::ModuleImage image, runtime::makeImage(artifact));
  artifact.code.clear();
  DITRON_ASSIGN_OR_RETURN(runtime::Kernel kernel, runtime::Kernel::create(std::move(artifact), std::move(image)));
  loaded.emplace(choice.variant, kernel);
  return kernel;
}

void PackageProvider::State::warn(const Status &problem) {
  {
    std::lock_guard lock(mutex);
    if (!warned.insert(problem.message()).second)
      return;
  }
  if (options.warn)
    options.warn(problem.message());
  else
    fmt::print(stderr, "warning: {}\nit is compiled now\n", problem.message());
}

PackageProvider::PackageProvider(std::unique_ptr<State> state) : state(std::move(state)) {}
PackageProvider::~PackageProvider() = default;
const std::string &PackageProvider::target() const { return state->target; }

Expected<const Kernel *> PackageProvider::findKernel(std::string_view source, std::string_view name) const {
  const Kernel *found = nullptr;
  for (const auto &[path, package] : state->packages)
    for (const Kernel &kernel : package.kernels) {
      if (kernel.name != name || (!source.empty() && kernel.source.name != source))
        continue;
      if (found && found->source.name != kernel.source.name)
        return invalidArgument(fmt::format("kernel '{}' is of '{}' and of '{}': name the file", name,
                                           found->source.name, kernel.source.name));
      found = found ? found : &kernel;
    }
  return found;
}

Expected<std::unique_ptr<PackageProvider>>
PackageProvider::create(std::vector<std::pair<std::string, Package>> packages, const PackageOptions &options) {
  auto state = std::make_unique<State>();
  DITRON_ASSIGN_OR_RETURN(const TargetName name, runtime::resolveTarget(options.target));
  if ((options.policy == Policy::AotOnly) != (options.fallback == nullptr))
    return invalidArgument(fmt::format("policy {} {} a provider to fall back to", toString(options.policy),
                                       options.fallback ? "takes no" : "needs"));
  if (options.fallback && options.fallback->target() != name.text)
    return invalidArgument(
        fmt::format("the package is for {}, and the fallback compiles for {}", name.text, options.fallback->target()));
  state->target = name.text;
  state->options = options;
  state->packages = std::move(packages);
  state->features = processorFeatures();
  return std::unique_ptr<PackageProvider>(new PackageProvider(std::move(state)));
}

Expected<std::unique_ptr<PackageProvider>> PackageProvider::open(const std::vector<std::string> &paths,
                                                                 const PackageOptions &options) {
  std::vector<std::pair<std::string, Package>> packages;
  for (const std::string &path : paths) {
    DITRON_ASSIGN_OR_RETURN(Package package, loadPackage(path));
    packages.emplace_back(path, std::move(package));
  }
  return create(std::move(packages), options);
}

Expected<runtime::Specialisation> PackageProvider::specialise(const runtime::KernelReference &reference,
                                                              const runtime::CallArguments &arguments,
                                                              const runtime::LaunchOptions &options) {
  Expected<Choice> choice = state->find(reference, arguments, options);
  Expected<runtime::Kernel> kernel = choice.isOk() ? state->load(*choice) : Expected<runtime::Kernel>(choice.status());
  const StatusCode code = kernel.status().code();
  // What is known by name only, nobody can compile.
  const bool hasSource = !reference.text.empty() || !reference.path.empty();
  if (state->options.fallback && hasSource && (code == StatusCode::NotFound || code == StatusCode::Unsupported)) {
    if (state->options.policy == Policy::JitWarn)
      state->warn(kernel.status());
    return state->options.fallback->specialise(reference, arguments, options);
  }
  DITRON_RETURN_IF_ERROR(kernel.status());
  return runtime::Specialisation{std::move(*kernel), choice->call->runTimeArguments(*choice->variant)};
}

} // namespace ditron::package
