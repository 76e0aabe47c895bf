//===- World.cpp - The ranks of a distributed program -------------------------------------------------------------===//
//
// Builds the machine, a device, the world view and a default stream per rank, and makes allocation of symmetric memory
// a collective when ranks have host code of their own.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/World.h"

#include "ditron/abi/WorldView.h"

#include "ditron/runtime/GroupNode.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/sim/SimDevice.h"
#include "ditron/runtime/sim/SimNode.h"
#include "ditron/support/OutputFile.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::runtime {

namespace {

constexpr uint32_t maxRanks = 1024;

/// Teams of OpenSHMEM that have barriers: the world, shared, the node, the same place on all nodes.
constexpr uint64_t barrierTeams = 4;

/// What a word of the team barriers is for, in the memory of a rank.
sim::WordRole roleOfBarrierWord(uint32_t rank, uint32_t numRanks, uint64_t index) {
  static constexpr std::string_view teams[barrierTeams] = {"of all ranks", "of the ranks that share memory",
                                                           "of the node", "of the same place on all nodes"};
  const std::string_view team = teams[index / (1 + numRanks) % barrierTeams];
  const uint64_t place = index % (1 + numRanks);
  const uint32_t whose = place == 0 ? rank : static_cast<uint32_t>(place - 1);
  return {fmt::format("how many barriers {} rank {} has entered", team, whose), whose};
}

std::vector<uint32_t> divisorsOf(uint32_t number) {
  std::vector<uint32_t> divisors;
  for (uint32_t divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0)
      divisors.push_back(divisor);
  return divisors;
}

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
    return invalidArgument(fmt::format("{} ranks do not fill nodes of {}; ranks per node may be {}", numRanks,
                                       options.ranksPerNode, fmt::join(divisorsOf(numRanks), ", ")));
  return Status::ok();
}

/// An error that names who said what, unless all said the same.
Status compareSaid(std::string_view step, const std::vector<std::string> &said) {
  if (std::ranges::adjacent_find(said, std::ranges::not_equal_to()) == said.end())
    return Status::ok();
  std::vector<std::string> groups;
  std::vector<bool> named(said.size());
  for (size_t first = 0; first < said.size(); ++first) {
    if (named[first])
      continue;
    std::vector<size_t> alike;
    for (size_t rank = first; rank < said.size(); ++rank)
      if (said[rank] == said[first]) {
        named[rank] = true;
        alike.push_back(rank);
      }
    groups.push_back(fmt::format("{} {}: {}", alike.size() == 1 ? "rank" : "ranks", fmt::join(alike, ", "), said[first]));
  }
  return invalidArgument(fmt::format("{}: the ranks differ: {}", step, fmt::join(groups, "; ")));
}

} // namespace

uint32_t Rank::numRanks() const { return owner->numRanks(); }

Expected<Stream> Rank::createStream(std::string_view name, int priority) {
  return Stream::create(deviceValue, idValue, worldView(), name, priority);
}

Expected<Event> Rank::createEvent(std::string_view name) {
  DITRON_ASSIGN_OR_RETURN(EventHandle handle, deviceValue->createEvent(name));
  return Event(deviceValue, handle);
}

Expected<Buffer> Rank::allocate(DataType type, uint64_t count, std::string_view name) {
  return Buffer::allocate(deviceValue, type, count, name);
}

Status Rank::synchronize() { return deviceValue->synchronize(); }
Status Rank::hostBarrier() { return owner->node->hostBarrier(); }

World::World() = default;
World::~World() = default;

Expected<std::unique_ptr<World>> World::local(uint32_t numRanks, std::string_view target, const WorldOptions &options) {
  DITRON_ASSIGN_OR_RETURN(TargetName name, resolveTarget(target));
  DITRON_RETURN_IF_ERROR(checkOptions(numRanks, options));
  if (!name.simulated && options.ranksPerNode && options.ranksPerNode != numRanks)
    return unsupported(
        fmt::format("{} ranks in nodes of {} on {}: the GPUs of this machine are one node; several nodes are simulated "
                    "only",
                    numRanks, options.ranksPerNode, name.text));
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
  machineOptions.ranksPerNode = options.ranksPerNode;
  machineOptions.smsPerRank = options.sms;
  machineOptions.warpSize = target.warpSize;
  machineOptions.seed = options.seed;
  machineOptions.schedule = options.schedule;
  machineOptions.slowRanks = options.slowRanks;
  machineOptions.checkBounds = options.checkBounds;
  machineOptions.detectRaces = options.checkRaces;
  machineOptions.recordTrace = options.trace;
  machineOptions.timeLimitSeconds = options.timeLimitSeconds;
  // Reservations cost addresses only, but a process has just 2^47 of those for three kinds of memory on all ranks.
  machineOptions.memoryPerRank =
      options.heapBytes ? options.heapBytes : std::min(machineOptions.memoryPerRank, (uint64_t(1) << 44) / numRanks);
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<sim::Machine> machine, sim::Machine::create(std::move(machineOptions)));

  std::unique_ptr<World> world(new World());
  world->targetName = target.text;
  world->optionValues = options;
  world->node = std::make_unique<SimNode>(machine);
  world->ranks.resize(numRanks);
  std::vector<void *> bases;
  for (uint32_t id = 0; id < numRanks; ++id) {
    auto device = std::make_shared<SimDevice>(machine, id, fmt::format("simulated {}", target.architecture));
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
  const uint64_t words = DITRON_WORLD_WORDS_BEFORE + DITRON_WORLD_HEAPS + ranks.size();
  DITRON_ASSIGN_OR_RETURN(rank->viewBuffer, rank->allocate(DataType::I64, words, "world view"));
  rank->viewAddress = (rank->viewBuffer.pointer() + DITRON_WORLD_WORDS_BEFORE).address;
  DITRON_ASSIGN_OR_RETURN(rank->defaultStream, rank->createStream("default"));
  ranks[id] = std::move(rank);
  localIds.push_back(id);
  return Status::ok();
}

Status World::publishHeaps(std::vector<void *> bases) {
  heaps = std::move(bases);
  nextCollective.assign(numRanks(), 0);
  nextAgreement.assign(numRanks(), 0);
  // Per team how many barriers a rank has entered, and of each rank the same as it has told.
  DITRON_ASSIGN_OR_RETURN(teamBarriers, allocateSymmetric(DataType::I64, barrierTeams * (1 + numRanks()), "team barriers"));
  for (uint32_t id : localIds)
    if (sim::Machine *simulated = machine())
      simulated->describeWords(teamBarriers.on(id).address,
                               [id, n = numRanks()](uint64_t index) { return roleOfBarrierWord(id, n, index); });
  for (uint32_t id : localIds) {
    Rank &rank = *ranks[id];
    std::vector<int64_t> words(DITRON_WORLD_WORDS_BEFORE + DITRON_WORLD_HEAPS + numRanks(), 0);
    auto set = [&](int word, uint64_t value) { words[DITRON_WORLD_WORDS_BEFORE + word] = static_cast<int64_t>(value); };
    auto addressOf = [](const void *pointer) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer)); };
    const WaitBounds bounds = rank.device()->waitBounds();
    set(DITRON_WORLD_WAIT_REPORT, bounds.reportAddress);
    set(DITRON_WORLD_WAIT_LIMIT, bounds.limitNanoseconds);
    set(DITRON_WORLD_WAIT_SLOTS, bounds.slotsAddress);
    set(DITRON_WORLD_WAIT_SLOT_MASK, bounds.slotMask);
    set(DITRON_WORLD_EVENT_RING, bounds.eventRing);
    rank.device()->describeHeaps(heaps);
    set(DITRON_WORLD_RANKS_PER_NODE, ranksPerNode());
    set(DITRON_WORLD_MULTICAST_HEAP, addressOf(node->multicastHeap(heaps[id])));
    set(DITRON_WORLD_TEAM_BARRIERS, addressOf(teamBarriers.on(id).address));
    set(DITRON_WORLD_RANK, id);
    set(DITRON_WORLD_NUM_RANKS, numRanks());
    for (size_t of = 0; of < heaps.size(); ++of)
      set(DITRON_WORLD_HEAPS + static_cast<int>(of), addressOf(heapSeenBy(id, of)));
    DITRON_RETURN_IF_ERROR(rank.viewBuffer.upload(words.data(), words.size() * sizeof(int64_t)));
  }
  return Status::ok();
}

const void *World::heapSeenBy(uint32_t observer, size_t of) const {
  sim::Machine *simulated = node->machine();
  if (!simulated || numNodes() == 1)
    return heaps[of];
  const auto machineRank = [&](size_t rank) { return parent ? memberIds[rank] : static_cast<uint32_t>(rank); };
  return simulated->symmetricBase(machineRank(of), machineRank(observer));
}

Status World::requireOneNode(std::string_view what) const {
  if (numNodes() == 1)
    return Status::ok();
  return unsupported(fmt::format(
      "{} of {} ranks on {} nodes of {}: its ranks reach each other by loads, stores and copies, which stay on a "
      "node; make it of a group of one node's ranks",
      what, numRanks(), numNodes(), ranksPerNode()));
}

Expected<SymmetricBuffer> World::allocateEverywhere(DataType type, uint64_t count, std::string_view name) {
  std::vector<std::shared_ptr<Device>> devices;
  for (const std::unique_ptr<Rank> &rank : ranks)
    devices.push_back(rank ? rank->device() : nullptr);
  if (!adopted)
    return SymmetricBuffer::allocate(std::move(devices), heaps, type, count, name);
  DITRON_ASSIGN_OR_RETURN(SymmetricBuffer buffer,
                          SymmetricBuffer::allocateIn(adopted, std::move(devices), type, count, name));
  for (uint32_t id : localIds) {
    DITRON_RETURN_IF_ERROR(ranks[id]->stream().fill(buffer.on(id), 0, count));
    DITRON_RETURN_IF_ERROR(ranks[id]->stream().synchronize());
  }
  return buffer;
}

Expected<std::unique_ptr<World>> World::group(const std::vector<uint32_t> &members) {
  if (parent)
    return unsupported("a group of a group; make it from the world itself");
  std::vector<void *> bases;
  std::vector<bool> isMember(numRanks());
  for (uint32_t member : members) {
    if (member >= numRanks() || isMember[member])
      return invalidArgument(fmt::format("group of ranks {}: {} {}", fmt::join(members, ", "), member,
                                         member >= numRanks() ? fmt::format("does not exist; ranks are 0 to {}", numRanks() - 1)
                                                              : std::string("is there twice")));
    isMember[member] = true;
    bases.push_back(heaps[member]);
  }
  if (std::ranges::none_of(localIds, [&](uint32_t id) { return isMember[id]; }))
    return invalidArgument(fmt::format("group of ranks {}: none of them is of this process", fmt::join(members, ", ")));
  DITRON_ASSIGN_OR_RETURN(const uint32_t perNode, ranksPerNodeOf(members));
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<World> group, part(members));
  group->optionValues.ranksPerNode = perNode;
  DITRON_RETURN_IF_ERROR(group->publishHeaps(std::move(bases)));
  return group;
}

Expected<std::unique_ptr<World>> World::over(AdoptedHeapOptions options) {
  DITRON_RETURN_IF_ERROR(requireOneNode("a world over adopted memory"));
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<AdoptedHeap> heap, AdoptedHeap::create(std::move(options), numRanks()));
  std::vector<uint32_t> everyone(numRanks());
  std::iota(everyone.begin(), everyone.end(), 0);
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<World> world, part(everyone));
  world->adopted = heap;
  DITRON_RETURN_IF_ERROR(world->publishHeaps(heap->addresses()));
  return world;
}

Expected<uint32_t> World::ranksPerNodeOf(const std::vector<uint32_t> &members) const {
  std::vector<uint32_t> runs; // of members on one node
  std::vector<uint32_t> nodes;
  for (uint32_t member : members) {
    if (nodes.empty() || nodes.back() != nodeOf(member)) {
      nodes.push_back(nodeOf(member));
      runs.push_back(0);
    }
    ++runs.back();
  }
  const bool isEven = std::ranges::all_of(runs, [&](uint32_t run) { return run == runs.front(); });
  std::ranges::sort(nodes);
  if (!isEven || std::ranges::adjacent_find(nodes) != nodes.end())
    return unsupported(fmt::format(
        "group of ranks {} in nodes of {}: a group has equally many ranks of each of its nodes, those of a node "
        "next to each other in the list",
        fmt::join(members, ", "), ranksPerNode()));
  return runs.size() == 1 ? 0 : runs.front();
}

Expected<std::unique_ptr<World>> World::part(const std::vector<uint32_t> &members) {
  std::unique_ptr<World> group(new World());
  group->targetName = targetName;
  group->optionValues = optionValues;
  group->optionValues.slowRanks.clear(); // is done by the devices
  group->optionValues.ranksPerNode = 0;
  group->parent = this;
  group->memberIds = members;
  group->node = std::make_unique<GroupNode>(*node, members);
  group->ranks.resize(members.size());
  for (uint32_t id = 0; id < members.size(); ++id)
    if (isLocal(members[id]))
      DITRON_RETURN_IF_ERROR(group->addRank(id, rank(members[id]).device()));
  return group;
}

Expected<SymmetricBuffer> World::allocateSymmetric(DataType type, uint64_t count, std::string_view name) {
  if (parent && !adopted) {
    DITRON_ASSIGN_OR_RETURN(const SymmetricBuffer whole, parent->allocateSymmetric(type, count, name));
    return whole.of(memberIds);
  }
  if (node->spansProcesses()) {
    // Each process allocates its own part; the exchange shows that all make the same one, and that all parts are cleared.
    Expected<SymmetricBuffer> buffer = allocateEverywhere(type, count, name);
    const std::string request =
        buffer.isOk() ? fmt::format("'{}' of {} {} at offset {}", name, count, toString(type), buffer->offset())
                      : fmt::format("nothing ({})", buffer.status().message());
    DITRON_RETURN_IF_ERROR(node->agree("allocation of symmetric memory", request));
    return buffer;
  }
  if (const std::optional<uint32_t> caller = node->currentRank())
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

Status World::agree(const Rank &rank, std::string_view step, const std::string &said) {
  if (node->spansProcesses()) {
    // Groups of one world make their calls in the same order, and may say different things.
    DITRON_ASSIGN_OR_RETURN(const std::vector<std::string> all, node->allGather("agreement of the ranks", said));
    return compareSaid(step, all);
  }
  if (!isInHostCode())
    return Status::ok();
  uint64_t position = 0;
  {
    std::lock_guard lock(collectiveMutex);
    position = nextAgreement[rank.id()]++;
    Agreement &agreement = agreements[position];
    agreement.said.resize(numRanks());
    agreement.said[rank.id()] = said;
  }
  DITRON_RETURN_IF_ERROR(node->hostMeet(fmt::format("agreement {} of {}", position, static_cast<const void *>(this)),
                                        numRanks(), step));
  std::lock_guard lock(collectiveMutex);
  const auto found = agreements.find(position);
  const Status status = compareSaid(step, found->second.said);
  if (++found->second.readers == numRanks())
    agreements.erase(found);
  return status;
}

/// An earlier run that failed may have left the ranks at different positions.
void World::beginSequences() {
  collectives.clear();
  std::fill(nextCollective.begin(), nextCollective.end(), 0);
  agreements.clear();
  std::fill(nextAgreement.begin(), nextAgreement.end(), 0);
}

Status World::runRanks(const std::function<Status(Rank &)> &host) {
  beginSequences();
  return node->runRanks(localIds, [&](uint32_t id) { return host(*ranks[id]); });
}

Status World::runHosts(const std::vector<HostCode> &codes) {
  for (const HostCode &code : codes)
    if (code.rank >= numRanks() || !isLocal(code.rank))
      return invalidArgument(fmt::format("host code of rank {}, which is not of this process", code.rank));
  beginSequences();
  return node->runHosts(codes);
}

Status World::synchronize() {
  return node->synchronize(localIds, [&](uint32_t id) { return ranks[id]->synchronize(); });
}

Status World::status() const { return node->status(); }

Expected<std::string> World::chromeTrace() const {
  if (!optionValues.trace)
    return invalidArgument("the world keeps no timeline; make it with WorldOptions::trace");
  return machine() ? machine()->chromeTrace() : node->chromeTrace();
}

Status World::writeTrace(const std::string &path) const {
  DITRON_ASSIGN_OR_RETURN(const std::string trace, chromeTrace());
  return writeWholeFile(path, trace).withContext("trace");
}

} // namespace ditron::runtime
