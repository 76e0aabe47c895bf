//===- Machine.cpp - Nodes of simulated GPUs ----------------------------------------------------------------------===//
//
// The public functions: they check what the host says, make records, and hand over to the engine.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/Machine.h"

#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/report/DeadlockReport.h"
#include "ditron/support/OutputFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace ditron::sim {

namespace {

constexpr double maxTimeLimitSeconds = 1e9;

Status checkOptions(const MachineOptions &options) {
  auto bad = [](std::string_view option, std::string_view accepted) {
    return invalidArgument(fmt::format("simulator option {}: accepted is {}", option, accepted));
  };
  if (options.ranks < 1 || options.ranks > 1024)
    return bad("ranks", "1 to 1024");
  if (options.ranks % options.nodeSize())
    return bad("ranksPerNode", fmt::format("a divisor of the {} ranks, or 0 for one node", options.ranks));
  if (options.smsPerRank < 1 || options.smsPerRank > 4096)
    return bad("smsPerRank", "1 to 4096");
  if (options.blocksPerSm < 1 || options.blocksPerSm > 32)
    return bad("blocksPerSm", "1 to 32");
  if (options.warpSize != 32 && options.warpSize != 64)
    return bad("warpSize", "32 or 64");
  if (options.copyEnginesPerRank < 1 || options.copyEnginesPerRank > 64)
    return bad("copyEnginesPerRank", "1 to 64");
  if (options.maxThreadsPerBlock < 1 || options.maxThreadsPerBlock > 4096)
    return bad("maxThreadsPerBlock", "1 to 4096");
  if (!(options.jitter >= 0 && options.jitter < 1))
    return bad("jitter", "0 to less than 1");
  if (!(options.timeLimitSeconds >= 0 && options.timeLimitSeconds <= maxTimeLimitSeconds))
    return bad("timeLimitSeconds", fmt::format("0 for none, to {:.0f}", maxTimeLimitSeconds));
  for (const auto &[rank, factor] : options.slowRanks)
    if (rank >= options.ranks || !(factor > 0))
      return bad("slowRanks", fmt::format("a rank of 0..{} with a factor greater than 0", options.ranks - 1));
  return Status::ok();
}

Status checkBulk(Memory &memory, const void *address, uint64_t bytes, std::string_view what) {
  if (bytes != 0 && !address)
    return invalidArgument(fmt::format("{}: null address", what));
  if (std::string problem = memory.checkBulk(address, bytes); !problem.empty())
    return {StatusCode::OutOfBounds, fmt::format("{}: {}", what, problem)};
  return Status::ok();
}

/// Streams and copy engines reach what is on their rank's node.
Status checkReach(Machine::State &state, const Rank &rank, const void *address, std::string_view what) {
  std::string problem = state.memory.otherNode(rank.id, address);
  if (problem.empty())
    return Status::ok();
  return unsupported(fmt::format("{}: {}", what, problem));
}

Status checkSignal(Memory &memory, const void *address, uint32_t bytes, std::string_view what) {
  if (bytes != 4 && bytes != 8)
    return invalidArgument(fmt::format("{}: a signal has 4 or 8 bytes, not {}", what, bytes));
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0)
    return invalidArgument(fmt::format("{}: the signal's address is not a multiple of {}", what, bytes));
  return checkBulk(memory, address, bytes, what);
}

} // namespace

CostModel CostModel::sm90() {
  CostModel cost;
  cost.smClockGHz = 1.755;
  cost.hbmBytesPerNsPerSm = 36.4; // 4.8 TB/s
  cost.mmaFlopsPerClock16 = 2540; // mma.sync reaches about five eighths of what wgmma does
  cost.mmaFlopsPerClock8 = 5080;
  cost.mmaFlopsPerClockTf32 = 1270;
  cost.fmaFlopsPerClock = 256;
  cost.linkBytesPerNs = 27.3; // 450 GB/s
  // As machines/h200-cluster.json says, which a test compares.
  cost.networkBytesPerNs = 2.73;
  return cost;
}

MachineOptions MachineOptions::sm90() {
  MachineOptions options;
  options.sharedBytesPerBlock = 227 * 1024;
  options.cost = CostModel::sm90();
  return options;
}

Machine::Machine(std::unique_ptr<State> state) : impl(std::move(state)) {}
Machine::~Machine() = default;

Expected<std::unique_ptr<Machine>> Machine::create(MachineOptions options) {
  DITRON_RETURN_IF_ERROR(checkOptions(options));
  auto state = std::make_unique<State>(std::move(options));
  DITRON_RETURN_IF_ERROR(state->start());
  return std::unique_ptr<Machine>(new Machine(std::move(state)));
}

const MachineOptions &Machine::options() const { return impl->options; }
Status Machine::status() const { return impl->status; }
std::shared_ptr<const explain::WaitReport> Machine::waitReport() const { return impl->waitReport; }
explain::WaitReport Machine::reportWaits() const { return reportMoment(*impl); }
void Machine::describeWords(const void *allocation, std::function<WordRole(uint64_t)> describe) {
  if (Allocation *found = impl->memory.find(allocation))
    found->describeWord = std::move(describe);
}
SimTime Machine::now() const {
  return impl->currentHost ? impl->currentHost->clock : std::max(impl->outsideClock, impl->scheduler.now);
}

//===- Memory -----------------------------------------------------------------------------------------------------===//

Expected<void *> Machine::allocate(uint32_t rank, uint64_t bytes, std::string_view name, uint32_t elementBytes,
                                   MemoryKind kind) {
  return impl->memory.allocate(rank, bytes, name, elementBytes, kind);
}
Expected<uint64_t> Machine::allocateSymmetric(uint64_t bytes, std::string_view name, uint32_t elementBytes) {
  return impl->memory.allocateSymmetric(bytes, name, elementBytes);
}
Status Machine::adopt(uint32_t rank, void *address, uint64_t bytes, std::string_view name, uint32_t elementBytes) {
  return impl->memory.adopt(rank, address, bytes, name, elementBytes);
}
Status Machine::release(void *address) { return impl->memory.release(address); }
Status Machine::free(void *address) { return impl->memory.free(address); }
Status Machine::freeSymmetric(uint64_t offset) { return impl->memory.freeSymmetric(offset); }
Status Machine::hostAccess(const void *address, uint64_t bytes, bool isWrite) {
  if (!impl->races)
    return Status::ok();
  const race::Actor host = impl->races->hostActor(impl->hostOrder(), impl->currentHost ? impl->currentHost->rank : 0,
                                                  impl->currentHost ? impl->currentHost->name : "");
  const uint16_t place = impl->races->siteNumber(impl->currentHost ? impl->currentHost->place : nullptr);
  if (const std::string *race = impl->races->access(host, address, bytes, {isWrite, race::Strength::ordinary(), place}))
    return {StatusCode::DataRace, "host code: " + *race};
  return Status::ok();
}

/// Whether the operation was given an address in one of the ranges [begin, begin + bytes).
static bool uses(const StreamOp &op, const std::vector<const char *> &begins, uint64_t bytes) {
  auto meets = [&](const void *address, uint64_t size) {
    return std::ranges::any_of(begins, [&](const char *begin) {
      const auto *first = static_cast<const char *>(address);
      return first < begin + bytes && begin < first + size;
    });
  };
  auto copySpan = [&](uint64_t pitch) {
    return (op.copy.rows - 1) * (pitch ? pitch : op.copy.rowBytes) + op.copy.rowBytes;
  };
  switch (op.kind) {
  case OpKind::Launch: {
    const ArgumentPack &arguments = op.launch->description.arguments;
    for (size_t i = 0; i < arguments.offsets.size(); ++i) {
      const size_t end = i + 1 < arguments.offsets.size() ? arguments.offsets[i + 1] : arguments.bytes.size();
      const void *value = nullptr;
      if (end - arguments.offsets[i] < sizeof value)
        continue;
      std::memcpy(&value, arguments.bytes.data() + arguments.offsets[i], sizeof value);
      if (meets(value, 1))
        return true;
    }
    return false;
  }
  case OpKind::Copy:
    return meets(op.copy.destination, copySpan(op.copy.destinationPitch)) ||
           meets(op.copy.source, copySpan(op.copy.sourcePitch));
  case OpKind::Memset: return meets(op.copy.destination, op.copy.rowBytes);
  case OpKind::SignalWrite:
  case OpKind::SignalAdd:
  case OpKind::SignalWait: return meets(op.address, op.bytes);
  case OpKind::EventRecord:
  case OpKind::EventWait:
  case OpKind::Callback: return false;
  }
  return false;
}

std::string Machine::pendingUse(const void *address) const {
  const Allocation *allocation = impl->memory.find(address);
  if (!allocation)
    return "";
  std::vector<const char *> begins = {allocation->begin};
  if (allocation->kind == MemoryKind::Symmetric) {
    const auto offset = allocation->begin - static_cast<const char *>(symmetricBase(allocation->rank));
    begins.clear();
    for (uint32_t rank = 0; rank < impl->options.ranks; ++rank)
      begins.push_back(static_cast<const char *>(symmetricBase(rank)) + offset);
  }
  for (const auto &stream : impl->streams)
    if (const StreamOp *op =
            stream->findOperation([&](const StreamOp &each) { return uses(each, begins, allocation->size()); }))
      return fmt::format("{}{} on stream {} of rank {}", op->kind == OpKind::Launch ? "kernel " : "", op->name,
                         stream->name, stream->rank.id);
  return "";
}

void *Machine::symmetricBase(uint32_t rank) const { return impl->memory.symmetricBase(rank); }
void *Machine::symmetricBase(uint32_t rank, uint32_t observer) const {
  return impl->options.shareNode(rank, observer) ? symmetricBase(rank) : impl->memory.farBase(rank);
}

std::optional<AddressInfo> Machine::describe(const void *address) const {
  const Allocation *allocation = impl->memory.find(address);
  if (!allocation)
    return std::nullopt;
  return AddressInfo{allocation->rank,   allocation->kind,
                     allocation->name,   static_cast<uint64_t>(static_cast<const char *>(address) - allocation->begin),
                     allocation->size(), allocation->elementBytes,
                     allocation->freed};
}

//===- Streams and events -----------------------------------------------------------------------------------------===//

Expected<StreamId> Machine::createStream(uint32_t rank, std::string_view name, int priority) {
  if (rank >= impl->options.ranks)
    return invalidArgument(
        fmt::format("stream {}: rank {} does not exist, ranks are 0..{}", name, rank, impl->options.ranks - 1));
  auto id = static_cast<uint32_t>(impl->streams.size());
  impl->streams.push_back(std::make_unique<Stream>(*impl, *impl->ranks[rank], id, name, priority));
  impl->ranks[rank]->streams.push_back(impl->streams.back().get());
  return StreamId{id};
}

void Machine::observeProgress(std::function<void(double)> observer) { impl->progressObserver = std::move(observer); }

Status Machine::destroyStream(StreamId id) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(impl->checkEnqueue(id, stream));
  if (stream->capture)
    return invalidArgument(fmt::format("stream {} is being captured and cannot be destroyed", stream->name));
  stream->destroyed = true;
  return Status::ok();
}

Expected<uint32_t> Machine::streamRank(StreamId id) const {
  if (id.value >= impl->streams.size())
    return invalidArgument(fmt::format("stream {} does not exist", id.value));
  return impl->streams[id.value]->rank.id;
}

bool Machine::isIdle(StreamId id) const {
  return id.value >= impl->streams.size() || impl->streams[id.value]->isIdle();
}

Status Machine::launch(StreamId id, LaunchDescription launch) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(impl->checkEnqueue(id, stream));
  const MachineOptions &options = impl->options;
  const std::string what = fmt::format("launch of kernel {} on rank {}", launch.name, stream->rank.id);
  if (!launch.entry)
    return invalidArgument(what + ": no entry point");
  for (uint32_t extent : launch.grid)
    if (extent == 0)
      return invalidArgument(fmt::format("{}: the grid ({},{},{}) is empty; each extent must be at least 1", what,
                                         launch.grid[0], launch.grid[1], launch.grid[2]));
  if (launch.threadsPerBlock < 1 || launch.threadsPerBlock > options.maxThreadsPerBlock)
    return invalidArgument(fmt::format("{}: {} threads per block; accepted is 1 to {}", what, launch.threadsPerBlock,
                                       options.maxThreadsPerBlock));
  if (launch.sharedBytes > options.sharedBytesPerBlock)
    return {StatusCode::ResourceExhausted, fmt::format("{}: {} bytes of shared memory per block; the device has {}",
                                                       what, launch.sharedBytes, options.sharedBytesPerBlock)};
  uint64_t blocks = uint64_t(1) * launch.grid[0] * launch.grid[1] * launch.grid[2];
  uint64_t slots = uint64_t(1) * options.smsPerRank * options.blocksPerSm;
  if (launch.cooperative && blocks > slots)
    return {
        StatusCode::ResourceExhausted,
        fmt::format("{}: a cooperative launch of {} blocks needs as many resident at once; the device has room for {}",
                    what, blocks, slots)};
  StreamOp op(OpKind::Launch, launch.name);
  auto prepared = std::make_shared<PreparedLaunch>();
  prepared->description = std::move(launch);
  for (uint32_t offset : prepared->description.arguments.offsets)
    prepared->pointers.push_back(prepared->description.arguments.bytes.data() + offset);
  op.launch = std::move(prepared);
  impl->enqueuedBlocks += blocks;
  return impl->enqueue(*stream, std::move(op));
}

/// Completes the description, and says what is wrong with it.
static Status checkDescription(Machine::State &state, const Stream &stream, CopyDescription &copy) {
  if (copy.rowBytes == 0 || copy.rows == 0)
    copy.rowBytes = 0, copy.rows = 1;
  for (uint64_t pitch : {copy.destinationPitch, copy.sourcePitch})
    if (pitch != 0 && pitch < copy.rowBytes)
      return invalidArgument(
          fmt::format("copy {}: the pitch {} is less than the {} bytes of a row", copy.name, pitch, copy.rowBytes));
  DITRON_RETURN_IF_ERROR(
      checkReach(state, stream.rank, copy.destination, fmt::format("destination of copy {}", copy.name)));
  DITRON_RETURN_IF_ERROR(checkReach(state, stream.rank, copy.source, fmt::format("source of copy {}", copy.name)));
  uint64_t last = copy.rows - 1;
  DITRON_RETURN_IF_ERROR(checkBulk(
      state.memory, copy.destination,
      copy.rowBytes ? last * (copy.destinationPitch ? copy.destinationPitch : copy.rowBytes) + copy.rowBytes : 0,
      fmt::format("destination of copy {}", copy.name)));
  DITRON_RETURN_IF_ERROR(
      checkBulk(state.memory, copy.source,
                copy.rowBytes ? last * (copy.sourcePitch ? copy.sourcePitch : copy.rowBytes) + copy.rowBytes : 0,
                fmt::format("source of copy {}", copy.name)));
  return Status::ok();
}

Status Machine::checkCopy(StreamId id, CopyDescription copy) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(impl->checkEnqueue(id, stream));
  return checkDescription(*impl, *stream, copy);
}

Status Machine::copy(StreamId id, CopyDescription copy) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(impl->checkEnqueue(id, stream));
  DITRON_RETURN_IF_ERROR(checkDescription(*impl, *stream, copy));
  StreamOp op(OpKind::Copy, copy.name);
  op.copy = std::move(copy);
  return impl->enqueue(*stream, std::move(op));
}

Status Machine::memset(StreamId id, void *address, int byteValue, uint64_t bytes) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(impl->checkEnqueue(id, stream));
  DITRON_RETURN_IF_ERROR(checkReach(*impl, stream->rank, address, "memset"));
  DITRON_RETURN_IF_ERROR(checkBulk(impl->memory, address, bytes, "memset"));
  StreamOp op(OpKind::Memset, "memset");
  op.copy.destination = address;
  op.copy.rowBytes = bytes;
  op.value = static_cast<uint8_t>(byteValue);
  return impl->enqueue(*stream, std::move(op));
}

static Status enqueueSignal(Machine::State &state, StreamId id, OpKind kind, std::string_view name, const void *address,
                            uint64_t value, uint32_t bytes, Compare compare) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(state.checkEnqueue(id, stream));
  DITRON_RETURN_IF_ERROR(checkReach(state, stream->rank, address, name));
  DITRON_RETURN_IF_ERROR(checkSignal(state.memory, address, bytes, name));
  StreamOp op(kind, std::string(name));
  op.address = const_cast<void *>(address);
  op.value = value;
  op.bytes = bytes;
  op.compare = compare;
  return state.enqueue(*stream, std::move(op));
}

Status Machine::signalWrite(StreamId stream, void *address, uint64_t value, uint32_t bytes) {
  return enqueueSignal(*impl, stream, OpKind::SignalWrite, "signal write", address, value, bytes, Compare::Equal);
}
Status Machine::signalAdd(StreamId stream, void *address, uint64_t value, uint32_t bytes) {
  return enqueueSignal(*impl, stream, OpKind::SignalAdd, "signal add", address, value, bytes, Compare::Equal);
}
Status Machine::signalWait(StreamId stream, const void *address, Compare compare, uint64_t value, uint32_t bytes) {
  return enqueueSignal(*impl, stream, OpKind::SignalWait, "signal wait", address, value, bytes, compare);
}

Status Machine::hostCallback(StreamId id, std::function<void()> callback, std::string_view name) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(impl->checkEnqueue(id, stream));
  if (!callback)
    return invalidArgument(fmt::format("{}: no function", name));
  StreamOp op(OpKind::Callback, std::string(name));
  op.callback = std::move(callback);
  return impl->enqueue(*stream, std::move(op));
}

Expected<EventId> Machine::createEvent(std::string_view name) {
  auto id = static_cast<uint32_t>(impl->events.size());
  impl->events.push_back(std::make_unique<Event>());
  impl->events.back()->name = std::string(name);
  return EventId{id};
}

static Status checkEvent(const Machine::State &state, EventId event) {
  if (event.value >= state.events.size())
    return invalidArgument(fmt::format("event {} does not exist", event.value));
  return Status::ok();
}

static Status enqueueEvent(Machine::State &state, StreamId id, EventId event, OpKind kind) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(state.checkEnqueue(id, stream));
  DITRON_RETURN_IF_ERROR(checkEvent(state, event));
  std::string_view verb = kind == OpKind::EventRecord ? "record of event " : "wait for event ";
  StreamOp op(kind, fmt::format("{}{}", verb, state.events[event.value]->name));
  op.event = event;
  return state.enqueue(*stream, std::move(op));
}

Status Machine::recordEvent(StreamId stream, EventId event) {
  return enqueueEvent(*impl, stream, event, OpKind::EventRecord);
}
Status Machine::waitEvent(StreamId stream, EventId event) {
  return enqueueEvent(*impl, stream, event, OpKind::EventWait);
}

Status Machine::synchronizeEvent(EventId id) {
  DITRON_RETURN_IF_ERROR(checkEvent(*impl, id));
  Event &event = *impl->events[id.value];
  const uint64_t recording = event.recorded;
  const std::shared_ptr<Recording> mark = event.latest;
  Status done = impl->blockHost([&event, recording] { return event.completed >= recording; },
                                fmt::format("event {}", event.name));
  if (impl->races && mark)
    impl->races->learnHost(impl->hostOrder(), mark->known);
  return done;
}

std::optional<SimTime> Machine::eventTime(EventId id) const {
  if (id.value >= impl->events.size() || impl->events[id.value]->completed == 0)
    return std::nullopt;
  return impl->events[id.value]->time;
}

//===- Host code --------------------------------------------------------------------------------------------------===//

/// The calling host code has waited for what the stream did.
static void learnFrom(Machine::State &state, const Stream &stream) {
  if (state.races)
    state.races->learnHost(state.hostOrder(), stream.order.known);
}

/// The calling host code comes after what the other ranks' has done so far.
static void learnFromHosts(Machine::State &state) {
  if (state.races)
    for (const auto &other : state.hosts)
      if (other.get() != state.currentHost)
        state.races->learnHost(state.hostOrder(), state.races->releaseHost(other->order));
}

/// Without checked accesses the red zones are the only witnesses of an overrun.
static Status afterSynchronize(Machine::State &state, Status status) {
  if (state.races && status.isOk())
    state.races->forgetIfAllIsKnown();
  if (!status.isOk() || state.options.checkBounds)
    return status;
  if (std::string damage = state.memory.findDamagedRedZone(); !damage.empty())
    state.fail({StatusCode::OutOfBounds, damage});
  return state.status;
}

Status Machine::synchronize(StreamId id) {
  if (id.value >= impl->streams.size())
    return invalidArgument(fmt::format("stream {} does not exist", id.value));
  Stream *stream = impl->streams[id.value].get();
  if (stream->capture)
    return invalidArgument(fmt::format("stream {} is being captured and cannot be waited for", stream->name));
  Status done = impl->blockHost([stream] { return stream->isIdle(); }, fmt::format("stream {}", stream->name));
  learnFrom(*impl, *stream);
  return afterSynchronize(*impl, std::move(done));
}

Status Machine::synchronizeRank(uint32_t rank) {
  if (rank >= impl->options.ranks)
    return invalidArgument(fmt::format("rank {} does not exist, ranks are 0..{}", rank, impl->options.ranks - 1));
  const Rank *target = impl->ranks[rank].get();
  auto idle = [target] {
    return std::all_of(target->streams.begin(), target->streams.end(),
                       [](const Stream *stream) { return stream->isIdle(); });
  };
  Status done = impl->blockHost(idle, fmt::format("all streams of rank {}", rank));
  for (const Stream *stream : target->streams)
    learnFrom(*impl, *stream);
  return afterSynchronize(*impl, std::move(done));
}

Status Machine::synchronize() {
  auto idle = [this] {
    return std::all_of(impl->streams.begin(), impl->streams.end(), [](const auto &stream) { return stream->isIdle(); });
  };
  Status done = impl->blockHost(idle, "all streams of all ranks");
  impl->finishTransfers();
  done = impl->status.isOk() ? std::move(done) : impl->status;
  for (const auto &stream : impl->streams)
    learnFrom(*impl, *stream);
  return afterSynchronize(*impl, std::move(done));
}

Status Machine::runRanks(const std::function<Status(uint32_t rank)> &host) {
  std::vector<HostCode> codes;
  for (uint32_t rank = 0; rank < impl->options.ranks; ++rank)
    codes.push_back({rank, "", [&host, rank] { return host(rank); }});
  return runHosts(codes);
}

Status Machine::runHosts(const std::vector<HostCode> &codes) {
  if (impl->stopped())
    return impl->status;
  if (impl->currentHost)
    return invalidArgument("runRanks inside runRanks");
  impl->hosts.clear();
  impl->meetings.clear();
  for (const HostCode &code : codes) {
    if (code.rank >= impl->options.ranks)
      return invalidArgument(fmt::format("host code of rank {}, which does not exist; ranks are 0..{}", code.rank,
                                         impl->options.ranks - 1));
    auto fiber = std::make_unique<HostFiber>(*impl, code);
    if (!fiber->prepare()) {
      impl->hosts.clear();
      return {StatusCode::ResourceExhausted, "no memory for the host code's stacks"};
    }
    fiber->clock = now();
    if (const double latest = impl->schedule.hostStartNs; latest > 0 && codes.size() > 1)
      fiber->clock +=
          impl->scheduler.cost(static_cast<double>(impl->scheduler.random.below(static_cast<uint64_t>(latest))));
    if (impl->races)
      fiber->order.known = impl->races->releaseHost(impl->outsideOrder);
    impl->hosts.push_back(std::move(fiber));
  }
  for (auto &fiber : impl->hosts) {
    fiber->track =
        hostTrack + static_cast<uint32_t>(std::count_if(impl->hosts.begin(), impl->hosts.end(), [&](const auto &other) {
          return other->rank == fiber->rank && other->track != 0;
        }));
    impl->trace.nameTrack(fiber->rank, fiber->track, fiber->thread.empty() ? "host" : "host " + fiber->thread);
    impl->scheduler.wake(*fiber, fiber->clock);
  }
  impl->run([this] {
    return std::all_of(impl->hosts.begin(), impl->hosts.end(), [](const auto &fiber) { return fiber->finished; });
  });
  impl->finishTransfers();
  Status result = impl->status;
  for (auto &fiber : impl->hosts) {
    impl->outsideClock = std::max(impl->outsideClock, fiber->clock);
    if (impl->races)
      impl->races->learnHost(impl->outsideOrder, impl->races->releaseHost(fiber->order));
    if (result.isOk() && !fiber->result.isOk())
      result = fiber->result.withContext(fiber->name);
    else if (fiber->gaveUp && !impl->status.isOk()) // what the others have waited for, perhaps
      result = Status(result.code(), fmt::format("{}\n{} had ended with an error: {}", result.message(), fiber->name,
                                                 fiber->result.message()));
  }
  impl->hosts.clear();
  return result;
}

std::optional<uint32_t> Machine::currentHostRank() const {
  return impl->currentHost ? std::optional<uint32_t>(impl->currentHost->rank) : std::nullopt;
}

Status Machine::State::meet(std::string_view key, uint32_t participants,
                            const std::function<std::string(size_t)> &describe) {
  if (!currentHost)
    return invalidArgument("a meeting of host code outside of runRanks");
  HostMeeting &meeting = meetings.try_emplace(std::string(key)).first->second;
  if (races)
    races->learnHost(meeting.gathered, races->releaseHost(currentHost->order));
  meeting.waiting.push_back(currentHost);
  if (meeting.waiting.size() >= participants) {
    for (HostFiber *host : meeting.waiting)
      if (races)
        races->learnHost(host->order, meeting.gathered.known);
    meeting.waiting.clear();
    meeting.gathered = {};
    ++meeting.generation;
    hostConditionsDirty = true;
    return status;
  }
  const std::string what = describe(meeting.waiting.size());
  for (HostFiber *host : meeting.waiting)
    host->description = what;
  return blockHost([&meeting, generation = meeting.generation] { return meeting.generation != generation; }, what);
}

void Machine::hostStep(const SourceLocation &place) {
  if (!impl->currentHost)
    return;
  auto [found, isNew] = impl->hostPlaces.try_emplace({place.file, place.line, place.column});
  if (isNew)
    found->second = {std::get<0>(found->first).c_str(), place.line, place.column};
  impl->currentHost->place = &found->second;
  if (!impl->stopped() && impl->scheduler.comesFirst(impl->currentHost->clock))
    impl->currentHost->yield();
}

Status Machine::hostBarrier() {
  return impl->meet("", static_cast<uint32_t>(impl->hosts.size()),
                    [](size_t) { return "the other ranks at a host barrier"; });
}

Status Machine::hostMeet(std::string_view key, uint32_t participants, std::string_view what) {
  return impl->meet(key, participants,
                    [&](size_t there) { return fmt::format("{}: {} of {} are there", what, there, participants); });
}

Status Machine::hostWaitForWork(std::optional<uint32_t> rank, std::string_view what) {
  if (!impl->currentHost)
    return invalidArgument("hostWaitForWork outside of runRanks");
  std::vector<std::pair<const Stream *, uint64_t>> work;
  for (const auto &stream : impl->streams)
    if (!rank || stream->rank.id == *rank)
      work.emplace_back(stream.get(), stream->enqueuedSoFar());
  return impl->blockHost(
      [work] {
        return std::ranges::all_of(work, [](const auto &each) { return each.first->doneSoFar() >= each.second; });
      },
      std::string(what));
}

Status Machine::hostWait(std::function<bool()> condition, std::string_view description) {
  if (!impl->currentHost)
    return invalidArgument("hostWait outside of runRanks");
  Status done = impl->blockHost(std::move(condition), std::string(description));
  learnFromHosts(*impl); // whatever made the condition true is other host code
  return done;
}

//===- What happened ----------------------------------------------------------------------------------------------===//

const Counters &Machine::counters() const { return impl->counters; }
std::string Machine::oldValues() const { return impl->weakMemory ? impl->weakMemory->oldValues() : std::string(); }
const std::vector<LaunchRecord> &Machine::launches() const { return impl->trace.launches; }
const std::vector<CopyRecord> &Machine::copies() const { return impl->trace.copies; }
const std::vector<WaitRecord> &Machine::waits() const { return impl->trace.waits; }
std::string Machine::chromeTrace() const { return impl->trace.render(); }
void Machine::clearTrace() {
  impl->trace.clear();
  for (auto &rank : impl->ranks)
    for (auto &run : rank->runs)
      run->record = SIZE_MAX; // what is still running is not recorded
}

Status Machine::writeChromeTrace(const std::string &path) const {
  return writeWholeFile(path, impl->trace.render()).withContext("trace");
}

} // namespace ditron::sim
