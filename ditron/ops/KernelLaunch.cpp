//===- KernelLaunch.cpp - Get a library kernel for its arguments and launch it ------------------------------------===//
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

namespace ditron::ops {

Expected<PreparedCall> PreparedCall::create(runtime::KernelProvider &kernels, runtime::Rank &rank, const KernelCall &call) {
  const EmbeddedSource source = kernelSource(call.source);
  if (source.text.empty())
    return internalError(fmt::format("no embedded kernel file '{}'", call.source));
  const std::string name = fmt::format("ditron:{}", call.source);
  DITRON_ASSIGN_OR_RETURN(
      const runtime::Specialisation variant,
      kernels.specialise({.name = name, .path = source.path, .text = source.text, .kernel = call.kernel},
                         {.positional = {}, .keywords = call.arguments},
                         {.numWarps = call.numWarps, .numStages = call.numStages}));
  PreparedCall prepared;
  DITRON_ASSIGN_OR_RETURN(
      prepared.launch,
      runtime::PreparedLaunch::create(rank.device(), variant.kernel, {.grid = call.grid}, variant.arguments));
  return prepared;
}

} // namespace ditron::ops
