//===- GpuTrace.cpp - The events of GPUs as a trace ---------------------------------------------------------------===//
//
// Events come one by one; a block is the frame in which its waits and signals are drawn. A frame whose own event is missing (the block
// has not ended, or its event was overwritten) is as long as what is known to have happened in it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/GpuTrace.h"

#include "ditron/sim/memory/Watch.h"
#include "ditron/sim/report/Trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace ditron::cuda {

namespace {

/// Tracks of one SM: as many blocks as it can hold, and waits that overlap others of their block.
constexpr uint32_t tracksPerSm = 40, otherWaits = 32;

DitronEventKind kindOf(const DitronEvent &event) { return static_cast<DitronEventKind>(event.kindOperation & 0xff); }
uint32_t operationOf(const DitronEvent &event) { return event.kindOperation >> 8; }

/// Which block of which launch.
using BlockKey = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;
BlockKey keyOf(const DitronEvent &event) { return {event.launch, event.kernel, event.blockX, event.blockYZ}; }

struct Frame {
  uint64_t begin, end;
  uint32_t kernel, launch, blockX, blockYZ, sm, line;
  bool isWhole = false;      ///< The block's own event is there.
  bool isUnfinished = false; ///< It waits still.
  uint32_t track = 0;
};

struct Wait {
  uint64_t begin, end;
  BlockKey block;
  uint32_t thread, sm, line, compare;
  uint64_t address, wanted;
  bool isUnfinished = false;
  bool isLoop = false; ///< It wants no particular value.
  int64_t seen = 0;    ///< Of an unfinished one.
};

/// Who raised a word when.
struct Raised {
  uint64_t time;
  uint32_t rank, track;
  std::string value;
};

class Drawing {
public:
  Drawing(const EventNames &names, uint64_t origin, uint64_t now)
      : trace(true), names(names), origin(origin), now(now) {
    trace.setClock("the clocks of the GPUs; those of different GPUs may differ");
  }

  void addRank(const RankEvents &rank);
  std::string finish(const Status &ended);

private:
  struct RankWait {
    uint32_t rank, track;
    Wait wait;
  };
  sim::SimTime time(uint64_t nanoseconds) const { return static_cast<sim::SimTime>(nanoseconds - origin) * 1000; }
  uint32_t kernelName(uint32_t hash) { return trace.intern(names.kernel(hash)); }
  void gather(const RankEvents &rank);
  Frame &frameOf(const Wait &wait);
  void drawKernels(uint32_t rank);
  void drawFrames(uint32_t rank);
  void drawWaits(uint32_t rank);
  void drawWait(uint32_t rank, const Wait &wait, uint32_t track);
  void drawSignals(const RankEvents &rank);
  void drawArrows();

  sim::Trace trace;
  const EventNames &names;
  const uint64_t origin, now;
  // Of the rank being added.
  std::map<BlockKey, Frame> frames;
  std::vector<Wait> waits;
  // Of all.
  std::map<uint64_t, std::vector<Raised>> raised;
  std::vector<RankWait> drawn;
};

std::string blockText(uint32_t x, uint32_t yz) { return fmt::format("({},{},{})", x, yz & 0xffff, yz >> 16); }

//===- What there is ----------------------------------------------------------------------------------------------===//

Frame &Drawing::frameOf(const Wait &wait) {
  const auto [launch, kernel, x, yz] = wait.block;
  auto [place, isNew] =
      frames.try_emplace(wait.block, Frame{wait.begin, wait.end, kernel, launch, x, yz, wait.sm, wait.line});
  Frame &frame = place->second;
  if (!frame.isWhole) {
    frame.begin = std::min(frame.begin, wait.begin);
    frame.end = std::max(frame.end, wait.end);
  }
  return frame;
}

void Drawing::gather(const RankEvents &rank) {
  frames.clear();
  waits.clear();
  for (const DitronEvent &event : rank.noted.events)
    if (kindOf(event) == DITRON_EVENT_BLOCK)
      frames[keyOf(event)] = {event.begin,     event.end,     event.kernel,         event.launch,
                              event.blockX,    event.blockYZ, event.threadSm >> 16, event.line,
                              /*isWhole=*/true};
  for (const DitronEvent &event : rank.noted.events) {
    if (kindOf(event) == DITRON_EVENT_BLOCK)
      continue;
    const Wait wait{event.begin,          event.end,  keyOf(event),       event.threadSm & 0xffff,
                    event.threadSm >> 16, event.line, operationOf(event), event.address,
                    event.value};
    frameOf(wait);
    if (kindOf(event) == DITRON_EVENT_WAIT)
      waits.push_back(wait);
  }
  for (const explain::PublishedWait &open : rank.waiting) {
    const BlockKey key(static_cast<uint32_t>(open.launch), open.kernelHash, open.block[0],
                       open.block[1] | open.block[2] << 16);
    Wait wait{open.sinceNanoseconds, now,          key,
              open.thread,           open.sm,      open.line,
              open.compare,          open.address, static_cast<uint64_t>(open.wanted)};
    wait.isUnfinished = true;
    wait.isLoop = open.kind == DITRON_WAIT_LOOP;
    wait.seen = open.seen;
    frameOf(wait).isUnfinished = true;
    waits.push_back(wait);
  }
}

//===- Rows -------------------------------------------------------------------------------------------------------===//

void Drawing::drawKernels(uint32_t rank) {
  struct Launch {
    uint64_t begin, end, blocks;
  };
  std::map<std::pair<uint32_t, uint32_t>, Launch> launches;
  for (const auto &[key, frame] : frames) {
    auto [place, isNew] = launches.try_emplace({frame.launch, frame.kernel}, Launch{frame.begin, frame.end, 0});
    place->second.begin = std::min(place->second.begin, frame.begin);
    place->second.end = std::max(place->second.end, frame.end);
    ++place->second.blocks;
  }
  std::vector<std::pair<Launch, uint32_t>> rows;
  for (const auto &[key, launch] : launches)
    rows.emplace_back(launch, key.second);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto &a, const auto &b) { return a.first.begin < b.first.begin; });
  for (const auto &[launch, kernel] : rows)
    trace.overlappingSpan(rank, sim::streamTracks, "kernels", kernelName(kernel), sim::SpanKind::Kernel,
                          time(launch.begin), time(launch.end),
                          sim::TraceArguments().add("blocks seen", launch.blocks).take());
}

void Drawing::drawFrames(uint32_t rank) {
  std::vector<Frame *> order;
  for (auto &[key, frame] : frames)
    order.push_back(&frame);
  std::stable_sort(order.begin(), order.end(), [](const Frame *a, const Frame *b) { return a->begin < b->begin; });
  for (Frame *frame : order) {
    sim::TraceArguments arguments;
    arguments.add("block", blockText(frame->blockX, frame->blockYZ)).add("launch", frame->launch);
    arguments.add("at", names.place(frame->kernel, frame->line));
    if (frame->isUnfinished)
      arguments.add("unfinished", true);
    else if (!frame->isWhole)
      arguments.add("known in part", true);
    frame->track =
        trace.overlappingSpan(rank, frame->sm * tracksPerSm, fmt::format("SM {}", frame->sm), kernelName(frame->kernel),
                              sim::SpanKind::Block, time(frame->begin), time(frame->end), arguments.take());
  }
}

void Drawing::drawWait(uint32_t rank, const Wait &wait, uint32_t track) {
  sim::TraceArguments arguments;
  const std::string word = names.word(wait.address);
  arguments.add("word", word)
      .add("wants", wait.isLoop ? std::string("another value")
                                : fmt::format("{} {}", sim::compareText(static_cast<sim::Compare>(wait.compare)),
                                              static_cast<int64_t>(wait.wanted)))
      .add("at", names.place(std::get<1>(wait.block), wait.line))
      .add("thread", wait.thread);
  if (wait.isUnfinished)
    arguments.add("has", wait.seen).add("unfinished", true);
  const uint32_t name = trace.intern("wait " + word);
  if (track == UINT32_MAX)
    track =
        trace.overlappingSpan(rank, wait.sm * tracksPerSm + otherWaits, fmt::format("SM {}, other threads", wait.sm),
                              name, sim::SpanKind::Wait, time(wait.begin), time(wait.end), arguments.take());
  else
    trace.span(rank, track, name, sim::SpanKind::Wait, time(wait.begin), time(wait.end), arguments.take());
  drawn.push_back({rank, track, wait});
}

void Drawing::drawWaits(uint32_t rank) {
  std::stable_sort(waits.begin(), waits.end(),
                   [](const Wait &a, const Wait &b) { return std::tie(a.begin, b.end) < std::tie(b.begin, a.end); });
  // What a track has open, innermost last: a span goes there only if it ends inside of all that it begins in.
  std::map<BlockKey, std::vector<uint64_t>> open;
  for (const Wait &wait : waits) {
    const Frame &frame = frames.at(wait.block);
    std::vector<uint64_t> &ends = open[wait.block];
    while (!ends.empty() && ends.back() <= wait.begin)
      ends.pop_back();
    const uint64_t limit = ends.empty() ? frame.end : ends.back();
    const bool nests = wait.begin >= frame.begin && wait.end <= limit;
    if (nests)
      ends.push_back(wait.end);
    drawWait(rank, wait, nests ? frame.track : UINT32_MAX);
  }
}

void Drawing::drawSignals(const RankEvents &rank) {
  for (const DitronEvent &event : rank.noted.events) {
    if (kindOf(event) != DITRON_EVENT_SIGNAL)
      continue;
    const Frame &frame = frames.at(keyOf(event));
    const std::string value =
        fmt::format("{} {}", operationOf(event) == DITRON_SIGNAL_SET ? "=" : "+=", static_cast<int64_t>(event.value));
    const std::string word = names.word(event.address);
    trace.instant(rank.rank, frame.track, trace.intern("signal " + word), time(event.begin),
                  sim::TraceArguments()
                      .add("word", word)
                      .add("value", value)
                      .add("at", names.place(event.kernel, event.line))
                      .take());
    raised[event.address].push_back({event.begin, rank.rank, frame.track, value});
  }
}

void Drawing::drawArrows() {
  for (auto &[address, list] : raised)
    std::stable_sort(list.begin(), list.end(), [](const Raised &a, const Raised &b) { return a.time < b.time; });
  for (const RankWait &one : drawn) {
    const auto list = raised.find(one.wait.address);
    if (list == raised.end() || one.wait.isUnfinished)
      continue;
    // The last signal that came while it waited is the one that ended it.
    auto behind = std::upper_bound(list->second.begin(), list->second.end(), one.wait.end,
                                   [](uint64_t when, const Raised &signal) { return when < signal.time; });
    if (behind == list->second.begin() || std::prev(behind)->time < one.wait.begin)
      continue;
    const Raised &signal = *std::prev(behind);
    sim::Writer writer;
    writer.kind = sim::Writer::Kind::Kernel;
    writer.rank = signal.rank;
    writer.track = signal.track;
    writer.time = time(signal.time);
    trace.arrow(writer, one.rank, one.track, time(one.wait.end),
                trace.intern(fmt::format("{} {}", names.word(one.wait.address), signal.value)));
  }
}

void Drawing::addRank(const RankEvents &rank) {
  gather(rank);
  drawKernels(rank.rank);
  drawFrames(rank.rank);
  drawWaits(rank.rank);
  drawSignals(rank);
  if (rank.noted.overwritten)
    trace.instant(rank.rank, 0, trace.intern("older events were overwritten"), 0,
                  sim::TraceArguments().add("events", rank.noted.overwritten).take());
}

std::string Drawing::finish(const Status &ended) {
  drawArrows();
  if (!ended.isOk())
    trace.end(time(now), "the run has failed", ended.message());
  return trace.render();
}

} // namespace

std::string renderGpuTrace(const std::vector<RankEvents> &ranks, const EventNames &names, const Status &ended) {
  uint64_t first = UINT64_MAX, last = 0;
  for (const RankEvents &rank : ranks) {
    for (const DitronEvent &event : rank.noted.events) {
      first = std::min(first, event.begin);
      last = std::max(last, event.end);
    }
    for (const explain::PublishedWait &wait : rank.waiting) {
      first = std::min(first, wait.sinceNanoseconds);
      last = std::max(last, wait.sinceNanoseconds + static_cast<uint64_t>(wait.seconds * 1e9));
    }
  }
  Drawing drawing(names, first == UINT64_MAX ? 0 : first, std::max(first == UINT64_MAX ? 0 : first, last));
  for (const RankEvents &rank : ranks)
    drawing.addRank(rank);
  return drawing.finish(ended);
}

} // namespace ditron::cuda
