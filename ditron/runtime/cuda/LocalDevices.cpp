//===- LocalDevices.cpp - All GPUs of a world in one process ------------------------------------------------------===//
//
// The driver is asked; `ditron doctor` tries.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/LocalDevices.h"

#include <fmt/format.h>

namespace ditron::cuda {

namespace {

std::string gpuText(const CudaDriver &driver, DeviceOrdinal ordinal) {
  char name[128] = {};
  driver.deviceGetName(name, sizeof(name) - 1, ordinal);
  return fmt::format("GPU {} ({})", ordinal, name);
}

} // namespace

Expected<std::vector<DeviceOrdinal>> chooseGpus(const CudaDriver &driver, uint32_t numRanks, bool share,
                                                const std::vector<int> &wanted) {
  const int count = driver.deviceCount();
  if (count == 0)
    return unsupported("the driver sees no GPU (CUDA_VISIBLE_DEVICES?)");
  if (!wanted.empty()) {
    if (wanted.size() != numRanks)
      return invalidArgument(fmt::format("{} GPUs are named for {} ranks; accepted is one for each", wanted.size(), numRanks));
    for (int gpu : wanted)
      if (gpu < 0 || gpu >= count)
        return invalidArgument(fmt::format("GPU {} does not exist; accepted are 0 to {}", gpu, count - 1));
    return std::vector<DeviceOrdinal>(wanted.begin(), wanted.end());
  }
  if (numRanks > static_cast<uint32_t>(count) && !share)
    return unsupported(
        fmt::format("{} ranks need {} GPUs; this machine shows {}. WorldOptions::shareGpus (--share-gpus) "
                    "puts several ranks on one GPU, for tests",
                    numRanks, numRanks, count));
  std::vector<DeviceOrdinal> ordinals;
  for (uint32_t rank = 0; rank < numRanks; ++rank)
    ordinals.push_back(static_cast<DeviceOrdinal>(rank % static_cast<uint32_t>(count)));
  return ordinals;
}

Status checkPeerAccess(const CudaDriver &driver, const std::vector<DeviceOrdinal> &ordinals) {
  for (size_t i = 0; i < ordinals.size(); ++i)
    for (size_t j = 0; j < ordinals.size(); ++j) {
      int can = 0;
      if (ordinals[i] == ordinals[j])
        continue;
      DITRON_RETURN_IF_ERROR(driver.check(driver.deviceCanAccessPeer(&can, ordinals[i], ordinals[j]),
                                          "cannot ask whether GPUs reach each other"));
      if (!can)
        return unsupported(
            fmt::format("{} cannot access the memory of {} (ranks {} and {}): the machine offers no "
                        "peer-to-peer path between them. See `nvidia-smi topo -p2p rw` and `ditron doctor`",
                        gpuText(driver, ordinals[i]), gpuText(driver, ordinals[j]), i, j));
    }
  return Status::ok();
}

Status checkTarget(const CudaDriver &driver, DeviceOrdinal ordinal, const TargetName &target) {
  const int major = driver.attribute(Attribute::ComputeCapabilityMajor, ordinal);
  const int minor = driver.attribute(Attribute::ComputeCapabilityMinor, ordinal);
  int number = 0;
  char suffix = 0;
  std::sscanf(target.architecture.c_str(), "sm_%d%c", &number, &suffix);
  const int capability = major * 10 + minor;
  if (suffix == 'a' ? number == capability : number <= capability)
    return Status::ok();
  return unsupported(fmt::format("code for {} does not run on {}, whose compute capability is {}.{}; target 'cuda' "
                                 "chooses what fits",
                                 target.text, gpuText(driver, ordinal), major, minor));
}

} // namespace ditron::cuda
