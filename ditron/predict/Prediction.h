//===- Prediction.h - How long an operator's call takes on a described machine --------------------------*- C++ -*-===//
//
//   DITRON_ASSIGN_OR_RETURN(const MachineDescription machine, readMachine("h200x8"));
//   DITRON_ASSIGN_OR_RETURN(const Prediction prediction, predict(machine, {.op = Operator::AgGemm, .gpus = 8, .m = 8192, ...}));
//   fmt::print("{}", toText(prediction));
//
// What is simulated is a skeleton of the call: signals, copies and the order of tiles as ditron/ops has them, no arithmetic and no
// memory. Equal requests give equal predictions.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_PREDICTION_H
#define DITRON_PREDICT_PREDICTION_H

#include "ditron/predict/MachineDescription.h"
#include "ditron/predict/Recorder.h"
#include "ditron/predict/Request.h"

namespace ditron::predict {

struct Prediction {
  std::string machine;
  Request request;
  std::string plan;             ///< How the product is cut; empty without one.
  Time us = 0;                  ///< Of the slowest rank.
  Time computeUs = 0;           ///< The same call when nothing between ranks takes time.
  Time communicationUs = 0;     ///< The same call when tiles take no time.
  std::optional<Time> vendorUs; ///< The vendor's libraries one after the other, where the operator has that form.
  uint32_t straggler = 0;       ///< The rank that is done last.
  Time spreadUs = 0;            ///< Between the first and the last rank that is done.
  uint32_t simulatedRanks = 0;
  std::vector<WaitSummary> topWaits;
  std::vector<Span> spans; ///< When the request keeps them.

  Time exposedUs() const { return us - computeUs; }
  /// The part of communication that is hidden: (computation alone + communication alone - both) / communication alone (TileLink,
  /// section 7.2, "overlap ratio"). None without communication.
  std::optional<double> overlapRatio() const {
    return communicationUs > 0 ? std::optional((computeUs + communicationUs - us) / communicationUs) : std::nullopt;
  }
};

/// Refuses requests that make no sense on the machine.
Expected<Prediction> predict(const MachineDescription &machine, const Request &request);
/// Only the time of the slowest rank: a simulation, not four.
Expected<Time> predictTime(const MachineDescription &machine, const Request &request);

/// For people, and for programs.
std::string toText(const Prediction &prediction);
std::string toJson(const Prediction &prediction);

} // namespace ditron::predict
#endif // DITRON_PREDICT_PREDICTION_H
