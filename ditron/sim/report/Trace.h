//===- Trace.h - What happened when ---------------------------------------------------------------------*- C++ -*-===//
//
// Spans, arrows and timeline records, gathered only when asked for, and their rendering as Chrome trace JSON (TraceText.cpp).
// Time is virtual. A track is a row of the picture: an SM slot, a stream, a copy engine of a rank, or its host code. Spans of a
// track nest properly and never cross: what can overlap goes to a group of tracks (overlappingSpan).
//
// What the engine says to it is in EngineTrace.h.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_REPORT_TRACE_H
#define DITRON_SIM_REPORT_TRACE_H

#include "ditron/sim/Machine.h"
#include "ditron/sim/memory/Writer.h"

#include <map>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace ditron::sim {

/// Tracks of one rank: SM slots from 0, then these bases. Tensor copies and multiplies have a track per slot.
enum TrackBase : uint32_t {
  streamTracks = 10000,
  copyTracks = 20000,
  hostTrack = 30000,
  tmaTracks = 40000,
  tensorTracks = 50000,
  networkTracks = 60000, ///< A group: puts and gets of kernels.
  remoteTracks = 70000,  ///< A group: what the loads and stores of a block reached on other ranks.
};

enum class SpanKind : uint8_t { Block, Wait, Copy, Signal, Kernel, Host, Put, Remote };

/// The text as a JSON string with its quotes.
std::string jsonString(std::string_view text);

/// The arguments that a span shows: the inside of a JSON object.
class TraceArguments {
public:
  TraceArguments &add(std::string_view key, std::string_view value) { return addJson(key, jsonString(value)); }
  TraceArguments &add(std::string_view key, const char *value) { return add(key, std::string_view(value)); }
  template <typename Number>
    requires std::is_integral_v<Number>
  TraceArguments &add(std::string_view key, Number value) {
    if constexpr (std::is_same_v<Number, bool>)
      return addJson(key, value ? "true" : "false");
    else
      return addJson(key, std::to_string(value));
  }
  /// Bytes, and what they come to per second when they took that long.
  TraceArguments &addTraffic(uint64_t bytes, SimTime lasted);
  std::string take() { return std::move(text); }

private:
  TraceArguments &addJson(std::string_view key, std::string_view value);
  std::string text;
};

class Trace {
public:
  explicit Trace(bool enabled) : enabled(enabled) {}

  /// The number of a name; equal names have equal numbers. Works also when recording is off (writers are named by it).
  uint32_t intern(std::string_view name);
  const std::string &name(uint32_t number) const { return names[number]; }

  bool isEnabled() const { return enabled && !ended; }
  void nameTrack(uint32_t rank, uint32_t track, std::string_view name);
  /// What its times are.
  void setClock(std::string_view description) { clock = std::string(description); }
  /// What is called rank r unless it has a name of its own.
  void nameProcess(uint32_t rank, std::string_view name) { processes[rank] = std::string(name); }
  /// `arguments` is the inside of a JSON object, or empty.
  void span(uint32_t rank, uint32_t track, uint32_t name, SpanKind kind, SimTime start, SimTime end,
            std::string arguments = {});
  /// A span on the first track of the group that is free by then; gives the track.
  uint32_t overlappingSpan(uint32_t rank, uint32_t group, std::string_view groupName, uint32_t name, SpanKind kind,
                           SimTime start, SimTime end, std::string arguments);
  /// A moment of a track, or of the whole run.
  void instant(uint32_t rank, uint32_t track, uint32_t name, SimTime time, std::string arguments = {});
  /// An arrow between two moments; `name` says what goes there.
  void arrow(const Writer &from, uint32_t rank, uint32_t track, SimTime released, uint32_t name,
             std::string arguments = {});
  /// Bytes that were under way between two ranks, for the counters.
  void transfer(uint32_t from, uint32_t to, uint64_t bytes, SimTime start, SimTime end);
  /// The run has failed at that time: nothing is recorded any more.
  void end(SimTime time, std::string_view why, std::string_view message);
  /// The end of the last span.
  SimTime latest() const { return latestEnd; }

  std::string render() const;
  void clear();

  std::vector<LaunchRecord> launches;
  std::vector<CopyRecord> copies;
  std::vector<WaitRecord> waits;

private:
  friend class TraceText;
  struct Span {
    uint32_t rank, track, name;
    SpanKind kind;
    SimTime start, end;
    std::string arguments;
  };
  struct Arrow {
    uint32_t fromRank, fromTrack, toRank, toTrack, name;
    SimTime from, to;
    std::string arguments;
  };
  struct Instant {
    uint32_t rank, track, name;
    SimTime time;
    std::string arguments;
    bool ofTheRun;
  };
  struct Transfer {
    uint32_t from, to;
    uint64_t bytes;
    SimTime start, end;
  };
  bool enabled;
  bool ended = false;
  SimTime latestEnd = 0;
  std::string clock = "virtual time of the Ditron simulator (a model)";
  std::vector<std::string> names;
  std::unordered_map<std::string, uint32_t> numbers;
  std::map<uint32_t, std::string> processes;
  std::map<std::pair<uint32_t, uint32_t>, std::string> tracks;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<SimTime>> groups; ///< When each track of a group is free.
  std::vector<Span> spans;
  std::vector<Arrow> arrows;
  std::vector<Instant> instants;
  std::vector<Transfer> transfers;
};

} // namespace ditron::sim

#endif // DITRON_SIM_REPORT_TRACE_H
