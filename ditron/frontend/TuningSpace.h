//===- TuningSpace.h - Configurations and heuristics of a kernel's decorators ---------------------------------*- C++ -*-===//
//
// `@triton.autotune` lists configurations of a kernel: values for some of its parameters, and launch options.
// `@triton.heuristics` computes values for parameters from the other arguments of a launch. Both are Python that the compiler
// executes by itself; timing the configurations is the caller's business.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_TUNINGSPACE_H
#define DITRON_FRONTEND_TUNINGSPACE_H

#include "ditron/frontend/ImportOptions.h"
#include "ditron/frontend/Signature.h"
#include "ditron/frontend/SourceText.h"

namespace ditron::frontend {

/// One configuration of a kernel.
struct TuningConfig {
  std::vector<std::pair<std::string, ConstexprArgument>> values; ///< Of parameters.
  uint32_t numWarps = 4;
  uint32_t numStages = 3;
  uint32_t numCtas = 1;
  std::optional<uint32_t> maxRegisters; ///< Read and shown; it does not limit the code that we generate.
  std::string refusal; ///< Why it cannot be compiled; empty if it can.
  std::vector<std::string> ineffective; ///< Launch options in the dict of values, which Triton overrides by the arguments.

  /// "BLOCK_M=128 BLOCK_N=64 num_warps=8 num_stages=3".
  std::string str() const;
};

/// What a kernel's decorators say about how it may be compiled.
struct TuningSpace {
  std::vector<TuningConfig> configs;
  std::vector<std::string> keys;       ///< Parameters for whose values a configuration is chosen.
  std::vector<std::string> heuristics; ///< Parameters that are computed, in order.
  std::string problem;                 ///< Why the decorators could not be evaluated; empty if they could.

  /// Parameters that some configuration gives.
  std::vector<std::string> tunedParameters() const;
  /// The first configuration that can be compiled; null if there is none.
  const TuningConfig *first() const;
};

/// An argument of a launch as heuristics see it.
struct HeuristicArgument {
  std::string name;
  std::optional<ConstexprArgument> value; ///< None for a pointer.
  LangType element;                       ///< Of a pointer.
};

/// The heuristics of one kernel, parsed once.
class KernelHeuristics {
public:
  static Expected<std::shared_ptr<KernelHeuristics>> create(const SourceText &source, llvm::StringRef kernel,
                                                            ImportOptions options);
  virtual ~KernelHeuristics() = default;
  /// The values for the arguments of a launch, those of the configuration included. Later heuristics see earlier ones.
  virtual Expected<std::vector<std::pair<std::string, ConstexprArgument>>>
  evaluate(const std::vector<HeuristicArgument> &arguments) = 0;
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_TUNINGSPACE_H
