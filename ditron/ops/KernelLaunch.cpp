//===- KernelLaunch.cpp - Get a library kernel for its arguments and launch it ------------------------------------===//
#include "ditron/ops/KernelLaunch.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::ops {

namespace {

/// All files, by the names under which they are asked for: "ditron:gemm".
const std::vector<runtime::ImportableSource> &librarySources() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const std::string_view name : kernelSourceNames())
      result.push_back(fmt::format("ditron:{}", name));
    return result;
  }();
  static const std::vector<runtime::ImportableSource> sources = [] {
    std::vector<runtime::ImportableSource> result;
    for (size_t i = 0; i < names.size(); ++i) {
      const EmbeddedSource source = kernelSource(kernelSourceNames()[i]);
      result.push_back({names[i], source.path, source.text});
    }
    return result;
  }();
  return sources;
}

} // namespace

Expected<runtime::KernelReference> libraryKernel(std::string_view source, std::string_view kernel) {
  const std::vector<runtime::ImportableSource> &sources = librarySources();
  const auto found = std::ranges::find(kernelSourceNames(), source);
  if (found == kernelSourceNames().end())
    return notFound(
        fmt::format("the library has no kernel file '{}'; it has {}", source, fmt::join(kernelSourceNames(), ", ")));
  const runtime::ImportableSource &file = sources[found - kernelSourceNames().begin()];
  return runtime::KernelReference{
      .name = file.name, .path = file.path, .text = file.text, .kernel = kernel, .imports = sources};
}

Expected<PreparedCall> PreparedCall::create(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                            const KernelCall &call) {
  DITRON_ASSIGN_OR_RETURN(const runtime::KernelReference reference, libraryKernel(call.source, call.kernel));
  DITRON_ASSIGN_OR_RETURN(
      const runtime::Specialisation variant,
      kernels.specialise(
          reference, {.positional = {}, .keywords = call.arguments},
          {.numWarps = call.numWarps, .numStages = call.numStages, .residentBlocks = call.residentBlocks}));
  PreparedCall prepared;
  DITRON_ASSIGN_OR_RETURN(
      prepared.launch,
      runtime::PreparedLaunch::create(rank.device(), variant.kernel, {.grid = call.grid}, variant.arguments));
  prepared.launch.setWorldView(rank.worldView());
  return prepared;
}

} // namespace ditron::ops
