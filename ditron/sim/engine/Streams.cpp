//===- Streams.cpp - In-order queues of operations ----------------------------------------------------------------===//
//
// The stream as an agent. An operation passes through up to three phases: its start-up latency, the act itself, and,
// for kernels, copies, waits, the time until somebody reports it done.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Streams.h"

#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/report/EngineTrace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ditron::sim {

Stream::Stream(Engine &engine, Rank &rank, uint32_t id, std::string_view name, int priority)
    : engine(engine), rank(rank), id(id), name(name), nameNumber(engine.trace.intern(name)), priority(priority),
      track(streamTracks + id) {
  waiter.stream = this;
  engine.trace.nameTrack(rank.id, track, fmt::format("stream {}", name));
}

Writer Stream::writer(SimTime when) const {
  Writer writer;
  writer.kind = Writer::Kind::Stream;
  writer.rank = rank.id;
  writer.name = nameNumber;
  writer.track = track;
  writer.time = when;
  return writer;
}

void Stream::enqueue(std::shared_ptr<const StreamOp> op, SimTime issued) {
  ++enqueued;
  queue.push_back({std::move(op), issued, engine.races ? engine.races->releaseHost(engine.hostOrder()) : nullptr});
  if (queue.size() == 1)
    engine.scheduler.wake(*this, std::max(clock, issued));
}

const StreamOp *Stream::findOperation(const std::function<bool(const StreamOp &)> &test) const {
  for (const Queued &queued : queue)
    if (test(*queued.op))
      return queued.op.get();
  return nullptr;
}

double Stream::startLatency(const StreamOp &op) {
  const CostModel &cost = engine.options.cost;
  switch (op.kind) {
  case OpKind::Launch: return cost.launchLatencyNs * rank.slowFactor + std::exchange(rank.startDelayNs, 0);
  case OpKind::SignalWrite:
  case OpKind::SignalAdd: {
    const Allocation *home = engine.memory.find(op.address);
    return home && home->rank != rank.id ? cost.linkLatencyNs : cost.localLatencyNs;
  }
  case OpKind::SignalWait: return cost.localLatencyNs;
  case OpKind::Copy:
  case OpKind::Memset:
  case OpKind::EventRecord:
  case OpKind::EventWait:
  case OpKind::Callback: return 0;
  }
  return 0;
}

void Stream::step(SimTime now) {
  clock = std::max(clock, now);
  if (queue.empty() || phase == Phase::Elsewhere)
    return;
  if (phase == Phase::Fresh) {
    opStart = clock;
    phase = Phase::Latency;
    double latency = startLatency(head());
    SimTime begin = opStart + (latency > 0 ? engine.scheduler.cost(latency) : 0);
    if (begin > clock || engine.scheduler.nextTime() < begin) {
      engine.scheduler.wake(*this, begin);
      return;
    }
  }
  perform(clock);
}

void Stream::writeSignal(const StreamOp &op, SimTime now) {
  if (std::string problem = engine.memory.checkBulk(op.address, op.bytes); !problem.empty()) {
    fail(op, StatusCode::OutOfBounds, problem);
    return;
  }
  uint64_t value = op.value;
  if (op.kind == OpKind::SignalAdd)
    value += static_cast<uint64_t>(loadSigned(op.address, op.bytes));
  if (engine.races)
    if (const std::string *race = engine.races->signal(engine.races->beginOperation(*this, op.name), order.known,
                                                       op.address, {op.bytes, op.kind == OpKind::SignalAdd})) {
      fail(op, StatusCode::DataRace, *race);
      return;
    }
  if (op.bytes == 4)
    *static_cast<volatile uint32_t *>(op.address) = static_cast<uint32_t>(value);
  else
    *static_cast<volatile uint64_t *>(op.address) = value;
  if (engine.trace.isEnabled())
    engine.trace.span(rank.id, track, engine.trace.intern("signal " + engine.memory.signalName(op.address)),
                      SpanKind::Signal, opStart, now, TraceArguments().add("value", value).take());
  engine.wordWritten(op.address, op.bytes, writer(now));
}

void Stream::perform(SimTime now) {
  std::shared_ptr<const StreamOp> op = queue.front().op;
  phase = Phase::Elsewhere;
  if (engine.races)
    engine.races->wait(order, queue.front().known);
  switch (op->kind) {
  case OpKind::Launch: engine.submitKernel(*this, op->launch, now); return;
  case OpKind::Copy:
  case OpKind::Memset: {
    auto &engines = rank.copyEngines;
    auto best = std::min_element(engines.begin(), engines.end(),
                                 [](const auto &a, const auto &b) { return a->queuedBytes() < b->queuedBytes(); });
    if (engine.races)
      actor = engine.races->beginOperation(*this, op->name);
    (*best)->submit(*this, op, now);
    return;
  }
  case OpKind::SignalWrite:
  case OpKind::SignalAdd:
    writeSignal(*op, now);
    operationDone(now);
    return;
  case OpKind::SignalWait:
    if (std::string problem = engine.memory.checkBulk(op->address, op->bytes); !problem.empty()) {
      fail(*op, StatusCode::OutOfBounds, problem);
      return;
    }
    waiter.address = op->address;
    waiter.bytes = op->bytes;
    waiter.compare = op->compare;
    waiter.value = op->bytes == 4 ? static_cast<int32_t>(op->value) : static_cast<int64_t>(op->value);
    waiter.since = now;
    if (waiter.satisfied())
      releaseWaiter(now);
    else
      engine.watches.add(waiter);
    return;
  case OpKind::EventRecord: {
    Event &event = *engine.events[op->event.value];
    event.completed = op->recording;
    event.time = now;
    op->mark->known = order.known;
    event.recordedBy = writer(now);
    std::vector<Stream *> waiters = std::move(event.waiters);
    event.waiters.clear();
    for (Stream *waiting : waiters)
      waiting->eventCompleted(now);
    operationDone(now);
    return;
  }
  case OpKind::EventWait:
    if (engine.events[op->event.value]->completed >= op->recording)
      eventCompleted(now);
    else
      engine.events[op->event.value]->waiters.push_back(this);
    return;
  case OpKind::Callback:
    engine.insideCallback = true;
    op->callback();
    engine.insideCallback = false;
    operationDone(now);
    engine.rescan(nullptr);
    return;
  }
}

void Stream::releaseWaiter(SimTime when) {
  if (engine.trace.isEnabled())
    engine.trace.waits.push_back(
        {rank.id, {}, {0, 0, 0}, engine.memory.signalName(waiter.address), waiter.since, when});
  if (engine.races)
    if (const std::string *race = engine.races->sawSignal(*this, waiter.address, waiter.bytes)) {
      fail(head(), StatusCode::DataRace, *race);
      return;
    }
  operationDone(when);
}

void Stream::eventCompleted(SimTime when) {
  const StreamOp &op = head();
  Event &event = *engine.events[op.event.value];
  if (event.completed < op.recording) {
    event.waiters.push_back(this);
    return;
  }
  if (engine.races)
    engine.races->wait(order, op.mark->known);
  if (engine.trace.isEnabled() && event.time > opStart)
    engine.trace.arrow(event.recordedBy, rank.id, track, when, engine.trace.intern("event " + event.name));
  operationDone(when);
}

void Stream::fail(const StreamOp &op, StatusCode code, const std::string &problem) {
  engine.fail(op.failure(code, fmt::format("rank {}, stream {}, {}: {}", rank.id, name, op.name, problem)));
}

Status StreamOp::failure(StatusCode code, const std::string &message) const {
  return place ? failureAt(code, place, message) : Status(code, message);
}

void Stream::operationDone(SimTime when) {
  clock = std::max(clock, when);
  if (engine.trace.isEnabled())
    traceStreamOperation(*this, opStart, clock, /*isFinished=*/true);
  if (engine.races)
    engine.races->operationDone(*this);
  queue.pop_front();
  ++done;
  phase = Phase::Fresh;
  ++engine.progress;
  engine.hostConditionsDirty = true;
  if (!queue.empty())
    engine.scheduler.wake(*this, std::max(clock, queue.front().issued));
}

} // namespace ditron::sim
