//===- KernelLaunch.cpp - Compile a library kernel for its arguments and launch it ------------------------------------===//
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

Expected<jit::KernelFunction> loadFunction(jit::Jit &jit, const KernelCall &call) {
  EmbeddedSource source = kernelSource(call.source);
  if (source.text.empty())
    return internalError(fmt::format("no embedded kernel file '{}'", call.source));
  return jit.load({std::string(source.path), std::string(source.text)}, call.kernel);
}

} // namespace

Expected<PreparedCall> PreparedCall::create(jit::Jit &jit, runtime::Rank &rank, const KernelCall &call) {
  DITRON_ASSIGN_OR_RETURN(jit::KernelFunction function, loadFunction(jit, call));
  PreparedCall prepared;
  DITRON_ASSIGN_OR_RETURN(prepared.variant,
                          jit.specialise(function, {.positional = {}, .keywords = call.arguments},
                                         {.numWarps = call.numWarps, .numStages = call.numStages}));
  prepared.config.grid = call.grid;
  DITRON_RETURN_IF_ERROR(rank.device()->load(prepared.variant.kernel));
  return prepared;
}

} // namespace ditron::ops
