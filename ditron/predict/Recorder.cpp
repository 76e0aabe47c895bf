//===- Recorder.cpp - What happened in a prediction -----------------------------------------------------------------===//
#include "ditron/predict/Recorder.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ditron::predict {

void Recorder::wait(uint32_t rank, const std::string &who, const std::string &signal, Time start, Time end) {
  if (end <= start)
    return;
  const std::string kind = signal.substr(0, signal.find('['));
  WaitSummary &summary = waits[{who, kind}];
  summary.who = who;
  summary.kind = kind;
  ++summary.count;
  summary.total += end - start;
  if (end - start <= summary.longest * (1 + 1e-9)) // equal but for rounding: the first
    return;
  summary.longest = end - start;
  summary.longestRank = rank;
  summary.longestSignal = signal;
}

std::vector<WaitSummary> Recorder::topWaits(size_t most) const {
  std::vector<WaitSummary> sorted;
  for (const auto &[key, summary] : waits)
    sorted.push_back(summary);
  std::ranges::stable_sort(sorted, std::ranges::greater(), &WaitSummary::total);
  if (sorted.size() > most)
    sorted.resize(most);
  return sorted;
}

static int64_t wholeNanoseconds(double microseconds) { return std::llround(microseconds * 1000); }
/// Nanoseconds as the format's microseconds, exactly.
static std::string microseconds(int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string renderTrace(const std::vector<Span> &spans) {
  std::map<std::pair<uint32_t, std::string>, uint32_t> tracks;
  for (const Span &span : spans)
    tracks.try_emplace({span.rank, span.track}, 0);
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  uint32_t number = 0, lastRank = UINT32_MAX;
  for (auto &[key, id] : tracks) {
    id = ++number;
    if (key.first != lastRank)
      text += fmt::format(
          "{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {}, \"args\": {{\"name\": \"rank {}\"}}}},\n",
          key.first, key.first);
    lastRank = key.first;
    text += fmt::format(
        "{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, \"args\": {{\"name\": {}}}}},\n",
        key.first, id, nlohmann::json(key.second).dump());
  }
  for (const Span &span : spans) {
    // Whole nanoseconds: were start and length rounded apart, spans that follow each other would cross.
    const int64_t start = wholeNanoseconds(span.start), end = wholeNanoseconds(span.end);
    text +=
        fmt::format("{{\"ph\": \"X\", \"name\": {}, \"cat\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": {}, \"dur\": {}",
                    nlohmann::json(span.name).dump(), span.category, span.rank, tracks[{span.rank, span.track}],
                    microseconds(start), microseconds(end - start));
    if (span.bytes > 0)
      text += fmt::format(", \"args\": {{\"bytes\": {:.0f}, \"GB/s\": {:.1f}}}", span.bytes,
                          span.bytes / std::max(span.end - span.start, 1e-6) / 1e3);
    text += "},\n";
  }
  text += "{\"ph\": \"M\", \"name\": \"predicted\", \"pid\": 0, \"args\": {}}\n]}\n";
  return text;
}

} // namespace ditron::predict
