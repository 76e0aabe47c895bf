//===- WorldGpus.cpp - Worlds of real GPUs ------------------------------------------------------------------------===//
//
// All ranks in this process, or one per process as a launcher has started them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/World.h"
#include "ditron/runtime/bootstrap/RankEnvironment.h"
#include "ditron/runtime/cuda/GpuNode.h"
#include "ditron/runtime/cuda/LocalDevices.h"

#include <fmt/format.h>

namespace ditron::runtime {

namespace {

/// What other processes map of a rank's symmetric heap when nobody says how much: all of it is allocated at once.
constexpr uint64_t defaultSharedHeapBytes = uint64_t(512) << 20;
/// Of a slow rank, per unit of its factor above 1.
constexpr double slowMicroseconds = 10;

cuda::CudaDeviceOptions deviceOptions(uint32_t rank, cuda::DeviceOrdinal ordinal, const WorldOptions &options) {
  cuda::CudaDeviceOptions device;
  device.rank = rank;
  device.ordinal = ordinal;
  device.symmetricBytes = options.heapBytes;
  device.waitLimitSeconds = options.waitLimitSeconds;
  device.kernelSignals = options.kernelSignals;
  device.publishWaits = options.publishWaits;
  device.noteEvents = options.trace;
  if (auto slow = options.slowRanks.find(rank); slow != options.slowRanks.end())
    device.delayMicroseconds = (slow->second - 1) * slowMicroseconds;
  return device;
}

Status checkGpuOptions(const WorldOptions &options) {
  if (!(options.timeLimitSeconds >= 0))
    return invalidArgument(
        fmt::format("a time limit of {} seconds; accepted are numbers from 0", options.timeLimitSeconds));
  if (!(options.waitLimitSeconds > 0) || options.waitLimitSeconds > 3600)
    return invalidArgument(
        fmt::format("a wait limit of {} seconds; accepted are numbers above 0, up to 3600", options.waitLimitSeconds));
  return Status::ok();
}

/// The GPU that this process was told to take, or else the one of its place on the machine.
Expected<cuda::DeviceOrdinal> gpuOfRank(const cuda::CudaDriver &driver, const bootstrap::RankEnvironment &place,
                                        const WorldOptions &options) {
  if (options.gpus.empty())
    return place.chooseGpu(driver.deviceCount());
  DITRON_ASSIGN_OR_RETURN(const std::vector<cuda::DeviceOrdinal> ordinals,
                          cuda::chooseGpus(driver, place.worldSize, options.shareGpus, options.gpus));
  return ordinals[place.rank];
}

} // namespace

Expected<std::unique_ptr<World>> World::onGpus(uint32_t numRanks, const TargetName &target,
                                               const WorldOptions &options) {
  DITRON_RETURN_IF_ERROR(checkGpuOptions(options));
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<const cuda::CudaDriver> driver, cuda::CudaDriver::open());
  DITRON_ASSIGN_OR_RETURN(std::vector<cuda::DeviceOrdinal> ordinals,
                          cuda::chooseGpus(*driver, numRanks, options.shareGpus, options.gpus));
  for (cuda::DeviceOrdinal ordinal : ordinals)
    DITRON_RETURN_IF_ERROR(cuda::checkTarget(*driver, ordinal, target));
  DITRON_RETURN_IF_ERROR(cuda::checkPeerAccess(*driver, ordinals));

  std::unique_ptr<World> world(new World());
  world->targetName = target.text;
  world->optionValues = options;
  const auto gpus = std::make_shared<cuda::CudaSystem>(driver, options.timeLimitSeconds);
  world->node = std::make_unique<GpuNode>(gpus);
  world->ranks.resize(numRanks);
  std::vector<cuda::DeviceOrdinal> distinct = ordinals;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<void *> bases;
  for (uint32_t id = 0; id < numRanks; ++id) {
    cuda::CudaDeviceOptions device = deviceOptions(id, ordinals[id], options);
    device.accessors = distinct;
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<cuda::CudaDevice> gpu,
                            cuda::CudaDevice::create(gpus, std::move(device)));
    bases.push_back(gpu->symmetricBase());
    DITRON_RETURN_IF_ERROR(world->addRank(id, std::move(gpu)));
  }
  DITRON_RETURN_IF_ERROR(world->publishHeaps(std::move(bases)));
  return world;
}

Expected<std::unique_ptr<World>> World::fromEnvironment(std::string_view targetText, const WorldOptions &options) {
  DITRON_ASSIGN_OR_RETURN(TargetName target, resolveTarget(targetText));
  if (target.simulated)
    return unsupported(fmt::format("target '{}': simulated ranks live in one process (World::local)", target.text));
  DITRON_RETURN_IF_ERROR(checkGpuOptions(options));
  if (options.ranksPerNode)
    return unsupported(
        fmt::format("nodes of {} ranks on {}: the GPUs of this machine are one node; several nodes are simulated only",
                    options.ranksPerNode, target.text));
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<const cuda::CudaDriver> driver, cuda::CudaDriver::open());
  DITRON_ASSIGN_OR_RETURN(bootstrap::RankEnvironment place, bootstrap::RankEnvironment::fromProcess());
  if (!place.launched())
    return onGpus(static_cast<uint32_t>(driver->deviceCount()), target, options);
  DITRON_ASSIGN_OR_RETURN(const cuda::DeviceOrdinal ordinal, gpuOfRank(*driver, place, options));
  DITRON_RETURN_IF_ERROR(cuda::checkTarget(*driver, ordinal, target));

  bootstrap::RendezvousOptions meeting;
  meeting.rank = place.rank;
  meeting.numRanks = place.worldSize;
  meeting.job = place.job;
  meeting.timeLimitSeconds = options.bootstrapLimitSeconds;
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<bootstrap::Rendezvous> rendezvous, bootstrap::Rendezvous::join(meeting));

  std::unique_ptr<World> world(new World());
  world->targetName = target.text;
  world->optionValues = options;
  const auto gpus = std::make_shared<cuda::CudaSystem>(driver, options.timeLimitSeconds);
  auto node = std::make_unique<ProcessNode>(gpus, std::move(rendezvous));
  const std::shared_ptr<ProcessGroup> others = node->group();
  DITRON_RETURN_IF_ERROR(others->watchProcesses());
  // Devices may outlive the world, and must not keep this process in it.
  gpus->lostRanks = [group = std::weak_ptr(others)] {
    const std::shared_ptr<ProcessGroup> alive = group.lock();
    return alive ? alive->lostRanks() : std::vector<uint32_t>();
  };
  world->node = std::move(node);
  world->ranks.resize(place.worldSize);
  cuda::CudaDeviceOptions device = deviceOptions(place.rank, ordinal, options);
  device.accessors = {ordinal};
  device.shareable = true;
  if (!device.symmetricBytes)
    device.symmetricBytes = defaultSharedHeapBytes;
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<cuda::CudaDevice> gpu,
                          cuda::CudaDevice::create(gpus, std::move(device)));
  DITRON_ASSIGN_OR_RETURN(std::vector<void *> bases,
                          others->exchangeHeaps(driver, ordinal, gpu->symmetricHeap()));
  DITRON_RETURN_IF_ERROR(world->addRank(place.rank, std::move(gpu)));
  DITRON_RETURN_IF_ERROR(world->publishHeaps(std::move(bases)));
  DITRON_RETURN_IF_ERROR(others->rendezvous().barrier("start"));
  return world;
}

} // namespace ditron::runtime
