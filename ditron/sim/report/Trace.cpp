//===- Trace.cpp - What happened when -----------------------------------------------------------------------------===//
//
// Chrome trace JSON, written by hand: it is a list of flat objects, large, and must be the same bytes for the same run.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/report/Trace.h"

#include <fmt/format.h>

#include <iterator>
#include <set>

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
  }
  return "other";
}

/// Picoseconds as the format's microseconds, exactly.
std::string micros(SimTime time) { return fmt::format("{}.{:06}", time / 1000000, time % 1000000); }
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

uint32_t Trace::intern(std::string_view name) {
  auto [it, isNew] = numbers.try_emplace(std::string(name), static_cast<uint32_t>(names.size()));
  if (isNew)
    names.emplace_back(name);
  return it->second;
}

void Trace::nameTrack(uint32_t rank, uint32_t track, std::string_view name) {
  if (enabled)
    tracks[{rank, track}] = std::string(name);
}

void Trace::span(uint32_t rank, uint32_t track, uint32_t name, SpanKind kind, SimTime start, SimTime end,
                 std::string arguments) {
  if (enabled)
    spans.push_back({rank, track, name, kind, start, end, std::move(arguments)});
}

void Trace::arrow(const Writer &from, uint32_t rank, uint32_t track, SimTime released) {
  if (enabled && from.kind != Writer::Kind::None)
    arrows.push_back({from.rank, from.track, rank, track, from.time, released});
}

std::string Trace::render() const {
  std::string out =
      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"clock\":\"virtual time of the Ditron simulator (a model)\"},"
      "\"traceEvents\":[\n";
  auto sink = std::back_inserter(out);
  bool first = true;
  auto separator = [&] {
    if (!first)
      out += ",\n";
    first = false;
  };
  std::set<uint32_t> ranks;
  for (const auto &[track, name] : tracks)
    ranks.insert(track.first);
  for (uint32_t rank : ranks) {
    separator();
    fmt::format_to(sink, R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}}}})", rank, rank);
  }
  for (const auto &[track, name] : tracks) {
    separator();
    fmt::format_to(sink, R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", track.first,
                   track.second, jsonString(name));
    separator();
    fmt::format_to(sink, R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                   track.first, track.second, track.second);
  }
  for (const Span &span : spans) {
    separator();
    fmt::format_to(sink, R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{})",
                   jsonString(names[span.name]), kindName(span.kind), span.rank, span.track, micros(span.start),
                   micros(span.end - span.start));
    if (!span.arguments.empty())
      fmt::format_to(sink, R"(,"args":{{{}}})", span.arguments);
    out += '}';
  }
  uint64_t id = 0;
  for (const Arrow &arrow : arrows) {
    ++id;
    separator();
    fmt::format_to(sink, R"({{"ph":"s","name":"signal","cat":"signal","id":{},"pid":{},"tid":{},"ts":{}}})", id,
                   arrow.fromRank, arrow.fromTrack, micros(arrow.from));
    separator();
    fmt::format_to(sink, R"({{"ph":"f","bp":"e","name":"signal","cat":"signal","id":{},"pid":{},"tid":{},"ts":{}}})",
                   id, arrow.toRank, arrow.toTrack, micros(arrow.to));
  }
  out += "\n]}\n";
  return out;
}

void Trace::clear() {
  spans.clear();
  arrows.clear();
  launches.clear();
  copies.clear();
  waits.clear();
}

} // namespace ditron::sim
