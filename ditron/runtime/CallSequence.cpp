//===- CallSequence.cpp - The operations of a repeated call -----------------------------------------------------------===//
#include "ditron/runtime/CallSequence.h"

#include "ditron/runtime/World.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::runtime {

Expected<std::shared_ptr<SideStream>> SideStream::create(Rank &rank, std::string_view name, uint32_t lanes) {
  if (lanes < 1 || lanes > sideLanes.size())
    return internalError(
        fmt::format("{}: {} streams beside the caller's; 1 to {} are there", name, lanes, sideLanes.size()));
  auto result = std::make_shared<SideStream>();
  result->name = name;
  result->count = lanes;
  DITRON_ASSIGN_OR_RETURN(result->calls, Lanes::create(rank, name, lanes));
  return result;
}

Expected<SideStream::Lanes> SideStream::Lanes::create(Rank &rank, std::string_view name, uint32_t count) {
  constexpr std::array<std::string_view, sideLanes.size()> purposes = {"copies", "sums", "fetches"};
  Lanes lanes;
  DITRON_ASSIGN_OR_RETURN(lanes.mainDone, rank.createEvent(fmt::format("{} main", name)));
  for (uint32_t i = 0; i < count; ++i) {
    DITRON_ASSIGN_OR_RETURN(lanes.sides[i].stream,
                            rank.createStream(fmt::format("{} {}", name, purposes[i]), /*priority=*/1));
    DITRON_ASSIGN_OR_RETURN(lanes.sides[i].done, rank.createEvent(fmt::format("{} {} done", name, purposes[i])));
  }
  return lanes;
}

void CallSequence::launch(Lane lane, PreparedLaunch launch) {
  if (!launch.isEmpty())
    steps.push_back({lane, std::move(launch)});
}
void CallSequence::copy(Lane lane, Copy copy) { steps.push_back({lane, std::move(copy)}); }
void CallSequence::copyToCaller(Lane lane, Copy copy, uint64_t offset) {
  steps.push_back({lane, CopyToCaller{std::move(copy), offset}});
}
void CallSequence::signalWait(Lane lane, Pointer word, Compare compare, uint64_t value) {
  steps.push_back({lane, Wait{word, compare, value}});
}
void CallSequence::signalWrite(Lane lane, Pointer word, uint64_t value) { steps.push_back({lane, Write{word, value}}); }
void CallSequence::join(Lane waiting) { steps.push_back({waiting, Join{}}); }
void CallSequence::joinMain(Lane awaited) { steps.push_back({Lane::Main, Join{awaited}}); }

bool CallSequence::hasStepsOn(Lane lane) const { return std::ranges::find(steps, lane, &Step::lane) != steps.end(); }

void CallSequence::setAgreedCall(const AgreedCall &call) {
  for (Step &step : steps)
    if (auto *launch = std::get_if<PreparedLaunch>(&step.operation))
      return launch->setAgreedCall(call);
}

Status CallSequence::enqueueStep(const Step &step, Stream &main, SideStream::Lanes &lanes) const {
  Stream &stream = step.lane == Lane::Main ? main : lanes.side(step.lane).stream;
  if (const auto *launch = std::get_if<PreparedLaunch>(&step.operation))
    return launch->enqueue(stream);
  if (const auto *copy = std::get_if<Copy>(&step.operation))
    return stream.copy(*copy);
  if (const auto *toCaller = std::get_if<CopyToCaller>(&step.operation))
    return stream.copy(toCaller->to(callerMemory));
  if (const auto *wait = std::get_if<Wait>(&step.operation))
    return stream.signalWait(wait->word, wait->compare, wait->value);
  if (const auto *write = std::get_if<Write>(&step.operation))
    return stream.signalWrite(write->word, write->value);
  return enqueueJoin(step.lane, std::get<Join>(step.operation), main, lanes);
}

Status CallSequence::enqueueJoin(Lane waiting, const Join &join, Stream &main, SideStream::Lanes &lanes) const {
  if (waiting != Lane::Main) {
    DITRON_RETURN_IF_ERROR(main.record(lanes.mainDone));
    return lanes.side(waiting).stream.wait(lanes.mainDone);
  }
  for (Lane lane : sideLanes) {
    if (join.awaited ? lane != *join.awaited : !hasStepsOn(lane))
      continue;
    DITRON_RETURN_IF_ERROR(lanes.side(lane).stream.record(lanes.side(lane).done));
    DITRON_RETURN_IF_ERROR(main.wait(lanes.side(lane).done));
  }
  return Status::ok();
}

Status CallSequence::enqueueOnMain(Stream &stream) const {
  for (const Step &step : steps) {
    const auto *launch = std::get_if<PreparedLaunch>(&step.operation);
    if (!launch || step.lane != Lane::Main)
      return internalError("a call without a side stream is made of more than launches on the main one");
    DITRON_RETURN_IF_ERROR(launch->enqueue(stream));
  }
  return Status::ok();
}

Status CallSequence::enqueue(Stream &stream) {
  if (isRecorded() && !stream.isCapturing()) {
    DITRON_RETURN_IF_ERROR(patch(stream));
    return stream.launch(graph);
  }
  if (!side)
    return enqueueOnMain(stream);
  // A call of which a part is enqueued would keep the other ranks waiting.
  for (const Step &step : steps)
    if (const auto *toCaller = std::get_if<CopyToCaller>(&step.operation))
      DITRON_RETURN_IF_ERROR((step.lane == Lane::Main ? stream : side->calls.side(step.lane).stream)
                                 .checkDestination(toCaller->to(callerMemory)));
  for (const Step &step : steps)
    DITRON_RETURN_IF_ERROR(enqueueStep(step, stream, side->calls));
  return Status::ok();
}

Status CallSequence::patch(Stream &stream) {
  for (Step &step : steps) {
    const auto *launch = std::get_if<PreparedLaunch>(&step.operation);
    if (!launch || launch->version() == step.version)
      continue;
    DITRON_RETURN_IF_ERROR(launch->patch(stream, graph, step.node));
    step.version = launch->version();
  }
  return Status::ok();
}

Status CallSequence::record(Rank &rank) {
  // Launches one after the other on one stream: a graph would not be faster.
  if (!side || !rank.world().options().callGraphs || !rank.device()->canPatchGraphs())
    return Status::ok();
  if (std::ranges::any_of(steps, [](const Step &step) { return std::holds_alternative<CopyToCaller>(step.operation); }))
    return Status::ok();
  // Calls then enqueue one operation after the other.
  if (!rank.device()->mayMakeGraphs())
    return Status::ok();
  for (Lane lane : sideLanes)
    if (const auto first = std::ranges::find(steps, lane, &Step::lane);
        first != steps.end() && !std::holds_alternative<Join>(first->operation))
      return internalError("the side lane of a call does something before it has joined the main one");
  std::lock_guard lock(side->recorderMutex);
  if (!side->recorder) {
    const std::string name = fmt::format("{} recording", side->name);
    DITRON_ASSIGN_OR_RETURN(SideStream::Lanes lanes, SideStream::Lanes::create(rank, name, side->count));
    DITRON_ASSIGN_OR_RETURN(lanes.main, rank.createStream(name));
    side->recorder = std::move(lanes);
  }
  SideStream::Lanes &lanes = *side->recorder;
  DITRON_RETURN_IF_ERROR(lanes.main.beginCapture());
  const Status recorded = recordSteps(lanes);
  Expected<Graph> captured = lanes.main.endCapture(); // also ends a capture that failed
  const Status failed = recorded.isOk() ? captured.status() : recorded;
  if (failed.code() == StatusCode::Unsupported)
    return Status::ok(); // by a driver that cannot capture one of the operations; it still runs them one by one
  DITRON_RETURN_IF_ERROR(failed);
  DITRON_RETURN_IF_ERROR(rank.device()->loadGraph(captured->handle()));
  graph = std::move(captured).value();
  return Status::ok();
}

Status CallSequence::recordSteps(SideStream::Lanes &lanes) {
  for (Step &step : steps) {
    DITRON_RETURN_IF_ERROR(enqueueStep(step, lanes.main, lanes));
    const auto *launch = std::get_if<PreparedLaunch>(&step.operation);
    if (!launch)
      continue;
    DITRON_ASSIGN_OR_RETURN(step.node,
                            (step.lane == Lane::Main ? lanes.main : lanes.side(step.lane).stream).capturedKernel());
    step.version = launch->version();
  }
  return Status::ok();
}

} // namespace ditron::runtime
