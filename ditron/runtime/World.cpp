//===- World.cpp - The ranks of a distributed program -------------------------------------------------------------===//
//
// Builds the machine, a device, the world view and a default stream per rank, and makes allocation of symmetric memory
// a collective when ranks have host code of their own.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/World.h"

#include "ditron/runtime/sim/SimDevice.h"
#include "ditron/support/TargetName.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace ditron::runtime {

namespace {

constexpr uint32_t maxRanks = 1024;

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
Status Rank::hostBarrier() { return owner->machine()->hostBarrier(); }

World::~World() = default;

Expected<std::unique_ptr<World>> World::local(uint32_t numRanks, std::string_view target, const WorldOptions &options) {
  DITRON_ASSIGN_OR_RETURN(TargetName name, parseTargetName(target));
  if (!name.simulated)
    return unsupported(fmt::format("target '{}': this version runs simulated targets only", name.text));
  DITRON_RETURN_IF_ERROR(checkOptions(numRanks, options));

  sim::MachineOptions machineOptions;
  machineOptions.ranks = numRanks;
  machineOptions.smsPerRank = options.sms;
  machineOptions.warpSize = name.warpSize;
  machineOptions.seed = options.seed;
  machineOptions.slowRanks = options.slowRanks;
  machineOptions.checkBounds = options.checkBounds;
  machineOptions.recordTrace = options.trace;
  // Reservations cost addresses only, but a process has just 2^47 of those for three kinds of memory on all ranks.
  machineOptions.memoryPerRank =
      options.heapBytes ? options.heapBytes : std::min(machineOptions.memoryPerRank, (uint64_t(1) << 44) / numRanks);
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<sim::Machine> machine, sim::Machine::create(std::move(machineOptions)));

  std::unique_ptr<World> world(new World());
  world->targetName = name.text;
  world->optionValues = options;
  world->simulated = std::move(machine);
  world->nextCollective.resize(numRanks);
  for (uint32_t id = 0; id < numRanks; ++id) {
    std::unique_ptr<Rank> rank(new Rank());
    rank->owner = world.get();
    rank->idValue = id;
    rank->deviceValue =
        std::make_shared<SimDevice>(world->simulated, id, fmt::format("simulated {}", name.architecture));
    DITRON_ASSIGN_OR_RETURN(rank->viewBuffer, rank->allocate(DataType::I64, 2 + numRanks, "world view"));
    DITRON_ASSIGN_OR_RETURN(rank->defaultStream, rank->createStream("default"));
    world->ranks.push_back(std::move(rank));
  }
  // Every rank's view names every rank's heap, so that all must exist first.
  for (std::unique_ptr<Rank> &rank : world->ranks) {
    std::vector<int64_t> words = {rank->id(), numRanks};
    for (const std::unique_ptr<Rank> &peer : world->ranks)
      words.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(peer->device()->symmetricBase())));
    DITRON_RETURN_IF_ERROR(rank->viewBuffer.upload(words.data(), words.size() * sizeof(int64_t)));
  }
  return world;
}

Expected<SymmetricBuffer> World::allocateEverywhere(DataType type, uint64_t count, std::string_view name) {
  std::vector<std::shared_ptr<Device>> devices;
  for (const std::unique_ptr<Rank> &rank : ranks)
    devices.push_back(rank->device());
  return SymmetricBuffer::allocate(std::move(devices), type, count, name);
}

Expected<SymmetricBuffer> World::allocateSymmetric(DataType type, uint64_t count, std::string_view name) {
  const std::optional<uint32_t> caller = simulated->currentHostRank();
  if (!caller)
    return allocateEverywhere(type, count, name);
  // The first rank to get to this position of the sequence allocates for all.
  const uint64_t position = nextCollective[*caller]++;
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
    return invalidArgument(fmt::format(
        "rank {} allocates symmetric buffer '{}' of {} {} where another rank allocates '{}' of {} {}; all "
        "ranks must make the same allocations in the same order",
        *caller, name, count, toString(type), collective.name, collective.count, toString(collective.type)));
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
  return simulated->runRanks([&](uint32_t id) { return host(*ranks[id]); });
}

Status World::synchronize() { return simulated->synchronize(); }
Status World::status() const { return simulated->status(); }

Status World::writeTrace(const std::string &path) const {
  if (!optionValues.trace)
    return invalidArgument("the world keeps no timeline; make it with WorldOptions::trace");
  return simulated->writeChromeTrace(path);
}

} // namespace ditron::runtime
