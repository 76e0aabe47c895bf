//===- PackageProvider.h - Kernels from packages ----------------------------------------------------------------*- C++ -*-===//
//
// Gives the kernels of one or several packages to host code, without a compiler: nothing here links LLVM. Which variant serves
// a call is decided by CallMatch.h. What happens with a call that no variant is right for, the policy says:
//
//   AotOnly   an error, which prints the `ditron build` command that adds the variant
//   JitWarn   the fallback, usually a jit::Jit, gives it; a warning prints the same command, once per kernel and signature
//   Jit       the same without the warning
//
// A kernel that is asked for with its source's text (as the operators do) is taken only if the package was built from the same
// text. For a GPU, PTX for an older architecture serves where there is none for its own. Code for simulated targets runs only
// on processors with the features of the one that built it.
//
//   Expected<std::unique_ptr<PackageProvider>> kernels = PackageProvider::open({"app.ditron"}, {.target = "cuda"});
//   Expected<ops::PreparedCall> call = ops::prepareSoftmax(**kernels, rank, problem, x, y);
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PACKAGE_PACKAGEPROVIDER_H
#define DITRON_PACKAGE_PACKAGEPROVIDER_H

#include "ditron/package/CallMatch.h"

#include <functional>

namespace ditron::package {

enum class Policy { AotOnly, JitWarn, Jit };
/// "aot-only", "jit-warn", "jit".
std::string_view toString(Policy policy);
Expected<Policy> parsePolicy(std::string_view text);

struct PackageOptions {
  std::string target = "sim";
  Policy policy = Policy::AotOnly;
  runtime::KernelProvider *fallback = nullptr; ///< Of the same target; outlives the provider. Not for AotOnly.
  std::function<void(const std::string &)> warn = nullptr; ///< Unset: standard error.
};

class PackageProvider final : public runtime::KernelProvider {
public:
  /// Reads the files; of equally good variants that of the first file counts.
  static Expected<std::unique_ptr<PackageProvider>> open(const std::vector<std::string> &paths,
                                                         const PackageOptions &options);
  /// The same from packages in memory; `name` stands for the path in messages.
  static Expected<std::unique_ptr<PackageProvider>> create(std::vector<std::pair<std::string, Package>> packages,
                                                           const PackageOptions &options);
  ~PackageProvider() override;

  /// What a package says of a kernel; null when none has it. `source` is the name of its file; empty: any, which is an error when
  /// kernels of that name come from several files.
  Expected<const Kernel *> findKernel(std::string_view source, std::string_view name) const;

  const std::string &target() const override;
  Expected<runtime::Specialisation> specialise(const runtime::KernelReference &kernel,
                                               const runtime::CallArguments &arguments,
                                               const runtime::LaunchOptions &options) override;

private:
  struct State;
  explicit PackageProvider(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// How good a variant for one target is for another: nothing if it cannot run there, 0 if it is for that very target, else
/// how much older it is.
std::optional<uint32_t> targetDistance(const Variant &variant, std::string_view wanted);

} // namespace ditron::package
#endif // DITRON_PACKAGE_PACKAGEPROVIDER_H
