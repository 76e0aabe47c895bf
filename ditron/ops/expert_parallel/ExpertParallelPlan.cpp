//===- ExpertParallelPlan.cpp - The words of plans of expert parallelism ------------------------------------------------===//
#include "ditron/ops/expert_parallel/ExpertParallelPlan.h"

#include "ditron/ops/plans/PlanWords.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

std::string_view toString(ExpertParallelForm form) {
  switch (form) {
  case ExpertParallelForm::LowLatency: return "low_latency";
  case ExpertParallelForm::HighThroughput: return "high_throughput";
  case ExpertParallelForm::TwoLevel: return "two_level";
  }
  return "?";
}

Status verifyForm(ExpertParallelForm form, uint32_t numNodes) {
  if (form == ExpertParallelForm::HighThroughput && numNodes > 1)
    return unsupported(fmt::format("expert_parallel by {} on {} nodes; {} and {} are accepted", toString(form),
                                   numNodes, toString(ExpertParallelForm::LowLatency),
                                   toString(ExpertParallelForm::TwoLevel)));
  if (form == ExpertParallelForm::TwoLevel && numNodes == 1)
    return unsupported(fmt::format("expert_parallel by {} on one node; {} and {} are accepted", toString(form),
                                   toString(ExpertParallelForm::LowLatency),
                                   toString(ExpertParallelForm::HighThroughput)));
  return Status::ok();
}

std::string ExpertParallelPlan::text() const {
  std::string text = fmt::format("{} blocks {} warps {} combine_blocks {} combine_warps {}", toString(form), blocks,
                                 numWarps, combineBlocks, combineNumWarps);
  if (form == ExpertParallelForm::HighThroughput)
    text += fmt::format(" window {}", window);
  return text;
}

Expected<ExpertParallelPlan> parseExpertParallelPlan(std::string_view text) {
  constexpr uint32_t mostBlocks = 1024, mostWarps = 32;
  PlanWords words(text);
  ExpertParallelPlan plan;
  constexpr ExpertParallelForm forms[] = {ExpertParallelForm::LowLatency, ExpertParallelForm::HighThroughput,
                                          ExpertParallelForm::TwoLevel};
  const auto *named =
      std::ranges::find_if(forms, [&](ExpertParallelForm form) { return toString(form) == words.first(); });
  if (named == std::end(forms))
    return invalidArgument(fmt::format("'{}' is no form of expert_parallel; {}, {} and {} are accepted", words.first(),
                                       toString(forms[0]), toString(forms[1]), toString(forms[2])));
  plan.form = *named;
  DITRON_RETURN_IF_ERROR(words.number("blocks", 1, mostBlocks, plan.blocks));
  DITRON_RETURN_IF_ERROR(words.number("warps", 1, mostWarps, plan.numWarps));
  DITRON_RETURN_IF_ERROR(words.number("combine_blocks", 1, mostBlocks, plan.combineBlocks));
  DITRON_RETURN_IF_ERROR(words.number("combine_warps", 1, mostWarps, plan.combineNumWarps));
  if (plan.form == ExpertParallelForm::HighThroughput)
    DITRON_RETURN_IF_ERROR(words.number("window", 1, 64, plan.window));
  DITRON_RETURN_IF_ERROR(words.finish());
  for (uint32_t warps : {plan.numWarps, plan.combineNumWarps})
    if (!std::has_single_bit(warps))
      return invalidArgument(fmt::format("plan '{}': {} warps; powers of two are accepted", text, warps));
  for (uint32_t blocks : {plan.blocks, plan.combineBlocks})
    if (blocks % blocksPerChannel(plan.form) != 0)
      return invalidArgument(
          fmt::format("plan '{}': {} blocks; {} has two for each channel", text, blocks, toString(plan.form)));
  return plan;
}

} // namespace ditron::ops
