//===- Graph.cpp - Capture and replay -----------------------------------------------------------------------------===//
//
// Enqueueing ends here, since here it is decided whether an operation runs or is captured.
//
// A capture spreads as CUDA's does: from the stream it began on to every stream that waits for an event recorded
// inside. Before it ends, each such stream must have been joined again: its last operation is a recording that another
// captured stream waits for.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace ditron::sim {

namespace {

uint32_t laneOf(Graph &graph, const Stream &stream) {
  for (uint32_t i = 0; i < graph.lanes.size(); ++i)
    if (graph.lanes[i].stream.value == stream.id)
      return i;
  graph.lanes.push_back({{stream.id}, stream.rank.id, stream.priority, false, {}});
  return static_cast<uint32_t>(graph.lanes.size() - 1);
}

/// Takes an operation into the graph; events become numbers of the graph.
void captureOp(Graph &graph, Engine &engine, const Stream &stream, StreamOp op) {
  const uint32_t lane = laneOf(graph, stream);
  graph.lanes[lane].joined = lane == 0;
  if (op.kind == OpKind::EventRecord) {
    auto number = static_cast<uint32_t>(graph.eventNames.size());
    graph.eventNames.push_back(engine.events[op.event.value]->name);
    graph.eventLanes.push_back(lane);
    std::erase_if(graph.openEvents, [&](const auto &open) { return open.first == op.event; });
    graph.openEvents.emplace_back(op.event, number);
    op.event.value = number;
  } else if (op.kind == OpKind::EventWait) {
    auto open = std::find_if(graph.openEvents.begin(), graph.openEvents.end(),
                             [&](const auto &candidate) { return candidate.first == op.event; });
    op.event.value = open->second;
    uint32_t from = graph.eventLanes[open->second];
    // Joined when nothing of the lane comes after the recording.
    auto last = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(),
                             [&](const Graph::Node &node) { return node.lane == from; });
    if (from != lane && last != graph.nodes.rend() && last->op->kind == OpKind::EventRecord &&
        last->op->event.value == open->second)
      graph.lanes[from].joined = true;
  }
  graph.nodes.push_back({lane, std::make_shared<const StreamOp>(std::move(op))});
}

} // namespace

Status Machine::State::checkEnqueue(StreamId id, Stream *&found) {
  if (stopped())
    return status;
  if (insideCallback)
    return invalidArgument("a host callback must not enqueue operations");
  if (id.value >= streams.size() || streams[id.value]->destroyed)
    return invalidArgument(fmt::format("stream {} does not exist", id.value));
  found = streams[id.value].get();
  return Status::ok();
}

Status Machine::State::enqueue(Stream &stream, StreamOp op) {
  op.place = currentHost ? currentHost->place : nullptr;
  if (op.kind == OpKind::EventWait) {
    Event &event = *events[op.event.value];
    if (event.capture && !stream.capture)
      stream.capture = event.capture; // the capture spreads
    if (stream.capture && event.capture != stream.capture)
      return invalidArgument(
          fmt::format("stream {} is being captured and cannot wait for event {}, which was not recorded in "
                      "the same capture",
                      stream.name, event.name));
    op.recording = event.recorded;
    op.mark = event.latest;
    if (!stream.capture && op.recording == 0)
      return Status::ok(); // never recorded: nothing to wait for
  }
  if (op.kind == OpKind::EventRecord) {
    Event &event = *events[op.event.value];
    event.capture = stream.capture;
    if (!stream.capture) {
      op.recording = ++event.recorded;
      op.mark = event.latest = std::make_shared<Recording>();
    }
  }
  if (stream.capture) {
    captureOp(*stream.capture, *this, stream, std::move(op));
    return Status::ok();
  }
  SimTime issued = hostCall(trace.isEnabled() ? "enqueue " + op.name : std::string());
  stream.enqueue(std::make_shared<const StreamOp>(std::move(op)), issued);
  return Status::ok();
}

Status Machine::beginCapture(StreamId id) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(impl->checkEnqueue(id, stream));
  if (stream->capture)
    return invalidArgument(fmt::format("stream {} is being captured already", stream->name));
  auto graph = std::make_unique<Graph>();
  graph->origin = id;
  graph->lanes.push_back({id, stream->rank.id, stream->priority, true, {}});
  stream->capture = graph.release(); // owned by the stream until endCapture
  return Status::ok();
}

Expected<std::shared_ptr<const Graph>> Machine::endCapture(StreamId id) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(impl->checkEnqueue(id, stream));
  if (!stream->capture || stream->capture->origin != id)
    return invalidArgument(fmt::format("no capture began on stream {}", stream->name));
  std::shared_ptr<Graph> graph(stream->capture);
  for (auto &other : impl->streams)
    if (other->capture == graph.get())
      other->capture = nullptr;
  for (auto &event : impl->events)
    if (event->capture == graph.get())
      event->capture = nullptr;
  for (const Graph::Lane &lane : graph->lanes)
    if (!lane.joined)
      return invalidArgument(
          fmt::format("the capture of stream {} ends while stream {} has captured work that nothing waits "
                      "for; record an event on it and wait for that",
                      stream->name, impl->streams[lane.stream.value]->name));
  graph->openEvents.clear();
  return std::shared_ptr<const Graph>(std::move(graph));
}

bool Machine::isCapturing(StreamId id) const {
  return id.value < impl->streams.size() && impl->streams[id.value]->capture != nullptr;
}

Status Machine::launchGraph(StreamId id, std::shared_ptr<const Graph> graph) {
  Stream *stream = nullptr;
  DITRON_RETURN_IF_ERROR(impl->checkEnqueue(id, stream));
  if (!graph)
    return invalidArgument("launchGraph without a graph");
  if (stream->capture)
    return unsupported("a graph launch cannot itself be captured");
  if (stream->rank.id != graph->lanes[0].rank)
    return invalidArgument(fmt::format("the graph was captured on rank {} and cannot be launched on rank {}",
                                       graph->lanes[0].rank, stream->rank.id));
  const SimTime issued = impl->hostCall("launch graph");
  std::vector<Stream *> lanes = {stream};
  for (size_t i = 1; i < graph->lanes.size(); ++i) {
    const Graph::Lane &lane = graph->lanes[i];
    // Replays on one stream follow each other, so each launching stream can keep its internal streams.
    auto found = std::find_if(lane.replayStreams.begin(), lane.replayStreams.end(),
                              [&](StreamId made) { return impl->streams[made.value]->isIdle(); });
    if (found == lane.replayStreams.end()) {
      DITRON_ASSIGN_OR_RETURN(
          StreamId made,
          createStream(lane.rank, fmt::format("{} (graph)", impl->streams[lane.stream.value]->name), lane.priority));
      impl->streams[made.value]->internal = true;
      lane.replayStreams.push_back(made);
      found = lane.replayStreams.end() - 1;
    }
    lanes.push_back(impl->streams[found->value].get());
  }
  std::vector<EventId> events;
  for (const std::string &name : graph->eventNames) {
    DITRON_ASSIGN_OR_RETURN(EventId event, createEvent(name));
    impl->events[event.value]->latest = std::make_shared<Recording>();
    events.push_back(event);
  }
  for (const Graph::Node &node : graph->nodes) {
    std::shared_ptr<const StreamOp> op = node.op;
    if (op->kind == OpKind::EventRecord || op->kind == OpKind::EventWait) {
      StreamOp edge = *op;
      edge.event = events[edge.event.value];
      edge.recording = 1;
      edge.mark = impl->events[edge.event.value]->latest;
      op = std::make_shared<const StreamOp>(std::move(edge));
    }
    lanes[node.lane]->enqueue(std::move(op), issued);
  }
  for (EventId event : events)
    impl->events[event.value]->recorded = 1;
  return Status::ok();
}

} // namespace ditron::sim
