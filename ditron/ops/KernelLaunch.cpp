//===- KernelLaunch.cpp - Get a library kernel for its arguments and launch it ------------------------------------===//
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

namespace ditron::ops {

Expected<PreparedCall> PreparedCall::create(runtime::KernelProvider &kernels, runtime::Rank &rank, const KernelCall &call) {
  const EmbeddedSource source = kernelSource(call.source);
  if (source.text.empty())
    return internalError(fmt::format("no embedded kernel file '{}'", call.source));
  const std::string name = fmt::format("ditron:{}", call.source);
  PreparedCall prepared;
  DITRON_ASSIGN_OR_RETURN(
      prepared.variant,
      kernels.specialise({.name = name, .path = source.path, .text = source.text, .kernel = call.kernel},
                         {.positional = {}, .keywords = call.arguments},
                         {.numWarps = call.numWarps, .numStages = call.numStages}));
  prepared.config.grid = call.grid;
  DITRON_RETURN_IF_ERROR(rank.device()->load(prepared.variant.kernel));
  return prepared;
}

} // namespace ditron::ops
