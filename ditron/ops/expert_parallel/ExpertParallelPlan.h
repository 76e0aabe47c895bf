//===- ExpertParallelPlan.h - How tokens go to their experts and back -----------------------------------------*- C++ -*-===//
//
// The words of expert_parallel.plans and of `ditron bench ep_dispatch|ep_combine --plan`: a form, then what of it is not the default:
//
//   low_latency blocks 128 warps 16 combine_blocks 128 combine_warps 8         few tokens
//   high_throughput blocks 24 warps 16 combine_blocks 24 combine_warps 16 window 8
//   two_level blocks 64 warps 16 combine_blocks 64 combine_warps 8             between nodes
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_EXPERT_PARALLEL_EXPERTPARALLELPLAN_H
#define DITRON_OPS_EXPERT_PARALLEL_EXPERTPARALLELPLAN_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ditron::ops {

enum class ExpertParallelForm {
  LowLatency,     ///< A token straight to each rank of its experts once, and each result straight back.
  HighThroughput, ///< A token to a rank once, through rings, and one sum back. One node.
  TwoLevel,       ///< A token over the wire to a node once, and one sum back. Several nodes.
};
/// low_latency, high_throughput, two_level.
std::string_view toString(ExpertParallelForm form);
/// Whether calls may be cut in sending and receiving.
constexpr bool hasParts(ExpertParallelForm form) { return form != ExpertParallelForm::HighThroughput; }
/// Ok, or why ranks on so many nodes cannot have it.
Status verifyForm(ExpertParallelForm form, uint32_t numNodes);
/// Blocks that wait for each other are as many, or a multiple.
constexpr uint32_t blocksPerChannel(ExpertParallelForm form) {
  return form == ExpertParallelForm::HighThroughput ? 2 : 1;
}

struct ExpertParallelPlan {
  ExpertParallelForm form = ExpertParallelForm::LowLatency;
  uint32_t blocks = 16, numWarps = 8;               ///< Of dispatch; warps are a power of two.
  uint32_t combineBlocks = 16, combineNumWarps = 8; ///< Of combine.
  uint32_t window = 8; ///< high_throughput: tokens that are told of at once, for which a ring has 4 such places.

  bool operator==(const ExpertParallelPlan &) const = default;
  /// As it is read.
  std::string text() const;
};

/// Refuses forms and words that there are not.
Expected<ExpertParallelPlan> parseExpertParallelPlan(std::string_view text);

} // namespace ditron::ops
#endif // DITRON_OPS_EXPERT_PARALLEL_EXPERTPARALLELPLAN_H
