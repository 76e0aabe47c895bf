//===- Prediction.cpp - How long an operator's call takes on a described machine ------------------------------------===//
#include "ditron/predict/Prediction.h"

#include "ditron/predict/Program.h"

#include "ditron/support/Plural.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ditron::predict {

namespace {

/// More ranks than these are simulated by representatives where that is exact.
constexpr uint32_t mostSimulatedRanks = 256;
constexpr size_t mostWaits = 5;
/// Of all simulated ranks: a few minutes.
constexpr uint64_t mostTiles = uint64_t(1) << 24;

/// Whether all nodes do the same, so that one of them stands for all.
bool haveEqualNodes(const MachineDescription &machine, const Request &request) {
  const ops::RowShards rows(request.m, request.gpus), tokens(request.tokens, request.gpus);
  return request.gpus > machine.node.gpus && request.slowRanks.empty() &&
         rows.rowsPerRank * request.gpus == request.m && tokens.rowsPerRank * request.gpus == request.tokens;
}

Status verifyOnMachine(const MachineDescription &machine, const Request &request) {
  DITRON_RETURN_IF_ERROR(verify(request));
  if (request.gpus > machine.mostGpus())
    return invalidArgument(
        fmt::format("{} has {} GPUs, not {}{}", machine.name, machine.mostGpus(), request.gpus,
                    machine.network.mostNodes == 1 ? "; clusters have a network in their description" : ""));
  if (request.gpus > machine.node.gpus && request.gpus % machine.node.gpus != 0)
    return invalidArgument(fmt::format("{} GPUs are no whole nodes of {}", request.gpus, machine.node.gpus));
  if (machine.gpu.mmaFlopsPerClock(request.dtype) == 0)
    return unsupported(fmt::format("{} has no rate for products of {} in its mma_flops_per_clock_per_sm", machine.name,
                                   ditron::toString(request.dtype)));
  if (request.communicationSms > machine.gpu.smCount)
    return invalidArgument(fmt::format("{} SMs for communication; {} has {}", request.communicationSms, machine.name,
                                       machine.gpu.smCount));
  if (request.usesRepresentatives.value_or(false) && !haveEqualNodes(machine, request))
    return invalidArgument("representatives stand for nodes that all do the same: there must be several, with shards "
                           "of equal size and no slow rank");
  return Status::ok();
}

struct Outcome {
  Time us = 0, spreadUs = 0;
  uint32_t straggler = 0, simulatedRanks = 0;
  std::string plan;
  std::vector<WaitSummary> waits;
  std::vector<Span> spans;
};

Expected<Outcome> simulate(const MachineDescription &machine, const Request &request, double computeScale,
                           double communicationScale, bool keepsSpans) {
  const bool canRepresent = haveEqualNodes(machine, request);
  Fleet fleet(machine, {.gpus = request.gpus,
                        .usesRepresentatives =
                            request.usesRepresentatives.value_or(canRepresent && request.gpus > mostSimulatedRanks),
                        .keepsSpans = keepsSpans,
                        .communicationSms = request.communicationSms,
                        .slowRanks = request.slowRanks,
                        .computeScale = computeScale,
                        .communicationScale = communicationScale});
  Program program(fleet, request);
  program.build();
  if (const uint64_t tiles = program.tilesPerRank(), most = mostTiles / fleet.simulatedRanks(); tiles > most)
    return invalidArgument(fmt::format(
        "the product has {} tiles on each of {}; at most {} are simulated: larger tiles or smaller sizes are accepted",
        tiles, plural(fleet.simulatedRanks(), "simulated rank"), most));
  DITRON_RETURN_IF_ERROR(fleet.simulation.run());
  const std::vector<Time> &finished = program.finished();
  const auto [first, last] = std::ranges::minmax_element(finished);
  return Outcome{*last,
                 *last - *first,
                 static_cast<uint32_t>(last - finished.begin()),
                 fleet.simulatedRanks(),
                 program.plan(),
                 fleet.recorder.topWaits(mostWaits),
                 fleet.recorder.allSpans()};
}

std::string sizesText(const Request &request) {
  std::string text;
  auto add = [&](std::string_view name, int64_t value) {
    if (value != 0)
      text += fmt::format(" {}={}", name, value);
  };
  add("m", request.m);
  add("n", request.n);
  add("k", request.k);
  add("bytes", request.bytes);
  add("tokens", request.tokens);
  add("hidden", request.hidden);
  add("intermediate", request.intermediate);
  add("experts", request.experts);
  add("topk", request.topk);
  add("heads", request.heads);
  add("kv_heads", request.kvHeads);
  add("head_dim", request.headDim);
  add("context", request.context);
  return text;
}

} // namespace

Expected<Time> predictTime(const MachineDescription &machine, const Request &request) {
  DITRON_RETURN_IF_ERROR(verifyOnMachine(machine, request));
  DITRON_ASSIGN_OR_RETURN(const Outcome outcome, simulate(machine, request, 1, 1, false));
  return outcome.us;
}

Expected<Prediction> predict(const MachineDescription &machine, const Request &request) {
  DITRON_RETURN_IF_ERROR(verifyOnMachine(machine, request));
  DITRON_ASSIGN_OR_RETURN(Outcome whole, simulate(machine, request, 1, 1, request.keepsSpans));
  DITRON_ASSIGN_OR_RETURN(const Outcome compute, simulate(machine, request, 1, 0, false));
  Prediction prediction;
  prediction.machine = machine.name;
  prediction.request = request;
  prediction.plan = whole.plan;
  prediction.us = whole.us;
  prediction.computeUs = compute.us;
  if (request.gpus > 1) {
    DITRON_ASSIGN_OR_RETURN(const Outcome communication, simulate(machine, request, 0, 1, false));
    prediction.communicationUs = communication.us;
  }
  prediction.straggler = whole.straggler;
  prediction.spreadUs = whole.spreadUs;
  prediction.simulatedRanks = whole.simulatedRanks;
  prediction.topWaits = std::move(whole.waits);
  prediction.spans = std::move(whole.spans);
  const std::vector<Form> forms = formsOf(request.op);
  if (std::ranges::find(forms, Form::Vendor) != forms.end()) {
    Request vendor = request;
    vendor.form = Form::Vendor;
    vendor.communicationSms = 0;
    DITRON_ASSIGN_OR_RETURN(prediction.vendorUs, predictTime(machine, vendor));
  }
  return prediction;
}

std::string toText(const Prediction &prediction) {
  const Request &request = prediction.request;
  std::string text = fmt::format("{}{}, {}, {}, {} GPU{} of {}\n", toString(request.op), sizesText(request),
                                 ditron::toString(request.dtype), toString(request.form), request.gpus,
                                 request.gpus == 1 ? "" : "s", prediction.machine);
  text += fmt::format("  time                 {:10.1f} us\n", prediction.us);
  if (request.gpus > 1) {
    text += fmt::format("  without communication{:10.1f} us\n", prediction.computeUs);
    text += fmt::format("  communication alone  {:10.1f} us\n", prediction.communicationUs);
    text += fmt::format("  exposed communication{:10.1f} us\n", prediction.exposedUs());
    if (const auto ratio = prediction.overlapRatio())
      text +=
          fmt::format("  overlap ratio        {:10.2f}    (alone + alone - together) / communication alone\n", *ratio);
  }
  if (prediction.vendorUs && request.form != Form::Vendor)
    text +=
        fmt::format("  vendor's libraries   {:10.1f} us{}: {:.2f} times this\n", *prediction.vendorUs,
                    request.op == Operator::Gemm ? "" : ", one after the other", *prediction.vendorUs / prediction.us);
  if (!prediction.plan.empty())
    text += fmt::format("  product              {}\n", prediction.plan);
  if (request.gpus > 1) {
    text += fmt::format("  last rank            {}, {:.1f} us after the first{}\n", prediction.straggler,
                        prediction.spreadUs,
                        prediction.simulatedRanks == request.gpus
                            ? ""
                            : fmt::format("; {} ranks of one node stand for all", prediction.simulatedRanks));
    for (const WaitSummary &wait : prediction.topWaits)
      text += fmt::format(
          "  waits                {:10.1f} us in {} of {} for {}; the longest {:.1f} us, on rank {} for {}\n",
          wait.total, wait.count, wait.who, wait.kind, wait.longest, wait.longestRank, wait.longestSignal);
  }
  return text;
}

std::string toJson(const Prediction &prediction) {
  const Request &request = prediction.request;
  nlohmann::ordered_json json;
  json["machine"] = prediction.machine;
  json["op"] = toString(request.op);
  json["form"] = toString(request.form);
  json["gpus"] = request.gpus;
  json["dtype"] = ditron::toString(request.dtype);
  for (const auto &[name, value] :
       std::initializer_list<std::pair<const char *, int64_t>>{{"m", request.m},
                                                               {"n", request.n},
                                                               {"k", request.k},
                                                               {"bytes", request.bytes},
                                                               {"tokens", request.tokens},
                                                               {"hidden", request.hidden},
                                                               {"intermediate", request.intermediate},
                                                               {"experts", request.experts},
                                                               {"topk", request.topk},
                                                               {"heads", request.heads},
                                                               {"kv_heads", request.kvHeads},
                                                               {"head_dim", request.headDim},
                                                               {"context", request.context}})
    if (value != 0)
      json[name] = value;
  json["time_us"] = prediction.us;
  json["compute_us"] = prediction.computeUs;
  json["communication_us"] = prediction.communicationUs;
  json["exposed_us"] = prediction.exposedUs();
  if (const auto ratio = prediction.overlapRatio())
    json["overlap_ratio"] = *ratio;
  if (prediction.vendorUs)
    json["vendor_us"] = *prediction.vendorUs;
  json["plan"] = prediction.plan;
  json["last_rank"] = prediction.straggler;
  json["spread_us"] = prediction.spreadUs;
  json["simulated_ranks"] = prediction.simulatedRanks;
  json["waits"] = nlohmann::ordered_json::array();
  for (const WaitSummary &wait : prediction.topWaits)
    json["waits"].push_back({{"who", wait.who},
                             {"for", wait.kind},
                             {"count", wait.count},
                             {"total_us", wait.total},
                             {"longest_us", wait.longest},
                             {"longest_rank", wait.longestRank},
                             {"longest_for", wait.longestSignal}});
  return json.dump(2) + "\n";
}

} // namespace ditron::predict
