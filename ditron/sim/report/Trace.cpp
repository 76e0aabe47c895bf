//===- Trace.cpp - What happened when -----------------------------------------------------------------------------===//
//
// Gathering; the rendering is in TraceText.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/report/Trace.h"

#include <fmt/format.h>

#include <algorithm>

namespace ditron::sim {

TraceArguments &TraceArguments::addJson(std::string_view key, std::string_view value) {
  text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", key, value);
  return *this;
}

TraceArguments &TraceArguments::addTraffic(uint64_t bytes, SimTime lasted) {
  add("bytes", bytes);
  if (lasted > 0)
    addJson("GB/s", fmt::format("{:.3f}", static_cast<double>(bytes) * 1000 / static_cast<double>(lasted)));
  return *this;
}

uint32_t Trace::intern(std::string_view name) {
  auto [it, isNew] = numbers.try_emplace(std::string(name), static_cast<uint32_t>(names.size()));
  if (isNew)
    names.emplace_back(name);
  return it->second;
}

void Trace::nameTrack(uint32_t rank, uint32_t track, std::string_view name) {
  if (isEnabled())
    tracks[{rank, track}] = std::string(name);
}

void Trace::span(uint32_t rank, uint32_t track, uint32_t name, SpanKind kind, SimTime start, SimTime end,
                 std::string arguments) {
  if (!isEnabled())
    return;
  spans.push_back({rank, track, name, kind, start, end, std::move(arguments)});
  latestEnd = std::max(latestEnd, end);
}

uint32_t Trace::overlappingSpan(uint32_t rank, uint32_t group, std::string_view groupName, uint32_t name, SpanKind kind,
                                SimTime start, SimTime end, std::string arguments) {
  std::vector<SimTime> &free = groups[{rank, group}];
  auto place = std::find_if(free.begin(), free.end(), [&](SimTime when) { return when <= start; });
  const auto track = group + static_cast<uint32_t>(place - free.begin());
  if (place == free.end()) {
    free.push_back(end);
    nameTrack(rank, track, free.size() == 1 ? std::string(groupName) : fmt::format("{} {}", groupName, free.size()));
  } else {
    *place = end;
  }
  span(rank, track, name, kind, start, end, std::move(arguments));
  return track;
}

void Trace::instant(uint32_t rank, uint32_t track, uint32_t name, SimTime time, std::string arguments) {
  if (isEnabled())
    instants.push_back({rank, track, name, time, std::move(arguments), false});
}

void Trace::arrow(const Writer &from, uint32_t rank, uint32_t track, SimTime released, uint32_t name,
                  std::string arguments) {
  if (isEnabled() && from.kind != Writer::Kind::None)
    arrows.push_back({from.rank, from.track, rank, track, name, from.time, released, std::move(arguments)});
}

void Trace::transfer(uint32_t from, uint32_t to, uint64_t bytes, SimTime start, SimTime end) {
  if (isEnabled() && from != to && bytes)
    transfers.push_back({from, to, bytes, start, end});
}

void Trace::end(SimTime time, std::string_view why, std::string_view message) {
  if (!isEnabled())
    return;
  instants.push_back({0, 0, intern(why), time, TraceArguments().add("message", message).take(), true});
  ended = true;
}

void Trace::clear() {
  spans.clear();
  arrows.clear();
  instants.clear();
  transfers.clear();
  groups.clear();
  launches.clear();
  copies.clear();
  waits.clear();
}

} // namespace ditron::sim
