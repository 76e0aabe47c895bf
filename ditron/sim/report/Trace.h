//===- Trace.h - What happened when ---------------------------------------------------------------------*- C++ -*-===//
//
// Spans, arrows and timeline records, gathered only when asked for, and their rendering as Chrome trace JSON. Time is
// virtual. A track is a row of the picture: an SM slot, a stream, a copy engine of a rank, or its host code.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_REPORT_TRACE_H
#define DITRON_SIM_REPORT_TRACE_H

#include "ditron/sim/Machine.h"
#include "ditron/sim/memory/Writer.h"

#include <map>
#include <unordered_map>
#include <vector>

namespace ditron::sim {

/// Tracks of one rank: SM slots from 0, then these bases. Tensor copies and multiplies have a track per slot.
enum TrackBase : uint32_t {
  streamTracks = 10000,
  copyTracks = 20000,
  hostTrack = 30000,
  tmaTracks = 40000,
  tensorTracks = 50000
};

enum class SpanKind : uint8_t { Block, Wait, Copy, Signal, Kernel, Host };

class Trace {
public:
  explicit Trace(bool enabled) : enabled(enabled) {}

  /// The number of a name; equal names have equal numbers. Works also when recording is off (writers are named by it).
  uint32_t intern(std::string_view name);
  const std::string &name(uint32_t number) const { return names[number]; }

  bool isEnabled() const { return enabled; }
  void nameTrack(uint32_t rank, uint32_t track, std::string_view name);
  /// `arguments` is the inside of a JSON object, or empty.
  void span(uint32_t rank, uint32_t track, uint32_t name, SpanKind kind, SimTime start, SimTime end,
            std::string arguments = {});
  /// An arrow from where a word was written to the wait that this released.
  void arrow(const Writer &from, uint32_t rank, uint32_t track, SimTime released);

  std::string render() const;
  void clear();

  std::vector<LaunchRecord> launches;
  std::vector<CopyRecord> copies;
  std::vector<WaitRecord> waits;

private:
  struct Span {
    uint32_t rank, track, name;
    SpanKind kind;
    SimTime start, end;
    std::string arguments;
  };
  struct Arrow {
    uint32_t fromRank, fromTrack, toRank, toTrack;
    SimTime from, to;
  };
  bool enabled;
  std::vector<std::string> names;
  std::unordered_map<std::string, uint32_t> numbers;
  std::map<std::pair<uint32_t, uint32_t>, std::string> tracks;
  std::vector<Span> spans;
  std::vector<Arrow> arrows;
};

/// The text as a JSON string with its quotes.
std::string jsonString(std::string_view text);

} // namespace ditron::sim

#endif // DITRON_SIM_REPORT_TRACE_H
