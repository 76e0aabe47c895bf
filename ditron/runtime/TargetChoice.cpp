//===- TargetChoice.cpp - Which target this machine has -----------------------------------------------------------===//
//
// Asks the driver for the compute capability.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/TargetChoice.h"

#include "ditron/runtime/cuda/CudaDriver.h"

#include <cstdio>
#include <fmt/format.h>

namespace ditron::runtime {

Expected<TargetName> cudaTargetFor(int major, int minor) {
  const int capability = major * 10 + minor;
  const TargetName *best = nullptr;
  int bestNumber = 0;
  for (const TargetName &target : knownTargets()) {
    int number = 0;
    char suffix = 0;
    if (!target.text.starts_with("cuda:") || std::sscanf(target.architecture.c_str(), "sm_%d%c", &number, &suffix) < 1)
      continue;
    const bool runs = suffix == 'a' ? number == capability : number <= capability;
    if (runs && number > bestNumber) {
      best = &target;
      bestNumber = number;
    }
  }
  if (!best)
    return unsupported(fmt::format("no target for a GPU of compute capability {}.{}; 8.0 is the least", major, minor));
  return *best;
}

Expected<TargetName> resolveTarget(std::string_view text) {
  if (text != "cuda")
    return parseTargetName(text);
  Expected<std::shared_ptr<const cuda::CudaDriver>> driver = cuda::CudaDriver::open();
  if (!driver.isOk())
    return driver.status().withContext("target 'cuda'");
  if ((*driver)->deviceCount() == 0)
    return unsupported("target 'cuda': the driver sees no GPU (CUDA_VISIBLE_DEVICES?); 'sim' runs without one");
  return cudaTargetFor((*driver)->attribute(cuda::Attribute::ComputeCapabilityMajor, 0),
                       (*driver)->attribute(cuda::Attribute::ComputeCapabilityMinor, 0));
}

} // namespace ditron::runtime
