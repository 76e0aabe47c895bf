//===- KernelLaunch.cpp - Compile a library kernel for its arguments and launch it ------------------------------------===//
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

namespace ditron::ops {

Status compileAndLaunch(jit::Jit &jit, runtime::Rank &rank, runtime::Stream *stream, const KernelCall &call) {
  EmbeddedSource source = kernelSource(call.source);
  if (source.text.empty())
    return internalError(fmt::format("no embedded kernel file '{}'", call.source));
  DITRON_ASSIGN_OR_RETURN(jit::KernelFunction function,
                          jit.load({std::string(source.path), std::string(source.text)}, call.kernel));
  jit::LaunchOptions options{.numWarps = call.numWarps, .numStages = call.numStages};
  jit::CallArguments arguments{.positional = {}, .keywords = call.arguments};
  if (!stream) {
    DITRON_ASSIGN_OR_RETURN(jit::Specialisation variant, jit.specialise(function, arguments, options));
    return rank.device()->load(variant.kernel);
  }
  return jit.launch(*stream, function, {.grid = call.grid}, arguments, options);
}

} // namespace ditron::ops
