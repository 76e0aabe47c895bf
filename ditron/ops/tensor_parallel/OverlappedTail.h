//===- OverlappedTail.h - The ragged last wave of a product beside which others copy ------------------------------*- C++ -*-===//
//
// Products of operators that overlap are persistent: block p computes the tiles p, p + blocks, ... Where the last wave has few of them, they are split along K
// as by Gemm (kernels/product/split_tail.py). Nobody waits for a part, so that nothing changes for what waits for tiles.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TENSOR_PARALLEL_OVERLAPPEDTAIL_H
#define DITRON_OPS_TENSOR_PARALLEL_OVERLAPPEDTAIL_H

#include "ditron/ops/PlannedProduct.h"

namespace ditron::ops {

/// A rank's product in a kernel that takes sums_ptr, tile_counter_ptr, whole_tiles and parts.
struct OverlappedProduct {
  GemmProblem problem;
  TileConfig tile;
  uint32_t tailSplits = 0; ///< Of a plan; 0: as many as promise to save time, 1: none.
  uint32_t mostBlocks = 0; ///< That run at once, where the kernel is persistent.

  /// How its last wave is split on a rank's GPU. Nothing where the GPU or the rows allow no tensor copies.
  std::optional<SplitTail> tailOn(const runtime::Rank &rank) const;
  /// For the words of a plan: the parts of each of its last tiles, 0 where they are whole.
  uint32_t partsOn(const runtime::Rank &rank) const;
  /// `call` with the grid and the arguments of the tail, whose sums are in `workspace`.
  Expected<OperandLaunch> launch(runtime::KernelProvider &kernels, runtime::Rank &rank, KernelCall call,
                                 GemmWorkspace &workspace, const OperandLaunch::Names &names) const;
};

} // namespace ditron::ops
#endif // DITRON_OPS_TENSOR_PARALLEL_OVERLAPPEDTAIL_H
