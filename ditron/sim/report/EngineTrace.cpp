//===- EngineTrace.cpp - What the engine tells the trace ----------------------------------------------------------===//
//
// Nothing here may name an address: the same seed gives the same bytes.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/report/EngineTrace.h"

#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace ditron::sim {

namespace {

std::string blockText(const uint32_t *block) { return fmt::format("({},{},{})", block[0], block[1], block[2]); }

/// "signals[3]" of a word that somebody waits for.
std::string wordName(Engine &engine, const Waiter &waiter) {
  if (!engine.memory.find(waiter.address) && waiter.thread)
    return fmt::format("shared memory+{}", static_cast<const char *>(waiter.address) - waiter.thread->sharedMemory);
  return engine.memory.signalName(waiter.address);
}

/// The same of any memory that a copy or a kernel reaches.
std::string memoryName(Engine &engine, const void *address) {
  return engine.memory.find(address) ? engine.memory.signalName(address)
                                     : std::string("memory of the host's or of a block");
}

TraceArguments waitArguments(Engine &engine, const Waiter &waiter) {
  TraceArguments arguments;
  const Allocation *home = engine.memory.find(waiter.address);
  arguments.add("word", wordName(engine, waiter));
  if (home)
    arguments.add("of rank", home->rank);
  arguments.add("wants", waiter.kind == Waiter::Kind::Until
                             ? fmt::format("{} {}", compareText(waiter.compare), waiter.value)
                             : fmt::format("!= {}", waiter.value));
  arguments.add("has", loadSigned(waiter.address, waiter.bytes));
  if (waiter.thread) {
    arguments.add("at", siteText(waiter.thread->site));
    arguments.add("block", blockText(waiter.thread->block->blockId));
    arguments.add("thread", waiter.thread->threadId);
  }
  return arguments;
}

SimTime waitBegin(const Waiter &waiter) {
  SimTime since = waiter.since;
  if (!waiter.thread)
    return since;
  // A loop that polls sleeps again and again; its wait began with the first.
  if (waiter.kind != Waiter::Kind::Until)
    since = std::min(since, waiter.began);
  return std::max(since, waiter.thread->block->tracedWaitEnd);
}

uint32_t trackOf(const Waiter &waiter) { return waiter.thread ? waiter.thread->block->slot : waiter.stream->track; }
uint32_t rankOf(const Waiter &waiter) { return waiter.thread ? waiter.thread->block->rank.id : waiter.stream->rank.id; }

void traceRemote(const Block &block, const RemoteTraffic &traffic) {
  Engine &engine = block.engine;
  const SimTime end = std::max(traffic.begin, traffic.end);
  TraceArguments arguments;
  arguments.addTraffic(traffic.bytes, end - traffic.begin)
      .add("accesses", traffic.accesses)
      .add("from rank", traffic.isWrite ? block.rank.id : traffic.peer)
      .add("to rank", traffic.isWrite ? traffic.peer : block.rank.id)
      .add("kernel", block.kernel->description().name)
      .add("block", blockText(block.blockId))
      .add("first at", siteText(traffic.site));
  const uint32_t name = engine.trace.intern(
      fmt::format("{} {} of rank {}", traffic.isWrite ? "store to" : "load from", traffic.name, traffic.peer));
  engine.trace.overlappingSpan(block.rank.id, remoteTracks, "loads and stores of other ranks", name, SpanKind::Remote,
                               traffic.begin, end, arguments.take());
}

/// The message without addresses, which differ from run to run.
std::string withoutAddresses(const std::string &message) {
  std::string text;
  for (size_t at = 0; at < message.size();) {
    const size_t next = message.find("0x", at);
    text += message.substr(at, next == std::string::npos ? next : next - at);
    if (next == std::string::npos)
      break;
    at = std::min(message.find_first_not_of("0123456789abcdefABCDEF", next + 2), message.size());
    text += "(address)";
  }
  return text;
}

} // namespace

void traceWaitEnd(Engine &engine, const Waiter &waiter, const Writer *writer, SimTime when) {
  Trace &trace = engine.trace;
  const SimTime from = waitBegin(waiter);
  const std::string word = wordName(engine, waiter);
  if (from <= when) {
    TraceArguments arguments = waitArguments(engine, waiter);
    if (writer && writer->kind != Writer::Kind::None)
      arguments.add("ended by", fmt::format("{} on rank {}", trace.name(writer->name), writer->rank));
    trace.span(rankOf(waiter), trackOf(waiter), trace.intern("wait " + word), SpanKind::Wait, from, when,
               arguments.take());
  }
  if (waiter.thread)
    waiter.thread->block->tracedWaitEnd = std::max(from, when);
  if (!writer)
    return;
  const Allocation *home = engine.memory.find(waiter.address);
  TraceArguments arguments;
  arguments.add("word", word).add("value", loadSigned(waiter.address, waiter.bytes));
  if (home)
    arguments.add("of rank", home->rank);
  if (writer->place)
    arguments.add("written at", engine.places.text(writer->place));
  const uint32_t name = trace.intern(fmt::format("{}{} = {}", word, home ? fmt::format(" of rank {}", home->rank) : "",
                                                 loadSigned(waiter.address, waiter.bytes)));
  trace.arrow(*writer, rankOf(waiter), trackOf(waiter), when, name, arguments.take());
}

void traceBlock(const Block &block, SimTime end, bool isFinished) {
  const LaunchDescription &launch = block.kernel->description();
  TraceArguments arguments;
  arguments.add("block", blockText(block.blockId)).add("threads", launch.threadsPerBlock);
  if (!launch.source.empty())
    arguments.add("source", launch.source);
  if (!isFinished) {
    arguments.add("unfinished", true);
    if (std::string parked = block.describeParked(); !parked.empty())
      arguments.add("threads wait", parked);
  }
  block.engine.trace.span(block.rank.id, block.slot, block.kernel->name, SpanKind::Block, block.start, end,
                          arguments.take());
  for (const RemoteTraffic &traffic : block.remoteTraffic)
    traceRemote(block, traffic);
}

void traceStreamOperation(const Stream &stream, SimTime start, SimTime end, bool isFinished) {
  Engine &engine = stream.engine;
  const StreamOp &op = stream.head();
  TraceArguments arguments;
  SpanKind kind = SpanKind::Host;
  switch (op.kind) {
  case OpKind::Launch: {
    const LaunchDescription &launch = op.launch->description;
    kind = SpanKind::Kernel;
    arguments.add("grid", blockText(launch.grid.data())).add("threads", launch.threadsPerBlock);
    if (!launch.source.empty())
      arguments.add("source", launch.source);
    break;
  }
  case OpKind::Copy:
  case OpKind::Memset:
    kind = SpanKind::Copy;
    arguments.addTraffic(op.copy.rowBytes * op.copy.rows, end - start);
    break;
  case OpKind::EventWait: kind = SpanKind::Wait; break;
  case OpKind::EventRecord:
    if (isFinished)
      engine.trace.instant(stream.rank.id, stream.track, engine.trace.intern(op.name), end);
    return;
  case OpKind::Callback: break;
  case OpKind::SignalWrite:
  case OpKind::SignalAdd:
  case OpKind::SignalWait: return; // drawn with the word's name by those who see the value
  }
  if (!isFinished) {
    arguments.add("unfinished", true);
    if (stream.length() > 1)
      arguments.add("queued behind it", stream.length() - 1);
  }
  engine.trace.span(stream.rank.id, stream.track, engine.trace.intern(op.name), kind, start, end, arguments.take());
}

void traceCopy(const CopyEngine &copyEngine, SimTime end, bool isFinished) {
  const CopyEngine::Progress copy = copyEngine.progress();
  Engine &engine = copyEngine.engine;
  TraceArguments arguments;
  arguments.addTraffic(isFinished ? copy.bytes : copy.moved, end - copy.began)
      .add("from rank", copy.sourceRank)
      .add("to rank", copy.destinationRank);
  if (copy.description->source)
    arguments.add("source", memoryName(engine, copy.description->source));
  arguments.add("destination", memoryName(engine, copy.description->destination));
  if (!isFinished)
    arguments.add("unfinished", true).add("bytes in all", copy.bytes);
  engine.trace.span(copyEngine.rank.id, copyTracks + copyEngine.number, engine.trace.intern(*copy.name), SpanKind::Copy,
                    copy.began, end, arguments.take());
  engine.trace.transfer(copy.sourceRank, copy.destinationRank, copy.bytes, copy.began, end);
}

uint32_t traceTransfer(Engine &engine, const PendingTransfer &transfer, uint32_t rank, SimTime end, bool isFinished) {
  const Allocation *home = transfer.destination ? engine.memory.find(transfer.destination) : nullptr;
  const bool isGet = home && home->rank == rank && transfer.peer != rank;
  const uint32_t from = isGet ? transfer.peer : rank, to = isGet ? rank : transfer.peer;
  TraceArguments arguments;
  arguments.addTraffic(transfer.bytes, end - transfer.begun)
      .add("from rank", from)
      .add("to rank", to)
      .add("at", transfer.place);
  if (transfer.bytes)
    arguments.add("destination", memoryName(engine, transfer.destination));
  if (transfer.signal)
    arguments.add("signal", memoryName(engine, transfer.signal)).add("value", transfer.signalValue);
  if (!isFinished)
    arguments.add("unfinished", true);
  Trace &trace = engine.trace;
  const uint32_t name = trace.intern(isGet             ? fmt::format("get from rank {}", from)
                                     : transfer.signal ? fmt::format("put with signal to rank {}", to)
                                                       : fmt::format("put to rank {}", to));
  const uint32_t track = trace.overlappingSpan(rank, networkTracks, "puts and gets", name, SpanKind::Put,
                                               transfer.begun, end, arguments.take());
  Writer caller = transfer.writer;
  caller.time = transfer.begun;
  trace.arrow(caller, rank, track, transfer.begun + 1000, name);
  trace.transfer(from, to, transfer.bytes, transfer.begun, end);
  return track;
}

void traceTensorCopy(const Block &block, std::string_view what, SimTime start, SimTime end, uint64_t bytes,
                     const DitronSimSite *site) {
  Trace &trace = block.engine.trace;
  trace.nameTrack(block.rank.id, tmaTracks + block.slot, fmt::format("SM {} TMA", block.slot));
  trace.span(block.rank.id, tmaTracks + block.slot, trace.intern(what), SpanKind::Copy, start, end,
             TraceArguments().add("bytes", bytes).add("line", site ? site->line : 0).take());
}

void traceMultiply(const Block &block, SimTime start, SimTime end, uint32_t n, uint32_t k) {
  Trace &trace = block.engine.trace;
  trace.nameTrack(block.rank.id, tensorTracks + block.slot, fmt::format("SM {} tensor cores", block.slot));
  trace.span(block.rank.id, tensorTracks + block.slot, trace.intern("wgmma"), SpanKind::Block, start, end,
             TraceArguments().add("n", n).add("k", k).take());
}

void traceHost(Engine &engine, std::string_view what, SimTime start, SimTime end, bool isFinished) {
  const uint32_t rank = engine.currentHost ? engine.currentHost->rank : engine.options.ranks;
  const uint32_t track = engine.currentHost ? engine.currentHost->track : uint32_t(hostTrack);
  if (!engine.currentHost) {
    engine.trace.nameProcess(rank, "host code of no rank");
    engine.trace.nameTrack(rank, track, "host");
  }
  engine.trace.span(rank, track, engine.trace.intern(what), SpanKind::Host, start, end,
                    isFinished ? std::string() : TraceArguments().add("unfinished", true).take());
}

void traceUnfinished(Engine &engine) {
  Trace &trace = engine.trace;
  SimTime end = std::max({trace.latest(), engine.scheduler.now, engine.outsideClock});
  for (const auto &rank : engine.ranks)
    for (const auto &slot : rank->slots)
      if (slot->kernel)
        end = std::max(end, slot->clock);
  for (const auto &host : engine.hosts)
    end = std::max(end, host->clock);

  for (const auto &rank : engine.ranks) {
    for (const auto &slot : rank->slots)
      if (slot->kernel)
        traceBlock(*slot, end, /*isFinished=*/false);
    for (const auto &copyEngine : rank->copyEngines)
      if (copyEngine->progress().active)
        traceCopy(*copyEngine, end, /*isFinished=*/false);
    for (const Stream *stream : rank->streams)
      if (stream->headHasBegun())
        traceStreamOperation(*stream, stream->headBegin(), end, /*isFinished=*/false);
    for (const PendingTransfer &transfer : rank->shmem->underWay())
      traceTransfer(engine, transfer, rank->id, end, /*isFinished=*/false);
  }
  // Threads of a block that wait for one word make one wait.
  std::map<std::pair<const Block *, const void *>, const Waiter *> waits;
  std::vector<const Waiter *> drawn;
  engine.watches.forEach([&](const Waiter &waiter) {
    auto [first, isNew] = waits.try_emplace({waiter.thread ? waiter.thread->block : nullptr, waiter.address}, &waiter);
    if (isNew || !waiter.thread)
      drawn.push_back(&waiter);
  });
  for (const Waiter *waiter : drawn)
    trace.span(rankOf(*waiter), trackOf(*waiter), trace.intern("wait " + wordName(engine, *waiter)), SpanKind::Wait,
               waitBegin(*waiter), end, waitArguments(engine, *waiter).add("unfinished", true).take());
  for (const auto &host : engine.hosts)
    if (!host->finished && host->condition)
      trace.span(host->rank, host->track, trace.intern("wait for " + host->description), SpanKind::Host, host->clock,
                 end, TraceArguments().add("unfinished", true).take());
  if (!engine.outsideWait.empty())
    traceHost(engine, "wait for " + engine.outsideWait, engine.outsideClock, end, /*isFinished=*/false);
  trace.end(end, toString(engine.status.code()), withoutAddresses(engine.status.message()));
}

} // namespace ditron::sim
