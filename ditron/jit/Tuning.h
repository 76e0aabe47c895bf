//===- Tuning.h - Configurations and heuristics of a launch ----------------------------------------------*- C++ -*-===//
//
// Completes a call by what the kernel's decorators say: the values and options of a configuration, and what heuristics compute
// from the arguments.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_JIT_TUNING_H
#define DITRON_JIT_TUNING_H

#include "ditron/compiler/KernelInterface.h"
#include "ditron/jit/Jit.h"

namespace ditron::jit {

/// Null when the kernel has none.
Expected<std::shared_ptr<frontend::KernelHeuristics>>
heuristicsOf(const compiler::KernelSource &source, const compiler::KernelInterface &kernel, std::string_view target);

/// `heuristics` may be null when the kernel has none.
Expected<TunedCall> tuneCall(const compiler::KernelInterface &kernel, frontend::KernelHeuristics *heuristics,
                             const CallArguments &arguments, const LaunchOptions &options);

} // namespace ditron::jit
#endif // DITRON_JIT_TUNING_H
