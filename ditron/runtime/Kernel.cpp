//===- Kernel.cpp - Compiled kernels that can be launched ---------------------------------------------------------===//
//
// Construction and its checks.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/Kernel.h"

#include "ditron/support/TargetName.h"

#include <fmt/format.h>

namespace ditron::runtime {

Expected<Kernel> Kernel::create(Artifact artifact, ModuleImage image) {
  DITRON_ASSIGN_OR_RETURN(TargetName target, parseTargetName(artifact.target));
  if (target.simulated && !image.hostEntry)
    return invalidArgument(
        fmt::format("kernel '{}' for {} needs the address of its entry function", artifact.kernel, artifact.target));
  if (artifact.codeKind != ArtifactCode::HostObject && image.code.empty())
    image.code = std::move(artifact.code);
  if (!target.simulated && image.code.empty())
    return invalidArgument(fmt::format("kernel '{}' for {} has no code", artifact.kernel, artifact.target));
  if (artifact.threadsPerWarp != target.warpSize)
    return invalidArgument(fmt::format("kernel '{}' was compiled for warps of {} threads, {} has {}", artifact.kernel,
                                       artifact.threadsPerWarp, artifact.target, target.warpSize));
  Kernel kernel;
  kernel.storage = std::make_shared<const Storage>(Storage{std::move(artifact), std::move(image)});
  return kernel;
}

Expected<PackedArguments> Kernel::pack(std::span<const Argument> arguments) const {
  return packArguments(name(), artifact().parameters, arguments);
}

} // namespace ditron::runtime
