//===- ExpertParallelPlan.cpp - The words of plans of expert parallelism ------------------------------------------------===//
#include "ditron/ops/expert_parallel/ExpertParallelPlan.h"

#include "ditron/ops/plans/PlanWords.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

std::string_view toString(ExpertParallelForm form) {
  switch (form) {
  case ExpertParallelForm::LowLatency: return "low_latency";
  }
  return "?";
}

std::string ExpertParallelPlan::text() const {
  return fmt::format("{} blocks {} warps {} combine_blocks {} combine_warps {}", toString(form), blocks, numWarps,
                     combineBlocks, combineNumWarps);
}

Expected<ExpertParallelPlan> parseExpertParallelPlan(std::string_view text) {
  constexpr uint32_t mostBlocks = 1024, mostWarps = 32;
  PlanWords words(text);
  ExpertParallelPlan plan;
  if (words.first() != toString(plan.form))
    return invalidArgument(fmt::format("'{}' is no form of expert_parallel; {} is accepted", words.first(),
                                       toString(ExpertParallelForm::LowLatency)));
  DITRON_RETURN_IF_ERROR(words.number("blocks", 1, mostBlocks, plan.blocks));
  DITRON_RETURN_IF_ERROR(words.number("warps", 1, mostWarps, plan.numWarps));
  DITRON_RETURN_IF_ERROR(words.number("combine_blocks", 1, mostBlocks, plan.combineBlocks));
  DITRON_RETURN_IF_ERROR(words.number("combine_warps", 1, mostWarps, plan.combineNumWarps));
  DITRON_RETURN_IF_ERROR(words.finish());
  for (uint32_t warps : {plan.numWarps, plan.combineNumWarps})
    if (!std::has_single_bit(warps))
      return invalidArgument(fmt::format("plan '{}': {} warps; powers of two are accepted", text, warps));
  return plan;
}

} // namespace ditron::ops
