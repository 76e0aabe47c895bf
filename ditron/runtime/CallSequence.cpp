//===- CallSequence.cpp - The operations of a repeated call -----------------------------------------------------------===//
#include "ditron/runtime/CallSequence.h"

#include "ditron/runtime/World.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::runtime {

Expected<std::shared_ptr<SideStream>> SideStream::create(Rank &rank, std::string_view name) {
  auto result = std::make_shared<SideStream>();
  result->name = name;
  DITRON_ASSIGN_OR_RETURN(result->calls, Lanes::create(rank, name));
  return result;
}

Expected<SideStream::Lanes> SideStream::Lanes::create(Rank &rank, std::string_view name) {
  Lanes lanes;
  DITRON_ASSIGN_OR_RETURN(lanes.side, rank.createStream(fmt::format("{} copies", name), /*priority=*/1));
  DITRON_ASSIGN_OR_RETURN(lanes.mainDone, rank.createEvent(fmt::format("{} main", name)));
  DITRON_ASSIGN_OR_RETURN(lanes.sideDone, rank.createEvent(fmt::format("{} side", name)));
  return lanes;
}

void CallSequence::launch(Lane lane, PreparedLaunch launch) {
  if (!launch.isEmpty())
    steps.push_back({lane, std::move(launch)});
}
void CallSequence::copy(Lane lane, Copy copy) { steps.push_back({lane, std::move(copy)}); }
void CallSequence::signalWait(Lane lane, Pointer word, Compare compare, uint64_t value) {
  steps.push_back({lane, Wait{word, compare, value}});
}
void CallSequence::join(Lane waiting) { steps.push_back({waiting, Join{}}); }

Status CallSequence::enqueueStep(const Step &step, Stream &main, SideStream::Lanes &lanes) const {
  const bool onMain = step.lane == Lane::Main;
  Stream &stream = onMain ? main : lanes.side;
  if (const auto *launch = std::get_if<PreparedLaunch>(&step.operation))
    return launch->enqueue(stream);
  if (const auto *copy = std::get_if<Copy>(&step.operation))
    return stream.copy(*copy);
  if (const auto *wait = std::get_if<Wait>(&step.operation))
    return stream.signalWait(wait->word, wait->compare, wait->value);
  Event &done = onMain ? lanes.sideDone : lanes.mainDone;
  DITRON_RETURN_IF_ERROR((onMain ? lanes.side : main).record(done));
  return stream.wait(done);
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
  const auto first = std::ranges::find(steps, Lane::Side, &Step::lane);
  if (first != steps.end() && !std::holds_alternative<Join>(first->operation))
    return internalError("the side lane of a call does something before it has joined the main one");
  std::lock_guard lock(side->recorderMutex);
  if (!side->recorder) {
    const std::string name = fmt::format("{} recording", side->name);
    DITRON_ASSIGN_OR_RETURN(SideStream::Lanes lanes, SideStream::Lanes::create(rank, name));
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
    DITRON_ASSIGN_OR_RETURN(step.node, (step.lane == Lane::Main ? lanes.main : lanes.side).capturedKernel());
    step.version = launch->version();
  }
  return Status::ok();
}

} // namespace ditron::runtime
