//===- World.cpp - The ranks of a distributed program -------------------------------------------------------------===//
//
// Builds the machine, a device, the world view and a default stream per rank, and makes allocation of symmetric memory
// a collective when ranks have host code of their own.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/World.h"

#include "ditron/runtime/ProcessGroup.h"
#include "ditron/runtime/RankThreads.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/cuda/CudaSystem.h"
#include "ditron/runtime/sim/SimDevice.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace ditron::runtime {

namespace {

constexpr uint32_t maxRanks = 1024;

/// Words before the world view proper, counted from its end: for code with bounded waits the address of the wait report and the
/// limit in nanoseconds; ranks per node; multicast address of the own symmetric heap, 0 if there is none; address of the words of team
/// barriers (target/common/WorldView.h). A multiple of 128 bytes, so that the view stays aligned.
constexpr uint64_t viewHeaderWords = 16;

/// Teams of OpenSHMEM that have barriers: the world, shared, the node, the same place on all nodes.
constexpr uint64_t barrierTeams = 4;

Status checkOptions(uint32_t numRanks, const WorldOptions &options) {
  if (numRanks < 1 || numRanks > maxRanks)
    return invalidArgument(fmt::format("a world of {} ranks; accepted are 1 to {}", numRanks, maxRanks));
  if (options.sms < 1 || options.sms > 1024)
    return invalidArgument(fmt::format("{} SMs per rank; accepted are 1 to 1024", options.sms));
  for (auto [rank, factor] : options.slowRanks) {
    if (rank >= numRanks)
      return invalidArgument(fmt::format("slow rank {} does not exist; ranks are 0 to {}", rank, numRanks - 1));
    if (!(factor >= 1) || !std::isfinite(factor))
      return invalidArgument(fmt::format("slow rank {} has factor {}; accepted are numbers from 1", rank, factor));
  }
  if (options.ranksPerNode && numRanks % options.ranksPerNode)
    return invalidArgument(fmt::format("{} ranks do not fill nodes of {}; accepted are divisors of {}", numRanks, options.ranksPerNode,
                                       numRanks));
  return Status::ok();
}

} // namespace

uint32_t Rank::numRanks() const { return owner->numRanks(); }

Expected<Stream> Rank::createStream(std::string_view name, int priority) {
  return Stream::create(deviceValue, worldView(), name, priority);
}

Expected<Event> Rank::createEvent(std::string_view name) {
  DITRON_ASSIGN_OR_RETURN(EventHandle handle, deviceValue->createEvent(name));
  return Event(deviceValue, handle);
}

Expected<Buffer> Rank::allocate(DataType type, uint64_t count, std::string_view name) {
  return Buffer::allocate(deviceValue, type, count, name);
}

Status Rank::synchronize() { return deviceValue->synchronize(); }
Status Rank::hostBarrier() { return owner->hostBarrier(); }

World::World() = default;
World::~World() = default;

Expected<std::unique_ptr<World>> World::local(uint32_t numRanks, std::string_view target, const WorldOptions &options) {
  DITRON_ASSIGN_OR_RETURN(TargetName name, resolveTarget(target));
  DITRON_RETURN_IF_ERROR(checkOptions(numRanks, options));
  return name.simulated ? simulate(numRanks, name, options) : onGpus(numRanks, name, options);
}

Expected<std::unique_ptr<World>> World::forPlanning(uint32_t numRanks, std::string_view target, const WorldOptions &options) {
  DITRON_ASSIGN_OR_RETURN(const TargetName name, parseTargetName(target));
  DITRON_RETURN_IF_ERROR(checkOptions(numRanks, options));
  // Simulated devices do; what is asked of the world and of its ranks is what the target would say.
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<World> world, simulate(numRanks, name, options));
  return world;
}

Expected<std::unique_ptr<World>> World::simulate(uint32_t numRanks, const TargetName &target,
                                                 const WorldOptions &options) {
  sim::MachineOptions machineOptions =
      target.architecture == "sm_90a" ? sim::MachineOptions::sm90() : sim::MachineOptions();
  machineOptions.ranks = numRanks;
  machineOptions.smsPerRank = options.sms;
  machineOptions.warpSize = target.warpSize;
  machineOptions.seed = options.seed;
  machineOptions.slowRanks = options.slowRanks;
  machineOptions.checkBounds = options.checkBounds;
  machineOptions.recordTrace = options.trace;
  machineOptions.timeLimitSeconds = options.timeLimitSeconds;
  // Reservations cost addresses only, but a process has just 2^47 of those for three kinds of memory on all ranks.
  machineOptions.memoryPerRank =
      options.heapBytes ? options.heapBytes : std::min(machineOptions.memoryPerRank, (uint64_t(1) << 44) / numRanks);
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<sim::Machine> machine, sim::Machine::create(std::move(machineOptions)));

  std::unique_ptr<World> world(new World());
  world->targetName = target.text;
  world->optionValues = options;
  world->simulated = std::move(machine);
  world->ranks.resize(numRanks);
  std::vector<void *> bases;
  for (uint32_t id = 0; id < numRanks; ++id) {
    auto device = std::make_shared<SimDevice>(world->simulated, id, fmt::format("simulated {}", target.architecture));
    bases.push_back(device->symmetricBase());
    DITRON_RETURN_IF_ERROR(world->addRank(id, std::move(device)));
  }
  DITRON_RETURN_IF_ERROR(world->publishHeaps(std::move(bases)));
  return world;
}

Status World::addRank(uint32_t id, std::shared_ptr<Device> device) {
  std::unique_ptr<Rank> rank(new Rank());
  rank->owner = this;
  rank->idValue = id;
  rank->deviceValue = std::move(device);
  const uint64_t words = viewHeaderWords + 2 + ranks.size();
  DITRON_ASSIGN_OR_RETURN(rank->viewBuffer, rank->allocate(DataType::I64, words, "world view"));
  rank->viewAddress = (rank->viewBuffer.pointer() + viewHeaderWords).address;
  DITRON_ASSIGN_OR_RETURN(rank->defaultStream, rank->createStream("default"));
  ranks[id] = std::move(rank);
  localIds.push_back(id);
  return Status::ok();
}

Status World::publishHeaps(std::vector<void *> bases) {
  heaps = std::move(bases);
  nextCollective.assign(numRanks(), 0);
  // Per team how many barriers a rank has entered, and of each rank the same as it has told.
  DITRON_ASSIGN_OR_RETURN(teamBarriers, allocateSymmetric(DataType::I64, barrierTeams * (1 + numRanks()), "team barriers"));
  for (uint32_t id : localIds) {
    Rank &rank = *ranks[id];
    std::vector<int64_t> words(viewHeaderWords, 0);
    const WaitBounds bounds = rank.device()->waitBounds();
    words[viewHeaderWords - 1] = static_cast<int64_t>(bounds.reportAddress);
    words[viewHeaderWords - 2] = static_cast<int64_t>(bounds.limitNanoseconds);
    words[viewHeaderWords - 3] = simulated && optionValues.ranksPerNode ? optionValues.ranksPerNode : numRanks();
    // The simulator's multimem accesses take ordinary addresses. On GPUs no multicast memory is mapped.
    words[viewHeaderWords - 4] = simulated ? static_cast<int64_t>(reinterpret_cast<intptr_t>(heaps[id])) : 0;
    words[viewHeaderWords - 5] = static_cast<int64_t>(reinterpret_cast<intptr_t>(teamBarriers.on(id).address));
    words.push_back(id);
    words.push_back(numRanks());
    for (void *base : heaps)
      words.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(base)));
    DITRON_RETURN_IF_ERROR(rank.viewBuffer.upload(words.data(), words.size() * sizeof(int64_t)));
  }
  return Status::ok();
}

std::optional<uint32_t> World::currentRank() const {
  return simulated ? simulated->currentHostRank() : threads->currentRank();
}

Status World::hostBarrier() {
  if (simulated)
    return simulated->hostBarrier();
  return processes ? processes->rendezvous().barrier("hostBarrier") : threads->barrier();
}

Expected<SymmetricBuffer> World::allocateEverywhere(DataType type, uint64_t count, std::string_view name) {
  std::vector<std::shared_ptr<Device>> devices;
  for (const std::unique_ptr<Rank> &rank : ranks)
    devices.push_back(rank ? rank->device() : nullptr);
  return SymmetricBuffer::allocate(std::move(devices), heaps, type, count, name);
}

Expected<SymmetricBuffer> World::allocateSymmetric(DataType type, uint64_t count, std::string_view name) {
  if (processes) {
    // Each process allocates its own part; the exchange shows that all make the same one, and that all parts are cleared.
    Expected<SymmetricBuffer> buffer = allocateEverywhere(type, count, name);
    const std::string request =
        buffer.isOk() ? fmt::format("'{}' of {} {} at offset {}", name, count, toString(type), buffer->offset())
                      : fmt::format("nothing ({})", buffer.status().message());
    DITRON_RETURN_IF_ERROR(processes->rendezvous().agree("allocation of symmetric memory", request));
    return buffer;
  }
  if (const std::optional<uint32_t> caller = currentRank())
    return allocateInTurn(*caller, type, count, name);
  return allocateEverywhere(type, count, name);
}

Expected<SymmetricBuffer> World::allocateInTurn(uint32_t caller, DataType type, uint64_t count, std::string_view name) {
  std::lock_guard lock(collectiveMutex);
  // The first rank to get to this position of the sequence allocates for all.
  const uint64_t position = nextCollective[caller]++;
  auto [entry, first] = collectives.try_emplace(position);
  CollectiveAllocation &collective = entry->second;
  if (first) {
    Expected<SymmetricBuffer> buffer = allocateEverywhere(type, count, name);
    if (!buffer.isOk()) {
      collectives.erase(entry);
      return buffer;
    }
    collective = {type, count, std::string(name), std::move(buffer).value(), 0};
  } else if (collective.type != type || collective.count != count || collective.name != name) {
    return invalidArgument(
        fmt::format("rank {} allocates symmetric buffer '{}' of {} {} where another rank allocates '{}' of {} {}; all "
                    "ranks must make the same allocations in the same order",
                    caller, name, count, toString(type), collective.name, collective.count, toString(collective.type)));
  }
  SymmetricBuffer buffer = collective.buffer;
  if (++collective.takers == numRanks())
    collectives.erase(entry);
  return buffer;
}

Status World::runRanks(const std::function<Status(Rank &)> &host) {
  // An earlier run that failed may have left the ranks at different positions.
  collectives.clear();
  std::fill(nextCollective.begin(), nextCollective.end(), 0);
  auto hostOf = [&](uint32_t id) { return host(*ranks[id]); };
  if (simulated)
    return simulated->runRanks(hostOf);
  DITRON_RETURN_IF_ERROR(gpus->status());
  const Status returned = threads->run(localIds, hostOf);
  // What ended the run explains more than what a rank made of it.
  const Status ended = gpus->status();
  return ended.isOk() ? returned : ended;
}

Status World::synchronize() {
  if (simulated)
    return simulated->synchronize();
  for (uint32_t id : localIds)
    DITRON_RETURN_IF_ERROR(ranks[id]->synchronize());
  return gpus->status();
}

Status World::status() const { return simulated ? simulated->status() : gpus->status(); }

Status World::writeTrace(const std::string &path) const {
  if (!optionValues.trace)
    return invalidArgument("the world keeps no timeline; make it with WorldOptions::trace");
  return simulated->writeChromeTrace(path);
}

} // namespace ditron::runtime
