//===- Jit.h - Kernels by file and name -----------------------------------------------------------------*- C++ -*-===//
//
// Launching a kernel the way Python launches a Triton kernel: give the arguments, and the right variant is compiled on
// demand. The arguments are bound to the parameters by Python's rules (positional, keyword, defaults); what they are
// decides the variant:
//
//   argument                  compiled as
//   pointer                   *dtype; "multiple of 16" when its address is one
//   integer 1                 the compile-time value 1
//   other integer             i32, or i64 / u64 when it needs more bits; "multiple of 16" when it is one
//   float                     fp32
//   bool                      i1
//   tensor descriptor         tensordesc<dtype[block]>; aligned when its address and rows are at multiples of 16 bytes
//   None, string, dtype       compile-time
//   tl.constexpr parameter    compile-time, any value
//   keywords "t.0", "t.1"     the elements of the tuple t; "t.x", "t.y": the fields of a named tuple
//
// do_not_specialize and do_not_specialize_on_alignment of the kernel's decorator are kept. Configurations of @triton.autotune
// and @triton.heuristics complete a call (docs/modules.md). Variants are cached by
// everything that the code depends on: in memory, and on disk where the knobs name a folder (DiskCache.h). May be called
// from a rank's host code inside World::runRanks.
//
//   auto jit = Jit::create("sim:sm_80");
//   auto add = (*jit)->load(source, "add_kernel");
//   (*jit)->launch(stream, *add, {.grid = {8, 1, 1}}, {{x, y, z, 1000}, {{"BLOCK", 128}}});
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_JIT_JIT_H
#define DITRON_JIT_JIT_H

#include "ditron/compiler/Options.h"
#include "ditron/runtime/KernelProvider.h"
#include "ditron/runtime/Stream.h"

#include <functional>

namespace ditron::jit {

/// A kernel function of a source file: a template, of which variants are compiled. A cheap handle.
class KernelFunction {
public:
  KernelFunction() = default;

  bool isValid() const { return storage != nullptr; }
  const std::string &name() const;
  /// Names of the parameters, in order.
  std::vector<std::string> parameterNames() const;
  /// A line for each configuration of @triton.autotune: number, values, options.
  std::string configsText() const;
  /// The parameter is declared tl.constexpr. False for a name that is no parameter.
  bool isConstexpr(std::string_view parameter) const;

private:
  friend class Jit;
  struct Storage;
  std::shared_ptr<const Storage> storage;
};

using runtime::CallArguments;
using runtime::KernelReference;
using runtime::LaunchOptions;
using runtime::Specialisation;

/// A call with what the kernel's decorators add: values of a configuration and of heuristics.
struct TunedCall {
  CallArguments arguments;
  LaunchOptions options;
  std::string config; ///< "BLOCK=64 num_warps=4 num_stages=3"; empty if none was used.
};

/// What has been compiled so far.
struct JitCounters {
  uint64_t compilations = 0;
  uint64_t cacheHits = 0;         ///< Variants that this process had already.
  uint64_t diskHits = 0;          ///< Variants that an earlier process had compiled.
  double compileMilliseconds = 0; ///< Until the code was ready to launch; finding it on disk included.
};

class Jit final : public runtime::KernelProvider {
public:
  /// For one target. `knobs` usually come from Knobs::fromEnvironment.
  static Expected<std::unique_ptr<Jit>> create(std::string_view target, Knobs knobs = {});
  ~Jit() override;
  Jit(const Jit &) = delete;
  Jit &operator=(const Jit &) = delete;

  const std::string &target() const override;
  const Knobs &knobs() const;

  /// Parses the source and finds the kernel. The same source and name give the same handle.
  Expected<KernelFunction> load(const compiler::KernelSource &source, std::string_view kernel);

  /// Adds the values of the configuration and heuristics. The other functions do so by themselves.
  Expected<TunedCall> tune(const KernelFunction &function, const CallArguments &arguments,
                           const LaunchOptions &options = {}) const;

  /// Binds the arguments and gives the variant for them, compiled now if it was not yet.
  Expected<Specialisation> specialise(const KernelFunction &function, const CallArguments &arguments,
                                      const LaunchOptions &options = {});
  /// load() and specialise().
  Expected<Specialisation> specialise(const KernelReference &kernel, const CallArguments &arguments,
                                      const LaunchOptions &options) override;
  /// Binds, specialises, and launches the variant on the stream.
  Status launch(runtime::Stream &stream, const KernelFunction &function, const runtime::LaunchConfig &config,
                const CallArguments &arguments, const LaunchOptions &options = {});
  /// Gives the variant of an explicit signature, for example "*bf16:16, *bf16, i32, constexpr BLOCK=64".
  Expected<runtime::Kernel> compile(const KernelFunction &function, std::string_view signature,
                                    const LaunchOptions &options = {});

  /// The signature that the arguments select, in text form; for messages and tests.
  Expected<std::string> signatureFor(const KernelFunction &function, const CallArguments &arguments) const;

  /// Called before and after each compilation with the kernel's name and, after, the report; for progress on a
  /// terminal.
  using Observer = std::function<void(const std::string &kernel, const compiler::CompileReport *report)>;
  void setObserver(Observer observer);

  const JitCounters &counters() const;

private:
  struct State;
  explicit Jit(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace ditron::jit
#endif // DITRON_JIT_JIT_H
