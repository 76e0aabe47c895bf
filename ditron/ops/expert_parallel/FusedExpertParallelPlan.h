//===- FusedExpertParallelPlan.h - How products of experts run beside the exchange of tokens ------------------*- C++ -*-===//
//
//   fused 128x256x64 warps 8 stages 3 group 8 senders 24 unit 16 pace 93 combine 128x256x64 warps 8 stages 3 group 8
//
// Before "combine" is what FusedExpertParallel's first launch does, with the tiles of its product; behind it are the tiles of the second.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_EXPERT_PARALLEL_FUSEDEXPERTPARALLELPLAN_H
#define DITRON_OPS_EXPERT_PARALLEL_FUSEDEXPERTPARALLELPLAN_H

#include "ditron/ops/GemmKernels.h"

namespace ditron::ops {

struct FusedExpertParallelPlan {
  TileConfig dispatchTile, combineTile; ///< Of as many rows: there is one table of tiles.
  uint32_t senders = 24;                ///< Blocks that send before they multiply.
  uint32_t unit = 16;                   ///< Rows that a sender moves together; a power of two.
  /// Rows that a sender moves in the time of a tile: as many tiles the other blocks get before the senders get any.
  uint32_t pace = 93;

  bool operator==(const FusedExpertParallelPlan &) const = default;
  /// As it is read.
  std::string text() const;
};

/// In tables, of layers that are not fused.
inline constexpr std::string_view unfusedPlan = "unfused";
/// Refuses words that there are not, and tiles that do not go together.
Expected<FusedExpertParallelPlan> parseFusedExpertParallelPlan(std::string_view text);

} // namespace ditron::ops
#endif // DITRON_OPS_EXPERT_PARALLEL_FUSEDEXPERTPARALLELPLAN_H
