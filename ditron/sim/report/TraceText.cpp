//===- TraceText.cpp - A trace as Chrome trace JSON ---------------------------------------------------------------===//
//
// Written by hand: it is a list of flat objects, large, and must be the same bytes for the same run. What viewers ask for and
// test/Trace_test.cpp checks:
//  - Times are whole nanoseconds. A viewer that rounds start and length apart would let spans of one track cross by one.
//  - Spans of a track come by their start, outer before inner.
//  - Both ends of an arrow lie inside of a span: viewers drop an arrow that begins where the span has just ended.
// Counters are counted from the spans, so that recording costs nothing for them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/report/Trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>

namespace ditron::sim {

namespace {
std::string_view kindName(SpanKind kind) {
  switch (kind) {
  case SpanKind::Block: return "block";
  case SpanKind::Wait: return "wait";
  case SpanKind::Copy: return "copy";
  case SpanKind::Signal: return "signal";
  case SpanKind::Kernel: return "kernel";
  case SpanKind::Host: return "host";
  case SpanKind::Put: return "put";
  case SpanKind::Remote: return "remote access";
  }
  return "other";
}

int64_t nanoseconds(SimTime time) { return time / 1000; }
/// Nanoseconds as the format's microseconds, exactly.
std::string micros(int64_t time) { return fmt::format("{}.{:03}", time / 1000, time % 1000); }

/// A track's number in the order of tracks.
using TrackId = std::pair<uint32_t, uint32_t>;
} // namespace

std::string jsonString(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out += '"';
}

class TraceText {
public:
  explicit TraceText(const Trace &trace) : trace(trace) { arrange(); }

  std::string render() {
    out = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"clock\":" + jsonString(trace.clock) + "},\"traceEvents\":[\n";
    writeTracks();
    writeSpans();
    writeInstants();
    writeArrows();
    writeCounters();
    out += "\n]}\n";
    return std::move(out);
  }

private:
  /// A span in its place: by track, start, outer before inner.
  struct Placed {
    const Trace::Span *span;
    int64_t start, end;
    int64_t parent; ///< The span around it, or -1.
  };
  struct Range {
    size_t begin = 0, end = 0;
  };

  void arrange();
  void writeTracks();
  void writeSpans();
  void writeInstants();
  void writeArrows();
  void writeCounters();
  /// The time of an arrow's end, moved inside of the innermost span there; -1 when there is none.
  int64_t insideSpan(TrackId track, int64_t time) const;

  template <typename... Values> void event(fmt::format_string<Values...> format, Values &&...values) {
    if (!first)
      out += ",\n";
    first = false;
    fmt::format_to(std::back_inserter(out), format, std::forward<Values>(values)...);
  }
  std::string name(uint32_t number) const { return jsonString(trace.names[number]); }
  static std::string shown(const std::string &arguments) {
    return arguments.empty() ? std::string() : ",\"args\":{" + arguments + "}";
  }

  const Trace &trace;
  std::vector<Placed> placed;
  std::map<TrackId, Range> ranges;
  std::string out;
  bool first = true;
};

void TraceText::arrange() {
  placed.reserve(trace.spans.size());
  for (const Trace::Span &span : trace.spans)
    placed.push_back({&span, nanoseconds(span.start), nanoseconds(span.end), -1});
  std::sort(placed.begin(), placed.end(), [](const Placed &a, const Placed &b) {
    const TrackId first(a.span->rank, a.span->track), second(b.span->rank, b.span->track);
    return std::tie(first, a.start, b.end, a.span) < std::tie(second, b.start, a.end, b.span);
  });
  std::vector<int64_t> open;
  for (size_t i = 0; i < placed.size(); ++i) {
    const TrackId track(placed[i].span->rank, placed[i].span->track);
    auto [range, isNew] = ranges.try_emplace(track, Range{i, i});
    if (isNew)
      open.clear();
    range->second.end = i + 1;
    while (!open.empty() && placed[open.back()].end < placed[i].end)
      open.pop_back();
    placed[i].parent = open.empty() ? -1 : open.back();
    open.push_back(static_cast<int64_t>(i));
  }
}

void TraceText::writeTracks() {
  std::set<uint32_t> ranks;
  for (const auto &[track, name] : trace.tracks)
    ranks.insert(track.first);
  for (uint32_t rank : ranks) {
    auto named = trace.processes.find(rank);
    event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", rank,
          jsonString(named == trace.processes.end() ? fmt::format("rank {}", rank) : named->second));
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", rank, rank);
  }
  for (const auto &[track, name] : trace.tracks) {
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", track.first, track.second,
          jsonString(name));
    event(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", track.first,
          track.second, track.second);
  }
}

void TraceText::writeSpans() {
  for (const Placed &place : placed) {
    const Trace::Span &span = *place.span;
    event(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{}{}}})", name(span.name),
          kindName(span.kind), span.rank, span.track, micros(place.start), micros(place.end - place.start),
          shown(span.arguments));
  }
}

void TraceText::writeInstants() {
  for (const Trace::Instant &instant : trace.instants)
    event(R"({{"ph":"i","s":"{}","name":{},"cat":"event","pid":{},"tid":{},"ts":{}{}}})", instant.ofTheRun ? 'g' : 't',
          name(instant.name), instant.rank, instant.track, micros(nanoseconds(instant.time)), shown(instant.arguments));
}

int64_t TraceText::insideSpan(TrackId track, int64_t time) const {
  auto range = ranges.find(track);
  if (range == ranges.end())
    return -1;
  const auto begin = placed.begin() + static_cast<ptrdiff_t>(range->second.begin),
             end = placed.begin() + static_cast<ptrdiff_t>(range->second.end);
  auto behind =
      std::upper_bound(begin, end, time, [](int64_t value, const Placed &place) { return value < place.start; });
  if (behind == begin)
    return -1;
  for (int64_t i = behind - placed.begin() - 1; i >= 0; i = placed[static_cast<size_t>(i)].parent) {
    const Placed &place = placed[static_cast<size_t>(i)];
    if (place.end >= time && place.end > place.start)
      return std::min(time, place.end - 1);
  }
  return -1;
}

void TraceText::writeArrows() {
  uint64_t id = 0;
  for (const Trace::Arrow &arrow : trace.arrows) {
    const int64_t from = insideSpan({arrow.fromRank, arrow.fromTrack}, nanoseconds(arrow.from));
    // The wait has ended at that very time, and what follows may have begun.
    const int64_t to = insideSpan({arrow.toRank, arrow.toTrack}, std::max<int64_t>(nanoseconds(arrow.to) - 1, 0));
    if (from < 0 || to < from)
      continue;
    ++id;
    event(R"({{"ph":"s","name":{},"cat":"signal","id":{},"pid":{},"tid":{},"ts":{}{}}})", name(arrow.name), id,
          arrow.fromRank, arrow.fromTrack, micros(from), shown(arrow.arguments));
    event(R"({{"ph":"f","bp":"e","name":{},"cat":"signal","id":{},"pid":{},"tid":{},"ts":{}{}}})", name(arrow.name), id,
          arrow.toRank, arrow.toTrack, micros(to), shown(arrow.arguments));
  }
}

void TraceText::writeCounters() {
  // Rank and counter -> time -> change.
  std::map<std::pair<uint32_t, std::string>, std::map<int64_t, int64_t>> changes;
  auto count = [&](uint32_t rank, std::string what, int64_t start, int64_t end, int64_t amount) {
    std::map<int64_t, int64_t> &counter = changes[{rank, std::move(what)}];
    counter[start] += amount;
    counter[end] -= amount;
  };
  for (const auto &[track, range] : ranges) {
    if (track.second >= streamTracks)
      continue;
    int64_t counted = -1; // waits of several threads of a block are one waiting block
    for (size_t i = range.begin; i < range.end; ++i) {
      const Placed &place = placed[i];
      if (place.span->kind == SpanKind::Block)
        count(track.first, "blocks resident", place.start, place.end, 1);
      if (place.span->kind != SpanKind::Wait || place.end <= std::max(place.start, counted))
        continue;
      count(track.first, "blocks waiting", std::max(place.start, counted), place.end, 1);
      counted = place.end;
    }
  }
  for (const Trace::Transfer &transfer : trace.transfers)
    count(transfer.from, fmt::format("bytes in flight to rank {}", transfer.to), nanoseconds(transfer.start),
          nanoseconds(transfer.end), static_cast<int64_t>(transfer.bytes));
  for (const auto &[counter, steps] : changes) {
    int64_t value = 0;
    for (auto [time, change] : steps) {
      if (change == 0)
        continue;
      value += change;
      event(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"value":{}}}}})", jsonString(counter.second),
            counter.first, micros(time), value);
    }
  }
}

std::string Trace::render() const { return TraceText(*this).render(); }

} // namespace ditron::sim
