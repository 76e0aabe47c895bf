//===- KernelStage.h - One kernel of a run ------------------------------------------------------------*- C++ -*-===//
//
// `ditron run` launches one kernel after the other on every rank. A stage is one of them: the function, what each rank's launch
// of it gets, and the compiled variants. Ranks may get different variants, since compile-time values may differ.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_KERNELSTAGE_H
#define DITRON_TOOLS_DITRON_KERNELSTAGE_H

#include "run/RunArguments.h"

#include "ditron/jit/Jit.h"

#include <map>
#include <optional>

namespace ditron::tool {

/// What the command line says of one kernel, as text.
struct StageOptions {
  std::string kernel; ///< FILE.py:KERNEL
  std::optional<std::string> grid; ///< Without one: one block.
  std::optional<uint32_t> config;      ///< Of the kernel's @triton.autotune.
  std::optional<uint32_t> numWarps;    ///< Unset: the configuration's, or 4.
  std::optional<uint32_t> numStages;   ///< The same, or 3.
  std::vector<std::string> arguments;  ///< NAME=SPEC
  std::vector<std::string> constexprs; ///< NAME=VALUE
  bool barrier = false;                ///< All ranks wait for each other before this kernel.
};

/// Values of parameters by name; a later kernel gets what an earlier one was given.
using SharedArguments = std::map<std::string, BoundParameter>;

class KernelStage {
public:
  KernelStage(const StageOptions &options, compiler::KernelSource source, jit::KernelFunction function)
      : options(options), source(std::move(source)), function(std::move(function)) {}

  const std::string &name() const { return function.name(); }
  const compiler::KernelSource &sourceText() const { return source; }
  bool waitsForAll() const { return options.barrier; }

  /// Refuses names that are no parameters, are of the other kind, or are given twice.
  Status check();
  /// Binds the values that have addresses, or those that have none.
  Status bind(RunArrays &arrays, uint32_t numRanks, bool withAddresses, SharedArguments &shared);
  /// When all values are bound: adds those of earlier kernels and what the configuration says, and finds the grids.
  /// `constants` are the names RANKS and SMS.
  Status complete(const jit::Jit &jit, const SharedArguments &shared, const values::IntegerNames &constants, uint32_t numRanks,
                  bool debug);
  /// Compiles the variant of a rank, or takes it from packages where there are any.
  Status specialise(jit::Jit &jit, runtime::KernelProvider *packaged, uint32_t rank);
  const runtime::Kernel &kernel(uint32_t rank) const { return calls[rank].variant.kernel; }
  Status launch(runtime::World &world, uint32_t rank, bool cooperative) const;

  /// "grid 3x1x1, 4 warps per block"; where ranks differ, of rank 0, which it says. A kernel that asks for its place in a grid that
  /// nobody gave has perhaps computed a part only: that is said too.
  std::string describe() const;
  /// The configuration of rank 0; empty if there is none.
  const std::string &configuration() const { return calls[0].tuned.config; }

private:
  /// A rank's launch.
  struct Call {
    jit::TunedCall tuned;
    std::array<uint32_t, 3> grid = {1, 1, 1};
    jit::Specialisation variant;
  };
  Status checkAssignment(const std::string &text, bool isConstexpr, std::map<std::string, std::string> &given);

  StageOptions options;
  compiler::KernelSource source;
  jit::KernelFunction function;
  std::map<std::string, std::string> argumentTexts, constexprTexts; ///< By name, for `order`.
  std::vector<std::string> order;                                   ///< Of the command line.
  SharedArguments bound;
  std::vector<Call> calls; ///< Per rank.
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_KERNELSTAGE_H
