//===- ExpertParallelPlan.cpp - The words of plans of expert parallelism ------------------------------------------------===//
#include "ditron/ops/expert_parallel/ExpertParallelPlan.h"

#include "ditron/ops/plans/PlanWords.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

std::string_view toString(ExpertParallelForm form) {
  switch (form) {
  case ExpertParallelForm::LowLatency: return "low_latency";
  case ExpertParallelForm::HighThroughput: return "high_throughput";
  }
  return "?";
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
  constexpr ExpertParallelForm low = ExpertParallelForm::LowLatency, high = ExpertParallelForm::HighThroughput;
  if (words.first() != toString(low) && words.first() != toString(high))
    return invalidArgument(fmt::format("'{}' is no form of expert_parallel; {} and {} are accepted", words.first(),
                                       toString(low), toString(high)));
  plan.form = words.first() == toString(low) ? low : high;
  DITRON_RETURN_IF_ERROR(words.number("blocks", 1, mostBlocks, plan.blocks));
  DITRON_RETURN_IF_ERROR(words.number("warps", 1, mostWarps, plan.numWarps));
  DITRON_RETURN_IF_ERROR(words.number("combine_blocks", 1, mostBlocks, plan.combineBlocks));
  DITRON_RETURN_IF_ERROR(words.number("combine_warps", 1, mostWarps, plan.combineNumWarps));
  if (plan.form == high)
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
