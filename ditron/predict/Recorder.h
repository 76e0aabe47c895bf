//===- Recorder.h - What happened in a prediction -------------------------------------------------------*- C++ -*-===//
//
// Waits, summed up by the word that was waited for, always; spans for a picture only when they are wanted, since a large product
// has a hundred thousand tiles. A track is a row of the picture.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_RECORDER_H
#define DITRON_PREDICT_RECORDER_H

#include "ditron/predict/Simulation.h"

#include <map>
#include <string>

namespace ditron::predict {

/// Waits of one kernel, or of one stream, for one kind of word: on all ranks.
struct WaitSummary {
  std::string who;    ///< Kernel or stream.
  std::string kind;   ///< The words' names up to the index.
  uint64_t count = 0; ///< Waits that took time.
  Time total = 0, longest = 0;
  uint32_t longestRank = 0; ///< Who waited longest, and for which word.
  std::string longestSignal;
};

struct Span {
  uint32_t rank;
  std::string track, name;
  const char *category; ///< "tile", "wait", "copy", "signal", "kernel", "collective".
  Time start, end;
  double bytes = 0;
};

class Recorder {
public:
  explicit Recorder(bool keepsSpans) : keepsSpans(keepsSpans) {}

  bool isKeeping() const { return keepsSpans; }
  void span(Span span) {
    if (keepsSpans)
      spans.push_back(std::move(span));
  }
  void wait(uint32_t rank, const std::string &who, const std::string &signal, Time start, Time end);

  /// Those with the longest total first.
  std::vector<WaitSummary> topWaits(size_t most) const;
  const std::vector<Span> &allSpans() const { return spans; }

private:
  bool keepsSpans;
  std::vector<Span> spans;
  std::map<std::pair<std::string, std::string>, WaitSummary> waits;
};

/// Chrome trace JSON, which Perfetto opens: a process for each rank, a thread for each track.
std::string renderTrace(const std::vector<Span> &spans);

} // namespace ditron::predict
#endif // DITRON_PREDICT_RECORDER_H
